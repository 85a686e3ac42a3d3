#include <weft/kernels/queue.hpp>

#include "../error_of.hpp"

#include <weft/ops/queue.hpp>
#include <weft/session/local_session.hpp>
#include <weft/tensor/xtensor.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <limits>
#include <numeric>
#include <thread>

namespace {

using namespace std::chrono_literals;

weft::run_options within(std::chrono::milliseconds t) {
  weft::run_options out;
  out.timeout = t;
  return out;
}

// The size that a queue comes to, waited for.
template <class Q> bool comes_to(weft::session_interface& session, const Q& size, int wanted) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (session.run(size) != wanted) {
    if (std::chrono::steady_clock::now() > until) return false;
    std::this_thread::yield();
  }
  return true;
}

}  // namespace

TEST_CASE("queue: a dequeue_many that is cancelled gives its elements back in order") {
  const weft::graph g;
  const auto scope = g.as_default();
  const weft::fifo_queue<weft::tensor<int, 0>> q(4);
  weft::local_session session({}, g);
  const auto size = q.size();
  session.run(q.enqueue_many(weft::constant({1, 2, 3})));
  const auto four = q.dequeue_many(4);
  const auto late = error_of([&] { session.run(within(50ms), four); });
  CHECK(late.code == weft::error_code::deadline_exceeded);
  CHECK(session.run(size) == 3);
  // Those who wait behind it get them at once.
  auto first = std::async(std::launch::async, [&] { return error_of([&] { session.run(within(300ms), four); }).code; });
  CHECK(comes_to(session, size, 0));
  auto second = std::async(std::launch::async, [&, one = q.dequeue()] { return session.run(within(20s), one); });
  CHECK(first.get() == weft::error_code::deadline_exceeded);
  CHECK(second.get() == 1);
  CHECK(session.run(q.dequeue_many(2)) == xt::xtensor<int, 1>{2, 3});
}

TEST_CASE("queue: those who wait hold no thread of the pool") {
  const weft::graph g;
  const auto scope = g.as_default();
  const weft::fifo_queue<weft::tensor<int, 0>> q(1), answers(100);
  weft::session_options options;
  options.kernel_threads = 1;
  weft::local_session session(options, g);
  const auto pass = answers.enqueue(q.dequeue());
  std::vector<std::future<void>> waiting;
  for (int i = 0; i < 20; ++i) waiting.push_back(std::async(std::launch::async, [&] { session.run(within(20s), pass); }));
  const auto put = q.enqueue_many(weft::constant({1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20}));
  session.run(within(20s), put);
  for (auto& w : waiting) w.get();
  const auto all = session.run(answers.dequeue_many(20));
  CHECK(std::accumulate(all.begin(), all.end(), 0) == 210);
}

TEST_CASE("queue: producers and consumers lose nothing and keep components together") {
  const weft::graph g;
  const auto scope = g.as_default();
  const weft::fifo_queue<weft::tensor<std::int64_t, 0>, weft::tensor<std::string, 0>> q(7);
  const auto number = weft::placeholder<std::int64_t, 0>();
  const auto text = weft::placeholder<std::string, 0>();
  const auto put = q.enqueue(number, text);
  const auto [taken, name] = q.dequeue();
  const auto [batch, names] = q.dequeue_many(3);
  weft::local_session session({}, g);
  std::atomic<std::int64_t> sum{0};
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int p = 0; p < 4; ++p)
    threads.emplace_back([&, p] {
      for (int i = 0; i < 90; ++i) session.run({{number, p * 90 + i}, {text, std::to_string(p * 90 + i)}}, put);
    });
  for (int c = 0; c < 3; ++c)
    threads.emplace_back([&, taken = taken, name = name] {
      for (int i = 0; i < 30; ++i) {
        const auto [n, s] = session.run(taken, name);
        sum += n;
        wrong += std::to_string(n) != s;
      }
    });
  for (int c = 0; c < 3; ++c)
    threads.emplace_back([&, batch = batch, names = names] {
      for (int i = 0; i < 30; ++i) {
        const auto [n, s] = session.run(batch, names);
        for (std::size_t k = 0; k < 3; ++k) {
          sum += n(k);
          wrong += std::to_string(n(k)) != s(k);
        }
      }
    });
  for (auto& t : threads) t.join();
  CHECK(sum == 359 * 360 / 2);
  CHECK(wrong == 0);
}

