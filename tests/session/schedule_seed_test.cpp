#include <weft/session/local_session.hpp>

#include <weft/kernels/standard.hpp>
#include <weft/session.hpp>

#include <doctest/doctest.h>

#include "../error_of.hpp"

#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace {

// Notes in which order its nodes run.
struct diary final : weft::kernel_settings {
  mutable std::mutex mutex;
  mutable std::vector<std::string> names;
  mutable std::set<std::thread::id> threads;
};

class noting_kernel final : public weft::kernel {
 public:
  explicit noting_kernel(const weft::kernel_construction& what) : diary_(std::static_pointer_cast<const diary>(what.settings)) {}
  void compute(weft::kernel_context& context) override {
    const std::lock_guard<std::mutex> lock(diary_->mutex);
    diary_->names.push_back(context.about().name());
    diary_->threads.insert(std::this_thread::get_id());
    context.set_output(0, weft::tensor_value::scalar(1.f));
  }

 private:
  std::shared_ptr<const diary> diary_;
};

std::unique_ptr<weft::kernel> make_noting(const weft::kernel_construction& what) { return std::make_unique<noting_kernel>(what); }

const weft::cluster_spec three_tasks{{"ps", 1}, {"work", 2}};

// The order in which nine nodes on three tasks ran in two steps.
std::vector<std::string> order_of(std::uint64_t seed, std::set<std::thread::id>* threads = nullptr) {
  weft::op_registry ops = weft::standard_ops();
  ops.add(weft::op("Noting").output("y: float").stateful());
  const weft::graph g(ops);
  const auto scope = g.as_default();
  weft::operation all;
  {
    std::vector<weft::operation> made;
    for (int i = 0; i < 9; ++i) {
      const auto device = weft::with_device(i % 3 == 0 ? "/job:ps/task:0" : "/job:work/task:" + std::to_string(i % 3 - 1));
      weft::node_spec spec;
      spec.op = "Noting";
      spec.name = "n" + std::to_string(i);
      made.emplace_back(g.add(std::move(spec)));
    }
    const auto after = weft::control_dependencies(made);
    all = weft::no_op("all");
  }
  const auto notes = std::make_shared<diary>();
  auto kernels = std::make_shared<weft::kernel_registry>(weft::standard_kernels());
  kernels->add({"Noting", "CPU", {}, 0}, make_noting, notes);
  weft::session_options options;
  options.cluster = three_tasks;
  options.kernels = kernels;
  options.schedule_seed = seed;
  weft::local_session session(options, g);
  session.run(all);
  session.run(all);
  if (threads != nullptr) *threads = notes->threads;
  return notes->names;
}

// What two assignments leave behind that nothing orders.
float left_by_two_assignments(std::uint64_t seed) {
  const weft::graph g;
  const auto scope = g.as_default();
  const auto on_ps = weft::with_device("/job:ps/task:0");
  weft::variable<float, 0> v(0.f, "v");
  const auto first = v.assign(1.f), second = v.assign(2.f);
  weft::session_options options;
  options.cluster = three_tasks;
  options.schedule_seed = seed;
  weft::local_session session(options, g);
  session.run(v.initializer());
  session.run(first, second);
  return session.run(v);
}

}  // namespace

TEST_CASE("schedule seed: the same seed gives the same order, on the calling thread, and each step has its own") {
  std::set<std::thread::id> threads;
  const std::vector<std::string> order = order_of(7, &threads);
  CHECK(order.size() == 18);
  CHECK(order == order_of(7));
  CHECK(threads == std::set<std::thread::id>{std::this_thread::get_id()});
  CHECK(std::vector<std::string>(order.begin(), order.begin() + 9) != std::vector<std::string>(order.begin() + 9, order.end()));
  std::set<std::vector<std::string>> orders;
  for (std::uint64_t seed = 0; seed < 8; ++seed) orders.insert(order_of(seed));
  CHECK(orders.size() == 8);
}

TEST_CASE("schedule seed: a result that depends on the order depends on the seed, and on nothing else") {
  std::set<float> results;
  for (std::uint64_t seed = 0; seed < 16; ++seed) {
    const float found = left_by_two_assignments(seed);
    CHECK(left_by_two_assignments(seed) == found);
    results.insert(found);
  }
  CHECK(results == std::set<float>{1.f, 2.f});
}

TEST_CASE("schedule seed: values, feeds, fetches and queues over several tasks") {
  const weft::graph g;
  const auto scope = g.as_default();
  weft::tensor<float, 0> x, y;
  {
    const auto on_ps = weft::with_device("/job:ps/task:0");
    x = weft::placeholder<float, 0>("x");
    y = x * 2.f;
  }
  const auto on_worker = weft::with_device("/job:work/task:1");
  const auto z = y + 1.f;
  const weft::fifo_queue<weft::tensor<float, 0>> queue(10);
  const auto put = queue.enqueue(z);
  const weft::tensor<float, 0> got = queue.dequeue();
  weft::session_options options;
  options.cluster = three_tasks;
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    options.schedule_seed = seed;
    weft::local_session session(options, g);
    const auto [found, taken] = session.run({{x, 3.f}}, z, got, put);
    CHECK(found == 7.f);
    CHECK(taken == 7.f);
  }
}

TEST_CASE("schedule seed: a step that can never go on fails and names who waits, and the session lives on") {
  const weft::graph g;
  const auto scope = g.as_default();
  const auto on_worker = weft::with_device("/job:work/task:1");
  const weft::fifo_queue<weft::tensor<float, 0>> queue(10);
  const weft::tensor<float, 0> got = queue.dequeue("taker");
  const auto put = queue.enqueue(weft::constant(4.f));
  weft::session_options options;
  options.cluster = three_tasks;
  options.schedule_seed = 5;
  weft::local_session session(options, g);
  const std::string text = error_of([&] { session.run(got); }).text();
  CHECK(text.find("the step cannot go on: 'taker' (QueueDequeueV2, schedule_seed_test.cpp:") != std::string::npos);
  CHECK(text.find("on /job:work/task:1 waits, and no node that could end that is left to run (schedule seed 5, step 1)") != std::string::npos);
  session.run(put);
  CHECK(session.run(got) == 4.f);
}
