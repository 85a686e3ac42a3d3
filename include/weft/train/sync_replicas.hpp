#ifndef WEFT_TRAIN_SYNC_REPLICAS_HPP
#define WEFT_TRAIN_SYNC_REPLICAS_HPP
// Synchronous training of replicas: workers push gradients, one update is made of those of several workers, and each worker waits for it. Follows TensorFlow's
// SyncReplicasOptimizer, without its wasted passes unless asked for.

#include <weft/core/config.hpp>
#include <weft/graph/scope.hpp>
#include <weft/ops/accumulator.hpp>
#include <weft/ops/control.hpp>
#include <weft/ops/queue.hpp>
#include <weft/train/moving_averages.hpp>
#include <weft/train/optimizer.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace weft {

/// What decides when a pass of a worker counts.
enum class sync_order : unsigned char {
  /// Exactly `replicas_to_aggregate` passes make an update, none is wasted as long as its worker is not late, all variables see the same passes, and each pass learns whether it counted.
  exact,
  /// As TensorFlow does: accumulators and a queue of tokens, with the same names and the same lost passes. Graphs of it run in TensorFlow.
  tensorflow
};

/// Options of a sync_replicas_optimizer.
struct sync_replicas_options {
  /// Workers there are; 0 for as many as are aggregated. More: the slowest of a step are backup, their passes are stale. Fewer: workers make several passes for an update.
  std::int64_t total_num_replicas = 0;
  sync_order order = sync_order::exact;
  /// Updated after each update of the variables.
  exponential_moving_average* variable_averages = nullptr;
  std::vector<averaged> variables_to_average{};
  /// The scope of its nodes; state on the tasks is named after it, so that each optimizer of a graph has its own.
  std::string name = "sync_replicas";
};

/// Wraps an optimizer so that its updates are made from the mean gradients of several replicas. Each worker builds the same graph and runs what `apply_gradients` returns; it ends when the update is made
/// that the pass was for. The chief, one of the workers, also makes the updates: `sync_replica` does that and what must be initialised.
class sync_replicas_optimizer final : public optimizer {
 public:
  /// `inner` must live as long as this. Throws INVALID_ARGUMENT when a number is not positive.
  sync_replicas_optimizer(optimizer& inner, std::int64_t replicas_to_aggregate, sync_replicas_options options = {});

  std::vector<grad_and_variable> compute_gradients(const gradient_ys& loss, const compute_gradients_options& options = {}) override { return inner_.compute_gradients(loss, options); }
  /// The pass of a worker: pushes the gradients, waits for the update. The counter, an int64, is needed: it tells which gradients are stale. Throws INVALID_ARGUMENT without one, FAILED_PRECONDITION
  /// when called twice.
  WEFT_INLINE operation apply_gradients(const std::vector<grad_and_variable>& gradients, const any_variable& global_step = {}, op_name name = {}) override;
  std::vector<std::string> slot_names() const override { return inner_.slot_names(); }
  std::vector<any_variable> variables() const override { return inner_.variables(); }

  std::int64_t replicas_to_aggregate() const noexcept { return aggregate_; }
  std::int64_t total_num_replicas() const noexcept { return total_; }
  sync_order order() const noexcept { return options_.order; }

  // The following throw FAILED_PRECONDITION before `apply_gradients`.

  /// The chief's work for one update, which waits until there are enough gradients: mean, update, counter, release of the workers.
  operation chief_step() const { return made(chief_step_); }
  /// Ends the chief's wait for gradients with CANCELLED, and waits that begin before the next `chief_init`; an update that has begun is finished. Only in exact order.
  operation chief_interrupt() const { return made(chief_interrupt_); }
  /// Waits until there is a chief that makes updates; only in exact order.
  operation chief_begun() const { return made(chief_begun_); }
  /// Tells the others that this worker makes no more passes, or, `chief_leave`, that the chief makes no more updates: passes that would wait in vain end with OUT_OF_RANGE. Only in exact order.
  operation leave() const { return made(leave_); }
  operation chief_leave() const { return made(chief_leave_); }
  /// What the chief runs once the variables are initialised or restored, before any worker's pass.
  operation chief_init() const { return made(chief_init_); }
  /// What each other worker runs before its first pass.
  operation local_init() const { return made(local_init_); }
  /// TensorFlow's order: puts tokens of the current step in the queue, -1 for as many as are aggregated. Throws INVALID_ARGUMENT for fewer than the first update needs.
  operation init_tokens(std::int64_t num_tokens = -1, op_name name = {});
  /// The step that the worker's next pass is for, a local variable on its task.
  any_variable local_step() const;
  /// Fetched with a pass: whether its gradients were part of the update (of which one cannot be sure in TensorFlow's order).
  tensor<bool, 0> counted() const;
  /// TensorFlow's order: the queue of tokens.
  queue_base token_queue() const;
  /// One for each variable with a gradient, in their order.
  const std::vector<accumulator_base>& accumulators() const noexcept { return accumulators_; }
  /// In exact order: how many gradients an accumulator holds, and what empties it when it holds some, by its position.
  const std::vector<tensor<std::int32_t, 0>>& held() const noexcept { return held_; }
  const std::vector<operation>& drains() const noexcept { return drains_; }

