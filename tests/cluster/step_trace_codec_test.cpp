#include <weft/cluster/step_trace_codec.hpp>

#include "../error_of.hpp"

#include <doctest/doctest.h>

#include <cstring>

namespace {

weft::task_trace example() {
  weft::traced_node plain, crossing;
  plain.name = "x";
  plain.op = "Add";
  plain.device = "/job:ps/task:0/device:CPU:0";
  plain.begin = -5;
  plain.end = 70;
  plain.thread = 2;
  crossing = plain;
  crossing.op = "_Send";
  crossing.edge = 0;
  crossing.bytes = 12;
  crossing.value = "x:1";
  crossing.peer = "/job:work/task:1/device:CPU:0";
  crossing.passed = 80;
  return {"/job:ps/task:0", {plain, crossing}, 9};
}

weft::tensor_value as_tensor(const std::string& bytes) {
  weft::tensor_value out(weft::dtype::uint8, weft::shape({static_cast<std::int64_t>(bytes.size())}));
  std::memcpy(out.mutable_raw_data(), bytes.data(), bytes.size());
  return out;
}

}  // namespace

TEST_CASE("step_trace_codec: the traces of a step come back, with the times of the step") {
  std::vector<weft::detail::part_trace> parts{{{"ps", 0}, 1000, weft::detail::encode_trace(example())}};
  std::vector<weft::tensor_value> values{weft::tensor_value::scalar(1.f)};
  const std::string body = weft::detail::encode_traces(6, parts, values);
  REQUIRE(values.size() == 2);
  const weft::step_trace got = weft::detail::decode_traces(body, values);
  CHECK(values.size() == 1);
  CHECK(got.step == 6);
  REQUIRE(got.tasks.size() == 1);
  CHECK(got.tasks[0].task == "/job:ps/task:0");
  CHECK(got.tasks[0].left_out == 9);
  REQUIRE(got.tasks[0].nodes.size() == 2);
  const auto &plain = got.tasks[0].nodes[0], &crossing = got.tasks[0].nodes[1];
  CHECK(plain.name == "x");
  CHECK(plain.begin == 995);
  CHECK(plain.end == 1070);
  CHECK(plain.thread == 2);
  CHECK(plain.edge == -1);
  CHECK(plain.passed == -1);
  CHECK(crossing.edge == 0);
  CHECK(crossing.bytes == 12);
  CHECK(crossing.value == "x:1");
  CHECK(crossing.peer == "/job:work/task:1/device:CPU:0");
  CHECK(crossing.passed == 1080);
}

TEST_CASE("step_trace_codec: what is no trace is refused") {
  const weft::tensor_value whole = weft::detail::encode_trace(example());
  const std::string bytes(reinterpret_cast<const char*>(whole.raw_data()), whole.bytes());
  for (std::size_t length = 0; length < bytes.size(); ++length)
    CHECK(error_of([&] { weft::detail::decode_trace(as_tensor(bytes.substr(0, length)), "ps", 0); }).code == weft::error_code::invalid_argument);
  CHECK(error_of([&] { weft::detail::decode_trace(as_tensor(bytes + "!"), "ps", 0); }).code == weft::error_code::invalid_argument);
  CHECK(error_of([&] { weft::detail::decode_trace(weft::tensor_value::scalar(1.f), "ps", 0); }).code == weft::error_code::invalid_argument);
  auto far = example();
  far.nodes[0].end = INT64_MAX;
  CHECK(error_of([&] { weft::detail::decode_trace(weft::detail::encode_trace(far), "ps", 0); }).code == weft::error_code::invalid_argument);
  weft::wire_writer more;
  more.i64(6).count(2).string("/job:ps/task:0").i64(0).string("/job:ps/task:1").i64(0);
  std::vector<weft::tensor_value> one{whole};
  CHECK(error_of([&] { weft::detail::decode_traces(more.take(), one); }).code == weft::error_code::invalid_argument);
}
