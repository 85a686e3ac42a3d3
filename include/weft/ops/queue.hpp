#ifndef WEFT_OPS_QUEUE_HPP
#define WEFT_OPS_QUEUE_HPP
// Queues: state of a task that steps put elements into and take them out of, waiting where there is no room or nothing to take.

#include <weft/graph/tensor.hpp>
#include <weft/ops/op_input.hpp>
#include <weft/ops/random.hpp>
#include <weft/ops/shape_rules.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace weft {

namespace detail {

#if WEFT_HAS_BODIES
// The node that makes the resource behind input 0, when it can be followed to one that has attribute `attr`; else nullptr.
inline const node* resource_maker(const shape_context& c, const char* attr) {
  if (c.running()) return nullptr;
  const node* from = c.about().inputs()[0].from;
  while (from->op() == "Identity" && !from->inputs().empty()) from = from->inputs()[0].from;
  return from->inputs().empty() && from->attrs().count(attr) != 0 ? from : nullptr;
}

// What the elements of a queue look like, as far as the graph says.
struct queue_components {
  const node* maker = nullptr;
  std::vector<dtype> types;
  // Empty when elements may have any shape.
  std::vector<partial_shape> shapes;
};
inline queue_components components_of(const shape_context& c) {
  queue_components out;
  out.maker = resource_maker(c, "component_types");
  if (out.maker == nullptr) return out;
  if (const auto* types = out.maker->find_attr<std::vector<dtype>>("component_types")) out.types = *types;
  if (const auto* shapes = out.maker->find_attr<std::vector<partial_shape>>("shapes")) out.shapes = *shapes;
  if (out.maker->op() == "PriorityQueueV2") {
    out.types.insert(out.types.begin(), dtype::int64);
    out.shapes.insert(out.shapes.begin(), partial_shape({}));
  }
  if (out.shapes.size() != out.types.size()) out.shapes.clear();
  return out;
}

inline void expect_component_types(const shape_context& c, const queue_components& held, const char* attr) {
  const auto& found = c.attr<std::vector<dtype>>(attr);
  if (held.maker != nullptr && found != held.types)
    c.fail("the queue '" + held.maker->name() + "' has components " + to_text(attr_value(held.types)) + ", found " + to_text(attr_value(found)));
}

inline void expect_component(const shape_context& c, const queue_components& held, int i, const partial_shape& found) {
  if (held.shapes.empty()) return;
  const partial_shape& expected = held.shapes[static_cast<std::size_t>(i)];
  if (!merge_shapes(expected, found)) c.fail("component " + std::to_string(i) + " of the queue '" + held.maker->name() + "' has shape " + expected.text() + ", found " + found.text());
}

inline void enqueue_shape(shape_context& c) {
  const queue_components held = components_of(c);
  expect_component_types(c, held, "Tcomponents");
  for (int i = 1; i < c.input_count(); ++i) expect_component(c, held, i - 1, c.input(i));
}

inline void enqueue_many_shape(shape_context& c) {
  const queue_components held = components_of(c);
  expect_component_types(c, held, "Tcomponents");
  std::int64_t rows = -1;
  for (int i = 1; i < c.input_count(); ++i) {
    const partial_shape& s = c.input(i);
    if (!s.known_rank()) continue;
    if (s.rank() == 0) c.fail("component " + std::to_string(i - 1) + " must have rows to put in, found a scalar");
    if (s[0] >= 0 && rows >= 0 && s[0] != rows) c.fail("component " + std::to_string(i - 1) + " has " + std::to_string(s[0]) + " rows, those before it have " + std::to_string(rows));
    if (s[0] >= 0) rows = s[0];
    expect_component(c, held, i - 1, partial_shape(std::vector<std::int64_t>(s.sizes().begin() + 1, s.sizes().end())));
  }
}

inline void dequeue_shape(shape_context& c) {
  const queue_components held = components_of(c);
  expect_component_types(c, held, "component_types");
  for (std::size_t i = 0; i < held.shapes.size(); ++i) c.set_output(static_cast<int>(i), held.shapes[i]);
}

inline void dequeue_batch_shape(shape_context& c) {
  const queue_components held = components_of(c);
  expect_component_types(c, held, "component_types");
  (void)c.with_rank(1, 0, "the number of elements");
  const auto n = c.input_integers(1);
  if (n && (*n)[0] < 0) c.fail("the number of elements must not be negative, found " + std::to_string((*n)[0]));
  const bool exact = n && c.about().op() == "QueueDequeueManyV2";
  for (std::size_t i = 0; i < held.shapes.size(); ++i) {
    if (!held.shapes[i].known_rank()) continue;
    std::vector<std::int64_t> sizes = held.shapes[i].sizes();
    sizes.insert(sizes.begin(), exact ? (*n)[0] : -1);
    c.set_output(static_cast<int>(i), partial_shape(std::move(sizes)));
  }
}

#define WEFT_QUEUE "component_types: list(type) >= 1; shapes: list(shape) >= 0 = []; capacity: int = -1; container: string = ''; shared_name: string = ''"
#define WEFT_ELEMENTS(LIST) LIST ": list(type) >= 1; timeout_ms: int = -1"
inline constexpr op_row queue_ops[] = {
    {"FIFOQueueV2 PaddingFIFOQueueV2() -> handle: resource", WEFT_QUEUE, scalar_shape, op_flags::stateful},
    {"RandomShuffleQueueV2() -> handle: resource",
     "component_types: list(type) >= 1; shapes: list(shape) >= 0 = []; capacity: int = -1; min_after_dequeue: int = 0; seed: int = 0; seed2: int = 0; container: string = ''; shared_name: string = ''",
     scalar_shape, op_flags::stateful},
    {"PriorityQueueV2() -> handle: resource", "component_types: list(type) >= 0 = []; shapes: list(shape) >= 0; capacity: int = -1; container: string = ''; shared_name: string = ''", scalar_shape,
     op_flags::stateful},
    {"QueueEnqueueV2(handle: resource, components: Tcomponents)", WEFT_ELEMENTS("Tcomponents"), enqueue_shape, op_flags::stateful},
    {"QueueEnqueueManyV2(handle: resource, components: Tcomponents)", WEFT_ELEMENTS("Tcomponents"), enqueue_many_shape, op_flags::stateful},
    {"QueueDequeueV2(handle: resource) -> components: component_types", WEFT_ELEMENTS("component_types"), dequeue_shape, op_flags::stateful},
    {"QueueDequeueManyV2 QueueDequeueUpToV2(handle: resource, n: int32) -> components: component_types", WEFT_ELEMENTS("component_types"), dequeue_batch_shape, op_flags::stateful},
    {"QueueCloseV2(handle: resource)", "cancel_pending_enqueues: bool = false", nullptr, op_flags::stateful},
    {"QueueSizeV2(handle: resource) -> size: int32", "", scalar_shape, op_flags::stateful},
    {"QueueIsClosedV2(handle: resource) -> is_closed: bool", "", scalar_shape, op_flags::stateful},
};
#undef WEFT_QUEUE
#undef WEFT_ELEMENTS
#endif

// The nodes of a queue; names are those of TensorFlow, `queue_enqueue`.
output add_queue(const char* op, const char* otherwise, attr_map attrs, const op_name& name);
const node& add_queue_op(const char* op, const output& queue, const char* suffix, std::vector<op_input> inputs, attr_map attrs, const op_name& name);

// A component of a queue: a dtype, or a tensor type that also says the rank.
template <class C> struct queue_component {
  static_assert(is_dtype_v<C>, "weft: a component of a queue is a dtype (float, std::int64_t, ...) or a tensor type (weft::tensor<float, 1>)");
  using dtype = C;
  static constexpr int rank = dynamic_rank;
};
template <class T, int N> struct queue_component<tensor<T, N>> {
  using dtype = T;
  static constexpr int rank = N;
};
template <class C> using queue_element_t = tensor<typename queue_component<C>::dtype, queue_component<C>::rank>;
constexpr int rank_with_rows(int rank) { return rank == dynamic_rank ? dynamic_rank : rank + 1; }
template <class C> using queue_batch_t = tensor<typename queue_component<C>::dtype, rank_with_rows(queue_component<C>::rank)>;

// What is put into one component: a tensor, a variable to read, or a value.
template <class Tensor> struct queue_item {
  using T = typename Tensor::dtype;
  op_input in;

  template <class U, int M> queue_item(const operand<U, M>& x) : in(x.as_input(call_site())) {
    static_assert(std::is_same_v<T, U>, "weft: the tensor has another dtype than this component of the queue; convert it with weft::cast<T>(...)");
    static_assert(Tensor::rank == dynamic_rank || M == dynamic_rank || Tensor::rank == M, "weft: the tensor has another rank than this component of the queue");
  }
  template <class V, std::enable_if_t<!is_operand<V>::value && std::is_convertible_v<const V&, scalar<T>>, int> = 0> queue_item(const V& number) : in("component", tensor_value::scalar<T>(scalar<T>(number).value)) {
    static_assert(Tensor::rank <= 0, "weft: this component of the queue is not a scalar");
  }
  template <class V, std::enable_if_t<!is_operand<V>::value && !std::is_convertible_v<const V&, scalar<T>> && std::is_same_v<typename value_traits<V>::dtype, T>, int> = 0>
  queue_item(const V& value) : in("component", value_traits<V>::make(value)) {
    static_assert(Tensor::rank == dynamic_rank || Tensor::rank == value_traits<V>::rank, "weft: the value has another rank than this component of the queue");
  }
};

// The outputs of a node as typed tensors: one by itself, several as a tuple.
template <class... Tensor, std::size_t... I> auto outputs_as(const node& n, std::index_sequence<I...>) {
  if constexpr (sizeof...(Tensor) == 1) return (Tensor(output{&n, 0}), ...);
  else return std::tuple<Tensor...>(Tensor(output{&n, static_cast<int>(I)})...);
}

}  // namespace detail