 protected:
  const node& apply_dense(const output&, const output& variable) override { refuse(variable); }
  const node& apply_rows(const output&, const output&, const output& variable) override { refuse(variable); }

 private:
  struct taken {
    std::vector<grad_and_variable> gradients;
    std::vector<operation> pushes;
  };
  [[noreturn]] static void refuse(const output& variable) { variable.from->fail_about(error_code::internal, "a synchronous optimizer leaves updates to the one that it wraps"); }
  const operation& made(const operation& op) const;
  void make_local_step(const any_variable& global_step, const std::string& name, call_site site);
  taken accumulate(const std::vector<grad_and_variable>& gradients, const output& stamp, const std::vector<operation>& ready, const std::string& scope, call_site site);
  operation apply_exactly(const std::vector<grad_and_variable>& gradients, const any_variable& global_step, const op_name& name);
  operation apply_with_tokens(const std::vector<grad_and_variable>& gradients, const any_variable& global_step, const op_name& name);
  operation finish_update(const operation& released);
  void make_chief_init(const any_variable& global_step, std::vector<operation> first, call_site site);

  optimizer& inner_;
  std::int64_t aggregate_, total_;
  sync_replicas_options options_;
  any_variable global_step_, local_step_;
  std::vector<accumulator_base> accumulators_;
  std::vector<tensor<std::int32_t, 0>> held_;
  std::vector<operation> drains_;
  operation chief_step_, chief_interrupt_, chief_begun_, leave_, chief_leave_, chief_init_, local_init_, train_op_;
  output counted_, queue_;
};

}  // namespace weft

#if WEFT_HAS_TRAIN_BODIES

#include <algorithm>
#include <utility>

