#ifndef WEFT_TRAIN_REPLICATE_HPP
#define WEFT_TRAIN_REPLICATE_HPP
// In-graph replication: one graph that holds a tower for each device, and the mean of their gradients, taken beside the variables, on the first tower, or by passing slices around a ring.

#include <weft/core/config.hpp>
#include <weft/graph/scope.hpp>
#include <weft/ops/control.hpp>
#include <weft/train/formula.hpp>
#include <weft/train/optimizer.hpp>
#include <weft/train/variable_scope.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace weft {

/// Where the gradients of the towers are averaged. On the variables: each gradient goes from its tower to where the variable is, once. On
/// the first tower: so do all, and one goes on to the variable. Ring: each tower adds its part to slices that pass from tower to tower
/// (reduce-scatter), so that no link carries more than 2 (n - 1) / n of the gradients; sparse ones are averaged on the variables.
enum class gradient_averaging { on_variables, on_first_tower, ring };

/// Whether all towers use the same variables, or each has its own, which stay equal because each gets the same gradients.
enum class tower_variables { shared, mirrored };

/// How towers are built and their gradients averaged.
struct replicate_options {
  gradient_averaging averaging = gradient_averaging::on_variables;
  tower_variables variables = tower_variables::shared;
  /// Where variables go that a tower makes, e.g. `replica_device_setter(cluster)`; on the tower's device when empty.
  device_function variables_on{};
  /// How gradients are computed; its list of variables counts only when they are shared.
  compute_gradients_options gradients{};
  /// The towers' name scopes: `tower_0`, `tower_1`, ...
  std::string name = "tower";
};

/// What the towers give.
template <class T> struct replicated {
  /// The mean of the towers' losses.
  tensor<T, 0> loss;
  /// The loss of each tower.
  std::vector<tensor<T, 0>> losses;
  /// The mean gradients, for `apply_gradients`; of mirrored variables one for each tower's.
  std::vector<grad_and_variable> gradients;
  /// Gives the mirrored variables of all towers the values of the first one's; run it once they are initialized. Empty when variables are shared.
  operation synchronize;
};

namespace detail {

// The scopes of one tower. Its variable scope reuses variables if they are shared; else their names begin with the tower's.
struct tower_scope {
  name_scope_object names;
  device_scope device;
  scope_object<std::shared_ptr<const void>> variables;
};
std::shared_ptr<const void> variables_of_tower(tower_variables how);

// Towers in the making.
class replication {
 public:
  replication(int towers, std::vector<std::string> devices, const replicate_options& options, call_site site);
  tower_scope enter(int tower);
  // Takes the loss of the tower whose scopes are active, and adds its gradients.
  void add(int tower, const output& loss);
  output mean_loss() const;
  std::vector<grad_and_variable> mean_gradients() const;
  operation synchronize() const;

 private:
  const std::string& device(std::size_t tower) const { return devices_[tower % devices_.size()]; }
  std::size_t towers() const { return gradients_.size(); }
  // The gradients of one variable, as every tower has them.
  std::vector<gradient_output> of_variable(std::size_t v) const;
  gradient_output mean_on_variable(std::size_t v, const any_variable& at) const;
  gradient_output mean_on_first_tower(std::size_t v) const;
  // The means of some variables' dense gradients, all of one dtype, on each of the first `targets` towers.
  std::vector<std::vector<output>> ring(const std::vector<std::size_t>& variables, std::size_t targets) const;
  void ring_means(std::vector<std::vector<grad_and_variable>>& means) const;

  std::vector<std::string> devices_;
  replicate_options options_;
  call_site site_;
  std::size_t made_before_ = 0;
  std::vector<output> losses_;
  std::vector<std::vector<grad_and_variable>> gradients_;
};

}  // namespace detail

/// Calls `body(tower)` for each tower, under its own name scope and device (the devices in turn), and averages the gradients of the losses
/// that it returns, scalars of a floating dtype. Shared variables are made before, or in the body by `get_variable`, which finds in later
/// towers what the first one made. Throws INVALID_ARGUMENT when a later tower makes variables of its own, unless they are mirrored.
template <class Body>
auto replicate(int towers, std::vector<std::string> devices, Body&& body, const replicate_options& options = {}, call_site where = call_site::here()) {
  using loss_type = std::decay_t<decltype(body(0))>;
  using T = typename loss_type::dtype;
  static_assert(loss_type::rank == 0, "weft: the body of replicate returns the loss of its tower, a scalar tensor");
  detail::replication build(towers, std::move(devices), options, where);
  replicated<T> out;
  for (int i = 0; i < towers; ++i) {
    const detail::tower_scope scope = build.enter(i);
    out.losses.push_back(body(i));
    build.add(i, out.losses.back().raw());
  }
  out.loss = tensor<T, 0>(build.mean_loss());
  out.gradients = build.mean_gradients();
  out.synchronize = build.synchronize();
  return out;
}

}  // namespace weft

