#ifndef WEFT_PARTITION_PARTITIONER_HPP
#define WEFT_PARTITION_PARTITIONER_HPP
// How a placed graph is cut: one pass over its nodes in the order of creation, which adds each to its part and each value that
// crosses to the parts on both sides.

#include <weft/core/config.hpp>
#include <weft/partition/cut_rows.hpp>
#include <weft/partition/partition_options.hpp>
#include <weft/partition/partitioned_graph.hpp>
#include <weft/partition/prune.hpp>
#include <weft/partition/recv_schedule.hpp>
#include <weft/placement/device_set.hpp>
#include <weft/placement/placement.hpp>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#if WEFT_HAS_BODIES
namespace weft::detail {

// Names of the nodes that a cut adds: `x/_send_3` for edge 3; in TensorFlow's form `x_S0` between tasks, `x_G0` between the devices of
// a task, `x/_0` in a session without a cluster.
class cut_names {
 public:
  cut_names(partition_form form, bool is_local) : form_(form), is_local_(is_local) {}
  std::string next(const std::string& source, const char* what, std::int64_t edge, bool between_tasks) {
    if (form_ == partition_form::weft) return source + "/_" + what + "_" + std::to_string(edge);
    const std::string base = source + (std::string_view(what) == "control" ? "/ctrl" : "");
    if (is_local_) return base + "/_" + std::to_string(local_++);
    return base + (between_tasks ? "_S" + std::to_string(between_++) : "_G" + std::to_string(local_++));
  }

 private:
  partition_form form_;
  bool is_local_;
  int between_ = 0, local_ = 0;
};

// The task that feeds come from and fetches go to.
WEFT_DECL std::string master_of(const device_set& devices, const partition_options& options) {
  const std::vector<std::string>& tasks = devices.tasks();
  if (options.master.empty()) return tasks.front();
  std::string task = task_text(parse_device_name(options.master));
  if (std::find(tasks.begin(), tasks.end(), task) == tasks.end()) {
    std::string known;
    for (std::size_t i = 0; i < tasks.size() && i < 32; ++i) known += (i ? ", " : "") + tasks[i];
    fail(error_code::invalid_argument, "the session's task '" + options.master + "' has no devices; tasks that have are " + known + (tasks.size() > 32 ? ", ..." : ""));
  }
  return task;
}

// Whether the node may have the name of one that a cut adds.
inline bool is_hidden(const node& n) { return n.name().find("/_") != std::string::npos; }
inline bool has_hidden_names(const std::vector<const node*>& nodes) {
  return std::any_of(nodes.begin(), nodes.end(), [](const node* n) { return is_hidden(*n); });
}

class partitioner {
 public:
  partitioner(const graph& g, const device_set& devices, const placement& where, const partition_options& options)
      : graph_(g), device_set_(devices), where_(where), options_(options), names_(options.form, devices.is_local()), naming_(options.form == partition_form::weft ? naming::known_free : naming::checked) {}

  partitioned_graph run();

  // A step without fetches, receives that wait and merged nodes may go on when nodes were added to the graph and `where` has placed them: a cut goes through nodes in the order of creation.
  // What the step needs besides; nothing when that would come out otherwise than cut at once. `first` is the first node that was added.
  std::optional<std::vector<const node*>> added_nodes(std::size_t first, const std::vector<const node*>& targets, std::size_t& visited) const;
  // The answer of `run` with these nodes in addition.
  partitioned_graph grow(partitioned_graph earlier, const std::vector<const node*>& added);
  // Goes on with a part that is equal to one of its own.
  void follow(const graph& own, const graph& equal);

 private:
  // Devices and tasks by number, in the order of the device set.
  struct place_of_device {
    std::string name;
    int task = 0;
    std::int64_t incarnation = 0;
    attr_value as_attr;  // the name, which all transfers share
  };
  // A fed value that has arrived at a device.
  struct arrival_key {
    std::int64_t node;
    int slot, device;
    friend bool operator<(const arrival_key& a, const arrival_key& b) noexcept { return std::tie(a.node, a.slot, a.device) < std::tie(b.node, b.slot, b.device); }
  };
  struct arrival {
    const node* value = nullptr;
    std::size_t row = 0;
    const node* last_consumer = nullptr;
  };
  static constexpr int control_slot = cut_row::control_slot;
  static std::size_t at(int i) noexcept { return static_cast<std::size_t>(i); }

