#ifndef WEFT_KERNELS_QUEUE_HPP
#define WEFT_KERNELS_QUEUE_HPP
// Kernels of queues. Putting in and taking out wait without a thread: the queue answers when their turn has come.

#include <weft/kernels/inputs.hpp>
#include <weft/kernels/queue_state.hpp>
#include <weft/kernels/state_handle.hpp>
#include <weft/runtime/kernel.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weft::detail {
/// The factory of an op on queues; nullptr for ops of other families.
kernel_factory queue_kernel(std::string_view op);
}  // namespace weft::detail

#if WEFT_HAS_KERNEL_BODIES
namespace weft::detail {

/// Makes the queue where there is none yet, and names it.
class queue_handle_kernel final : public cheap_kernel {
 public:
  explicit queue_handle_kernel(const kernel_construction& what) : handle_(what, "queue") {
    const node& n = what.about;
    if (n.op() == "PaddingFIFOQueueV2") spec_.order = queue_order::first_padded;
    if (n.op() == "RandomShuffleQueueV2") spec_.order = queue_order::random;
    if (n.op() == "PriorityQueueV2") spec_.order = queue_order::priority;
    spec_.types = n.attr<std::vector<dtype>>("component_types");
    spec_.shapes = n.attr<std::vector<partial_shape>>("shapes");
    spec_.capacity = integer_attr(n, "capacity", -1);
    spec_.min_after_dequeue = integer_attr(n, "min_after_dequeue", 0);
    spec_.seed = integer_attr(n, "seed", 0);
    spec_.seed2 = integer_attr(n, "seed2", 0);
    if (spec_.order == queue_order::priority) {
      spec_.types.insert(spec_.types.begin(), dtype::int64);
      spec_.shapes.insert(spec_.shapes.begin(), partial_shape({}));
    }
    spec_.name = handle_.name();
  }
  static std::unique_ptr<kernel> make(const kernel_construction& what) { return std::make_unique<queue_handle_kernel>(what); }
  WEFT_INLINE void compute(kernel_context& context) override;

 private:
  static std::int64_t integer_attr(const node& n, std::string_view name, std::int64_t otherwise) {
    const auto* value = n.find_attr<std::int64_t>(name);
    return value == nullptr ? otherwise : *value;
  }
  void check(const kernel_context& context) const;
  void check_same(const kernel_context& context, const queue_spec& found) const;
  resource_name handle_;
  queue_spec spec_;
};

inline void queue_handle_kernel::check(const kernel_context& context) const {
  const bool padded = spec_.order == queue_order::first_padded;
  if ((padded || !spec_.shapes.empty()) && spec_.shapes.size() != spec_.types.size())
    context.fail("a queue of " + std::to_string(spec_.types.size()) + " components needs as many shapes, found " + std::to_string(spec_.shapes.size()));
  for (const partial_shape& s : spec_.shapes)
    if (padded ? !s.known_rank() : !s.fully_known()) context.fail("the shape " + s.text() + " of a component must be " + (padded ? "of known rank" : "fully known"));
  if (spec_.min_after_dequeue < 0) context.fail("min_after_dequeue must not be negative, found " + std::to_string(spec_.min_after_dequeue));
  if (spec_.order == queue_order::random && spec_.capacity >= 0 && spec_.min_after_dequeue >= spec_.capacity)
    context.fail("min_after_dequeue " + std::to_string(spec_.min_after_dequeue) + " must be less than the capacity " + std::to_string(spec_.capacity));
}

inline void queue_handle_kernel::check_same(const kernel_context& context, const queue_spec& found) const {
  const auto differ = [&](const std::string& what, const std::string& has, const std::string& wanted) {
    if (has != wanted) context.fail("the shared queue '" + spec_.name + "' has " + what + " " + has + ", found " + wanted);
  };
  const auto shapes = [](const queue_spec& s) {
    std::string out;
    for (const partial_shape& one : s.shapes) out += one.text();
    return out.empty() ? std::string("unspecified") : out;
  };
  differ("kind", found.kind(), spec_.kind());
  differ("capacity", std::to_string(found.capacity), std::to_string(spec_.capacity));
  differ("component types", to_text(attr_value(found.types)), to_text(attr_value(spec_.types)));
  differ("component shapes", shapes(found), shapes(spec_));
  differ("min_after_dequeue", std::to_string(found.min_after_dequeue), std::to_string(spec_.min_after_dequeue));
  differ("random seeds", std::to_string(found.seed) + ", " + std::to_string(found.seed2), std::to_string(spec_.seed) + ", " + std::to_string(spec_.seed2));
}

inline void queue_handle_kernel::compute(kernel_context& context) {
  check(context);
  const auto queue = handle_.find_or_make<queue_resource>(context, [this] { return std::make_shared<queue_resource>(spec_); });
  check_same(context, queue->spec());
  handle_.set_output(context);
}

/// What ops on a queue share.
class queue_user : public kernel {
 public:
  bool asynchronous() const noexcept override { return true; }
  bool waits_for_others() const noexcept override { return true; }
  void compute(kernel_context& context) override { context.fail(error_code::internal, "this kernel answers later, it was called as if it answered at once"); }

