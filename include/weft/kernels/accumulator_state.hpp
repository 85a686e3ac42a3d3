#ifndef WEFT_KERNELS_ACCUMULATOR_STATE_HPP
#define WEFT_KERNELS_ACCUMULATOR_STATE_HPP
// A conditional accumulator in its task: the sum of the gradients that are not stale, and the line of those who wait until there are enough. Nobody who waits holds a thread.

#include <weft/core/config.hpp>
#include <weft/kernels/inputs.hpp>
#include <weft/kernels/math.hpp>
#include <weft/runtime/cancellation.hpp>
#include <weft/runtime/resource_manager.hpp>
#include <weft/tensor/shape.hpp>
#include <weft/tensor/tensor_value.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#if WEFT_HAS_KERNEL_BODIES
WEFT_SIMD_BEGIN
namespace weft::detail {

/// What an accumulator is made from; two nodes that share one must say the same.
struct accumulator_spec {
  std::string name;
  dtype type = dtype::float32;
  /// Of the gradients, of the whole variable when they are sparse.
  partial_shape shape;
  /// Gives the sum instead of the mean.
  bool sum = false;
  bool sparse = false;
};

/// Accumulated gradients: an array, or rows with their indices.
struct accumulated {
  tensor_value values;
  std::vector<std::int64_t> indices;
  // By row, how many gradients held it.
  std::vector<std::int64_t> held;
  std::int64_t count = 0;
};

/// A conditional accumulator. Thread-safe.
class accumulator_resource final : public resource, public std::enable_shared_from_this<accumulator_resource> {
 public:
  /// Says that a wait has ended, and gives what was accumulated. Called once, never while the accumulator is locked.
  using done_function = std::function<void(const status&, accumulated)>;

  explicit accumulator_resource(accumulator_spec spec)
      : spec_(std::move(spec)), add_(*find_pair_op("AddV2"), spec_.type), divide_(*find_pair_op("RealDiv"), spec_.type) {}
  std::string describe() const override { return std::string(spec_.sparse ? "SparseConditionalAccumulator" : "ConditionalAccumulator") + " '" + spec_.name + "'"; }
  const accumulator_spec& spec() const noexcept { return spec_; }

  /// Adds a gradient unless it is stale: computed for an earlier step than the accumulator's. Throws INVALID_ARGUMENT when its shape does not fit.
  void push(std::int64_t local_step, tensor_value gradient);
  /// Adds the rows of a sparse gradient; `whole` is the shape that it claims for the variable, of unknown rank when it claims none.
  void push(std::int64_t local_step, std::vector<std::int64_t> indices, tensor_value rows, const partial_shape& whole);
  /// Takes all that is accumulated once there are `required` gradients; the accumulator is then empty and one step further.
  void take(std::int64_t required, const cancellation_token& token, done_function done);
  void set_step(std::int64_t step);
  std::int64_t count() const;
  /// Sends everybody away.
  WEFT_INLINE void close(const status& why) override;

  /// The mean, or the sum, of what was taken.
  tensor_value reduced(const accumulated& taken) const;

 private:
  struct waiter {
    std::int64_t required = 0;
    cancellation_token token;
    std::uint64_t registration = 0;
    done_function done;
    accumulated taken;
    status result;
  };
  using waiter_ptr = std::shared_ptr<waiter>;

  [[noreturn]] void refuse(const std::string& message) const { fail(error_code::invalid_argument, describe() + ": " + message); }
  bool admits(std::int64_t local_step) const noexcept { return local_step >= step_; }
  void check_rows(const std::vector<std::int64_t>& indices, const tensor_value& rows, const partial_shape& whole) const;
  void merge(const std::vector<std::int64_t>& indices, const tensor_value& rows);
  std::vector<waiter_ptr> serve();
  static void finish(std::vector<waiter_ptr>& ended);
  void cancel(const waiter_ptr& w, const status& why);

