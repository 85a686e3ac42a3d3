#ifndef WEFT_TESTS_RUNTIME_PART_BUILDER_HPP
#define WEFT_TESTS_RUNTIME_PART_BUILDER_HPP
// Parts for the executor's tests, written by hand, with kernels that call whatever a test gives them.

#include <weft/ops/standard.hpp>
#include <weft/runtime/executor.hpp>

#include <chrono>
#include <condition_variable>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace part_test {

using function = std::function<void(weft::kernel_context&)>;
using async_function = std::function<void(weft::kernel_context&, weft::kernel_done)>;

/// What the nodes of a part do, by name. Lives in the thread that makes the executor, while it makes it.
struct behaviour {
  std::map<std::string, function> calls;
  std::map<std::string, async_function> async_calls;
};
inline behaviour*& current_behaviour() {
  thread_local behaviour* current = nullptr;
  return current;
}

class call_kernel final : public weft::kernel {
 public:
  call_kernel(function f, bool expensive) : f_(std::move(f)), expensive_(expensive) {}
  void compute(weft::kernel_context& context) override { f_(context); }
  bool expensive(const weft::kernel_context&) const noexcept override { return expensive_; }

 private:
  function f_;
  bool expensive_;
};

class async_kernel final : public weft::kernel {
 public:
  explicit async_kernel(async_function f) : f_(std::move(f)) {}
  void compute(weft::kernel_context&) override { weft::fail(weft::error_code::internal, "an asynchronous kernel was called without its callback"); }
  void compute_async(weft::kernel_context& context, weft::kernel_done done) override { f_(context, std::move(done)); }
  bool asynchronous() const noexcept override { return true; }

 private:
  async_function f_;
};

// x * attr `by` + attr `plus`, elementwise.
class affine_kernel final : public weft::cheap_kernel {
 public:
  explicit affine_kernel(const weft::node& n) : by_(n.attr<float>("by")), plus_(n.attr<float>("plus")) {}
  void compute(weft::kernel_context& context) override {
    const weft::tensor_value& x = context.input(0);
    const auto n = x.elements();
    const float* from = x.data<float>();
    float* to = context.forward_or_allocate(0, 0, weft::dtype::float32, x.shape()).mutable_data<float>();
    for (std::int64_t i = 0; i < n; ++i) to[i] = from[i] * by_ + plus_;
  }

 private:
  float by_, plus_;
};

// The sum of all inputs, scalars.
class sum_kernel final : public weft::cheap_kernel {
 public:
  void compute(weft::kernel_context& context) override {
    float sum = 0;
    for (int i = 0; i < context.input_count(); ++i) sum += context.input(i).item<float>();
    context.set_output(0, weft::tensor_value::scalar(sum));
  }
};

inline weft::kernel_registry kernels() {
  using result = std::unique_ptr<weft::kernel>;
  using what = const weft::kernel_construction&;
  weft::kernel_registry out;
  out.add({"Call", "CPU", {}, 0}, [](what c) -> result { return std::make_unique<call_kernel>(current_behaviour()->calls.at(c.about.name()), false); });
  out.add({"Heavy", "CPU", {}, 0}, [](what c) -> result { return std::make_unique<call_kernel>(current_behaviour()->calls.at(c.about.name()), true); });
  out.add({"Async", "CPU", {}, 0}, [](what c) -> result { return std::make_unique<async_kernel>(current_behaviour()->async_calls.at(c.about.name())); });
  out.add({"Affine", "CPU", {}, 0}, [](what c) -> result { return std::make_unique<affine_kernel>(c.about); });
  out.add({"Sum", "CPU", {}, 0}, [](what) -> result { return std::make_unique<sum_kernel>(); });
  return out;
}

/// Makes a part node by node; `:` the ops need no definition.
class part_builder {
 public:
  weft::output add(const char* op, const std::string& name, std::vector<weft::output> inputs = {}, weft::attr_map attrs = {}, int outputs = 1,
                   std::vector<const weft::node*> control = {}) {
    weft::node_spec spec;
    spec.op = op;
    spec.name = name;
    spec.exact_name = true;
    spec.scoped = false;
    spec.inputs = std::move(inputs);
    spec.control_inputs = std::move(control);
    spec.attrs = std::move(attrs);
    spec.device = "/job:work/task:1/device:CPU:0";
    spec.site = {"train.cpp", 42};
    spec.outputs = std::vector<weft::output_type>(static_cast<std::size_t>(outputs), {weft::dtype::float32, weft::partial_shape(), false});
    return {&graph_.add(std::move(spec)), 0};
  }
  weft::output arg(int index) { return add("_Arg", "arg" + std::to_string(index), {}, {{"index", index}}); }
  weft::output constant(const std::string& name, weft::tensor_value v, std::vector<const weft::node*> control = {}) {
    return add("Const", name, {}, {{"value", std::move(v)}}, 1, std::move(control));
  }
  weft::output affine(const std::string& name, weft::output x, float by, float plus) { return add("Affine", name, {x}, {{"by", by}, {"plus", plus}}); }
  void fetch(weft::output from, int index) { add("_Retval", "retval" + std::to_string(index), {from}, {{"index", index}}, 0); }
  weft::output call(const std::string& name, std::vector<weft::output> inputs, function f, int outputs = 1, std::vector<const weft::node*> control = {}) {
    behaviour_.calls[name] = std::move(f);
    return add("Call", name, std::move(inputs), {}, outputs, std::move(control));
  }
  weft::output heavy(const std::string& name, std::vector<weft::output> inputs, function f, int outputs = 1, std::vector<const weft::node*> control = {}) {
    behaviour_.calls[name] = std::move(f);
    return add("Heavy", name, std::move(inputs), {}, outputs, std::move(control));
  }
  weft::output async(const std::string& name, std::vector<weft::output> inputs, async_function f) {
    behaviour_.async_calls[name] = std::move(f);
    return add("Async", name, std::move(inputs));
  }
  void send(const std::string& name, weft::output from, int edge) { add("_Send", name, {from}, {{"_edge", edge}}, 0); }
  weft::output receive(const std::string& name, int edge, std::vector<const weft::node*> control = {}) {
    return add("_Recv", name, {}, {{"_edge", edge}}, 1, std::move(control));
  }

  std::unique_ptr<weft::executor> build() {
    current_behaviour() = &behaviour_;
    auto out = std::make_unique<weft::executor>(std::move(graph_), kernels(), "/job:work/task:1 (127.0.0.1:33335)");
    current_behaviour() = nullptr;
    return out;
  }

 private:
  weft::graph graph_{weft::op_registry()};
  behaviour behaviour_;
};

/// Waits for one thing to happen, at most ten seconds.
class event {
 public:
  void set() {
    const std::lock_guard<std::mutex> lock(mutex_);
    set_ = true;
    changed_.notify_all();
  }
  bool wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(10), [this] { return set_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool set_ = false;
};

/// The end of a step that was started with `run_async`.
struct outcome {
  event ended;
  weft::status why;
  std::vector<weft::tensor_value> fetches;
  int calls = 0;
  weft::executor::done_callback callback() {
    return [this](const weft::status& s, std::vector<weft::tensor_value> f) {
      ++calls;
      why = s;
      fetches = std::move(f);
      ended.set();
    };
  }
};

inline weft::tensor_value scalar(float v) { return weft::tensor_value::scalar(v); }

inline weft::executor::step_args with_feeds(std::vector<weft::tensor_value> feeds, weft::thread_pool* pool = nullptr) {
  weft::executor::step_args args;
  args.feeds = std::move(feeds);
  args.pool = pool;
  return args;
}

}  // namespace part_test

#endif
