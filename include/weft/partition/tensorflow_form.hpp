#ifndef WEFT_PARTITION_TENSORFLOW_FORM_HPP
#define WEFT_PARTITION_TENSORFLOW_FORM_HPP
// The graph of one step as TensorFlow's master sees it before cutting: pruned, with the client's `_Recv` and `_Send` in place of feeds
// and fetches, and small constants copied to each device that reads them.

#include <weft/core/config.hpp>
#include <weft/partition/partitioner.hpp>

#include <algorithm>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#if WEFT_HAS_BODIES
namespace weft::detail {

class tensorflow_step {
 public:
  tensorflow_step(const graph& g, const device_set& devices, const placement& where, const partition_options& options)
      : graph_(g), devices_(devices), where_(where), options_(options), step_(g.ops()) {}

  partitioned_graph run();

 private:
  static constexpr std::int64_t max_copied_elements = 16;
  static std::size_t at(int i) noexcept { return static_cast<std::size_t>(i); }

  void add_feeds();
  void find_consumers(const std::vector<const node*>& needed);
  void copy(const node& n);
  void copy_constant(const node& n);
  void add_fetches();
  output value_for(const output& source, const std::string& device);
  std::vector<const node*> waited_for(const node& n);
  const node& add_client(const char* op, const char* prefix, const output& about, std::vector<output> inputs, std::int64_t index);
  const node& place(const node& made, const std::string& device, std::string reason);
  bool is_copied(const node& n) const;

