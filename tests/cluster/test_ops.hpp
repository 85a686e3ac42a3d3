#ifndef WEFT_TESTS_CLUSTER_TEST_OPS_HPP
#define WEFT_TESTS_CLUSTER_TEST_OPS_HPP
// Ops that a test can hold up: one that waits without a thread, one that blocks a thread, one that calls the test back.

#include <weft/cluster/local_cluster.hpp>

#include "../error_of.hpp"
#include "../patience.hpp"
#include <weft/cluster/session.hpp>
#include <weft/graph.hpp>
#include <weft/kernels/standard.hpp>
#include <weft/tensor/xtensor.hpp>

#include <doctest/doctest.h>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

namespace test_ops {

using ::error_of;

using ::patience;

/// Counts who has come to it, and holds them up until it is opened.
class gate {
 public:
  static gate& instance() {
    static gate one;
    return one;
  }
  void reset() {
    const std::lock_guard<std::mutex> lock(mutex_);
    open_ = false;
    entered_ = left_ = 0;
  }
  void open() {
    std::vector<std::function<void()>> waiting;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      open_ = true;
      waiting.swap(waiting_);
    }
    changed_.notify_all();
    for (const auto& go : waiting) go();
  }
  /// Waits for the n-th visitor; false when it does not come.
  bool wait_entered(int n) {
    std::unique_lock<std::mutex> lock(mutex_);
    return changed_.wait_for(lock, patience, [&] { return entered_ >= n; });
  }
  bool wait_left(int n) {
    std::unique_lock<std::mutex> lock(mutex_);
    return changed_.wait_for(lock, patience, [&] { return left_ >= n; });
  }
  void pass_blocking() {
    std::unique_lock<std::mutex> lock(mutex_);
    ++entered_;
    changed_.notify_all();
    changed_.wait_for(lock, patience, [&] { return open_; });
    ++left_;
    changed_.notify_all();
  }
  void pass(std::function<void()> go) {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      ++entered_;
      changed_.notify_all();
      if (!open_) {
        waiting_.push_back(std::move(go));
        return;
      }
    }
    go();
  }
  void note_left() {
    const std::lock_guard<std::mutex> lock(mutex_);
    ++left_;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
  int entered_ = 0, left_ = 0;
  std::vector<std::function<void()>> waiting_;
};

/// Ends when the gate opens or the step is cancelled.
struct wait_kernel : weft::kernel {
  bool asynchronous() const noexcept override { return true; }
  void compute(weft::kernel_context&) override {}
  void compute_async(weft::kernel_context& context, weft::kernel_done done) override {
    context.set_output(0, context.input(0));
    const auto once = std::make_shared<std::atomic<bool>>(false);
    const auto finish = [once, done](const weft::status& result) {
      if (once->exchange(true)) return;
      gate::instance().note_left();
      done(result);
    };
    context.environment().cancellation.on_cancel(finish);
    gate::instance().pass([finish] { finish(weft::status()); });
  }
};

/// Holds its thread until the gate opens.
struct block_kernel : weft::kernel {
  bool expensive(const weft::kernel_context&) const noexcept override { return true; }
  void compute(weft::kernel_context& context) override {
    gate::instance().pass_blocking();
    context.set_output(0, context.input(0));
  }
};

/// Calls the test.
struct call_kernel : weft::kernel {
  bool expensive(const weft::kernel_context&) const noexcept override { return true; }
  void compute(weft::kernel_context& context) override {
    context.set_output(0, weft::tensor_value::scalar(call(*context.input(0).data<float>())));
  }
  static std::function<float(float)> call;
};
inline std::function<float(float)> call_kernel::call;

inline weft::op_registry ops() {
  auto all = weft::standard_ops();
  for (const char* name : {"TestWait", "TestBlock", "TestCall"}) all.add(weft::op(name).input("x: float").output("y: float").stateful());
  return all;
}

inline weft::server_options options() {
  weft::server_options out;
  out.ops = std::make_shared<const weft::op_registry>(ops());
  auto kernels = weft::standard_kernels();
  kernels.add({"TestWait", "CPU", {}, 0}, [](const weft::kernel_construction&) -> std::unique_ptr<weft::kernel> { return std::make_unique<wait_kernel>(); });
  kernels.add({"TestBlock", "CPU", {}, 0}, [](const weft::kernel_construction&) -> std::unique_ptr<weft::kernel> { return std::make_unique<block_kernel>(); });
  kernels.add({"TestCall", "CPU", {}, 0}, [](const weft::kernel_construction&) -> std::unique_ptr<weft::kernel> { return std::make_unique<call_kernel>(); });
  out.kernels = std::make_shared<const weft::kernel_registry>(kernels);
  return out;
}

/// The same without a log.
inline weft::server_options quiet() {
  auto out = options();
  out.log = [](const char*, const std::string&) {};
  return out;
}

/// A node of one of the ops above.
inline weft::tensor<float, 0> node(const char* op, const weft::tensor<float, 0>& x, const char* device) {
  const auto scope = weft::with_device(device);
  return weft::tensor<float, 0>(weft::output{&weft::detail::add_node(op, {x.raw()}, weft::op_name()), 0});
}

/// A run on another thread, whose error is asked for with `get` within bounded time.
template <class F> std::future<weft::status> error_later(F call) {
  return std::async(std::launch::async, [call] { return error_of(call); });
}
inline weft::status get(std::future<weft::status>& result) {
  REQUIRE(result.wait_for(patience) == std::future_status::ready);
  return result.get();
}

}  // namespace test_ops

#endif
