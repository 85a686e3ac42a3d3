// What crosses to a task, and how often: bytes that servers count.
#include <weft/cluster/server_statistics.hpp>

#include "test_ops.hpp"

#include <weft/cluster/session.hpp>

#include <cstdint>
#include <string>
#include <vector>

using test_ops::quiet;

namespace {

constexpr std::size_t length = std::size_t{1} << 18;
constexpr std::uint64_t mebibyte = std::uint64_t{1} << 20;  // of `length` floats

xt::xtensor<float, 1> values(float v) { return v * xt::ones<float>({length}); }

std::uint64_t bytes_in(weft::local_cluster& cluster, int task) { return cluster.at("work", task).statistics().bytes_in; }

}  // namespace

TEST_CASE("traffic: a constant crosses once to each task that has it, however many towers read it, and in no step") {
  weft::local_cluster cluster({{"work", 3}}, quiet());
  const weft::graph g;
  const auto scope = g.as_default();
  const auto x = weft::placeholder<float, 0>("x");
  const auto same = values(2.f);
  std::vector<weft::tensor<float, 0>> sums;
  for (int i = 0; i < 4; ++i) {
    const auto device = weft::with_device("/job:work/task:" + std::to_string(1 + i / 2));
    sums.push_back(weft::reduce_sum(weft::constant(same)) * x);
  }
  weft::tensor<float, 0> total;
  weft::with_device("/job:work/task:0", [&] { total = weft::add_n(sums); });
  weft::session session(cluster.target("work", 0), {}, g);
  const auto step = [&](float fed) { CHECK(session.run({{x, fed}}, total) == fed * 8.f * static_cast<float>(length)); };
  const std::uint64_t before[] = {bytes_in(cluster, 1), bytes_in(cluster, 2)};
  step(1.f);
  for (const int task : {1, 2}) {
    const std::uint64_t came = bytes_in(cluster, task) - before[task - 1];
    CHECK(came > mebibyte);
    CHECK(came < mebibyte + mebibyte / 4);
  }
  const std::uint64_t then[] = {bytes_in(cluster, 0), bytes_in(cluster, 1), bytes_in(cluster, 2)};
  for (int i = 2; i <= 10; ++i) step(static_cast<float>(i));
  for (const int task : {0, 1, 2}) CHECK(bytes_in(cluster, task) - then[task] < (64 << 10));
}

TEST_CASE("traffic: what another task has crosses once in each step to each task, however many towers read it there") {
  weft::local_cluster cluster({{"work", 3}}, quiet());
  const weft::graph g;
  const auto scope = g.as_default();
  const auto x = weft::placeholder<float, 0>("x");
  weft::tensor<float, 1> there;
  weft::tensor<float, 0> total;
  weft::with_device("/job:work/task:0", [&] { there = weft::constant(values(2.f)) * x; });
  std::vector<weft::tensor<float, 0>> sums;
  for (int i = 0; i < 4; ++i) {
    const auto device = weft::with_device("/job:work/task:" + std::to_string(1 + i / 2));
    sums.push_back(weft::reduce_sum(there + static_cast<float>(i)));
  }
  weft::with_device("/job:work/task:0", [&] { total = weft::add_n(sums); });
  weft::session session(cluster.target("work", 0), {}, g);
  const auto step = [&] { CHECK(session.run({{x, 1.f}}, total) == 14.f * static_cast<float>(length)); };
  step();
  const std::uint64_t then[] = {bytes_in(cluster, 1), bytes_in(cluster, 2)};
  for (int i = 0; i < 5; ++i) step();
  for (const int task : {1, 2}) {
    const std::uint64_t came = bytes_in(cluster, task) - then[task - 1];
    CHECK(came >= 5 * mebibyte);
    CHECK(came < 5 * mebibyte + mebibyte / 4);
  }
}

TEST_CASE("traffic: a step with a thousand feeds, fetches and edges has each value in its place") {
  constexpr std::int64_t many = 1000;
  weft::local_cluster cluster({{"work", 2}}, quiet());
  const weft::graph g;
  const auto scope = g.as_default();
  std::vector<weft::feed> feeds;
  std::vector<weft::output> fetches;
  for (std::int64_t i = 0; i < many; ++i) {
    const auto x = weft::placeholder<float, 0>();
    weft::tensor<float, 0> there, back;
    weft::with_device("/job:work/task:1", [&] { there = x + 1.f; });
    weft::with_device("/job:work/task:0", [&] { back = there * 2.f; });
    feeds.emplace_back(x, static_cast<float>(i));
    fetches.push_back(back.raw());
  }
  weft::session session(cluster.target("work", 0), {}, g);
  for (int round = 0; round < 2; ++round) {
    const std::vector<weft::tensor_value> values = session.run(weft::run_options(), feeds, fetches);
    REQUIRE(values.size() == many);
    for (std::int64_t i = 0; i < many; ++i) CHECK(values[static_cast<std::size_t>(i)].item<float>() == 2.f * static_cast<float>(i + 1));
  }
  CHECK(cluster.at("work", 0).statistics().steps_failed == 0);
}