TEST_CASE("queue: cancelled waits leave the queue whole while others go on") {
  const weft::graph g;
  const auto scope = g.as_default();
  const weft::fifo_queue<weft::tensor<int, 0>> q(3);
  const auto number = weft::placeholder<int, 0>();
  const auto put = q.enqueue(number);
  // More than will ever be there: it takes what comes, and gives it back.
  const auto many = q.dequeue_many(1000);
  const auto one = q.dequeue();
  const auto close = q.close();
  weft::local_session session({}, g);
  std::atomic<bool> stop{false};
  std::thread impatient([&] {
    while (!stop) error_of([&] { session.run(within(1ms), many); });
  });
  std::thread producer([&] {
    for (int i = 0; i < 300; ++i) session.run({{number, i}}, put);
    session.run(close);
  });
  std::vector<int> got;
  weft::status end;
  while (end.ok()) end = error_of([&] { got.push_back(session.run(within(20s), one)); });
  producer.join();
  stop = true;
  impatient.join();
  CHECK(end.code == weft::error_code::out_of_range);
  std::vector<int> all(300);
  std::iota(all.begin(), all.end(), 0);
  CHECK(got == all);
}

TEST_CASE("queue: closing, and what its users are told") {
  const weft::graph g;
  const auto scope = g.as_default();
  const weft::fifo_queue<weft::tensor<int, 0>> q(2, {}, "q");
  weft::local_session session({}, g);
  session.run(q.enqueue_many(weft::constant({1, 2})));
  auto full = std::async(std::launch::async, [&, put = q.enqueue(3)] { return error_of([&] { session.run(put); }); });
  CHECK(full.wait_for(50ms) == std::future_status::timeout);
  session.run(q.close(weft::pending_enqueues::cancel));
  const auto sent_away = full.get();
  CHECK(sent_away.code == weft::error_code::cancelled);
  // Where the thread was late, it found the queue closed.
  CHECK((sent_away.message == "the enqueue was cancelled: FIFOQueue 'q' was closed" || sent_away.message == "FIFOQueue 'q' is closed"));
  CHECK(error_of([&] { session.run(q.enqueue(4)); }).message == "FIFOQueue 'q' is closed");
  CHECK(error_of([&] { session.run(q.close()); }).message == "queue 'q' is already closed");
  const auto short_of = error_of([&] { session.run(q.dequeue_many(3)); });
  CHECK(short_of.code == weft::error_code::out_of_range);
  CHECK(short_of.message == "FIFOQueue 'q' is closed and has insufficient elements (requested 3, current size 2)");
  CHECK(session.run(q.dequeue_up_to(3)) == xt::xtensor<int, 1>{1, 2});
  CHECK(error_of([&] { session.run(q.dequeue()); }).code == weft::error_code::out_of_range);
  CHECK(session.run(q.is_closed()));
}

TEST_CASE("queue: a closed priority queue gives what is left") {
  const weft::graph g;
  const auto scope = g.as_default();
  const weft::priority_queue<weft::tensor<std::string, 0>> q(5);
  weft::local_session session({}, g);
  session.run(q.enqueue(5, "five"));
  session.run(q.enqueue(-1, "minus one"));
  session.run(q.close());
  const auto [numbers, texts] = q.dequeue_up_to(9);
  const auto [n, t] = session.run(numbers, texts);
  CHECK(n == xt::xtensor<std::int64_t, 1>{-1, 5});
  CHECK(t == xt::xtensor<std::string, 1>{"minus one", "five"});
}

TEST_CASE("queue: padding of several dimensions and of texts") {
  const weft::graph g;
  const auto scope = g.as_default();
  weft::queue_options options;
  options.shapes = {{-1, -1}, {-1}};
  const weft::padding_fifo_queue<weft::tensor<int, 2>, weft::tensor<std::string, 1>> q(5, options);
  weft::local_session session({}, g);
  session.run(q.enqueue(weft::constant({{1}, {2}, {3}}), weft::constant({"a", "b"})));
  session.run(q.enqueue(weft::constant({{4, 5}}), weft::constant({"c"})));
  session.run(q.enqueue(weft::constant(xt::xtensor<int, 2>(xt::zeros<int>({0, 2}))), weft::constant({"d"})));
  const auto [numbers, texts] = q.dequeue_many(3);
  const auto [n, t] = session.run(numbers, texts);
  CHECK(n == xt::xtensor<int, 3>{{{1, 0}, {2, 0}, {3, 0}}, {{4, 5}, {0, 0}, {0, 0}}, {{0, 0}, {0, 0}, {0, 0}}});
  CHECK(t == xt::xtensor<std::string, 2>{{"a", "b"}, {"c", ""}, {"d", ""}});
}

