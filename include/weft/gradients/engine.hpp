#ifndef WEFT_GRADIENTS_ENGINE_HPP
#define WEFT_GRADIENTS_ENGINE_HPP
// The bodies of `gradients`: which nodes lie between the xs and the ys, and the walk back over them, following TensorFlow's tf.gradients.

#include <weft/gradients/custom_gradient.hpp>
#include <weft/gradients/gradient_context.hpp>
#include <weft/gradients/gradients.hpp>
#include <weft/graph/scope.hpp>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#if WEFT_HAS_BODIES
namespace weft {
namespace detail {

// One call of `gradients`.
class gradient_builder {
 public:
  gradient_builder(const gradient_ys& ys, const std::vector<output>& xs, const gradient_options& options)
      : ys_(ys.outputs()), xs_(xs), options_(options), registry_(options.registry != nullptr ? *options.registry : standard_gradients()), site_(ys.site()) {}

  std::vector<gradient_output> run() {
    std::vector<gradient_output> out(xs_.size());
    if (xs_.empty()) return out;
    check();
    graph_state& to = xs_[0].from->owner();
    const std::string scope = claim_name(to, op_name(options_.name, site_), "gradients");
    const name_scope_object names(&scope_context::name_scope, scope);
    mark();
    start();
    while (at_ < ready_.size()) differentiate(*ready_[at_++]);
    for (std::size_t i = 0; i < xs_.size(); ++i) out[i] = gradient_of(xs_[i]);
    if (options_.gate == gradient_gate::graph) gate(out, to);
    return out;
  }

 private:
  void check() const;
  void mark();
  void start();
  gradient_output first_gradient(std::size_t i) const;
  void differentiate(const node& n);
  void call_rule(const node& n, std::vector<gradient_output> arrived);
  gradient_output sum(const node& n, std::vector<gradient_output>& parts) const;
  output sum_by_device(const std::vector<gradient_output>& parts, call_site site) const;
  gradient_output concat_rows(const std::vector<gradient_output>& parts, const gradient_context& make) const;
  gradient_output gradient_of(const output& x) const;
  void gate(std::vector<gradient_output>& all, graph_state& to) const;

  bool between(const node* n) const noexcept { return static_cast<std::size_t>(n->id()) < first_slot_.size() && first_slot_[static_cast<std::size_t>(n->id())] >= 0; }
  // The gradients that arrived for an output of a node between xs and ys.
  std::vector<gradient_output>& slot(const output& o) { return arrived_[static_cast<std::size_t>(first_slot_[static_cast<std::size_t>(o.from->id())] + o.index)]; }
  int& pending(const node* n) { return pending_[static_cast<std::size_t>(n->id())]; }

