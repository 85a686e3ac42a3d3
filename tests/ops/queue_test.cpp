#include <weft/ops/queue.hpp>

#include <weft/graph.hpp>
#include <weft/tensor/xtensor.hpp>

#include <doctest/doctest.h>

namespace {

template <class F> std::string message_of(F&& call) {
  try {
    call();
  } catch (const weft::error& e) {
    return std::string(weft::to_text(e.code())) + ": " + e.message();
  }
  return "";
}

}  // namespace

TEST_CASE("queue: results have the dtypes, ranks and shapes of the components") {
  const weft::graph g;
  const auto scope = g.as_default();
  weft::queue_options options;
  options.shapes = {weft::shape(), {3, 2}};
  const weft::fifo_queue<std::int64_t, weft::tensor<float, 2>> q(10, options, "q");
  const auto [number, matrix] = q.dequeue();
  static_assert(std::is_same_v<decltype(number), const weft::tensor<std::int64_t>>);
  static_assert(std::is_same_v<decltype(matrix), const weft::tensor<float, 2>>);
  CHECK(number.shape() == weft::partial_shape({}));
  CHECK(matrix.shape() == weft::partial_shape({3, 2}));
  const auto [numbers, matrices] = q.dequeue_many(4);
  static_assert(std::is_same_v<decltype(matrices), const weft::tensor<float, 3>>);
  CHECK(numbers.shape() == weft::partial_shape({4}));
  CHECK(matrices.shape() == weft::partial_shape({4, 3, 2}));
  CHECK(std::get<1>(q.dequeue_up_to(4)).shape() == weft::partial_shape({-1, 3, 2}));
  CHECK(std::get<1>(q.dequeue_many(weft::placeholder<std::int32_t, 0>())).shape() == weft::partial_shape({-1, 3, 2}));
  // One component is a tensor by itself; scalars by type need no shape.
  const weft::fifo_queue<weft::tensor<std::string, 0>> texts(weft::unlimited);
  const weft::tensor<std::string, 0> text = texts.dequeue();
  const weft::tensor<std::string, 1> many = texts.dequeue_many(2);
  CHECK(many.shape() == weft::partial_shape({2}));
  CHECK(text.shape() == weft::partial_shape({}));
  const weft::priority_queue<weft::tensor<float, 0>> urgent(5);
  const auto [priority, value] = urgent.dequeue();
  static_assert(std::is_same_v<decltype(priority), const weft::tensor<std::int64_t, 0>>);
  CHECK(value.shape() == weft::partial_shape({}));
  weft::queue_options open;
  open.shapes = {{-1, 2}};
  CHECK(weft::padding_fifo_queue<float>(5, open).dequeue_many(3).shape() == weft::partial_shape({3, -1, 2}));
}

TEST_CASE("queue: nodes are named as TensorFlow names them") {
  const weft::graph g;
  const auto scope = g.as_default();
  const weft::fifo_queue<float> q(3, {}, "input");
  CHECK(q.name() == "input");
  CHECK(q.enqueue(1.f).name() == "input_enqueue");
  CHECK(q.enqueue_many(weft::constant({1.f, 2.f})).name() == "input_EnqueueMany");
  CHECK(q.dequeue().name() == "input_Dequeue");
  CHECK(q.size().name() == "input_Size");
  CHECK(q.close().name() == "input_Close");
  CHECK(q.close(weft::pending_enqueues::cancel, "stop").get()->attr<bool>("cancel_pending_enqueues"));
  CHECK(q.is_closed().name() == "input_Is_Closed");
  CHECK(weft::fifo_queue<float>(3).name() == "fifo_queue");
  g.set_random_seed(7);
  weft::shuffle_options shuffled;
  shuffled.seed = 3;
  shuffled.min_after_dequeue = 2;
  const weft::random_shuffle_queue<float> r(10, shuffled);
  CHECK(r.raw().from->attr<std::int64_t>("seed") == 7);
  CHECK(r.raw().from->attr<std::int64_t>("seed2") == 3);
  CHECK(r.raw().from->attr<std::int64_t>("min_after_dequeue") == 2);
}

TEST_CASE("queue: what cannot be right is refused when the graph is built") {
  const weft::graph g;
  const auto scope = g.as_default();
  weft::queue_options pair, two, open;
  pair.shapes = {{2}};
  two.shapes = {weft::shape(), weft::shape()};
  open.shapes = {{-1}};
  CHECK(message_of([&] { weft::fifo_queue<float>(3, two); }) == "INVALID_ARGUMENT: fifo_queue: a queue of 1 components needs as many shapes, found 2");
  CHECK(message_of([&] { weft::fifo_queue<float>(3, open); }) == "INVALID_ARGUMENT: fifo_queue: the shape [?] of a component must be fully known; a padding_fifo_queue may leave sizes open");
  CHECK(message_of([&] { weft::padding_fifo_queue<float>(3); }) == "INVALID_ARGUMENT: padding_fifo_queue: the shape <unknown> of a component must be of known rank");
  CHECK(message_of([&] { weft::priority_queue<float>(3); }) == "INVALID_ARGUMENT: priority_queue: a queue of 1 components needs as many shapes, found 0");
  weft::shuffle_options shuffled;
  shuffled.min_after_dequeue = 3;
  CHECK(message_of([&] { weft::random_shuffle_queue<float>(3, shuffled); }) == "INVALID_ARGUMENT: random_shuffle_queue: min_after_dequeue 3 must be less than the capacity 3");
  shuffled.min_after_dequeue = -1;
  CHECK(message_of([&] { weft::random_shuffle_queue<float>(3, shuffled); }) == "INVALID_ARGUMENT: random_shuffle_queue: min_after_dequeue must not be negative, found -1");
  const weft::fifo_queue<float> q(3, pair, "q");
  CHECK(message_of([&] { q.enqueue(weft::constant({1.f, 2.f, 3.f})); }) == "INVALID_ARGUMENT: component 0 of the queue 'q' has shape [2], found [3]");
  CHECK(message_of([&] { q.enqueue_many(1.f); }) == "INVALID_ARGUMENT: component 0 must have rows to put in, found a scalar");
  CHECK(message_of([&] { q.dequeue_many(-1); }) == "INVALID_ARGUMENT: the number of elements must not be negative, found -1");
  CHECK(message_of([&] { weft::fifo_queue<float>().dequeue(); }) == "INVALID_ARGUMENT: QueueDequeueV2: the queue is empty, not made by any op");
  const weft::fifo_queue<float, float> both(3);
  CHECK(message_of([&] { both.enqueue_many(weft::constant({1.f, 2.f}), weft::constant({1.f})); }) == "INVALID_ARGUMENT: component 1 has 1 rows, those before it have 2");
  CHECK(message_of([&] { weft::queue<float, int>(q.raw()).enqueue(weft::constant({1.f, 2.f}), 1); }) == "INVALID_ARGUMENT: the queue 'q' has components [float], found [float, int32]");
}