/// A queue that holds any number of elements.
inline constexpr std::int64_t unlimited = -1;

/// What becomes of those who wait to put something in when a queue is closed.
enum class pending_enqueues : unsigned char { finish, cancel };

/// Options of a queue.
struct queue_options {
  /// One shape for each component. Empty: elements may have any shape, and cannot be taken several at once (unless all components are scalars by type).
  std::vector<partial_shape> shapes;
  /// The name under which sessions share it on its task; empty: it belongs to the session.
  std::string shared_name;
  /// The container of a shared name; empty for the task's own.
  std::string container;
};

/// Options of a queue that shuffles.
struct shuffle_options : queue_options {
  /// Elements that stay in the queue, for the shuffling, until it is closed.
  std::int64_t min_after_dequeue = 0;
  /// Makes the order repeatable, together with the seed of the graph.
  std::optional<std::int64_t> seed;
};

namespace detail {

template <class... C> attr_map queue_attrs(std::int64_t capacity, const queue_options& options) {
  std::vector<partial_shape> shapes = options.shapes;
  if (((queue_component<C>::rank == 0) && ...) && shapes.empty()) shapes.assign(sizeof...(C), partial_shape({}));
  return {{"component_types", std::vector<dtype>{dtype_of<typename queue_component<C>::dtype>...}}, {"shapes", std::move(shapes)}, {"capacity", capacity}, {"shared_name", options.shared_name},
          {"container", options.container}};
}

}  // namespace detail