  const accumulator_spec spec_;
  const pair_rows add_, divide_;
  mutable std::mutex mutex_;
  std::int64_t step_ = 0;
  accumulated held_;
  std::deque<waiter_ptr> takers_;
};

WEFT_DECL void accumulator_resource::push(std::int64_t local_step, tensor_value gradient) {
  std::vector<waiter_ptr> ended;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!spec_.shape.accepts(gradient.shape())) refuse("expected a gradient of shape " + spec_.shape.text() + ", found " + gradient.shape().text());
    if (!admits(local_step)) return;
    if (held_.count == 0) {
      held_.values = std::move(gradient);
    } else {
      if (gradient.shape() != held_.values.shape()) refuse("expected a gradient of shape " + held_.values.shape().text() + " as those before it, found " + gradient.shape().text());
      tensor_value sum = held_.values.writable() ? held_.values : tensor_value(spec_.type, gradient.shape());
      add_.run({held_.values.raw_data(), true}, {gradient.raw_data(), true}, sum.mutable_raw_data(), static_cast<std::size_t>(gradient.elements()));
      held_.values = std::move(sum);
    }
    ++held_.count;
    ended = serve();
  }
  finish(ended);
}

WEFT_DECL void accumulator_resource::check_rows(const std::vector<std::int64_t>& indices, const tensor_value& rows, const partial_shape& whole) const {
  const shape& found = rows.shape();
  if (found.rank() == 0) refuse("expected rows, found a scalar");
  if (found[0] != static_cast<std::int64_t>(indices.size())) refuse("expected a row for each of " + std::to_string(indices.size()) + " indices, found rows of shape " + found.text());
  if (!merge_shapes(spec_.shape, whole)) refuse("expected a gradient for a variable of shape " + spec_.shape.text() + ", found one for " + whole.text());
  const partial_shape& variable = spec_.shape.known_rank() ? spec_.shape : whole;
  if (variable.known_rank()) {
    if (variable.rank() != found.rank()) refuse("expected rows of a variable of shape " + variable.text() + ", found rows of shape " + found.text());
    for (int d = 1; d < found.rank(); ++d)
      if (variable[d] >= 0 && variable[d] != found[d]) refuse("expected rows of a variable of shape " + variable.text() + ", found rows of shape " + found.text());
    for (const std::int64_t i : indices)
      if (variable[0] >= 0 && i >= variable[0]) refuse("index " + std::to_string(i) + " is not in [0, " + std::to_string(variable[0]) + ")");
  }
  if (held_.count == 0) return;
  const shape& before = held_.values.shape();
  bool same = before.rank() == found.rank();
  for (int d = 1; same && d < found.rank(); ++d) same = before[d] == found[d];
  if (!same) refuse("expected rows like those before it, of shape " + before.text() + ", found rows of shape " + found.text());
}

// Both lists of indices are taken for sorted, as TensorFlow takes them: equal indices that meet become one row.
WEFT_DECL void accumulator_resource::merge(const std::vector<std::int64_t>& indices, const tensor_value& rows) {
  const std::vector<std::int64_t>& old = held_.indices;
  accumulated out;
  // 1. Which row comes from where.
  std::vector<std::pair<std::size_t, std::size_t>> from;
  constexpr std::size_t none = static_cast<std::size_t>(-1);
  for (std::size_t i = 0, j = 0; i < old.size() || j < indices.size();) {
    const bool take_old = j == indices.size() || (i < old.size() && old[i] <= indices[j]), take_new = i == old.size() || (j < indices.size() && indices[j] <= old[i]);
    out.indices.push_back(take_old ? old[i] : indices[j]);
    out.held.push_back((take_old ? held_.held[i] : 0) + (take_new ? 1 : 0));
    from.emplace_back(take_old ? i++ : none, take_new ? j++ : none);
  }
  // 2. The rows.
  std::vector<std::int64_t> sizes(rows.shape().begin(), rows.shape().end());
  sizes[0] = static_cast<std::int64_t>(from.size());
  out.values = tensor_value(spec_.type, shape(sizes));
  const std::size_t width = out.values.elements() == 0 ? 0 : static_cast<std::size_t>(out.values.elements()) / from.size(), bytes = width * size_of(spec_.type);
  std::byte* to = out.values.mutable_raw_data();
  for (std::size_t k = 0; k < from.size() && bytes != 0; ++k, to += bytes) {
    const std::byte* left = from[k].first == none ? nullptr : held_.values.raw_data() + from[k].first * bytes;
    const std::byte* right = from[k].second == none ? nullptr : rows.raw_data() + from[k].second * bytes;
    if (left != nullptr && right != nullptr) add_.run({left, true}, {right, true}, to, width);
    else std::memcpy(to, left != nullptr ? left : right, bytes);
  }
  out.count = held_.count;
  held_ = std::move(out);
}

