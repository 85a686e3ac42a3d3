#include <weft/core/status.hpp>

#include <doctest/doctest.h>

#include <stdexcept>
#include <string>

namespace {

weft::status inner_dimensions() {
  weft::status s(weft::error_code::invalid_argument, "inner dimensions 3 and 4 differ ([2,3] x [4,5])");
  s.op = "MatMul";
  s.node = "tower_1/mul";
  s.site = "train.cpp:42";
  s.device = "/job:work/task:1/device:CPU:0";
  s.task = "/job:work/task:1 (127.0.0.1:33334)";
  return s;
}

}  // namespace

TEST_CASE("status: the text names code, op, node, the user's line, the device and the address") {
  CHECK(inner_dimensions().text() ==
        "INVALID_ARGUMENT: MatMul 'tower_1/mul' (train.cpp:42) on /job:work/task:1/device:CPU:0 (127.0.0.1:33334): "
        "inner dimensions 3 and 4 differ ([2,3] x [4,5])");
}

TEST_CASE("status: parts that are not known are left out of the text") {
  weft::status s = inner_dimensions();
  s.site.clear();
  CHECK(s.text() == "INVALID_ARGUMENT: MatMul 'tower_1/mul' on /job:work/task:1/device:CPU:0 (127.0.0.1:33334): "
                    "inner dimensions 3 and 4 differ ([2,3] x [4,5])");
  s.task = "/job:work/task:1";
  CHECK(s.text() == "INVALID_ARGUMENT: MatMul 'tower_1/mul' on /job:work/task:1/device:CPU:0: "
                    "inner dimensions 3 and 4 differ ([2,3] x [4,5])");
  s.task += " (127.0.0.1:33334)";
  s.device.clear();
  CHECK(s.text() == "INVALID_ARGUMENT: MatMul 'tower_1/mul' on /job:work/task:1 (127.0.0.1:33334): "
                    "inner dimensions 3 and 4 differ ([2,3] x [4,5])");
  s.task.clear();
  s.op.clear();
  CHECK(s.text() == "INVALID_ARGUMENT: 'tower_1/mul': inner dimensions 3 and 4 differ ([2,3] x [4,5])");
  s.node.clear();
  CHECK(s.text() == "INVALID_ARGUMENT: inner dimensions 3 and 4 differ ([2,3] x [4,5])");
  s.site = "train.cpp:42";
  CHECK(s.text() == "INVALID_ARGUMENT: train.cpp:42: inner dimensions 3 and 4 differ ([2,3] x [4,5])");
}

TEST_CASE("status: the default is ok") {
  const weft::status s;
  CHECK(s.ok());
  CHECK(s.code == weft::error_code::ok);
  CHECK(s.text() == "OK");
  CHECK_FALSE(inner_dimensions().ok());
}

TEST_CASE("status: every field takes part in a comparison") {
  const weft::status same = inner_dimensions();
  CHECK(inner_dimensions() == same);
  weft::status other = same;
  SUBCASE("code") { other.code = weft::error_code::internal; }
  SUBCASE("message") { other.message = "x"; }
  SUBCASE("node") { other.node = "x"; }
  SUBCASE("op") { other.op = "x"; }
  SUBCASE("device") { other.device = "x"; }
  SUBCASE("task") { other.task = "x"; }
  SUBCASE("site") { other.site = "x"; }
  SUBCASE("derived") { other.derived = true; }
  SUBCASE("may_have_run") { other.may_have_run = true; }
  CHECK(other != same);
}

TEST_CASE("status: the codes have the numbers and names of gRPC and TensorFlow") {
  const char* const names[] = {"OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND", "ALREADY_EXISTS",
                               "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION", "ABORTED", "OUT_OF_RANGE",
                               "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS", "UNAUTHENTICATED"};
  int number = 0;
  for (const char* name : names) CHECK(std::string(to_text(static_cast<weft::error_code>(number++))) == name);
  CHECK(number == 17);
  CHECK(std::string(to_text(static_cast<weft::error_code>(200))) == "UNKNOWN");
  CHECK(static_cast<int>(weft::error_code::unauthenticated) == 16);
}

TEST_CASE("error: it carries the status, and what() is its text") {
  weft::status s = inner_dimensions();
  s.may_have_run = true;
  const weft::error e(s);
  CHECK(std::string(e.what()) == s.text());
  CHECK(e.status() == s);
  CHECK(e.code() == weft::error_code::invalid_argument);
  CHECK(e.message() == "inner dimensions 3 and 4 differ ([2,3] x [4,5])");
  CHECK(e.node() == "tower_1/mul");
  CHECK(e.op() == "MatMul");
  CHECK(e.device() == "/job:work/task:1/device:CPU:0");
  CHECK(e.task() == "/job:work/task:1 (127.0.0.1:33334)");
  CHECK(e.site() == "train.cpp:42");
  CHECK(e.may_have_run());
}

TEST_CASE("error: a line of the user's program stands before the message") {
  CHECK(std::string(weft::error(weft::error_code::not_found, "no node 'x'", weft::call_site{"train.cpp", 7}).what()) ==
        "NOT_FOUND: train.cpp:7: no node 'x'");
  CHECK(std::string(weft::error(weft::error_code::not_found, "no node 'x'", weft::call_site{}).what()) == "NOT_FOUND: no node 'x'");
}

TEST_CASE("error: it is a std::runtime_error, and fail throws it") {
  CHECK_THROWS_AS(weft::fail(weft::error_code::internal, "bad"), std::runtime_error);
  CHECK_THROWS_WITH_AS(weft::fail(weft::error_code::internal, "bad"), "INTERNAL: bad", weft::error);
}

TEST_CASE("call_site: the caller's file without folders, and the line") {
  const weft::call_site site = weft::call_site::here();
  CHECK(site.known());
  CHECK(std::string(site.file) == "status_test.cpp");
  CHECK(weft::call_site::here("/home/a/b/train.cpp", 3).text() == "train.cpp:3");
  CHECK(weft::call_site::here("c:\\src\\train.cpp", 3).text() == "train.cpp:3");
  CHECK(weft::call_site::here("train.cpp", 3) == weft::call_site{"train.cpp", 3});
  CHECK(weft::call_site{"train.cpp", 3} != weft::call_site{"train.cpp", 4});
  CHECK_FALSE(weft::call_site{}.known());
  CHECK(weft::call_site{}.text().empty());
}