/// What all queues offer, whatever their components.
class queue_base {
 public:
  queue_base() = default;
  /// The queue that this output, a handle, names.
  explicit queue_base(output handle) : handle_(handle), owner_(detail::hold_for_handle(handle.from->owner())) {}

  /// The handle of its resource.
  output raw() const noexcept { return handle_; }
  std::string name() const { return to_text(handle_); }
  /// Ends it: nothing more can be put in (CANCELLED), what is there can be taken, then OUT_OF_RANGE. A close waits behind those who wait to put something in, or with
  /// `pending_enqueues::cancel` sends them away with CANCELLED (QueueCloseV2).
  operation close(pending_enqueues pending = pending_enqueues::finish, op_name name = {}) const {
    return operation(detail::add_queue_op("QueueCloseV2", handle_, "_Close", {}, {{"cancel_pending_enqueues", pending == pending_enqueues::cancel}}, name));
  }
  operation close(op_name name) const { return close(pending_enqueues::finish, name); }
  /// How many elements it holds; those that a waiting dequeue_many has taken already do not count (QueueSizeV2).
  tensor<std::int32_t, 0> size(op_name name = {}) const { return tensor<std::int32_t, 0>(output{&detail::add_queue_op("QueueSizeV2", handle_, "_Size", {}, {}, name), 0}); }
  /// Whether it is closed (QueueIsClosedV2).
  tensor<bool, 0> is_closed(op_name name = {}) const { return tensor<bool, 0>(output{&detail::add_queue_op("QueueIsClosedV2", handle_, "_Is_Closed", {}, {}, name), 0}); }

