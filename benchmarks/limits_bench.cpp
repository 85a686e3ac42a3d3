// What limits and signs of life cost a step that does nothing: two servers side by side, one as it is by default, one whose limits are out of reach and that stays silent. One JSON
// line, whose ratio is the first by the second.

#include "server_processes.hpp"

#include <weft/graph.hpp>
#include <weft/tensor/xtensor.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <vector>

namespace {

using clock_type = std::chrono::steady_clock;

weft::server_options without() {
  weft::server_options out;
  out.heartbeat = std::chrono::hours(1);
  out.received_bytes = out.received_bytes_per_peer = out.queued_bytes_per_client = SIZE_MAX;
  out.max_client_requests = out.max_steps = SIZE_MAX;
  return out;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

int main() {
  weft::server_options often;
  often.heartbeat = std::chrono::seconds(1);
  const task_servers limited({{"work", 1}}), lively({{"work", 1}}, nullptr, often), bare({{"work", 1}}, nullptr, without());
  const weft::graph g;
  const auto scope = g.as_default();
  const auto nothing = weft::no_op();
  weft::session_options silent;
  silent.heartbeat = std::chrono::hours(1);
  silent.received_bytes = SIZE_MAX;
  weft::session with(limited.target("work", 0), {}, g), beating(lively.target("work", 0), {}, g), none(bare.target("work", 0), silent, g);
  const auto step_with = with.make_callable(nothing), step_beating = beating.make_callable(nothing), step_none = none.make_callable(nothing);
  const auto time = [](const auto& step) {
    constexpr int calls = 500;
    const auto begin = clock_type::now();
    for (int i = 0; i < calls; ++i) step();
    return std::chrono::duration<double, std::micro>(clock_type::now() - begin).count() / calls;
  };
  std::vector<double> ours, beats, bares;
  for (int round = 0; round < 101; ++round) {
    ours.push_back(time(step_with));
    beats.push_back(time(step_beating));
    bares.push_back(time(step_none));
  }
  std::printf("{\"work\": \"no-op step, limits and heartbeat as by default\", \"unit\": \"us\", \"weft\": %.3f, \"peer\": %.3f, \"peer_name\": \"out of reach, silent\", \"ratio\": %.3f}\n", median(ours),
              median(bares), median(ours) / median(bares));
  std::printf("{\"work\": \"no-op step, a heartbeat of a second\", \"unit\": \"us\", \"weft\": %.3f, \"peer\": %.3f, \"peer_name\": \"out of reach, silent\", \"ratio\": %.3f}\n", median(beats), median(bares),
              median(beats) / median(bares));
}