WEFT_DECL void accumulator_resource::push(std::int64_t local_step, std::vector<std::int64_t> indices, tensor_value rows, const partial_shape& whole) {
  std::vector<waiter_ptr> ended;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    check_rows(indices, rows, whole);
    if (!admits(local_step)) return;
    if (held_.count == 0) {
      held_.held.assign(indices.size(), 1);
      held_.indices = std::move(indices);
      held_.values = std::move(rows);
    } else {
      merge(indices, rows);
    }
    ++held_.count;
    ended = serve();
  }
  finish(ended);
}

// It stands in line before it can be cancelled, so that a cancellation finds it.
WEFT_DECL void accumulator_resource::take(std::int64_t required, const cancellation_token& token, done_function done) {
  const auto w = std::make_shared<waiter>();
  w->required = required;
  w->token = token;
  w->done = std::move(done);
  std::vector<waiter_ptr> ended;
  const auto waits = [&] { return std::find(takers_.begin(), takers_.end(), w) != takers_.end(); };
  bool waiting = false;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    takers_.push_back(w);
    ended = serve();
    waiting = waits();
  }
  finish(ended);
  if (!waiting) return;
  const std::uint64_t registration = token.on_cancel([self = shared_from_this(), w](const status& why) { self->cancel(w, why); });
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    waiting = waits();
    if (waiting) w->registration = registration;
  }
  if (!waiting) token.forget(registration);
}

WEFT_DECL void accumulator_resource::cancel(const waiter_ptr& w, const status& why) {
  std::vector<waiter_ptr> ended;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto at = std::find(takers_.begin(), takers_.end(), w);
    if (at == takers_.end()) return;
    takers_.erase(at);
    ended = serve();
  }
  finish(ended);
  w->done(why, {});
}

WEFT_DECL std::vector<accumulator_resource::waiter_ptr> accumulator_resource::serve() {
  std::vector<waiter_ptr> ended;
  while (!takers_.empty() && held_.count >= takers_.front()->required) {
    takers_.front()->taken = std::exchange(held_, {});
    ended.push_back(std::move(takers_.front()));
    takers_.pop_front();
    ++step_;
  }
  return ended;
}

WEFT_DECL void accumulator_resource::finish(std::vector<waiter_ptr>& ended) {
  for (const waiter_ptr& w : ended) {
    w->token.forget(w->registration);
    const done_function done = std::move(w->done);
    done(w->result, std::move(w->taken));
  }
}

WEFT_DECL void accumulator_resource::set_step(std::int64_t step) {
  const std::lock_guard<std::mutex> lock(mutex_);
  step_ = step;
}

WEFT_DECL std::int64_t accumulator_resource::count() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return held_.count;
}

WEFT_DECL void accumulator_resource::close(const status& why) {
  std::vector<waiter_ptr> ended;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ended.assign(takers_.begin(), takers_.end());
    takers_.clear();
    for (const waiter_ptr& w : ended) w->result = why;
  }
  finish(ended);
}

WEFT_DECL tensor_value accumulator_resource::reduced(const accumulated& taken) const {
  if (spec_.sum || taken.values.elements() == 0) return taken.values;
  const auto divisor = [this](std::int64_t n) {
    tensor_value out(spec_.type, shape());
    switch (spec_.type) {
      case dtype::float64: *out.mutable_data<double>() = static_cast<double>(n); break;
      case dtype::half: *out.mutable_data<half>() = half(static_cast<float>(n)); break;
      case dtype::bfloat16: *out.mutable_data<bfloat16>() = bfloat16(static_cast<float>(n)); break;
      default: *out.mutable_data<float>() = static_cast<float>(n); break;
    }
    return out;
  };
  tensor_value out(spec_.type, taken.values.shape());
  const auto all = static_cast<std::size_t>(out.elements());
  if (!spec_.sparse) {
    divide_.run({taken.values.raw_data(), true}, {divisor(taken.count).raw_data(), false}, out.mutable_raw_data(), all);
    return out;
  }
  const std::size_t width = all / taken.held.size(), bytes = width * size_of(spec_.type);
  for (std::size_t i = 0; i < taken.held.size(); ++i)
    divide_.run({taken.values.raw_data() + i * bytes, true}, {divisor(taken.held[i]).raw_data(), false}, out.mutable_raw_data() + i * bytes, width);
  return out;
}

}  // namespace weft::detail
WEFT_SIMD_END
#endif

#endif