 private:
  output handle_;
  std::shared_ptr<detail::graph_state> owner_;
};

/// A queue whose elements have components `C`: each a dtype (`float`), or a tensor type that also says the rank (`tensor<float, 1>`). Whoever waits is served in the order of coming, holds no
/// thread, and is woken by an element, a close, or the end of its step. With one component the results are tensors, else tuples of them.
template <class... C> class queue : public queue_base {
  static_assert(sizeof...(C) > 0, "weft: a queue has at least one component");

 public:
  queue() = default;
  explicit queue(output handle) : queue_base(handle) {}

  /// Puts one element in; waits while the queue is full (QueueEnqueueV2).
  operation enqueue(detail::queue_item<detail::queue_element_t<C>>... components, op_name name = {}) const {
    return operation(detail::add_queue_op("QueueEnqueueV2", raw(), "_enqueue", {std::move(components.in)...}, {}, name));
  }
  /// Puts the rows of the components in, one element each; waits for room piece by piece (QueueEnqueueManyV2).
  operation enqueue_many(detail::queue_item<detail::queue_batch_t<C>>... components, op_name name = {}) const {
    return operation(detail::add_queue_op("QueueEnqueueManyV2", raw(), "_EnqueueMany", {std::move(components.in)...}, {}, name));
  }
  /// Takes an element; waits until there is one. OUT_OF_RANGE when the queue is closed and empty (QueueDequeueV2).
  auto dequeue(op_name name = {}) const { return detail::outputs_as<detail::queue_element_t<C>...>(take("QueueDequeueV2", "_Dequeue", {}, name), std::index_sequence_for<C...>()); }
  /// Takes `n` elements as a batch; waits until it has all of them. A wait in vain, or cancelled, gives them back in order (QueueDequeueManyV2).
  auto dequeue_many(detail::scalar<std::int32_t> n, op_name name = {}) const { return batch("QueueDequeueManyV2", "_DequeueMany", {"n", tensor_value::scalar(n.value)}, name); }
  template <int N> auto dequeue_many(const operand<std::int32_t, N>& n, op_name name = {}) const { return batch("QueueDequeueManyV2", "_DequeueMany", n.as_input(name.site), name); }
  /// Takes `n` elements, or what is left if the queue is closed, but at least one (QueueDequeueUpToV2).
  auto dequeue_up_to(detail::scalar<std::int32_t> n, op_name name = {}) const { return batch("QueueDequeueUpToV2", "_DequeueUpTo", {"n", tensor_value::scalar(n.value)}, name); }
  template <int N> auto dequeue_up_to(const operand<std::int32_t, N>& n, op_name name = {}) const { return batch("QueueDequeueUpToV2", "_DequeueUpTo", n.as_input(name.site), name); }

 private:
  const node& take(const char* op, const char* suffix, std::vector<detail::op_input> inputs, const op_name& name) const {
    return detail::add_queue_op(op, raw(), suffix, std::move(inputs), {{"component_types", std::vector<dtype>{dtype_of<typename detail::queue_component<C>::dtype>...}}}, name);
  }
  auto batch(const char* op, const char* suffix, detail::op_input n, const op_name& name) const {
    return detail::outputs_as<detail::queue_batch_t<C>...>(take(op, suffix, {std::move(n)}, name), std::index_sequence_for<C...>());
  }
};

/// Elements leave in the order in which they came (FIFOQueueV2): `fifo_queue<float, std::int64_t> q(100)`.
template <class... C> class fifo_queue : public queue<C...> {
 public:
  fifo_queue() = default;
  explicit fifo_queue(std::int64_t capacity, const queue_options& options = {}, op_name name = {})
      : queue<C...>(detail::add_queue("FIFOQueueV2", "fifo_queue", detail::queue_attrs<C...>(capacity, options), name)) {}
};

/// A FIFO queue whose shapes may have open dimensions: elements that are taken together are padded with zeros or empty texts to the largest of them (PaddingFIFOQueueV2).
template <class... C> class padding_fifo_queue : public queue<C...> {
 public:
  padding_fifo_queue() = default;
  explicit padding_fifo_queue(std::int64_t capacity, queue_options options = {}, op_name name = {})
      : queue<C...>(detail::add_queue("PaddingFIFOQueueV2", "padding_fifo_queue", detail::queue_attrs<C...>(capacity, with_ranks(std::move(options))), name)) {}

 private:
  static queue_options with_ranks(queue_options options) {
    if (options.shapes.empty()) options.shapes = {partial_shape::of_rank(detail::queue_component<C>::rank)...};
    return options;
  }
};