TEST_CASE("queue: every dtype that can be held goes through") {
  const weft::graph g;
  const auto scope = g.as_default();
  weft::local_session session({}, g);
  for (const weft::dtype type : {weft::dtype::float32, weft::dtype::float64, weft::dtype::half, weft::dtype::bfloat16, weft::dtype::int8, weft::dtype::uint8, weft::dtype::int16, weft::dtype::uint16,
                                 weft::dtype::int32, weft::dtype::uint32, weft::dtype::int64, weft::dtype::uint64, weft::dtype::boolean, weft::dtype::string, weft::dtype::complex64, weft::dtype::complex128}) {
    CAPTURE(weft::to_text(type));
    weft::tensor_value rows(type, weft::shape{3, 2});
    if (type == weft::dtype::string)
      for (int i = 0; i < 6; ++i) rows.mutable_data<std::string>()[i] = std::string(static_cast<std::size_t>(i), 'x');
    else
      for (std::size_t i = 0; i < rows.bytes(); ++i) rows.mutable_raw_data()[i] = static_cast<std::byte>(type == weft::dtype::boolean ? i & 1U : i);
    const auto handle = weft::detail::add_queue("FIFOQueueV2", "fifo_queue", {{"component_types", std::vector<weft::dtype>{type}}, {"shapes", std::vector<weft::partial_shape>{{2}}}, {"capacity", std::int64_t{9}}}, {});
    const weft::output in{&weft::detail::add_const(rows, {}), 0}, two{&weft::detail::add_const(weft::tensor_value::scalar(2), {}), 0};
    const auto& put = weft::detail::add_node("QueueEnqueueManyV2", {handle, in}, {});
    const auto& one = weft::detail::add_node("QueueDequeueV2", {handle}, {}, {{"component_types", std::vector<weft::dtype>{type}}});
    const auto& rest = weft::detail::add_node("QueueDequeueManyV2", {handle, two}, {}, {{"component_types", std::vector<weft::dtype>{type}}});
    for (int round = 0; round < 2; ++round) session.run({}, {}, std::vector<weft::output>{}, {weft::operation(put)});
    const weft::tensor_value first = session.run({}, {}, {{&one, 0}})[0];
    CHECK(first.shape() == weft::shape{2});
    // Rows 1 and 2 lie behind each other; then the last row of one batch and the first of the other.
    const weft::tensor_value next = session.run({}, {}, {{&rest, 0}})[0], last = session.run({}, {}, {{&rest, 0}})[0];
    const auto at = [](const weft::tensor_value& v, int row) {
      weft::tensor_value out(v.dtype(), weft::shape{2});
      if (v.dtype() == weft::dtype::string) std::copy_n(v.data<std::string>() + 2 * row, 2, out.mutable_data<std::string>());
      else std::copy_n(v.raw_data() + static_cast<std::size_t>(row) * out.bytes(), out.bytes(), out.mutable_raw_data());
      return out;
    };
    CHECK(first == at(rows, 0));
    CHECK(at(next, 0) == at(rows, 1));
    CHECK(at(next, 1) == at(rows, 2));
    CHECK(at(last, 0) == at(rows, 0));
    CHECK(at(last, 1) == at(rows, 1));
  }
}