 protected:
  explicit queue_user(const node& n) {
    const auto* timeout = n.find_attr<std::int64_t>("timeout_ms");
    if (timeout != nullptr && *timeout != -1)
      n.fail_about(error_code::unimplemented, "a timeout_ms of its own is not supported, found " + std::to_string(*timeout) + "; give the run a timeout");
  }
  static std::shared_ptr<queue_resource> queue_of(kernel_context& context) { return resource_of<queue_resource>(context, "queue"); }
  static void expect_types(const kernel_context& context, const queue_resource& queue, const std::vector<dtype>& types) {
    if (types != queue.spec().types)
      context.fail(queue.describe() + " has components " + to_text(attr_value(queue.spec().types)) + ", found " + to_text(attr_value(types)));
  }
};

/// Puts an element, or the rows of a batch, into a queue.
class enqueue_kernel final : public queue_user {
 public:
  explicit enqueue_kernel(const node& n) : queue_user(n), many_(n.op() == "QueueEnqueueManyV2") {}
  WEFT_INLINE void compute_async(kernel_context& context, kernel_done done) override;

 private:
  // The most rows without a byte that a batch may have: they cost memory that the batch itself does not.
  static constexpr std::int64_t most_empty_rows = 1 << 20;
  std::int64_t rows_of(const kernel_context& context, const queue_resource& queue) const;
  bool many_;
};

// How many rows the components have, -1 without rows. Fails when a component does not fit the queue.
inline std::int64_t enqueue_kernel::rows_of(const kernel_context& context, const queue_resource& queue) const {
  const std::vector<partial_shape>& shapes = queue.spec().shapes;
  std::int64_t rows = -1;
  std::size_t bytes = 0;
  for (int i = 1; i < context.input_count(); ++i) {
    const shape& found = context.input(i).shape();
    const std::string component = "component " + std::to_string(i - 1);
    if (many_) {
      if (found.rank() == 0) context.fail(component + " must have rows to put in, found a scalar");
      if (rows >= 0 && found[0] != rows) context.fail(component + " has " + std::to_string(found[0]) + " rows, those before it have " + std::to_string(rows));
      rows = found[0];
    }
    bytes += context.input(i).bytes();
    if (shapes.empty()) continue;
    const partial_shape& held = shapes[static_cast<std::size_t>(i - 1)];
    const std::vector<std::int64_t> sizes(found.begin() + (many_ ? 1 : 0), found.end());
    if (!held.accepts(shape(sizes))) context.fail(component + " of " + queue.describe() + " has shape " + held.text() + ", found " + (many_ ? "rows of shape " : "") + shape_text(sizes));
  }
  if (rows > most_empty_rows && bytes == 0)
    context.fail(error_code::resource_exhausted, "a batch of " + std::to_string(rows) + " empty rows is too long, at most " + std::to_string(most_empty_rows));
  return rows;
}

inline void enqueue_kernel::compute_async(kernel_context& context, kernel_done done) {
  const auto queue = queue_of(context);
  std::vector<dtype> types;
  for (int i = 1; i < context.input_count(); ++i) types.push_back(context.input(i).dtype());
  expect_types(context, *queue, types);
  const std::int64_t rows = rows_of(context, *queue);
  auto values = std::make_shared<std::vector<tensor_value>>();
  for (int i = 1; i < context.input_count(); ++i) values->push_back(context.take_input(i));
  queue->enqueue(std::move(values), rows, context.environment().cancellation, [done = std::move(done)](const status& s, std::vector<queue_element>) { done(s); });
}

/// Takes an element, or several as a batch, out of a queue.
class dequeue_kernel final : public queue_user {
 public:
  explicit dequeue_kernel(const node& n)
      : queue_user(n), types_(n.attr<std::vector<dtype>>("component_types")), many_(n.op() != "QueueDequeueV2"), at_most_(n.op() == "QueueDequeueUpToV2") {}
  WEFT_INLINE void compute_async(kernel_context& context, kernel_done done) override;
  // A batch is gathered element by element.
  bool expensive(const kernel_context&) const noexcept override { return many_; }

