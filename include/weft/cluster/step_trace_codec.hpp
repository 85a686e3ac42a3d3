#ifndef WEFT_CLUSTER_STEP_TRACE_CODEC_HPP
#define WEFT_CLUSTER_STEP_TRACE_CODEC_HPP
// How the trace of a step travels: each part's as the bytes of a tensor, which the master passes on as it is, with the time at which that part began.

#include <weft/cluster/wire.hpp>
#include <weft/core/cluster_spec.hpp>
#include <weft/core/config.hpp>
#include <weft/core/step_trace.hpp>
#include <weft/tensor/tensor_value.hpp>

#include <chrono>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weft::detail {

inline std::int64_t nanoseconds_since(std::chrono::steady_clock::time_point t) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - t).count();
}

/// What a part of a step said of itself: a trace as it came, and when the part began, in nanoseconds from the beginning of the step at its master.
struct part_trace {
  task_id task;
  std::int64_t begin = 0;
  tensor_value encoded;
};

/// A part's trace as bytes; the task is not among them.
tensor_value encode_trace(const task_trace& trace);
/// Reads what `encode_trace` wrote, with times that begin at `begin`. Throws INVALID_ARGUMENT.
task_trace decode_trace(const tensor_value& encoded, std::string task, std::int64_t begin);

/// Puts the traces of all parts behind the values of a reply; what the reply's body says of them.
std::string encode_traces(std::int64_t step, std::vector<part_trace>& parts, std::vector<tensor_value>& values);
/// Takes them out again.
step_trace decode_traces(const std::string& body, std::vector<tensor_value>& values);

}  // namespace weft::detail

#if WEFT_HAS_CLUSTER_BODIES

namespace weft::detail {

WEFT_DECL tensor_value encode_trace(const task_trace& trace) {
  wire_writer to;
  to.i64(trace.left_out).count(trace.nodes.size());
  for (const traced_node& n : trace.nodes) {
    to.string(n.name).string(n.op).string(n.device).i64(n.begin).i64(n.end).i64(n.thread).boolean(n.edge >= 0);
    if (n.edge >= 0) to.i64(n.edge).i64(n.bytes).i64(n.passed).string(n.value).string(n.peer);
  }
  const std::string bytes = to.take();
  tensor_value out(dtype::uint8, shape({static_cast<std::int64_t>(bytes.size())}));
  std::memcpy(out.mutable_raw_data(), bytes.data(), bytes.size());
  return out;
}

WEFT_DECL task_trace decode_trace(const tensor_value& encoded, std::string task, std::int64_t begin) {
  if (encoded.dtype() != dtype::uint8) fail(error_code::invalid_argument, "the trace of " + task + " is of dtype " + to_text(encoded.dtype()) + ", expected uint8");
  wire_reader from(std::string_view(reinterpret_cast<const char*>(encoded.raw_data()), encoded.bytes()), "trace of a part");
  // So that the times of a trace can be subtracted.
  constexpr std::int64_t longest = std::int64_t{1} << 60;
  const auto time = [&from, begin](std::int64_t t) {
    if (t < -longest || t > longest || begin < -longest || begin > longest) from.bad("a time of " + std::to_string(t) + " ns");
    return t + begin;
  };
  task_trace out;
  out.task = std::move(task);
  out.left_out = from.i64();
  out.nodes.resize(from.count(37));
  for (traced_node& n : out.nodes) {
    n.name = from.string();
    n.op = from.string();
    n.device = from.string();
    n.begin = time(from.i64());
    n.end = time(from.i64());
    n.thread = from.i64();
    if (!from.boolean()) continue;
    n.edge = from.i64();
    n.bytes = from.i64();
    n.passed = from.i64();
    if (n.passed >= 0) n.passed = time(n.passed);
    n.value = from.string();
    n.peer = from.string();
  }
  from.finish();
  return out;
}

WEFT_DECL std::string encode_traces(std::int64_t step, std::vector<part_trace>& parts, std::vector<tensor_value>& values) {
  wire_writer to;
  to.i64(step).count(parts.size());
  for (part_trace& p : parts) {
    to.string(to_text(p.task)).i64(p.begin);
    values.push_back(std::move(p.encoded));
  }
  return to.take();
}

WEFT_DECL step_trace decode_traces(const std::string& body, std::vector<tensor_value>& values) {
  wire_reader from(body, "trace of a step");
  step_trace out;
  out.step = from.i64();
  const std::size_t parts = from.count(12);
  if (parts > values.size()) from.bad("expected " + std::to_string(parts) + " traces, found " + std::to_string(values.size()) + " tensors");
  const std::size_t first = values.size() - parts;
  for (std::size_t i = 0; i < parts; ++i) {
    std::string task = from.string();
    const std::int64_t begin = from.i64();
    out.tasks.push_back(decode_trace(values[first + i], std::move(task), begin));
  }
  from.finish();
  values.resize(first);
  return out;
}

}  // namespace weft::detail

#endif
#endif