  const graph& graph_;
  const device_set& devices_;
  const placement& where_;
  const partition_options& options_;
  graph step_;
  std::string master_;
  std::vector<placed_node> placed_;                            // of the step's graph
  std::vector<const node*> twins_;                             // by node id of the given graph
  std::vector<std::vector<std::string>> readers_;              // devices that read a constant, in order; by node id
  std::vector<char> is_waited_for_;                            // whether a control edge starts there; by node id
  std::unordered_map<std::uint64_t, const node*> fed_;         // output -> `_recv_x_0`
  std::unordered_map<std::string, const node*> copies_;        // constant and device -> its copy
  std::vector<transfer> feeds_, fetches_;
};


WEFT_DECL partitioned_graph tensorflow_step::run() {
  if (devices_.empty()) fail(error_code::failed_precondition, "no devices are registered; add at least one to the device_set");
  master_ = master_of(devices_, options_) + "/device:CPU:0";
  if (devices_.find(master_) == nullptr && !(options_.feeds.empty() && options_.fetches.empty()))
    fail(error_code::invalid_argument, "feeds and fetches pass through '" + master_ + "' in TensorFlow's form, and there is no such device");
  twins_.resize(where_.size());

  // 1. The graph of the step.
  check_step(graph_, options_.feeds, options_.fetches, options_.targets);
  add_feeds();
  const std::vector<const node*> needed = prune(graph_, options_.feeds, options_.fetches, options_.targets);
  find_consumers(needed);
  for (const node* n : needed) {
    if (is_copied(*n)) copy_constant(*n);
    else copy(*n);
  }
  add_fetches();

  // 2. Its parts.
  partition_options cut = options_;
  cut.feeds.clear();
  cut.fetches.clear();
  cut.targets.clear();
  cut.merge_equal_nodes = cut.skip_identities = false;
  partitioned_graph parts = partitioner(step_, devices_, placement(std::move(placed_)), cut).run();

  // 3. What the client sends and receives belongs to the part of the session's task.
  std::vector<part> with_client = parts.parts();
  for (part& p : with_client)
    if (p.task + "/device:CPU:0" == master_) {
      for (const transfer& t : feeds_) p.feeds.push_back(t.source.find(':') == std::string::npos ? t.source + ":0" : t.source);
      for (const transfer& t : fetches_) p.fetches.push_back(t.source.find(':') == std::string::npos ? t.source + ":0" : t.source);
    }
  auto next = static_cast<std::int64_t>(parts.transfers().size());
  for (auto* rows : {&feeds_, &fetches_})
    for (transfer& t : *rows) t.edge = next++;
  std::vector<transfer> edges(parts.transfers().begin(), parts.transfers().end());
  return {std::move(with_client), transfer_table(std::move(edges), std::move(feeds_), std::move(fetches_)), where_};
}

WEFT_DECL const node& tensorflow_step::place(const node& made, const std::string& device, std::string reason) {
  placed_.push_back({device, std::move(reason)});
  return made;
}

// `_Recv` and `_Send` that the client ends; `_Arg` and `_Retval` in a session without a cluster.
WEFT_DECL const node& tensorflow_step::add_client(const char* op, const char* prefix, const output& about, std::vector<output> inputs, std::int64_t index) {
  const bool enters = inputs.empty();
  output_type type = about.from->outputs()[at(about.index)];
  type.is_ref = false;
  const std::string full = to_full_text(parse_device_name(master_));
  node_spec spec;
  spec.name = prefix + about.from->name() + "_" + std::to_string(about.index);
  spec.op = op;
  if (devices_.is_local()) {
    spec.name += "_" + std::to_string(index);
    spec.attrs = {{"T", type.dtype}, {"index", index}};
  } else {
    spec.attrs = {{enters ? "tensor_type" : "T", type.dtype}, {"tensor_name", about.from->name() + ":" + std::to_string(about.index)}, {"send_device", full},
                  {"recv_device", full}, {"send_device_incarnation", std::int64_t{0}}, {"client_terminated", true}};
  }
  spec.exact_name = true;
  spec.inputs = std::move(inputs);
  spec.scoped = false;
  spec.outputs = enters ? std::vector<output_type>{type} : std::vector<output_type>{};
  transfer t;
  t.kind = enters ? transfer_kind::feed : transfer_kind::fetch;
  t.source = to_text(about);
  t.from = t.to = full;
  t.dtype = type.dtype;
  t.shape = type.shape;
  t.consumers = {spec.name};
  t.reason = enters ? "fed" : "fetched";
  (enters ? feeds_ : fetches_).push_back(std::move(t));
  return place(step_.add(std::move(spec)), master_, "the client's");
}

WEFT_DECL void tensorflow_step::add_feeds() {
  for (const output& o : options_.feeds) {
    const node*& entry = fed_[output_key(o)];
    if (entry == nullptr)
      entry = devices_.is_local() ? &add_client("_Arg", "_arg_", o, {}, static_cast<std::int64_t>(feeds_.size())) : &add_client("_Recv", "_recv_", o, {}, 0);
  }
}

WEFT_DECL void tensorflow_step::find_consumers(const std::vector<const node*>& needed) {
  readers_.resize(where_.size());
  is_waited_for_.resize(where_.size(), 0);
  const auto read = [&](const output& o, const std::string& device) {
    auto& list = readers_[at(o.from->id())];
    if (o.from->op() == "Const" && fed_.count(output_key(o)) == 0 && std::find(list.begin(), list.end(), device) == list.end()) list.push_back(device);
  };
  for (const node* n : needed) {
    for (const output& in : n->inputs()) read(in, where_.device_of(*n));
    for (const node* before : n->control_inputs()) is_waited_for_[at(before->id())] = 1;
  }
  for (const output& o : options_.fetches) read(o, master_);
}

WEFT_DECL bool tensorflow_step::is_copied(const node& n) const {
  if (n.op() != "Const" || is_waited_for_[at(n.id())] != 0 || readers_[at(n.id())].size() < 2) return false;
  if (std::find(options_.targets.begin(), options_.targets.end(), &n) != options_.targets.end()) return false;
  const tensor_value* value = n.find_attr<tensor_value>("value");
  return value != nullptr && value->elements() <= max_copied_elements;
}

WEFT_DECL output tensorflow_step::value_for(const output& source, const std::string& device) {
  if (const auto fed = fed_.find(output_key(source)); fed != fed_.end()) return {fed->second, 0};
  if (const auto copy = copies_.find(source.from->name() + "@" + device); copy != copies_.end()) return {copy->second, 0};
  return {twins_[at(source.from->id())], source.index};
}

// A fed placeholder is waited for as what the client sends.
WEFT_DECL std::vector<const node*> tensorflow_step::waited_for(const node& n) {
  std::vector<const node*> out;
  for (const node* before : n.control_inputs()) {
    const auto fed = is_placeholder(*before) ? fed_.find(output_key({before, 0})) : fed_.end();
    out.push_back(fed == fed_.end() ? twins_[at(before->id())] : fed->second);
  }
  return out;
}

WEFT_DECL void tensorflow_step::copy(const node& n) {
  const std::string& device = where_.device_of(n);
  std::vector<output> inputs;
  for (const output& in : n.inputs()) inputs.push_back(value_for(in, device));
  twins_[at(n.id())] = &place(step_.add_copy(n, std::move(inputs), waited_for(n), n.device()), device, where_.reason_of(n));
}

WEFT_DECL void tensorflow_step::copy_constant(const node& n) {
  int number = 0;
  for (const std::string& device : readers_[at(n.id())]) {
    node_spec spec;
    spec.op = n.op();
    spec.name = n.name() + "/replicate/_" + std::to_string(number++);
    spec.exact_name = true;
    spec.control_inputs = waited_for(n);
    spec.attrs = n.attrs();
    spec.site = n.site();
    spec.scoped = false;
    spec.outputs = n.outputs();
    copies_[n.name() + "@" + device] = &place(step_.add(std::move(spec)), device, "copy of '" + n.name() + "'");
  }
}

WEFT_DECL void tensorflow_step::add_fetches() {
  std::unordered_set<std::uint64_t> done;
  for (const output& o : options_.fetches) {
    if (!done.insert(output_key(o)).second) continue;
    if (devices_.is_local()) add_client("_Retval", "_retval_", o, {value_for(o, master_)}, static_cast<std::int64_t>(fetches_.size()));
    else add_client("_Send", "_send_", o, {value_for(o, master_)}, 0);
  }
}

}  // namespace weft::detail
#endif

#endif