#if WEFT_HAS_TRAIN_BODIES
namespace weft::detail {

WEFT_DECL replication::replication(int towers, std::vector<std::string> devices, const replicate_options& options, call_site site) : devices_(std::move(devices)), options_(options), site_(site) {
  if (towers < 1) throw error(error_code::invalid_argument, "replicate: there must be at least one tower, found " + std::to_string(towers), site);
  if (devices_.empty()) throw error(error_code::invalid_argument, "replicate: there must be at least one device", site);
  for (const std::string& device : devices_) (void)parse_device_name(device, site);
}

WEFT_DECL std::shared_ptr<const void> variables_of_tower(tower_variables how) {
  variable_scope_value value = get_variable_scope();
  if (how == tower_variables::mirrored) value.name = (value.name.empty() ? "" : value.name + "/") + thread_scopes().top().name_scope;
  else if (value.options.reuse == variable_reuse::none) value.options.reuse = variable_reuse::automatic;
  return std::make_shared<const variable_scope_value>(std::move(value));
}

WEFT_DECL tower_scope replication::enter(int tower) {
  made_before_ = current_graph()->collection("trainable_variables").size();
  const std::string on = device(static_cast<std::size_t>(tower)), name = options_.name + "_" + std::to_string(tower);
  using variables_object = scope_object<std::shared_ptr<const void>>;
  if (!options_.variables_on) return {name_scope(name, site_), with_device(on, site_), variables_object(&scope_context::variables, variables_of_tower(options_.variables))};
  return {name_scope(name, site_), with_device([on, elsewhere = options_.variables_on](const node& n) {
            return n.op() == "VarHandleOp" ? elsewhere(n) : to_text(merge_override(parse_device_name(on), parse_device_name(n.device(), n.site())));
          }),
          variables_object(&scope_context::variables, variables_of_tower(options_.variables))};
}

WEFT_DECL void replication::add(int tower, const output& loss) {
  if (loss.from == nullptr) throw error(error_code::invalid_argument, "replicate: the loss of tower " + std::to_string(tower) + " is an empty tensor, not made by any op", site_);
  compute_gradients_options how = options_.gradients;
  std::vector<const node*> made = current_graph()->collection("trainable_variables");
  made.erase(made.begin(), made.begin() + static_cast<std::ptrdiff_t>(std::min(made_before_, made.size())));
  if (options_.variables == tower_variables::mirrored) {
    how.variables.clear();
    for (const node* n : made) how.variables.emplace_back(output{n, 0});
    if (made.empty()) throw error(error_code::invalid_argument, "replicate: tower " + std::to_string(tower) + " made no trainable variables to mirror", site_);
  } else if (tower > 0 && !made.empty()) {
    throw error(error_code::invalid_argument, "replicate: tower " + std::to_string(tower) + " made the variable '" + made[0]->name() +
                                                  "', but towers share their variables; make them before or by get_variable, or ask for mirrored variables", site_);
  }
  gradients_.push_back(compute_gradients(gradient_ys(std::vector<output>{loss}, site_), how, "replicate"));
  losses_.push_back(loss);
  const std::size_t expected = gradients_[0].size(), found = gradients_.back().size();
  if (found != expected)
    throw error(error_code::invalid_argument, "replicate: tower 0 has " + std::to_string(expected) + " trainable variables, tower " + std::to_string(tower) + " has " + std::to_string(found), site_);
  for (std::size_t v = 0; v < expected; ++v)
    if (const any_variable &one = gradients_[0][v].variable, &other = gradients_.back()[v].variable; one.dtype() != other.dtype() || one.shape() != other.shape())
      throw error(error_code::invalid_argument, "replicate: '" + other.name() + "' of shape " + other.shape().text() + " cannot mirror '" + one.name() + "' of shape " + one.shape().text(), site_);
}

// The sum of tensors, times a factor.
WEFT_DECL output scaled_sum(const std::vector<output>& terms, double factor, call_site site) {
  const term sum = terms.size() == 1 ? term{terms[0], site} : apply("AddN", terms, site, {{"N", static_cast<std::int64_t>(terms.size())}});
  return factor == 1 ? sum.value : (sum * number_like(factor, sum)).value;
}

WEFT_DECL output replication::mean_loss() const {
  const auto there = with_device(device(0), site_);
  const name_scope_object names(&scope_context::name_scope, claim_name(losses_[0].from->owner(), op_name(site_), "mean_loss"));
  return scaled_sum(losses_, 1. / static_cast<double>(losses_.size()), site_);
}

WEFT_DECL std::vector<gradient_output> replication::of_variable(std::size_t v) const {
  std::vector<gradient_output> out;
  for (const auto& tower : gradients_)
    if (!tower[v].gradient.empty()) out.push_back(tower[v].gradient);
  return out;
}

// The mean where the scopes say: of rows, all rows; of rows and tensors, a tensor. A tower without a gradient counts as zero.
WEFT_DECL gradient_output mean_here(std::vector<gradient_output> parts, std::size_t towers, call_site site) {
  const double factor = 1. / static_cast<double>(towers);
  if (parts.empty()) return {};
  const bool rows = std::all_of(parts.begin(), parts.end(), [](const gradient_output& g) { return g.is_sparse(); });
  std::vector<output> values, indices;
  for (gradient_output& g : parts) {
    if (!rows && g.is_sparse()) g = dense_gradient(g, site);
    values.push_back(g.values());
    if (rows) indices.push_back(cast({g.slices().indices, site}, dtype::int64).value);
  }
  if (!rows) return scaled_sum(values, factor, site);
  if (parts.size() == 1) return factor == 1 ? parts[0] : gradient_output(indexed_slices{scaled_sum(values, factor, site), parts[0].slices().indices, parts[0].slices().dense_shape});
  const output axis{&add_const(tensor_value::scalar(std::int32_t{0}), op_name("axis", site), &values[0].from->owner()), 0};
  const attr_map count{{"N", static_cast<std::int64_t>(values.size())}};
  values.push_back(axis);
  indices.push_back(axis);
  const term all = apply("ConcatV2", values, site, count);
  return indexed_slices{(all * number_like(factor, all)).value, apply("ConcatV2", indices, site, count).value, parts[0].slices().dense_shape};
}

WEFT_DECL gradient_output replication::mean_on_variable(std::size_t v, const any_variable& at) const {
  const auto with = colocate_with(operation(at.get()), site_);
  return mean_here(of_variable(v), towers(), site_);
}

WEFT_DECL gradient_output replication::mean_on_first_tower(std::size_t v) const {
  const auto there = with_device(device(0), site_);
  return mean_here(of_variable(v), towers(), site_);
}

WEFT_DECL std::vector<std::vector<output>> replication::ring(const std::vector<std::size_t>& variables, std::size_t targets) const {
  const std::size_t n = towers();
  graph_state& to = losses_[0].from->owner();
  const auto sizes_as_constant = [&](const std::vector<std::int64_t>& sizes) {
    return output{&add_const(tensor_value::from<std::int64_t>({static_cast<std::int64_t>(sizes.size())}, sizes), op_name(site_), &to), 0};
  };
  const auto integer = [&](std::int32_t i) { return output{&add_const(tensor_value::scalar(i), op_name(site_), &to), 0}; };
  const auto concat = [&](std::vector<output> parts) {
    if (parts.size() == 1) return parts[0];
    const auto count = static_cast<std::int64_t>(parts.size());
    parts.push_back(integer(0));
    return apply("ConcatV2", std::move(parts), site_, {{"N", count}}).value;
  };
  const auto split = [&](const output& x, const std::vector<std::int64_t>& sizes) {
    std::vector<output> out{x};
    if (sizes.size() == 1) return out;
    const node* made = apply("SplitV", {x, sizes_as_constant(sizes), integer(0)}, site_, {{"num_split", static_cast<std::int64_t>(sizes.size())}}).value.from;
    out.clear();
    for (int i = 0; i < made->output_count(); ++i) out.push_back({made, i});
    return out;
  };

  // 1. One vector for each tower, cut into as many slices as there are towers.
  std::vector<std::int64_t> lengths, slices;
  std::int64_t total = 0;
  for (const std::size_t v : variables) {
    const any_variable& about = gradients_[0][v].variable;
    const partial_shape shape = about.shape();
    if (!shape.fully_known()) throw error(error_code::invalid_argument, "replicate: a ring needs the shapes of the variables, that of '" + about.name() + "' is " + shape.text(), site_);
    std::int64_t length = 1;
    for (const std::int64_t size : shape.sizes()) length *= size;
    lengths.push_back(length);
    total += length;
  }
  const auto parts = static_cast<std::int64_t>(n);
  for (std::int64_t i = 0; i < parts; ++i) slices.push_back(total / parts + (i < total % parts ? 1 : 0));
  std::vector<std::vector<output>> own(n);
  for (std::size_t t = 0; t < n; ++t) {
    const auto there = with_device(device(t), site_);
    std::vector<output> flat;
    for (const std::size_t v : variables) flat.push_back(apply("Reshape", {gradients_[t][v].gradient.values(), sizes_as_constant({-1})}, site_).value);
    own[t] = split(concat(std::move(flat)), slices);
  }

  // 2. Reduce-scatter: slice s starts on tower s, and each tower that it comes to adds its own; the last one scales it.
  std::vector<output> done(n);
  for (std::size_t s = 0; s < n; ++s) {
    output sum = own[s][s];
    for (std::size_t hop = 1; hop < n; ++hop) {
      const std::size_t t = (s + hop) % n;
      const auto there = with_device(device(t), site_);
      sum = apply("AddV2", {sum, own[t][s]}, site_).value;
    }
    const auto there = with_device(device((s + n - 1) % n), site_);
    done[s] = scaled_sum({sum}, 1. / static_cast<double>(n), site_);
  }

  // 3. All-gather: each slice goes on around the ring. Where one tower is all that needs them, they go straight to it.
  std::vector<std::vector<output>> gathered(targets, done);
  if (targets == n)
    for (std::size_t s = 0; s < n; ++s) {
      output passed = done[s];
      for (std::size_t hop = 1; hop < n; ++hop) {
        const std::size_t t = (s + n - 1 + hop) % n;
        const auto there = with_device(device(t), site_);
        passed = apply("Identity", {passed}, site_).value;
        gathered[t][s] = passed;
      }
    }

  // 4. The gradients again.
  std::vector<std::vector<output>> out(targets);
  for (std::size_t t = 0; t < targets; ++t) {
    const auto there = with_device(device(t), site_);
    const std::vector<output> flat = split(concat(gathered[t]), lengths);
    for (std::size_t i = 0; i < variables.size(); ++i) out[t].push_back(apply("Reshape", {flat[i], sizes_as_constant(gradients_[0][variables[i]].variable.shape().sizes())}, site_).value);
  }
  return out;
}

// The means that a ring can take; dtype by dtype.
WEFT_DECL void replication::ring_means(std::vector<std::vector<grad_and_variable>>& means) const {
  std::vector<dtype> types;
  std::vector<std::vector<std::size_t>> members;
  for (std::size_t v = 0; v < gradients_[0].size(); ++v) {
    if (!std::all_of(gradients_.begin(), gradients_.end(), [v](const auto& tower) { return tower[v].gradient.is_dense(); })) continue;
    const dtype type = gradients_[0][v].variable.dtype();
    const auto at = static_cast<std::size_t>(std::find(types.begin(), types.end(), type) - types.begin());
    if (at == types.size()) {
      types.push_back(type);
      members.emplace_back();
    }
    members[at].push_back(v);
  }
  for (const auto& group : members) {
    const auto found = ring(group, means.size());
    for (std::size_t t = 0; t < means.size(); ++t)
      for (std::size_t i = 0; i < group.size(); ++i) means[t][group[i]].gradient = found[t][i];
  }
}

WEFT_DECL std::vector<grad_and_variable> replication::mean_gradients() const {
  // For each set of variables, that of all towers or those of each, the mean of every variable's gradients.
  const std::size_t sets = options_.variables == tower_variables::mirrored ? towers() : 1, count = gradients_[0].size();
  std::vector<std::vector<grad_and_variable>> means(gradients_.begin(), gradients_.begin() + static_cast<std::ptrdiff_t>(sets));
  if (towers() > 1) {
    const name_scope_object names(&scope_context::name_scope, claim_name(losses_[0].from->owner(), op_name(site_), "mean_gradients"));
    for (auto& set : means)
      for (auto& one : set) one.gradient = gradient_output();
    if (options_.averaging == gradient_averaging::ring) ring_means(means);
    for (std::size_t v = 0; v < count; ++v) {
      if (options_.averaging == gradient_averaging::on_first_tower) {
        const gradient_output mean = mean_on_first_tower(v);
        for (auto& set : means) set[v].gradient = mean;
        continue;
      }
      for (auto& set : means)
        if (set[v].gradient.empty()) set[v].gradient = mean_on_variable(v, set[v].variable);
    }
  }
  std::vector<grad_and_variable> out;
  for (const auto& set : means) out.insert(out.end(), set.begin(), set.end());
  return out;
}

WEFT_DECL operation replication::synchronize() const {
  if (options_.variables != tower_variables::mirrored) return operation();
  const name_scope_object names(&scope_context::name_scope, claim_name(losses_[0].from->owner(), op_name(site_), "synchronize"));
  std::vector<operation> all;
  for (std::size_t v = 0; v < gradients_[0].size(); ++v) {
    const any_variable& first = gradients_[0][v].variable;
    const auto home = colocate_with(operation(first.get()), site_);
    const output value = first.read(op_name(site_));
    for (std::size_t t = 1; t < towers(); ++t) {
      const any_variable& copy = gradients_[t][v].variable;
      const auto free = colocate_with(nullptr);
      const auto there = colocate_with(operation(copy.get()), site_);
      all.push_back(copy.assign(value, op_name(site_)));
    }
  }
  return group(all, op_name(site_));
}

}  // namespace weft::detail
#endif

#endif
