// The loops and products of weft/kernels beside oneDNN, one thread each, in the same run: prints JSON lines
// {"work", "unit", "weft", "peer", "ratio"}, where ratio says how weft compares (above 1: faster than the peer). Times are medians of
// repetitions that alternate between both. Link with -ldnnl; without oneDNN's headers only weft's figures are printed (peer 0).

#undef WEFT_SEPARATE_COMPILATION  // loops are templates, compiled where they are measured
#include <weft/kernels/gemm.hpp>
#include <weft/kernels/loops.hpp>
#include <weft/kernels/philox.hpp>
#include <weft/kernels/reduce_loops.hpp>

#include "onednn_peers.hpp"

#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace d = weft::detail;
namespace element = weft::detail::element;
namespace reduction = weft::detail::reduction;

namespace {

constexpr std::size_t count = 1000 * 1000;

struct arrays {
  std::vector<float> x = std::vector<float>(count), y = std::vector<float>(count), own = std::vector<float>(count),
                     peer = std::vector<float>(count);
  std::vector<char> flags = std::vector<char>(count);

  arrays() {
    std::mt19937 random(1);
    for (float& value : x) value = static_cast<float>(random()) * 0x1p-29f - 4.f;
    for (float& value : y) value = static_cast<float>(random()) * 0x1p-32f + 0.5f;
  }
};

void elementwise(arrays& data) {
  float *x = data.x.data(), *y = data.y.data(), *own = data.own.data();
  [[maybe_unused]] float* peer = data.peer.data();
  report(
      "exp, 1M floats", "us", 0, [=] { d::unary_loop<element::exp>(x, own, count); },
      PEER(peer_eltwise(dnnl::algorithm::eltwise_exp, 0, 0, x, peer)));
  report(
      "log, 1M floats", "us", 0, [=] { d::unary_loop<element::log>(y, own, count); },
      PEER(peer_eltwise(dnnl::algorithm::eltwise_log, 0, 0, y, peer)));
  report(
      "tanh, 1M floats", "us", 0, [=] { d::unary_loop<element::tanh>(x, own, count); },
      PEER(peer_eltwise(dnnl::algorithm::eltwise_tanh, 0, 0, x, peer)));
  report(
      "sigmoid, 1M floats", "us", 0, [=] { d::unary_loop<element::sigmoid>(x, own, count); },
      PEER(peer_eltwise(dnnl::algorithm::eltwise_logistic, 0, 0, x, peer)));
  report(
      "sqrt, 1M floats", "us", 0, [=] { d::unary_loop<element::sqrt>(y, own, count); },
      PEER(peer_eltwise(dnnl::algorithm::eltwise_sqrt, 0, 0, y, peer)));
  report(
      "x * a + b in one pass, 1M floats", "us", 0, [=] { d::scale_and_add_loop(x, 0.1f, 0.3f, own, count); },
      PEER(peer_eltwise(dnnl::algorithm::eltwise_linear, 0.1f, 0.3f, x, peer)));
  const float constants[] = {0.1f, 0.3f, 0.f};
  report(
      "x * a + b as two ops, 1M floats", "us", 0,
      [=] {
        d::binary_loop<element::mul>(x, count, constants, 1, own);
        d::binary_loop<element::add>(own, count, constants + 1, 1, own);
      },
      PEER(peer_eltwise(dnnl::algorithm::eltwise_linear, 0.1f, 0.3f, x, peer)));
  report(
      "maximum(x, 0), 1M floats", "us", 0, [=] { d::binary_loop<element::maximum>(x, count, constants + 2, 1, own); },
      PEER(peer_eltwise(dnnl::algorithm::eltwise_relu, 0, 0, x, peer)));
  bool* flags = reinterpret_cast<bool*>(data.flags.data());
  report(
      "x < y beside a copy, 1M floats", "us", 0, [=] { d::binary_loop<element::less>(x, count, y, count, flags); },
      [=] { std::memcpy(peer, x, count * sizeof(float)); });
}

void broadcasts(arrays& data) {
  float *x = data.x.data(), *y = data.y.data(), *own = data.own.data();
  [[maybe_unused]] float* peer = data.peer.data();
  const std::int64_t matrix[] = {1000, 1000}, row[] = {1000}, column[] = {1000, 1};
  const d::broadcast_plan by_row = *d::plan_broadcast(matrix, 2, row, 1), by_column = *d::plan_broadcast(matrix, 2, column, 2);
  const work_function same = [=] { d::binary_loop<element::add>(x, count, y, count, own); };
  const work_function rows = [=] { d::binary_loop<element::add>(x, y, own, by_row); };
  const work_function columns = [=] { d::binary_loop<element::add>(x, y, own, by_column); };
  report("[1000,1000] + [1000,1000]", "us", 0, same, PEER(peer_add(1000, 1000, x, y, peer)));
  report("[1000,1000] + [1000]", "us", 0, rows, PEER(peer_add(1, 1000, x, y, peer)));
  report("[1000,1000] + [1000,1]", "us", 0, columns, PEER(peer_add(1000, 1, x, y, peer)));
  report("[1000,1000] + [1000] beside weft's equal shapes", "us", 0, rows, same);
  report("[1000,1000] + [1000,1] beside weft's equal shapes", "us", 0, columns, same);
}

void sums(arrays& data) {
  float *x = data.x.data(), *own = data.own.data();
  [[maybe_unused]] float* peer = data.peer.data();
  const std::int64_t dims[] = {1000, 1000};
  const bool all[] = {true, true}, rows[] = {false, true}, columns[] = {true, false};
  const auto sum = [=](const bool* axes) -> work_function {
    const d::reduce_plan plan = d::plan_reduction(dims, axes, 2);
    return [=] { d::reduce_loop<reduction::sum>(x, own, plan); };
  };
  constexpr double gigabytes = count * sizeof(float) * 1e-9;
  report("sum of all of 1000x1000", "GB/s", gigabytes, sum(all), PEER(peer_sum(1, 1, x, peer)));
  report("sums of rows of 1000x1000", "GB/s", gigabytes, sum(rows), PEER(peer_sum(1000, 1, x, peer)));
  report("sums of columns of 1000x1000", "GB/s", gigabytes, sum(columns), PEER(peer_sum(1, 1000, x, peer)));
  // Reading is measured as the bitwise or of eight independent streams of words.
  const work_function read = [=] {
    std::uint64_t seen[8] = {};
    for (std::size_t i = 0; i < count; i += 16) {
      std::uint64_t words[8];
      std::memcpy(words, x + i, sizeof words);
      for (std::size_t lane = 0; lane < 8; ++lane) seen[lane] |= words[lane];
    }
    std::memcpy(own, seen, sizeof seen);
  };
  report("sum of all of 1000x1000 beside reading", "GB/s", gigabytes, sum(all), read);
  report("sums of rows of 1000x1000 beside reading", "GB/s", gigabytes, sum(rows), read);
  report("sums of columns of 1000x1000 beside reading", "GB/s", gigabytes, sum(columns), read);
}

void products() {
  struct extents {
    std::size_t m, k, n;
  };
  std::vector<float> a(1024 * 1024), b(1024 * 1024), own(1024 * 1024), peer(1024 * 1024);
  std::mt19937 random(2);
  for (float& value : a) value = static_cast<float>(random()) * 0x1p-31f - 1.f;
  for (float& value : b) value = static_cast<float>(random()) * 0x1p-31f - 1.f;
  const auto run = [&](extents e, d::transposition a_order, d::transposition b_order) {
    const bool a_turned = a_order == d::transposition::transposed, b_turned = b_order == d::transposition::transposed;
    const std::string name = "matmul " + std::to_string(e.m) + "x" + std::to_string(e.k) + "x" + std::to_string(e.n) +
                             (a_turned ? " a^T" : "") + (b_turned ? " b^T" : "");
    report(
        name, "GFLOP/s", 2e-9 * static_cast<double>(e.m * e.k * e.n),
        [&] {
          d::gemm<float>({e.m, e.n, e.k}, {a.data(), a_turned ? e.m : e.k, a_order}, {b.data(), b_turned ? e.k : e.n, b_order},
                         {own.data(), e.n});
        },
        PEER(peer_matmul(e.m, e.k, e.n, a.data(), b.data(), peer.data(), a_turned ? 'T' : 'N', b_turned ? 'T' : 'N')));
  };
  constexpr d::transposition none = d::transposition::none, transposed = d::transposition::transposed;
  for (std::size_t size : {64U, 128U, 256U, 512U, 1024U}) run({size, size, size}, none, none);
  run({64, 784, 256}, none, none);
  run({512, 512, 512}, transposed, none);
  run({512, 512, 512}, none, transposed);
  run({512, 512, 512}, transposed, transposed);
}

}  // namespace

int main(int, char** argv) {
  use_one_thread(argv);
  arrays data;
  elementwise(data);
  broadcasts(data);
  sums(data);
  std::vector<float> numbers(count);
  report(
      "uniform random, 1M floats", "us", 0, [&] { d::fill_uniform(numbers.data(), count, d::philox_random(1, 2)); }, work_function());
  products();
}