  const std::vector<output>& ys_;
  const std::vector<output>& xs_;
  const gradient_options& options_;
  const gradient_registry& registry_;
  call_site site_;
  // By node id: where its outputs' gradients are (-1 for a node that is not between), how many of its consumers are still to come, whether it is a stop.
  std::vector<int> first_slot_, pending_;
  std::vector<bool> stops_, is_x_;
  std::vector<std::vector<gradient_output>> arrived_;
  std::vector<const node*> ready_;
  std::size_t at_ = 0;
};

inline void gradient_builder::check() const {
  const graph_state* owner = nullptr;
  const auto belongs = [&](const output& o, const char* what) {
    if (o.from == nullptr) throw error(error_code::invalid_argument, std::string("gradients: ") + what + " is an empty tensor, not made by any op", site_);
    if (o.index < 0 || o.index >= o.from->output_count())
      throw error(error_code::invalid_argument, "gradients: '" + o.from->name() + "' has " + std::to_string(o.from->output_count()) + " outputs, asked for number " + std::to_string(o.index), site_);
    if (owner != nullptr && owner != &o.from->owner())
      throw error(error_code::invalid_argument, "gradients: '" + o.from->name() + "' belongs to another graph; all tensors must be in one graph", site_);
    owner = &o.from->owner();
  };
  for (const output& x : xs_) belongs(x, "an x");
  for (const output& y : ys_) belongs(y, "a y");
  if (!options_.grad_ys.empty() && options_.grad_ys.size() != ys_.size())
    throw error(error_code::invalid_argument, "gradients: expected one of grad_ys for each of " + std::to_string(ys_.size()) + " ys, found " + std::to_string(options_.grad_ys.size()), site_);
  for (const gradient_output& g : options_.grad_ys)
    if (!g.empty()) belongs(g.values(), "one of grad_ys");
  for (const operation& stop : options_.stop_gradients)
    if (stop.get() != nullptr && &stop.get()->owner() != owner)
      throw error(error_code::invalid_argument, "gradients: '" + stop.name() + "', which is to stop gradients, belongs to another graph", site_);
  switch (options_.aggregation) {
    case aggregation_method::add_n: case aggregation_method::tree: case aggregation_method::accumulate_n: return;
  }
  throw error(error_code::invalid_argument, "gradients: unknown aggregation method " + std::to_string(static_cast<int>(options_.aggregation)), site_);
}

inline void gradient_builder::mark() {
  // 1. What depends on the xs over differentiable dtypes. Inputs have smaller ids than their consumers.
  int last = -1;
  for (const output& o : ys_) last = std::max(last, o.from->id());
  for (const output& o : xs_) last = std::max(last, o.from->id());
  const auto count = static_cast<std::size_t>(last) + 1;
  std::vector<const node*> all = xs_[0].from->owner().nodes();
  all.resize(count);
  std::vector<bool> reached(count, false);
  is_x_.assign(count, false);
  for (const output& x : xs_) reached[static_cast<std::size_t>(x.from->id())] = is_x_[static_cast<std::size_t>(x.from->id())] = true;
  for (const node* n : all) {
    if (reached[static_cast<std::size_t>(n->id())]) continue;
    for (const output& in : n->inputs())
      if (reached[static_cast<std::size_t>(in.from->id())] && is_trainable(in.from->output_dtype(in.index))) {
        reached[static_cast<std::size_t>(n->id())] = true;
        break;
      }
  }
  // 2. Of that, what the ys depend on.
  first_slot_.assign(count, -1);
  pending_.assign(count, 0);
  stops_.assign(count, false);
  std::vector<const node*> found;
  int slots = 0;
  const auto visit = [&](const node* n) {
    if (!reached[static_cast<std::size_t>(n->id())] || between(n)) return;
    first_slot_[static_cast<std::size_t>(n->id())] = slots;
    slots += n->output_count();
    found.push_back(n);
  };
  for (const output& y : ys_) visit(y.from);
  for (std::size_t i = 0; i < found.size(); ++i)
    for (const output& in : found[i]->inputs()) visit(in.from);
  arrived_.resize(static_cast<std::size_t>(slots));
  // 3. How many edges lead from each of these nodes to another of them; an x none of whose inputs is among them is a stop.
  for (const node* n : found)
    for (const output& in : n->inputs())
      if (between(in.from)) ++pending(in.from);
  for (const output& x : xs_) {
    const auto& inputs = x.from->inputs();
    if (std::none_of(inputs.begin(), inputs.end(), [&](const output& in) { return between(in.from) && pending(in.from) > 0; }))
      stops_[static_cast<std::size_t>(x.from->id())] = true;
  }
  for (const operation& stop : options_.stop_gradients)
    if (stop.get() != nullptr && static_cast<std::size_t>(stop.get()->id()) < count) stops_[static_cast<std::size_t>(stop.get()->id())] = true;
}

inline gradient_output gradient_builder::first_gradient(std::size_t i) const {
  const output y = ys_[i];
  const dtype type = y.from->output_dtype(y.index);
  const gradient_output given = i < options_.grad_ys.size() ? options_.grad_ys[i] : gradient_output();
  const gradient_context make(*y.from, {}, {});
  const std::string name = "grad_ys_" + std::to_string(i);
  if (given.empty()) {
    if (type == dtype::complex64 || type == dtype::complex128)
      y.from->fail_about(error_code::invalid_argument, "the gradient of a complex tensor needs grad_ys; found none for '" + to_text(y) + "'");
    if (type == dtype::boolean || type == dtype::string || type == dtype::resource || type == dtype::variant)
      y.from->fail_about(error_code::invalid_argument, "'" + to_text(y) + "' of dtype " + to_text(type) + " has no gradient; expected a tensor of numbers");
    const output shape = make.shape_of(y);
    const output one = make.constant(scalar_of(1, type), name.c_str());
    return make.add("Fill", {shape, one});
  }
  if (given.dtype() != type)
    y.from->fail_about(error_code::invalid_argument,
                       "the gradient given for '" + to_text(y) + "' has dtype " + to_text(given.dtype()) + ", expected " + to_text(type));
  const auto copy = [&](const output& o, const std::string& text) {
    return output{&add_node("Identity", {o}, op_name(std::string_view(text), y.from->site())), 0};
  };
  if (given.is_dense()) return copy(given.values(), name);
  const indexed_slices rows = given.slices();
  return indexed_slices{copy(rows.values, name + "_values"), copy(rows.indices, name + "_indices"), rows.dense_shape};
}

inline void gradient_builder::start() {
  for (std::size_t i = 0; i < ys_.size(); ++i) {
    const node* from = ys_[i].from;
    if (!between(from)) continue;
    std::vector<const node*> together = thread_scopes().top().colocation;
    together.push_back(from);
    if (options_.colocate_with_ops) {
      const colocation_scope with(std::move(together));
      slot(ys_[i]).push_back(first_gradient(i));
    } else {
      slot(ys_[i]).push_back(first_gradient(i));
    }
  }
  for (const output& y : ys_)
    if (between(y.from) && pending(y.from) == 0 && std::find(ready_.begin(), ready_.end(), y.from) == ready_.end()) ready_.push_back(y.from);
}

inline void gradient_builder::differentiate(const node& n) {
  std::vector<const node*> together = thread_scopes().top().colocation;
  auto devices = thread_scopes().top().devices;
  if (options_.colocate_with_ops) {
    together.push_back(&n);
    devices.clear();
  }
  const scope_object<std::vector<const node*>> colocated(&scope_context::colocation, std::move(together));
  const device_scope on(&scope_context::devices, std::move(devices));

  // 1. One gradient for each output.
  std::vector<gradient_output> arrived;
  bool any = false;
  for (int i = 0; i < n.output_count(); ++i) {
    std::vector<gradient_output>& parts = slot({&n, i});
    if (parts.size() > 1) parts = {sum(n, parts)};
    arrived.push_back(parts.empty() ? gradient_output() : parts[0]);
    any = any || !parts.empty();
  }
  // 2. Through its rule to its inputs.
  if (any && !stops_[static_cast<std::size_t>(n.id())]) call_rule(n, std::move(arrived));
  // 3. An input all of whose consumers are done is next.
  for (const output& in : n.inputs())
    if (between(in.from) && --pending(in.from) == 0) ready_.push_back(in.from);
}

inline void gradient_builder::call_rule(const node& n, std::vector<gradient_output> arrived) {
  const auto* other = n.find_attr<std::string>("_gradient_op_type");
  const std::string& op = other != nullptr ? *other : n.op();
  const std::shared_ptr<const custom_gradient_rule> custom = other != nullptr ? find_custom_gradient(n.owner(), op) : nullptr;
  if (custom == nullptr && !registry_.has(op))
    n.fail_about(error_code::not_found, "no gradient is defined for op '" + op + "'; add a rule to a gradient_registry, or put stop_gradient behind the node if it is to count as a constant");
  const gradient_function rule = custom == nullptr ? registry_.find(op) : nullptr;
  if (custom == nullptr && rule == nullptr) return;

  std::vector<bool> wanted;
  for (const output& in : n.inputs()) wanted.push_back(between(in.from));
  // The scope of this call is fresh and names of nodes are unique, so this one needs no search for a free name.
  const name_scope_object names(&scope_context::name_scope, thread_scopes().top().name_scope + "/" + n.name() + "_grad");
  gradient_context context(n, std::move(arrived), wanted);
  if (custom != nullptr) call_custom_gradient(*custom, context);
  else rule(context);

  std::vector<gradient_output> results = context.results();
  for (std::size_t i = 0; i < results.size(); ++i) {
    const output& in = n.inputs()[i];
    if (results[i].empty()) continue;
    if (!wanted[i]) results[i] = gradient_output();
    else if (results[i].is_dense() && in.from->output_dtype(in.index) != dtype::resource) {
      const partial_shape &expected = in.from->output_shape(in.index), &found = gradient_context::shape(results[i].values());
      if (!merge_shapes(expected, found))
        n.fail_about(error_code::invalid_argument, "the gradient of input " + std::to_string(i) + " has shape " + found.text() + ", expected " + expected.text() + " as the input '" + to_text(in) + "'");
      if (results[i].dtype() != in.from->output_dtype(in.index))
        n.fail_about(error_code::invalid_argument, std::string("the gradient of input ") + std::to_string(i) + " has dtype " + to_text(results[i].dtype()) + ", expected " +
                                                       to_text(in.from->output_dtype(in.index)) + " as the input '" + to_text(in) + "'");
    }
  }
  if (options_.gate == gradient_gate::op) gate(results, n.owner());
  for (std::size_t i = 0; i < results.size(); ++i)
    if (!results[i].empty()) slot(n.inputs()[i]).push_back(results[i]);
}

// Adds what arrived over several paths.
inline gradient_output gradient_builder::sum(const node& n, std::vector<gradient_output>& parts) const {
  const gradient_context make(n, {}, {});
  if (std::all_of(parts.begin(), parts.end(), [](const gradient_output& g) { return g.is_sparse(); })) return concat_rows(parts, make);
  const bool dense = std::all_of(parts.begin(), parts.end(), [](const gradient_output& g) { return g.is_dense(); });
  if (!dense)
    for (gradient_output& g : parts) g = make.dense(g);
  std::vector<output> terms;
  bool known = false;
  for (const gradient_output& g : parts) {
    terms.push_back(g.values());
    known = known || gradient_context::shape(g.values()).fully_known();
  }
  if (!dense) return make.add_list("AddN", std::move(terms));
  if (options_.aggregation == aggregation_method::add_n) return sum_by_device(parts, n.site());
  if (options_.aggregation == aggregation_method::accumulate_n && parts.size() > 2 && known) {
    partial_shape shape = gradient_context::shape(terms[0]);
    for (const output& term : terms) shape = merge_shapes(shape, gradient_context::shape(term)).value_or(shape);
    return make.add_list("AccumulateNV2", std::move(terms), {{"shape", shape}});
  }
  const std::string& outer = thread_scopes().top().name_scope;
  const name_scope_object names(&scope_context::name_scope, n.owner().unique_scope(outer + "/" + n.name() + "_gradient_sum", n.site()));
  output running = terms[0];
  for (std::size_t i = 1; i < terms.size(); ++i) running = make.add("AddN", {running, terms[i]});
  return running;
}

// Terms that ask for one device are added there, with the first of them; then the sums.
inline output gradient_builder::sum_by_device(const std::vector<gradient_output>& parts, call_site site) const {
  std::vector<std::string> devices;
  for (const gradient_output& g : parts)
    if (std::find(devices.begin(), devices.end(), g.values().from->device()) == devices.end()) devices.push_back(g.values().from->device());
  std::sort(devices.begin(), devices.end());
  std::vector<output> sums;
  for (const std::string& device : devices) {
    std::vector<output> terms;
    for (const gradient_output& g : parts)
      if (g.values().from->device() == device) terms.push_back(g.values());
    const node* first = terms[0].from;
    const colocation_scope with({first});
    sums.push_back(terms.size() == 1 ? terms[0] : output{&add_node("AddN", std::move(terms), op_name(site)), 0});
  }
  return sums.size() == 1 ? sums[0] : output{&add_node("AddN", std::move(sums), op_name(site)), 0};
}

inline gradient_output gradient_builder::concat_rows(const std::vector<gradient_output>& parts, const gradient_context& make) const {
  bool wide = false;
  for (const gradient_output& g : parts) wide = wide || gradient_context::dtype_of(g.slices().indices) == dtype::int64;
  std::vector<output> values, indices;
  for (const gradient_output& g : parts) {
    values.push_back(g.values());
    indices.push_back(wide ? make.cast(g.slices().indices, dtype::int64) : g.slices().indices);
  }
  const output axis = make.integer(0);
  values.push_back(axis);
  indices.push_back(axis);
  const auto n = static_cast<std::int64_t>(parts.size());
  return indexed_slices{make.add_list("ConcatV2", std::move(values), {{"N", n}}), make.add_list("ConcatV2", std::move(indices), {{"N", n}}), parts[0].slices().dense_shape};
}

inline gradient_output gradient_builder::gradient_of(const output& x) const {
  const auto id = static_cast<std::size_t>(x.from->id());
  if (between(x.from)) {
    const std::vector<gradient_output>& found = arrived_[static_cast<std::size_t>(first_slot_[id] + x.index)];
    if (!found.empty()) return found[0];
  }
  if (options_.unconnected == unconnected_gradients::none) return {};
  const gradient_context make(*x.from, {}, {});
  if (x.from->output_dtype(x.index) != dtype::resource) return make.zeros_like(x);
  const node* holder = x.from;
  while (holder->op() == "Identity" && !holder->inputs().empty()) holder = holder->inputs()[0].from;
  const dtype* type = holder->find_attr<dtype>("dtype");
  if (type == nullptr) x.from->fail_about(error_code::invalid_argument, "the dtype of what the handle stands for is not known, which zeros for a gradient need");
  const partial_shape* held = holder->find_attr<partial_shape>("shape");
  if (held != nullptr && held->fully_known()) return make.zeros(make.integers(held->sizes()), *type);
  return make.zeros(make.add("VariableShape", {x}), *type);
}

// None of the gradients is there before all are.
inline void gradient_builder::gate(std::vector<gradient_output>& all, graph_state& to) const {
  std::vector<operation> waits;
  for (const gradient_output& g : all)
    if (!g.empty()) waits.emplace_back(*g.values().from);
  if (waits.size() < 2) return;
  const device_scope free_devices(&scope_context::devices, {});
  const scope_object<std::vector<const node*>> free_groups(&scope_context::colocation, {});
  const std::string& outer = thread_scopes().top().name_scope;
  const name_scope_object names(&scope_context::name_scope, to.unique_scope(outer + "/tuple", site_));
  const operation together = group(waits, op_name(site_));
  const auto after = control_dependencies({together});
  for (gradient_output& g : all) {
    if (g.empty()) continue;
    const colocation_scope with({g.values().from});
    const output gated{&add_node("Identity", {g.values()}, op_name("control_dependency", site_)), 0};
    if (g.is_dense()) g = gated;
    else g = indexed_slices{gated, g.slices().indices, g.slices().dense_shape};
  }
}

WEFT_DECL output dense_gradient(const gradient_output& g, call_site) {
  if (!g.is_sparse()) return g.values();
  return gradient_context(*g.values().from, {}, {}).dense(g);
}

}  // namespace detail

WEFT_DECL std::vector<gradient_output> gradients(const gradient_ys& ys, const std::vector<output>& xs, const gradient_options& options) {
  return detail::gradient_builder(ys, xs, options).run();
}

}  // namespace weft
#endif

#endif