  void number_devices();
  void find_substitutes();
  void copy_all(const std::vector<const node*>& nodes);
  partitioned_graph take();
  std::vector<const node*> waited_for(const std::vector<const node*>& targets, std::size_t& visited) const;
  int device_number(const std::string& name, const node& about);
  void check_order(const node& n, const node& input) const;
  void copy(const node& n);
  void add_fetches();
  output value_for(const output& source, const node& consumer, int device);
  const node* control_for(const node& before, const node& consumer, int device);
  const node* arrive(const node& from, int slot, const node& consumer, int device);
  std::size_t row_at(const node& from, int slot, int device);
  output passed_on(std::size_t row) const;
  const node* feed(const output& source, const node& consumer, int device);
  std::size_t send(const node& from, int slot, const output& source, int source_device, int device);
  const node& send_value(const std::string& source, output value, int source_device, int device, output_type type, bool narrow);
  const std::pair<attr_map, attr_map>& attrs_between(int source_device, int device, dtype type);
  const node& cast(const std::string& name, int device, const output& value, dtype from, dtype to, const partial_shape& s);
  const node& add(int device, std::string name, std::string op, std::vector<output> inputs, std::vector<const node*> control, attr_map attrs, std::vector<output_type> outputs,
                  const node* outputs_of = nullptr);
  std::string free_name(std::string name) const;
  static std::string tensor_name(const output& o) { return o.from->name() + ":" + std::to_string(o.index); }
  part& part_of(int device) { return parts_[at(devices_[at(device)].task)]; }