 private:
  static status deliver(kernel_context& context, queue_resource& queue, std::vector<queue_element>& taken, bool many);
  std::vector<dtype> types_;
  bool many_, at_most_;
};

inline void copy_queued(const tensor_value& from, std::int64_t first, tensor_value& to, std::int64_t at, std::int64_t count) {
  if (count == 0) return;
  if (from.dtype() == dtype::string) std::copy_n(from.data<std::string>() + first, count, to.mutable_data<std::string>() + at);
  else if (from.dtype() == dtype::resource) std::copy_n(from.data<resource_handle>() + first, count, to.mutable_data<resource_handle>() + at);
  else {
    const std::size_t size = size_of(from.dtype());
    std::memcpy(to.mutable_raw_data() + static_cast<std::size_t>(at) * size, from.raw_data() + static_cast<std::size_t>(first) * size, static_cast<std::size_t>(count) * size);
  }
}

// The shape of component `c` of an element.
inline std::vector<std::int64_t> element_sizes(const queue_element& e, std::size_t c) {
  const shape& s = (*e.values)[c].shape();
  return {s.begin() + (e.row < 0 ? 0 : 1), s.end()};
}
inline std::int64_t product_of(const std::vector<std::int64_t>& sizes) { return checked_elements(sizes.data(), sizes.size()).value_or(0); }

// Component `c` of one element.
inline tensor_value element_value(const kernel_context& context, const queue_element& e, std::size_t c) {
  const tensor_value& from = (*e.values)[c];
  if (e.row < 0) return from;
  const shape sizes(element_sizes(e, c));
  if (from.shape()[0] == 1) {
    tensor_value out = from;
    out.reshape(sizes);
    return out;
  }
  tensor_value out = context.allocate(from.dtype(), sizes);
  copy_queued(from, e.row * sizes.elements(), out, 0, sizes.elements());
  return out;
}

// Copies an array into the corner of a larger one that begins at element `at`.
inline void copy_corner(const tensor_value& from, std::int64_t first, const std::vector<std::int64_t>& sizes, tensor_value& to, std::int64_t at, const std::vector<std::int64_t>& room) {
  const std::size_t rank = sizes.size();
  if (sizes == room) return copy_queued(from, first, to, at, product_of(sizes));
  const std::int64_t count = product_of(sizes), run = sizes[rank - 1];
  std::vector<std::int64_t> index(rank, 0);
  for (std::int64_t done = 0; done < count; done += run) {
    std::int64_t where = 0;
    for (std::size_t d = 0; d < rank; ++d) where = where * room[d] + index[d];
    copy_queued(from, first + done, to, at + where, run);
    for (std::size_t d = rank - 1; d-- > 0;) {
      if (++index[d] < sizes[d]) break;
      index[d] = 0;
    }
  }
}

// Component `c` of all elements as a batch; sizes that the queue leaves open are those of the largest element, the rest is zeros or empty texts.
inline tensor_value batch_value(const kernel_context& context, const queue_spec& spec, const std::vector<queue_element>& taken, std::size_t c) {
  const auto count = static_cast<std::int64_t>(taken.size());
  std::vector<std::int64_t> room = spec.shapes[c].sizes();
  bool padded = false;
  for (std::int64_t& size : room) size = std::max<std::int64_t>(size, 0);
  for (const queue_element& e : taken) {
    const std::vector<std::int64_t> sizes = element_sizes(e, c);
    for (std::size_t d = 0; d < room.size(); ++d) room[d] = std::max(room[d], sizes[d]);
  }
  for (const queue_element& e : taken) padded = padded || element_sizes(e, c) != room;
  if (!taken.empty() && !padded) {
    // A whole batch as it was put in.
    const tensor_value& first = (*taken[0].values)[c];
    bool whole = taken[0].row == 0 && first.shape()[0] == count;
    for (std::size_t i = 1; whole && i < taken.size(); ++i) whole = taken[i].values == taken[0].values && taken[i].row == static_cast<std::int64_t>(i);
    if (whole) return first;
  }
  std::vector<std::int64_t> sizes = room;
  sizes.insert(sizes.begin(), count);
  if (!checked_elements(sizes.data(), sizes.size())) context.fail(error_code::resource_exhausted, "the padded batch " + shape_text(sizes) + " is too large");
  tensor_value out = context.allocate(spec.types[c], shape(sizes));
  if (padded && is_plain(out.dtype()) && out.bytes() != 0) std::memset(out.mutable_raw_data(), 0, out.bytes());
  const std::int64_t each = product_of(room);
  for (std::size_t i = 0; i < taken.size();) {
    const queue_element& e = taken[i];
    const tensor_value& from = (*e.values)[c];
    const std::vector<std::int64_t> own = element_sizes(e, c);
    const std::int64_t first = std::max<std::int64_t>(e.row, 0) * product_of(own), at = static_cast<std::int64_t>(i) * each;
    // Rows that lie behind each other are copied together.
    std::size_t together = 1;
    if (own == room && e.row >= 0)
      while (i + together < taken.size() && taken[i + together].values == e.values && taken[i + together].row == e.row + static_cast<std::int64_t>(together)) ++together;
    if (own == room) copy_queued(from, first, out, at, each * static_cast<std::int64_t>(together));
    else copy_corner(from, first, own, out, at, room);
    i += together;
  }
  return out;
}

// Sets the outputs; what cannot be delivered goes back into the queue.
inline status dequeue_kernel::deliver(kernel_context& context, queue_resource& queue, std::vector<queue_element>& taken, bool many) {
  const std::size_t components = queue.spec().types.size();
  try {
    for (std::size_t c = 0; c < components; ++c)
      context.set_output(static_cast<int>(c), many ? batch_value(context, queue.spec(), taken, c) : element_value(context, taken[0], c));
    return status();
  } catch (const error& e) {
    queue.give_back(std::move(taken));
    return e.status();
  } catch (const std::bad_alloc&) {
    queue.give_back(std::move(taken));
    return status(error_code::resource_exhausted, "out of memory");
  }
}

inline void dequeue_kernel::compute_async(kernel_context& context, kernel_done done) {
  const auto queue = queue_of(context);
  expect_types(context, *queue, types_);
  std::int64_t count = 1;
  if (many_) {
    expect_inputs(context, 2);
    expect_dtype(context, 1, dtype::int32);
    if (context.input(1).elements() != 1) context.fail("the number of elements must be a scalar, found shape " + context.input(1).shape().text());
    count = *context.input(1).data<std::int32_t>();
    if (count < 0) context.fail("the number of elements must not be negative, found " + std::to_string(count));
    if (queue->spec().shapes.empty()) context.fail("taking several elements at once needs component shapes, which " + queue->describe() + " does not have; give them when it is made");
  }
  queue->dequeue(count, at_most_, context.environment().cancellation,
                 [&context, queue, many = many_, done = std::move(done)](const status& s, std::vector<queue_element> taken) { done(s.ok() ? deliver(context, *queue, taken, many) : s); });
}

/// Closes a queue.
class queue_close_kernel final : public queue_user {
 public:
  explicit queue_close_kernel(const node& n) : queue_user(n) {
    const bool* cancel = n.find_attr<bool>("cancel_pending_enqueues");
    at_once_ = cancel != nullptr && *cancel;
  }
  void compute_async(kernel_context& context, kernel_done done) override {
    const auto queue = queue_of(context);
    if (!at_once_) return queue->close_in_turn(context.environment().cancellation, [done = std::move(done)](const status& s, std::vector<queue_element>) { done(s); });
    queue->close_at_once();
    done(status());
  }