namespace weft {

WEFT_DECL sync_replicas_optimizer::sync_replicas_optimizer(optimizer& inner, std::int64_t replicas_to_aggregate, sync_replicas_options options)
    : optimizer(options.name), inner_(inner), aggregate_(replicas_to_aggregate), total_(options.total_num_replicas == 0 ? replicas_to_aggregate : options.total_num_replicas), options_(std::move(options)) {
  if (aggregate_ < 1 || total_ < 1 || aggregate_ > INT32_MAX || total_ > INT32_MAX)
    fail(error_code::invalid_argument, "the numbers of replicas must be positive, found " + std::to_string(aggregate_) + " to aggregate of " + std::to_string(total_));
}

WEFT_DECL const operation& sync_replicas_optimizer::made(const operation& op) const {
  if (train_op_.empty()) fail(error_code::failed_precondition, name() + ": call apply_gradients first");
  if (op.empty()) fail(error_code::failed_precondition, name() + ": this order of synchronisation has no such operation");
  return op;
}

WEFT_DECL any_variable sync_replicas_optimizer::local_step() const {
  (void)made(train_op_);
  return local_step_;
}

WEFT_DECL tensor<bool, 0> sync_replicas_optimizer::counted() const {
  (void)made(train_op_);
  if (counted_.from == nullptr) fail(error_code::failed_precondition, name() + ": in TensorFlow's order a pass does not learn whether it counted");
  return tensor<bool, 0>(counted_);
}

WEFT_DECL queue_base sync_replicas_optimizer::token_queue() const {
  (void)made(train_op_);
  if (queue_.from == nullptr) fail(error_code::failed_precondition, name() + ": the exact order has no tokens");
  return queue_base(queue_);
}

WEFT_DECL operation sync_replicas_optimizer::apply_gradients(const std::vector<grad_and_variable>& gradients, const any_variable& global_step, op_name name) {
  const auto refuse_call = [&](error_code code, const std::string& why) { throw error(code, this->name() + ": " + why, name.site); };
  if (!train_op_.empty()) refuse_call(error_code::failed_precondition, "apply_gradients was called before; make another optimizer for other gradients");
  if (gradients.empty() || std::all_of(gradients.begin(), gradients.end(), [](const grad_and_variable& one) { return one.gradient.empty(); }))
    refuse_call(error_code::invalid_argument, "no variable has a gradient");
  if (global_step.empty()) refuse_call(error_code::invalid_argument, "a global step is needed to tell which gradients are stale");
  if (global_step.dtype() != dtype::int64) refuse_call(error_code::invalid_argument, std::string("the global step must be int64, found ") + to_text(global_step.dtype()));
  if (&global_step.get().owner() != detail::current_graph().get()) refuse_call(error_code::invalid_argument, "the global step belongs to another graph than the default one");
  global_step_ = global_step;
  train_op_ = options_.order == sync_order::exact ? apply_exactly(gradients, global_step, name) : apply_with_tokens(gradients, global_step, name);
  return train_op_;
}

// Anchored to the worker, lest it is put with the parameters.
WEFT_DECL void sync_replicas_optimizer::make_local_step(const any_variable& global_step, const std::string& name, call_site site) {
  const node& anchor = detail::add_node("NoOp", {}, op_name(site));
  {
    const auto with = colocate_with(operation(anchor), site);
    local_step_ = any_variable(detail::add_variable(dtype::int64, tensor_value::scalar(std::int64_t{0}), variable_kind::local, op_name(std::string_view(name), site)).handle);
  }
  const output now = global_step.read(op_name(site));
  local_init_ = operation(detail::add_node("AssignVariableOp", {local_step_.handle(), now}, op_name(site), {{"dtype", dtype::int64}}));
}

// An accumulator for each gradient, where its variable is; what is pushed, and what is taken after `ready`.
WEFT_DECL sync_replicas_optimizer::taken sync_replicas_optimizer::accumulate(const std::vector<grad_and_variable>& gradients, const output& stamp, const std::vector<operation>& ready, const std::string& scope, call_site site) {
  const bool exact = options_.order == sync_order::exact;
  const op_name here(site);
  taken out;
  for (const grad_and_variable& one : gradients) {
    if (one.gradient.empty()) {
      out.gradients.push_back(one);
      continue;
    }
    const auto device = with_device(one.variable.device(), site);
    const bool sparse = one.gradient.is_sparse();
    const dtype type = one.gradient.dtype();
    const std::string shared = exact ? scope + "/" + one.variable.name() + "/grad_accum" : one.variable.name() + ":0/grad_accum";
    attr_map attrs{{"dtype", type}, {"shape", sparse ? (exact ? one.variable.shape() : partial_shape()) : one.variable.shape()}, {"shared_name", shared},
                   {"reduction_type", std::string(sparse && exact ? "SUM" : "MEAN")}};
    const output handle{&detail::add_node(sparse ? "SparseConditionalAccumulator" : "ResourceConditionalAccumulator", {},
                                          op_name(sparse ? "sparse_conditional_accumulator" : "conditional_accumulator", site), std::move(attrs)), 0};
    const accumulator_base accumulator(handle);
    // 1. The push.
    std::vector<detail::op_input> inputs;
    inputs.reserve(4);
    inputs.emplace_back(stamp);
    attr_map push{{"dtype", type}};
    if (sparse) {
      output indices = one.gradient.slices().indices;
      if (indices.from->output_dtype(indices.index) != dtype::int64) indices = {&detail::add_node("Cast", {indices}, here, {{"SrcT", indices.from->output_dtype(indices.index)}, {"DstT", dtype::int64}}), 0};
      inputs.emplace_back(indices);
      inputs.emplace_back(one.gradient.values());
      inputs.emplace_back("gradient_shape", tensor_value(dtype::int64, shape{0}));
      push.emplace("has_known_shape", false);
    } else {
      inputs.emplace_back(one.gradient.values());
    }
    out.pushes.emplace_back(detail::add_accumulator_op(handle, "ApplyGradient", std::move(inputs), std::move(push), here));
    // 2. What the chief takes.
    const auto take = [&](std::int64_t n, const op_name& as) -> const node& {
      return detail::add_accumulator_op(handle, "TakeGradient", {{"num_required", tensor_value::scalar(static_cast<std::int32_t>(n))}}, {{"dtype", type}}, as);
    };
    const node& mean = [&]() -> const node& {
      const auto after = control_dependencies(ready);
      return take(aggregate_, here);
    }();
    if (!sparse) {
      out.gradients.emplace_back(gradient_output(output{&mean, 0}), one.variable);
    } else {
      output rows{&mean, 1};
      if (exact) rows = {&detail::add_node("RealDiv", {rows, {&detail::add_const(detail::scalar_of(static_cast<double>(aggregate_), type), here, &handle.from->owner()), 0}}, here), 0};
      out.gradients.emplace_back(gradient_output(indexed_slices{rows, {&mean, 0}, {&mean, 2}}), one.variable);
    }
    if (exact) {
      held_.push_back(accumulator.num_accumulated(op_name("held", site)));
      drains_.emplace_back(take(1, op_name("drain", site)));
    }
    accumulators_.push_back(accumulator);
  }
  return out;
}

WEFT_DECL operation sync_replicas_optimizer::finish_update(const operation& released) {
  if (options_.variable_averages == nullptr) return released;
  const auto after = control_dependencies({released});
  return options_.variable_averages->apply(options_.variables_to_average);
}

WEFT_DECL void sync_replicas_optimizer::make_chief_init(const any_variable& global_step, std::vector<operation> first, call_site site) {
  for (const accumulator_base& a : accumulators_) {
    const auto device = with_device(a.raw().from->device(), site);
    first.emplace_back(detail::add_accumulator_op(a.raw(), "SetGlobalStep", {global_step.read(op_name(site))}, {}, op_name("SetGlobalStep", site)));
  }
  chief_init_ = group(first, op_name(site));
}

WEFT_DECL operation sync_replicas_optimizer::apply_exactly(const std::vector<grad_and_variable>& gradients, const any_variable& global_step, const op_name& name) {
  const call_site site = name.site;
  const op_name here(site);
  const auto scope_object = name_scope(name.text.empty() ? std::string_view(this->name()) : name.text, site);
  const std::string scope = detail::thread_scopes().top().name_scope;
  make_local_step(global_step, "local_step", site);
  // 1. The pass asks to count once its gradients are there: its step, the only thing that the barrier is sent, is read after them.
  output barrier, stamp, ticket, mine;
  operation ready;
  {
    std::vector<operation> computed;
    for (const grad_and_variable& one : gradients)
      if (!one.gradient.empty()) computed.emplace_back(*one.gradient.values().from);
    const auto after = control_dependencies(computed);
    mine = local_step_.read(here);
  }
  {
    const auto with = colocate_with(operation(global_step.get()), site);
    barrier = {&detail::add_node("_StepBarrier", {}, op_name("barrier", site), {{"replicas_to_aggregate", aggregate_}, {"total_num_replicas", total_}, {"shared_name", scope + "/barrier"}}), 0};
    const node& arrived = detail::add_node("_StepBarrierArrive", {barrier, mine}, op_name("arrive", site));
    stamp = {&arrived, 0};
    ticket = {&arrived, 1};
    ready = operation(detail::add_node("_StepBarrierReady", {barrier}, op_name("ready", site)));
    chief_interrupt_ = operation(detail::add_node("_StepBarrierInterrupt", {barrier}, op_name("interrupt", site)));
  }
  // 2. It pushes, and waits for the update.
  taken t = accumulate(gradients, stamp, {ready}, scope, site);
  const operation pushed = with_device(global_step.device(), [&] { return group(t.pushes, op_name("pushed", site)); }, site);
  output step;
  {
    const auto with = colocate_with(operation(*barrier.from), site);
    const auto after = control_dependencies({pushed});
    const node& waited = detail::add_node("_StepBarrierWait", {barrier, ticket}, op_name("wait", site));
    step = {&waited, 0};
    counted_ = {&waited, 1};
  }
  const operation pass(detail::add_node("AssignVariableOp", {local_step_.handle(), step}, op_name("pass", site), {{"dtype", dtype::int64}}));
  // 3. The chief's side.
  const operation updated = inner_.apply_gradients(t.gradients, global_step, here);
  const auto with = colocate_with(operation(*barrier.from), site);
  chief_begun_ = operation(detail::add_node("_StepBarrierReady", {barrier}, op_name("begun", site), {{"begun", true}}));
  leave_ = operation(detail::add_node("_StepBarrierLeave", {barrier}, op_name("leave", site)));
  chief_leave_ = operation(detail::add_node("_StepBarrierLeave", {barrier}, op_name("chief_leave", site), {{"chief", true}}));
  const auto advance = [&](const std::vector<operation>& after_these, bool reset) {
    const auto after = control_dependencies(after_these);
    return operation(detail::add_node("_StepBarrierAdvance", {barrier, global_step.read(here)}, op_name(reset ? "reset" : "advance", site), {{"reset", reset}}));
  };
  {
    const auto free = colocate_with(nullptr);
    make_chief_init(global_step, {local_init_}, site);
  }
  chief_init_ = advance({chief_init_}, true);
  chief_step_ = finish_update(advance({updated}, false));
  return pass;
}

WEFT_DECL operation sync_replicas_optimizer::apply_with_tokens(const std::vector<grad_and_variable>& gradients, const any_variable& global_step, const op_name& name) {
  const call_site site = name.site;
  const op_name here(site);
  make_local_step(global_step, "sync_rep_local_step", site);
  taken t;
  {
    const auto scope = name_scope(this->name(), site);
    t = accumulate(gradients, local_step_.read(here), {}, "", site);
  }
  const auto device = with_device(global_step.device(), site);
  const auto top = name_scope("", site);
  const operation updated = inner_.apply_gradients(t.gradients, global_step, name);
  queue_ = detail::add_queue("FIFOQueueV2", "sync_token_q",
                             {{"component_types", std::vector<dtype>{dtype::int64}}, {"shapes", std::vector<partial_shape>{partial_shape({})}}, {"capacity", std::int64_t{-1}},
                              {"shared_name", std::string("sync_token_q")}}, here);
  output token;
  {
    const auto after = control_dependencies(t.pushes);
    token = {&detail::add_queue_op("QueueDequeueV2", queue_, "_Dequeue", {}, {{"component_types", std::vector<dtype>{dtype::int64}}}, here), 0};
  }
  operation pass;
  {
    // Where the worker's step is.
    const auto free = with_device(nullptr);
    pass = operation(detail::add_node("AssignVariableOp", {local_step_.handle(), token}, here, {{"dtype", dtype::int64}}));
  }
  train_op_ = pass;
  {
    const auto after = control_dependencies({updated});
    chief_step_ = finish_update(init_tokens(std::max(aggregate_, total_), here));
  }
  const auto inside = name_scope(this->name() + "/", site);
  make_chief_init(global_step, {local_init_}, site);
  return pass;
}

WEFT_DECL operation sync_replicas_optimizer::init_tokens(std::int64_t num_tokens, op_name name) {
  (void)made(train_op_);
  const output queue = token_queue().raw();
  const std::int64_t needed = std::max<std::int64_t>(aggregate_ - total_, 0);
  if (num_tokens == -1) num_tokens = aggregate_;
  if (num_tokens < needed)
    throw error(error_code::invalid_argument, this->name() + ": the first update needs at least " + std::to_string(needed) + " tokens, found " + std::to_string(num_tokens), name.site);
  const auto device = with_device(global_step_.device(), name.site);
  const auto top = name_scope("", name.site);
  if (num_tokens == 0) {
    const auto home = global_step_.graph().as_default();
    return operation(detail::add_node("NoOp", {}, op_name("no_init_tokens", name.site)));
  }
  const output now = global_step_.read(op_name(name.site));
  const output count{&detail::add_const(tensor_value::from<std::int32_t>({1}, {static_cast<std::int32_t>(num_tokens)}), op_name(name.site), &queue.from->owner()), 0};
  const output tokens{&detail::add_node("Fill", {count, now}, op_name(name.site)), 0};
  return operation(detail::add_queue_op("QueueEnqueueManyV2", queue, "_EnqueueMany", {tokens}, {}, name));
}

}  // namespace weft
#endif

#endif