/// Elements leave in random order (RandomShuffleQueueV2).
template <class... C> class random_shuffle_queue : public queue<C...> {
 public:
  random_shuffle_queue() = default;
  explicit random_shuffle_queue(std::int64_t capacity, const shuffle_options& options = {}, op_name name = {})
      : queue<C...>(detail::add_queue("RandomShuffleQueueV2", "random_shuffle_queue", shuffled(capacity, options), name)) {}

 private:
  static attr_map shuffled(std::int64_t capacity, const shuffle_options& options) {
    attr_map attrs = detail::queue_attrs<C...>(capacity, options);
    const auto [seed, seed2] = detail::op_seeds(*detail::current_graph(), options.seed);
    attrs.emplace("min_after_dequeue", options.min_after_dequeue);
    attrs.emplace("seed", seed);
    attrs.emplace("seed2", seed2);
    return attrs;
  }
};

/// The element with the smallest number leaves first; the order among equal numbers is open. Each element begins with its number, an int64: `q.enqueue(3, x)`, `auto [number, x] = q.dequeue()`
/// (PriorityQueueV2). The shapes are those of the other components and must be given unless these are scalars by type.
template <class... C> class priority_queue : public queue<tensor<std::int64_t, 0>, C...> {
 public:
  priority_queue() = default;
  explicit priority_queue(std::int64_t capacity, const queue_options& options = {}, op_name name = {})
      : queue<tensor<std::int64_t, 0>, C...>(detail::add_queue("PriorityQueueV2", "priority_queue", detail::queue_attrs<C...>(capacity, options), name)) {}
};

#if WEFT_HAS_BODIES
namespace detail {

WEFT_DECL output add_queue(const char* op, const char* otherwise, attr_map attrs, const op_name& name) {
  const auto types = attrs.at("component_types").get<std::vector<dtype>>();
  const auto shapes = attrs.at("shapes").get<std::vector<partial_shape>>();
  const bool padded = std::string_view(op) == "PaddingFIFOQueueV2", needed = padded || std::string_view(op) == "PriorityQueueV2";
  if ((needed || !shapes->empty()) && shapes->size() != types->size())
    fail_builder(otherwise, "a queue of " + std::to_string(types->size()) + " components needs as many shapes, found " + std::to_string(shapes->size()), name);
  for (const partial_shape& s : *shapes)
    if (padded ? !s.known_rank() : !s.fully_known())
      fail_builder(otherwise, "the shape " + s.text() + " of a component must be " + (padded ? "of known rank" : "fully known; a padding_fifo_queue may leave sizes open"), name);
  if (const attr_value* min = attrs.get("min_after_dequeue")) {
    const std::int64_t least = *min->get<std::int64_t>(), capacity = *attrs.at("capacity").get<std::int64_t>();
    if (least < 0) fail_builder(otherwise, "min_after_dequeue must not be negative, found " + std::to_string(least), name);
    if (capacity >= 0 && least >= capacity) fail_builder(otherwise, "min_after_dequeue " + std::to_string(least) + " must be less than the capacity " + std::to_string(capacity), name);
  }
  return {&add_node(op, {}, name.text.empty() ? op_name(otherwise, name.site) : name, std::move(attrs)), 0};
}

WEFT_DECL const node& add_queue_op(const char* op, const output& queue, const char* suffix, std::vector<op_input> inputs, attr_map attrs, const op_name& name) {
  if (queue.from == nullptr) fail_builder(op, "the queue is empty, not made by any op", name);
  inputs.insert(inputs.begin(), op_input(queue));
  std::vector<std::string> names(inputs.size());
  for (std::size_t i = 1; i < inputs.size(); ++i) {
    if (inputs[i].below == nullptr || std::string_view(inputs[i].below) != "component") continue;
    names[i] = "component_" + std::to_string(i - 1);
    inputs[i].below = names[i].c_str();
  }
  const std::string own = queue.from->name().substr(queue.from->name().rfind('/') + 1) + suffix;
  return add_op(op, own.c_str(), inputs, name, std::move(attrs));
}

}  // namespace detail
#endif

}  // namespace weft

#endif