 private:
  bool at_once_;
};

/// How many elements a queue holds, or whether it is closed.
class queue_state_kernel final : public cheap_kernel {
 public:
  explicit queue_state_kernel(const node& n) : size_(n.op() == "QueueSizeV2") {}
  void compute(kernel_context& context) override {
    const auto queue = resource_of<queue_resource>(context, "queue");
    if (size_) context.set_output(0, tensor_value::scalar(static_cast<std::int32_t>(std::min<std::int64_t>(queue->size(), std::numeric_limits<std::int32_t>::max()))));
    else context.set_output(0, tensor_value::scalar(queue->is_closed()));
  }

 private:
  bool size_;
};

WEFT_DECL kernel_factory queue_kernel(std::string_view op) {
  if (op == "FIFOQueueV2" || op == "PaddingFIFOQueueV2" || op == "RandomShuffleQueueV2" || op == "PriorityQueueV2") return &queue_handle_kernel::make;
  if (op == "QueueEnqueueV2" || op == "QueueEnqueueManyV2") return &make_kernel<enqueue_kernel>;
  if (op == "QueueDequeueV2" || op == "QueueDequeueManyV2" || op == "QueueDequeueUpToV2") return &make_kernel<dequeue_kernel>;
  if (op == "QueueCloseV2") return &make_kernel<queue_close_kernel>;
  if (op == "QueueSizeV2" || op == "QueueIsClosedV2") return &make_kernel<queue_state_kernel>;
  return nullptr;
}

}  // namespace weft::detail
#endif

#endif
