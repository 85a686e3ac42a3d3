// Kernels as a step runs them (inputs that are kept, outputs from a pool of buffers) beside oneDNN and beside copying, one thread.

#include "onednn_peers.hpp"

#include <weft/graph/graph.hpp>
#include <weft/kernels/standard.hpp>
#include <weft/ops/standard.hpp>
#include <weft/runtime/kernel.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

using weft::dtype;
using weft::shape;
using weft::tensor_value;

namespace {

constexpr std::size_t count = 1000 * 1000;

tensor_value random_floats(shape s, float low, float high) {
  static std::mt19937 random(1);
  tensor_value out(dtype::float32, std::move(s));
  for (std::int64_t i = 0; i < out.elements(); ++i) out.mutable_data<float>()[i] = low + (high - low) * static_cast<float>(random()) * 0x1p-32f;
  return out;
}

// A node's kernel with its inputs.
class prepared_op {
 public:
  prepared_op(const std::string& op, std::vector<tensor_value> inputs, weft::attr_map attrs = {}, int threads = 1) : inputs_(std::move(inputs)), pool_(static_cast<std::size_t>(threads)) {
    weft::node_spec spec;
    spec.op = op;
    spec.attrs = std::move(attrs);
    for (const tensor_value& v : inputs_) {
      weft::node_spec placeholder;
      placeholder.op = "Placeholder";
      placeholder.attrs = {{"dtype", v.dtype()}};
      spec.inputs.push_back({&graph_.add(std::move(placeholder)), 0});
    }
    node_ = &graph_.add(std::move(spec));
    kernel_ = weft::standard_kernels().make({*node_, "/job:localhost/task:0/device:CPU:0"}, "CPU");
    environment_.pool = &pool_;
    environment_.buffers = buffers_.get();
  }
  void run() {
    std::vector<tensor_value> inputs = inputs_, outputs(1);
    weft::kernel_context context(*node_, environment_, inputs.data(), inputs.size(), outputs.data());
    kernel_->compute(context);
  }