  const graph& graph_;
  const device_set& device_set_;
  const placement& where_;
  const partition_options& options_;
  std::vector<place_of_device> devices_;
  std::vector<int> devices_in_;  // by task: how many
  std::unordered_map<std::string, int> device_numbers_;
  const std::string* last_device_name_ = nullptr;
  int last_device_ = -1;
  std::string master_device_;
  std::vector<part> parts_;  // one per task of the device set; empty ones are dropped at the end
  std::unordered_set<std::uint64_t> fed_;
  cut_names names_;
  // Names of the graph are there once, and weft's form adds none that a node of it has.
  const naming naming_;
  substitution same_;
  bool has_hidden_names_ = false;
  int last_copied_ = -1;
  std::vector<output> inputs_;  // of the node at hand
  std::vector<const node*> control_;
  std::vector<const node*> twins_;  // by node id
  std::vector<int> device_of_;      // by node id
  std::shared_ptr<const cut_devices> cut_devices_;
  cut_rows edges_;
  std::vector<const node*> arrived_;  // by edge: what its consumers read or wait for
  cut_row_index by_device_, by_task_;  // by task where one has several devices
  std::vector<int> each_device_;       // 0, 1, 2, ...
  std::unordered_map<std::uint64_t, std::pair<attr_map, attr_map>> attrs_between_;
  std::map<arrival_key, arrival> fed_arrivals_;
  std::vector<transfer> feeds_, fetches_;
};

WEFT_DECL partitioned_graph partitioner::run() {
  number_devices();
  check_step(graph_, options_.feeds, options_.fetches, options_.targets);
  for (const output& o : options_.feeds) fed_.insert(output_key(o));

  // 1. What the step needs, without what it can do without.
  find_substitutes();
  const std::vector<const node*> needed = prune(graph_, options_.feeds, options_.fetches, options_.targets, same_);
  has_hidden_names_ = has_hidden_names(needed);

  // 2. Each node into the part of its task, after whatever it reads.
  copy_all(needed);

  // 3. What the step gives back.
  add_fetches();
  return take();
}

WEFT_DECL void partitioner::copy_all(const std::vector<const node*>& nodes) {
  twins_.resize(where_.size());
  device_of_.resize(where_.size(), -1);
  const bool whole = options_.fetches.empty() && options_.targets.empty();
  for (const node* n : nodes) {
    if (whole && !where_.has(*n)) continue;  // the whole graph is what was placed; nodes may have been added since
    copy(*n);
    last_copied_ = n->id();
  }
}

// Feeds and fetches are numbered after the edges, so that the edges count from 0.
WEFT_DECL partitioned_graph partitioner::take() {
  auto next = static_cast<std::int64_t>(edges_.rows.size());
  for (auto* rows : {&feeds_, &fetches_})
    for (transfer& t : *rows) t.edge = next++;
  std::vector<part> used;
  for (part& p : parts_)
    if (p.graph.size() != 0) used.push_back(std::move(p));
  if (options_.schedule_recvs) recv_scheduler(used, options_).run();
  transfer_table rows({}, std::move(feeds_), std::move(fetches_));
  edges_.words = std::make_shared<const cut_words>(cut_words{graph_.state(), cut_devices_, where_, options_.bfloat16_sendrecv});
  rows.cut_ = std::move(edges_);
  return {std::move(used), std::move(rows), where_};
}

WEFT_DECL void partitioner::number_devices() {
  std::map<std::string, int> tasks;
  for (const std::string& task : device_set_.tasks()) {
    tasks.emplace(task, static_cast<int>(parts_.size()));
    parts_.push_back({task, graph(graph_.ops()), {}, {}});
  }
  for (std::size_t i = 0; i < device_set_.size(); ++i) {
    const device& d = device_set_.devices()[i];
    device_numbers_.emplace(d.name, static_cast<int>(i));
    const std::string name = options_.form == partition_form::tensorflow ? to_full_text(device_set_.names()[i]) : d.name;
    devices_.push_back({name, tasks[task_text(device_set_.names()[i])], static_cast<std::int64_t>(d.incarnation), attr_value(name)});
  }
  devices_in_.resize(parts_.size());
  const auto numbers = std::make_shared<cut_devices>();
  for (const place_of_device& d : devices_) {
    ++devices_in_[at(d.task)];
    each_device_.push_back(static_cast<int>(numbers->names.size()));
    numbers->names.push_back(d.name);
    numbers->tasks.push_back(d.task);
  }
  cut_devices_ = numbers;
  if (parts_.empty()) fail(error_code::failed_precondition, "no devices are registered; add at least one to the device_set");
  master_device_ = master_of(device_set_, options_) + "/device:CPU:0";
}

WEFT_DECL void partitioner::find_substitutes() {
  if (!options_.merge_equal_nodes && !options_.skip_identities) return;
  simplify_options passes;
  passes.merge_equal_nodes = options_.merge_equal_nodes;
  passes.skip_identities = options_.skip_identities;
  passes.keep = options_.targets;
  for (const auto* outputs : {&options_.feeds, &options_.fetches})
    for (const output& o : *outputs) passes.keep.push_back(o.from);
  same_ = simplify(graph_, where_, passes);
}

WEFT_DECL int partitioner::device_number(const std::string& name, const node& about) {
  if (last_device_ >= 0 && *last_device_name_ == name) return last_device_;
  const auto it = device_numbers_.find(name);
  if (it == device_numbers_.end()) about.fail_about(error_code::invalid_argument, "is placed on '" + name + "', which is not in the device set");
  last_device_name_ = &it->first;
  last_device_ = it->second;
  return it->second;
}

WEFT_DECL void partitioner::check_order(const node& n, const node& input) const {
  if (input.id() >= n.id()) n.fail_about(error_code::invalid_argument, "is part of a cycle through '" + input.name() + "'");
}

WEFT_DECL void partitioner::copy(const node& n) {
  const int device = device_number(where_.device_of(n), n);
  device_of_[at(n.id())] = device;
  inputs_.clear();
  for (const output& written : n.inputs()) {
    const output in = same_.resolve(written);
    check_order(n, *in.from);
    inputs_.push_back(value_for(in, n, device));
  }
  control_.clear();
  for (const node* written : n.control_inputs()) {
    const node* before = same_.resolve(written);
    check_order(n, *before);
    if (!is_fed_placeholder(*before, fed_)) control_.push_back(control_for(*before, n, device));
  }
  twins_[at(n.id())] = &part_of(device).graph.state()->add_copy(n, inputs_, control_, devices_[at(device)].name, naming_);
}

WEFT_DECL output partitioner::value_for(const output& source, const node& consumer, int device) {
  if (!fed_.empty() && fed_.count(output_key(source)) != 0) return {feed(source, consumer, device), 0};
  if (device_of_[at(source.from->id())] == device) return {twins_[at(source.from->id())], source.index};
  return {arrive(*source.from, source.index, consumer, device), 0};
}

WEFT_DECL const node* partitioner::control_for(const node& before, const node& consumer, int device) {
  return device_of_[at(before.id())] == device ? twins_[at(before.id())] : arrive(before, control_slot, consumer, device);
}

// What stands for the value, or the node to wait for, at a device that is not its own.
WEFT_DECL const node* partitioner::arrive(const node& from, int slot, const node& consumer, int device) {
  const std::size_t row = row_at(from, slot, device);
  edges_.consume(row, consumer.id());
  return arrived_[row];
}

// A value crosses to a task once, to the device of its first consumer there; further devices of that task get it passed on from there.
WEFT_DECL std::size_t partitioner::row_at(const node& from, int slot, int device) {
  const std::int32_t known = by_device_.find(edges_.rows, each_device_, from.id(), slot, device);
  if (known >= 0) return at(known);
  const int home = device_of_[at(from.id())], task = devices_[at(device)].task;
  const bool crosses = devices_[at(home)].task != task, shared = crosses && devices_in_[at(task)] > 1;
  const std::int32_t first = shared ? by_task_.find(edges_.rows, cut_devices_->tasks, from.id(), slot, task) : -1;
  const std::size_t row = first >= 0 ? send(from, slot, passed_on(at(first)), edges_.rows[at(first)].to, device) : send(from, slot, {twins_[at(from.id())], slot}, home, device);
  by_device_.add(edges_.rows, each_device_, static_cast<std::int32_t>(row));
  if (shared && first < 0) by_task_.add(edges_.rows, cut_devices_->tasks, static_cast<std::int32_t>(row));
  return row;
}

// What a further device of the task gets: the value itself; of a control edge what was received, in TensorFlow's form the Identity to wait for.
WEFT_DECL output partitioner::passed_on(std::size_t row) const {
  const node* value = arrived_[row];
  if (edges_.rows[row].slot != control_slot) return {value, 0};
  return options_.form == partition_form::tensorflow ? output{value, control_slot} : value->inputs()[0];
}

// A control edge is sent as an empty constant that waits for the source, and waited for through an Identity, as in TensorFlow. The number of the row.
WEFT_DECL std::size_t partitioner::send(const node& from, int slot, const output& source, int source_device, int device) {
  const bool control = slot == control_slot, tensorflow = options_.form == partition_form::tensorflow, between_tasks = devices_[at(source_device)].task != devices_[at(device)].task;
  const std::size_t row = edges_.rows.size();
  const auto edge = static_cast<std::int64_t>(row);
  const std::string name = tensorflow ? source.from->name() : from.name();
  output_type type = control ? output_type{dtype::float32, partial_shape{0}, false} : from.outputs()[at(slot)];
  type.is_ref = false;

  output value = source;
  if (value.index == control_slot)
    value = {&add(source_device, names_.next(name, "control", edge, between_tasks), "Const", {}, {value.from},
                  {{"dtype", dtype::float32}, {"value", tensor_value(dtype::float32, shape{0})}}, {type}), 0};
  const node* landed = &send_value(name, value, source_device, device, type, !control && options_.bfloat16_sendrecv && between_tasks && type.dtype == dtype::float32);
  if (control) landed = &add(device, names_.next(name, "after", edge, between_tasks), "Identity", {{landed, 0}}, {}, {{"T", dtype::float32}}, {type});
  arrived_.push_back(landed);
  edges_.rows.push_back({from.id(), slot, source_device, device, -1, -1});
  return row;
}

// The pair itself; what arrives.
WEFT_DECL const node& partitioner::send_value(const std::string& source, output value, int source_device, int device, output_type type, bool narrow) {
  const auto edge = static_cast<std::int64_t>(edges_.rows.size());
  const bool between_tasks = devices_[at(source_device)].task != devices_[at(device)].task;
  const auto name = [&](const char* what) { return names_.next(source, what, edge, between_tasks); };
  if (narrow) {
    value = {&cast(name("narrow"), source_device, value, dtype::float32, dtype::bfloat16, type.shape), 0};
    type.dtype = dtype::bfloat16;
  }
  const attr_map of_pair{{"_edge", edge}, {"tensor_name", "edge_" + std::to_string(edge) + "_" + source}};
  const auto& [of_sends, of_receives] = attrs_between(source_device, device, type.dtype);
  const node* const outputs_of = value.from->output_count() == 1 && !value.from->outputs()[0].is_ref ? value.from : nullptr;
  const std::vector<output_type> outputs = outputs_of != nullptr ? std::vector<output_type>() : std::vector<output_type>{type};
  add(source_device, name("send"), "_Send", {value}, {}, attr_map::joined(of_pair, of_sends), {});
  const node& received = add(device, name("recv"), "_Recv", {}, {}, attr_map::joined(of_pair, of_receives), outputs, outputs_of);
  return narrow ? cast(name("widen"), device, {&received, 0}, dtype::bfloat16, dtype::float32, type.shape) : received;
}

// What all pairs between two devices have in common for a dtype: the attributes of their _Send, and of their _Recv.
WEFT_DECL const std::pair<attr_map, attr_map>& partitioner::attrs_between(int source_device, int device, dtype type) {
  const auto [it, fresh] = attrs_between_.try_emplace(static_cast<std::uint64_t>(source_device) << 40 | static_cast<std::uint64_t>(device) << 16 | static_cast<std::uint64_t>(type));
  if (fresh) {
    const place_of_device &from = devices_[at(source_device)], &to = devices_[at(device)];
    const attr_map both{{"client_terminated", false}, {"recv_device", to.as_attr}, {"send_device", from.as_attr}, {"send_device_incarnation", from.incarnation}};
    it->second = {both, both};
    it->second.first["T"] = type;
    it->second.second["tensor_type"] = type;
  }
  return it->second;
}

WEFT_DECL const node& partitioner::cast(const std::string& name, int device, const output& value, dtype from, dtype to, const partial_shape& s) {
  return add(device, name, "Cast", {value}, {}, {{"SrcT", from}, {"DstT", to}, {"Truncate", to == dtype::bfloat16}}, {{to, s, false}});
}

WEFT_DECL const node* partitioner::feed(const output& source, const node& consumer, int device) {
  arrival& a = fed_arrivals_[{source.from->id(), source.index, device}];
  if (a.value == nullptr) {
    part& p = part_of(device);
    const std::string name = tensor_name(source);
    const auto known = std::find(p.feeds.begin(), p.feeds.end(), name);
    const auto index = static_cast<std::int64_t>(known - p.feeds.begin());
    if (known == p.feeds.end()) p.feeds.push_back(name);
    output_type type = source.from->outputs()[at(source.index)];
    type.is_ref = false;
    transfer t;
    t.kind = transfer_kind::feed;
    t.source = to_text(source);
    t.from = master_device_;
    t.to = devices_[at(device)].name;
    t.dtype = type.dtype;
    t.shape = type.shape;
    t.bytes = bytes_of(type);
    t.between_tasks = p.task + "/device:CPU:0" != master_device_;
    t.reason = "'" + consumer.name() + "' is " + where_.reason_of(consumer);
    a.row = feeds_.size();
    a.value = &add(device, source.from->name() + "/_feed_" + std::to_string(feeds_.size()), "_Arg", {}, {}, {{"T", type.dtype}, {"index", index}}, {type});
    feeds_.push_back(std::move(t));
  }
  if (a.last_consumer != &consumer) feeds_[a.row].consumers.push_back(consumer.name());
  a.last_consumer = &consumer;
  return a.value;
}

WEFT_DECL void partitioner::add_fetches() {
  std::unordered_set<std::uint64_t> done;
  for (const output& o : options_.fetches) {
    // What is fed is known without running anything.
    if (fed_.count(output_key(o)) != 0 || !done.insert(output_key(o)).second) continue;
    const int device = device_of_[at(o.from->id())];
    part& p = part_of(device);
    const output_type& type = o.from->outputs()[at(o.index)];
    transfer t;
    t.kind = transfer_kind::fetch;
    t.source = to_text(o);
    t.from = devices_[at(device)].name;
    t.to = master_device_;
    t.dtype = type.dtype;
    t.shape = type.shape;
    t.bytes = bytes_of(type);
    t.between_tasks = p.task + "/device:CPU:0" != master_device_;
    t.reason = "fetched";
    add(device, o.from->name() + "/_fetch_" + std::to_string(fetches_.size()), "_Retval", {{twins_[at(o.from->id())], o.index}}, {},
        {{"T", type.dtype}, {"index", static_cast<std::int64_t>(p.fetches.size())}}, {});
    p.fetches.push_back(tensor_name(o));
    fetches_.push_back(std::move(t));
  }
}

// Nodes of the graph that come later must find their names free. Hardly any graph has names like the new ones.
WEFT_DECL std::string partitioner::free_name(std::string name) const {
  while (has_hidden_names_ && graph_.find(name) != nullptr) name += "_";
  return name;
}

WEFT_DECL const node& partitioner::add(int device, std::string name, std::string op, std::vector<output> inputs, std::vector<const node*> control,
                                    attr_map attrs, std::vector<output_type> outputs, const node* outputs_of) {
  node_spec spec;
  spec.op = std::move(op);
  spec.name = free_name(std::move(name));
  spec.exact_name = true;
  spec.inputs = std::move(inputs);
  spec.control_inputs = std::move(control);
  spec.attrs = std::move(attrs);
  spec.scoped = false;
  spec.device = devices_[at(device)].name;
  spec.outputs = std::move(outputs);
  return part_of(device).graph.state()->add(std::move(spec), naming_, outputs_of);
}

}  // namespace weft::detail
#endif

#endif