TEST_CASE("queue: hostile numbers and shapes are errors") {
  const weft::graph g;
  const auto scope = g.as_default();
  weft::local_session session({}, g);
  const weft::fifo_queue<float> q(3, {}, "q");
  const auto n = weft::placeholder<std::int32_t>();
  const auto x = weft::placeholder<float>();
  const xt::xarray<float> one_row = xt::ones<float>({1, 1});
  weft::queue_options pair;
  pair.shapes = {{2}};
  const weft::fifo_queue<float> fixed(std::numeric_limits<std::int64_t>::max(), pair, "fixed");
  const auto put = fixed.enqueue(x), put_many = fixed.enqueue_many(x);
  const auto many = fixed.dequeue_many(n);
  CHECK(error_of([&] { session.run(q.dequeue_many(1)); }).message == "taking several elements at once needs component shapes, which FIFOQueue 'q' does not have; give them when it is made");
  CHECK(error_of([&] { session.run({{n, -5}}, many); }).message == "the number of elements must not be negative, found -5");
  CHECK(error_of([&] { session.run({{n, xt::xarray<int>{1, 2}}}, many); }).code == weft::error_code::invalid_argument);
  CHECK(session.run({{n, 0}}, many).shape()[0] == 0);
  CHECK(error_of([&] { session.run({{x, xt::xarray<float>{1.f, 2.f, 3.f}}}, put); }).message == "component 0 of FIFOQueue 'fixed' has shape [2], found [3]");
  CHECK(error_of([&] { session.run({{x, one_row}}, put_many); }).message == "component 0 of FIFOQueue 'fixed' has shape [2], found rows of shape [1]");
  CHECK(error_of([&] { session.run({{x, 1.f}}, put_many); }).message == "component 0 must have rows to put in, found a scalar");
  // More elements than can ever be there: it waits, and takes no memory for them.
  CHECK(error_of([&] { session.run(within(30ms), {{n, std::numeric_limits<std::int32_t>::max()}}, many); }).code == weft::error_code::deadline_exceeded);
  // Rows without a byte cost nothing where they come from, but do here.
  weft::queue_options empty;
  empty.shapes = {{0}};
  const weft::fifo_queue<float> nothing(weft::unlimited, empty, "nothing");
  const weft::tensor_value rows(weft::dtype::float32, weft::shape{std::int64_t{1} << 40, 0});
  const auto& flood = weft::detail::add_node("QueueEnqueueManyV2", {nothing.raw(), {&weft::detail::add_const(rows, {}), 0}}, {});
  CHECK(error_of([&] { session.run({}, {}, std::vector<weft::output>{}, {weft::operation(flood)}); }).code == weft::error_code::resource_exhausted);
  // Padding that would take more memory than there is fails, and the elements stay.
  weft::queue_options open;
  open.shapes = {{-1, -1}};
  const weft::padding_fifo_queue<weft::tensor<float, 2>> padded(5, open, "padded");
  const auto matrix = weft::placeholder<float, 2>();
  const auto put_matrix = padded.enqueue(matrix);
  session.run({{matrix, xt::xtensor<float, 2>(xt::zeros<float>({3000000, 1}))}}, put_matrix);
  session.run({{matrix, xt::xtensor<float, 2>(xt::zeros<float>({1, 3000000}))}}, put_matrix);
  CHECK(error_of([&] { session.run(padded.dequeue_many(2)); }).code == weft::error_code::resource_exhausted);
  CHECK(session.run(padded.size()) == 2);
  // An attribute of the kernel that is not supported.
  const auto& timed = weft::detail::add_node("QueueDequeueV2", {q.raw()}, {}, {{"component_types", std::vector<weft::dtype>{weft::dtype::float32}}, {"timeout_ms", std::int64_t{5}}});
  CHECK(error_of([&] { session.run({}, {}, {{&timed, 0}}); }).code == weft::error_code::unimplemented);
}

TEST_CASE("queue: a queue of a session is its own, a shared one must be the same") {
  const weft::graph g;
  const auto scope = g.as_default();
  weft::queue_options named;
  named.shared_name = "shared";
  const weft::fifo_queue<float> a(2, named, "a"), b(2, named, "b"), own(2, {}, "own"), other(2, {}, "other");
  const weft::fifo_queue<float> larger(3, named, "larger");
  const weft::fifo_queue<int> typed(2, named, "typed");
  weft::local_session session({}, g);
  session.run(a.enqueue(1.f));
  session.run(own.enqueue(1.f));
  CHECK(session.run(b.size()) == 1);
  CHECK(session.run(other.size()) == 0);
  CHECK(error_of([&] { session.run(larger.size()); }).message == "the shared queue 'shared' has capacity 2, found 3");
  CHECK(error_of([&] { session.run(typed.size()); }).message == "the shared queue 'shared' has component types [float], found [int32]");
  weft::local_session second({}, g);
  CHECK(second.run(own.size()) == 0);
}

TEST_CASE("queue: the end of a session wakes those who wait") {
  const weft::graph g;
  const auto scope = g.as_default();
  const weft::fifo_queue<weft::tensor<int, 0>> q(1);
  weft::local_session session({}, g);
  session.run(q.enqueue(1));
  auto take = std::async(std::launch::async, [&, x = q.dequeue_many(2)] { return error_of([&] { session.run(x); }).code; });
  // It waits when it has taken the first.
  CHECK(comes_to(session, q.size(), 0));
  session.close();
  CHECK(take.get() == weft::error_code::cancelled);
}