 private:
  weft::graph graph_{weft::standard_ops()};
  std::vector<tensor_value> inputs_;
  weft::thread_pool pool_;
  std::shared_ptr<weft::buffer_pool> buffers_ = std::make_shared<weft::buffer_pool>();
  weft::step_environment environment_;
  const weft::node* node_ = nullptr;
  std::unique_ptr<weft::kernel> kernel_;
};

work_function work(const std::string& op, std::vector<tensor_value> inputs, weft::attr_map attrs = {}, int threads = 1) {
  const auto prepared = std::make_shared<prepared_op>(op, std::move(inputs), std::move(attrs), threads);
  return [prepared] { prepared->run(); };
}

void elementwise() {
  tensor_value x = random_floats({1000, 1000}, -4.f, 4.f), y = random_floats({1000, 1000}, 0.5f, 1.5f), peer = random_floats({1000, 1000}, 0.f, 1.f);
  [[maybe_unused]] float* out = peer.mutable_data<float>();
  float *in = x.mutable_data<float>(), *positive = y.mutable_data<float>();
  const work_function copy = [=] { std::memcpy(out, in, count * sizeof(float)); };
  // Copies that read and write as many bytes as a comparison and a choice do: 9 and 13 for each element.
  const tensor_value wide = random_floats({1625, 1000}, 0.f, 1.f);
  const float* wide_in = wide.data<float>();
  const auto wide_out = std::make_shared<std::vector<char>>(count * 13 / 2);
  const auto copy_of = [=](std::size_t bytes) -> work_function { return [=] { std::memcpy(wide_out->data(), wide_in, bytes / 2); }; };
  report("Exp", "us", 0, work("Exp", {x}), PEER(peer_eltwise(dnnl::algorithm::eltwise_exp, 0, 0, in, out)));
  report("Log", "us", 0, work("Log", {y}), PEER(peer_eltwise(dnnl::algorithm::eltwise_log, 0, 0, positive, out)));
  report("Tanh", "us", 0, work("Tanh", {x}), PEER(peer_eltwise(dnnl::algorithm::eltwise_tanh, 0, 0, in, out)));
  report("Sigmoid", "us", 0, work("Sigmoid", {x}), PEER(peer_eltwise(dnnl::algorithm::eltwise_logistic, 0, 0, in, out)));
  report("Sqrt", "us", 0, work("Sqrt", {y}), PEER(peer_eltwise(dnnl::algorithm::eltwise_sqrt, 0, 0, positive, out)));
  report("Relu", "us", 0, work("Relu", {x}), PEER(peer_eltwise(dnnl::algorithm::eltwise_relu, 0, 0, in, out)));
  report("Elu", "us", 0, work("Elu", {x}), PEER(peer_eltwise(dnnl::algorithm::eltwise_elu, 1, 0, in, out)));
  report("Softplus", "us", 0, work("Softplus", {x}), PEER(peer_eltwise(dnnl::algorithm::eltwise_soft_relu, 1, 0, in, out)));
  report("Square", "us", 0, work("Square", {x}), PEER(peer_eltwise(dnnl::algorithm::eltwise_square, 0, 0, in, out)));
  report("Rint", "us", 0, work("Rint", {x}), PEER(peer_eltwise(dnnl::algorithm::eltwise_round, 0, 0, in, out)));
  for (const char* op : {"Less", "Equal"}) report(std::string(op) + " beside a copy of as many bytes", "us", 0, work(op, {x, y}), copy_of(count * 9));
  for (const char* op : {"Maximum", "SquaredDifference", "ReluGrad", "TanhGrad", "SigmoidGrad"}) report(std::string(op) + " beside a copy", "us", 0, work(op, {x, y}), copy);
  tensor_value flags(dtype::boolean, {1000, 1000});
  for (std::size_t i = 0; i < count; ++i) flags.mutable_data<bool>()[i] = in[i] > 0;
  report("SelectV2 beside a copy of as many bytes", "us", 0, work("SelectV2", {flags, x, y}), copy_of(count * 13));
  report("Log1p", "us", 0, work("Log1p", {y}), copy);
  for (const char* op : {"Sin", "Cos", "Erf"}) report(std::string(op) + " beside a copy", "us", 0, work(op, {x}), copy);
}

void broadcasts() {
  const tensor_value x = random_floats({1000, 1000}, -4.f, 4.f), y = random_floats({1000, 1000}, 0.5f, 1.5f);
  const work_function same = work("AddV2", {x, y});
  report("[1000,1000] + [1000] beside equal shapes", "us", 0, work("AddV2", {x, random_floats({1000}, 0, 1)}), same);
  report("[1000,1000] + [1000,1] beside equal shapes", "us", 0, work("AddV2", {x, random_floats({1000, 1}, 0, 1)}), same);
  report("[1000,1000] + [1] beside equal shapes", "us", 0, work("AddV2", {x, random_floats({1}, 0, 1)}), same);
  report("[100000,10] + [10] beside equal shapes", "us", 0, work("AddV2", {random_floats({100000, 10}, 0, 1), random_floats({10}, 0, 1)}), same);
  report("[100000,10] + [100000,1] beside equal shapes", "us", 0, work("AddV2", {random_floats({100000, 10}, 0, 1), random_floats({100000, 1}, 0, 1)}), same);
}

void reductions() {
  const tensor_value x = random_floats({1000, 1000}, -4.f, 4.f);
  const auto axes = [](std::vector<std::int32_t> a) { return tensor_value::from<std::int32_t>({static_cast<std::int64_t>(a.size())}, a); };
  const float* in = x.data<float>();
  const auto sink = std::make_shared<std::vector<std::uint64_t>>(8);
  // Reading is measured as the bitwise or of eight independent streams of words.
  const work_function read = [=] {
    std::uint64_t seen[8] = {};
    for (std::size_t i = 0; i < count; i += 16) {
      std::uint64_t words[8];
      std::memcpy(words, in + i, sizeof words);
      for (std::size_t lane = 0; lane < 8; ++lane) seen[lane] |= words[lane];
    }
    std::memcpy(sink->data(), seen, sizeof seen);
  };
  for (const char* op : {"Sum", "Mean", "Max", "EuclideanNorm"})
    for (const auto& [name, over] : {std::pair<const char*, tensor_value>{" of all", axes({0, 1})}, {" of rows", axes({1})}, {" of columns", axes({0})}})
      report(op + std::string(name) + " beside reading", "us", 0, work(op, {x, over}), read);
  report("ArgMax of rows beside reading", "us", 0, work("ArgMax", {x, tensor_value::scalar(std::int32_t{1})}), read);
  report("ArgMax of columns beside reading", "us", 0, work("ArgMax", {x, tensor_value::scalar(std::int32_t{0})}), read);
  report("Cumsum of rows beside reading", "us", 0, work("Cumsum", {x, tensor_value::scalar(std::int32_t{1})}), read);
}

void products() {
  struct extents {
    std::size_t m, k, n;
  };
  const auto run = [&](extents e, bool a_turned, bool b_turned) {
    const auto m = static_cast<std::int64_t>(e.m), k = static_cast<std::int64_t>(e.k), n = static_cast<std::int64_t>(e.n);
    const tensor_value a = random_floats(a_turned ? shape{k, m} : shape{m, k}, -1, 1), b = random_floats(b_turned ? shape{n, k} : shape{k, n}, -1, 1);
    tensor_value c(dtype::float32, {m, n});
    const std::string name = "MatMul " + std::to_string(m) + "x" + std::to_string(k) + "x" + std::to_string(n) + (a_turned ? " a^T" : "") + (b_turned ? " b^T" : "");
    report(name, "GFLOP/s", 2e-9 * static_cast<double>(e.m * e.k * e.n), work("MatMul", {a, b}, {{"transpose_a", a_turned}, {"transpose_b", b_turned}}),
           PEER(peer_matmul(e.m, e.k, e.n, a.data<float>(), b.data<float>(), c.mutable_data<float>(), a_turned ? 'T' : 'N', b_turned ? 'T' : 'N')));
  };
  // Two threads beside one need time by the clock, not the thread's own.
  for (const std::int64_t size : {256, 512, 1024}) {
    const tensor_value a = random_floats({size, size}, -1, 1), b = random_floats({size, size}, -1, 1);
    const auto one = std::make_shared<prepared_op>("MatMul", std::vector<tensor_value>{a, b}), two = std::make_shared<prepared_op>("MatMul", std::vector<tensor_value>{a, b}, weft::attr_map{}, 2);
    const auto fastest = [](prepared_op& p) {
      const auto begin = std::chrono::steady_clock::now();
      p.run();
      return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    };
    double best_of_one = 1e9, best_of_two = 1e9;
    for (int i = 0; i < 200; ++i) {
      best_of_one = std::min(best_of_one, fastest(*one));
      best_of_two = std::min(best_of_two, fastest(*two));
    }
    std::printf("{\"work\": \"MatMul %dx%dx%d, two threads beside one, best of 200\", \"unit\": \"us\", \"weft\": %.4g, \"peer\": %.4g, \"ratio\": %.3f}\n", static_cast<int>(size),
                static_cast<int>(size), static_cast<int>(size), best_of_two * 1e6, best_of_one * 1e6, best_of_one / best_of_two);
  }
  for (std::size_t size : {64U, 128U, 256U, 512U, 1024U})
    for (const int turned : {0, 1, 2, 3}) run({size, size, size}, (turned & 1) != 0, (turned & 2) != 0);
  run({64, 784, 256}, false, false);
  run({64, 784, 256}, true, false);
  run({64, 784, 256}, false, true);
  const auto square = [](dtype type, std::int64_t size) {
    tensor_value out(type, {size, size});
    std::memset(out.mutable_raw_data(), 0, out.bytes());
    return out;
  };
  for (const dtype type : {dtype::float64, dtype::int32, dtype::half})
    report(std::string("MatMul 256x256x256 ") + to_text(type), "GFLOP/s", 2e-9 * 256 * 256 * 256, work("MatMul", {square(type, 256), square(type, 256)}), work_function());
}

}  // namespace

int main(int, char** argv) {
  use_one_thread(argv);
  elementwise();
  broadcasts();
  reductions();
  products();
}
