#include <weft/core/device_name.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

using weft::device_name;

device_name parse(std::string_view text) { return weft::parse_device_name(text); }

std::string parse_error(std::string_view text) {
  try {
    weft::parse_device_name(text);
  } catch (const weft::error& e) {
    CHECK(e.code() == weft::error_code::invalid_argument);
    return e.what();
  }
  return "no error";
}

std::string malformed(const std::string& text, const std::string& problem) {
  return "INVALID_ARGUMENT: device string '" + text + "' is malformed: " + problem +
         "; expected something like '/job:ps/task:0/device:CPU:0'";
}

// The merged name; "!jobs" for the error "Cannot merge devices with incompatible jobs: ...".
template <class Merge>
std::string merged(Merge merge, const char* a, const char* b) {
  try {
    return to_text(merge(parse(a), parse(b)));
  } catch (const weft::error& e) {
    const std::string begin = "Cannot merge devices with incompatible ";
    CHECK(e.code() == weft::error_code::invalid_argument);
    CHECK(e.message().substr(0, begin.size()) == begin);
    return "!" + e.message().substr(begin.size(), e.message().find(':') - begin.size());
  }
}

}  // namespace

TEST_CASE("device_name: what TensorFlow's C++ parser accepts is accepted and means the same") {
  // TensorFlow prints replica 0; the short form does not.
  const struct {
    const char* text;
    const char* printed;
  } rows[] = {
      {"", ""},
      {"/", ""},
      {"/job:ps", "/job:ps"},
      {"/job:ps/task:1", "/job:ps/task:1"},
      {"/task:1/job:ps", "/job:ps/task:1"},
      {"/job:ps/replica:0/task:0", "/job:ps/task:0"},
      {"/job:ps/replica:0/task:0/device:CPU:0", "/job:ps/task:0/device:CPU:0"},
      {"/job:ps/replica:0/task:0/cpu:0", "/job:ps/task:0/device:CPU:0"},
      {"/job:ps/replica:0/task:0/gpu:7", "/job:ps/task:0/device:GPU:7"},
      {"/job:ps/replica:0/task:0/GPU:7", "/job:ps/task:0/device:GPU:7"},
      {"/job:ps/replica:0/task:0/device:MyDevice:3", "/job:ps/task:0/device:MyDevice:3"},
      {"/job:ps/replica:0/task:0/device:my_device:3", "/job:ps/task:0/device:my_device:3"},
      {"/job:ps/replica:0/task:0/device:XLA_CPU:0", "/job:ps/task:0/device:XLA_CPU:0"},
      {"/replica:1/task:0/cpu:0", "/replica:1/task:0/device:CPU:0"},
      {"/cpu:0", "/device:CPU:0"},
      {"/CPU:0", "/device:CPU:0"},
      {"/gpu:0", "/device:GPU:0"},
      {"/GPU:12", "/device:GPU:12"},
      {"/cpu:*", "/device:CPU:*"},
      {"/gpu:*", "/device:GPU:*"},
      {"/cpu:00", "/device:CPU:0"},
      {"/device:CPU", "/device:CPU:*"},
      {"/device:CPU:*", "/device:CPU:*"},
      {"/device:*:*", ""},
      {"/device:*", ""},
      {"/device:GPU", "/device:GPU:*"},
      {"/device:GPU:01", "/device:GPU:1"},
      {"/device:TPU_SYSTEM:0", "/device:TPU_SYSTEM:0"},
      {"/job:*", ""},
      {"/job:*/task:0", "/task:0"},
      {"/job:ps/task:*", "/job:ps"},
      {"/job:ps/replica:*/task:*/device:*:*", "/job:ps"},
      {"/job:*/replica:*/task:*", ""},
      {"/job:*/replica:*/task:*/cpu:*", "/device:CPU:*"},
      {"/job:a1", "/job:a1"},
      {"/job:a_b", "/job:a_b"},
      {"/job:A", "/job:A"},
      {"/job:foo_bar_1", "/job:foo_bar_1"},
      {"/job:tpu_worker/replica:0/task:0", "/job:tpu_worker/task:0"},
      {"/task:2147483647", "/task:2147483647"},
      {"/job:localhost/replica:0/task:0/device:XLA_GPU_JIT:0", "/job:localhost/task:0/device:XLA_GPU_JIT:0"},
  };
  for (const auto& row : rows) {
    CAPTURE(std::string(row.text));
    CHECK(to_text(parse(row.text)) == row.printed);
  }
}

TEST_CASE("device_name: what TensorFlow's C++ parser refuses is refused") {
  const char* const rows[] = {
      "//", " ", "/job:ps/", "/job:ps//task:1", "job:ps", "job:ps/task:1",
      "/job:ps/replica:0/task:0/device:my-device:3", "/cpu", "/gpu:", "/cpu:-1", "/cpu:abc", "/cpu:0x1", "/cpu:1.5",
      "/cpu: 0", "/cpu:0 ", " /cpu:0", "/cpu:+1", "/tpu:0", "/device::0", "/device:", "/device", "device:CPU:0",
      "/job:", "/job", "/job:/task:0", "/job:123", "/job:1a", "/job:a-b", "/job:a.b", "/job:a b", "/job:ps:0",
      "/Job:ps", "/JOB:ps", "/task", "/task:-1", "/task:one", "/task:99999999999999999999", "/replica:",
      "/job:foo/replica:1/task:2/bar:3", "/job:foo/replica:1/task:2/device:GPU:3/extra",
      "/job:foo/replica:1/task:2/device:GPU:3/", "/job:foo/replica:1/task:2/gpu:3/extra", "/foo:bar", "foobar",
      "CPU:0", "cpu:abc", "abc:", "abc", "abc:73", ":0", "*", "/job:ps/task:1/", "/job:ps/task:1//device:CPU:0",
      "/job:ps/partition:0",
      "/job:123/replica:1/task:2/device:GPU:3", "/job:123/replica:1/task:2/gpu:", "/job:123/replica:1/task:2/device:gpu:",
      "/job:foo/replica:-1/task:2/device:GPU:3", "/job:foo/replica:1/task:-2/device:GPU:3", "/job:j/replica:foo",
      "/bar:muu/baz:2", "/physical_device:GPU:0", "/job:", "/job:ps/task:",
  };
  for (const char* text : rows) {
    CAPTURE(std::string(text));
    std::string why;
    CHECK_FALSE(weft::try_parse_device_name(text, &why).has_value());
    CHECK(why.find(std::string("device string '") + text + "' is malformed: ") == 0);
    CHECK_FALSE(weft::try_parse_device_name(text).has_value());
  }
}

TEST_CASE("device_name: repeated components are errors where TensorFlow's last one wins") {
  CHECK(parse_error("/job:a/job:b") == malformed("/job:a/job:b", "a job is given twice"));
  CHECK(parse_error("/job:*/job:b") == malformed("/job:*/job:b", "a job is given twice"));
  CHECK(parse_error("/task:0/task:1") == malformed("/task:0/task:1", "a task is given twice"));
  CHECK(parse_error("/replica:0/replica:0") == malformed("/replica:0/replica:0", "a replica is given twice"));
  for (const char* text : {"/device:CPU:0/device:CPU:1", "/device:CPU:0/cpu:1", "/gpu:0/cpu:0", "/job:muu/device:GPU:2/cpu:0"}) {
    CAPTURE(std::string(text));
    CHECK(parse_error(text) == malformed(text, "a device is given twice"));
  }
  CHECK(parse_error("/job:ps/task:0/job:worker/task:1") == malformed("/job:ps/task:0/job:worker/task:1", "a job is given twice"));
}

TEST_CASE("device_name: numbers that do not fit are errors where TensorFlow's wrap around") {
  CHECK(parse("/task:2147483647").task == 2147483647);
  for (const char* number : {"2147483648", "4294967296", "99999999999", "99999999999999999999999999"}) {
    CAPTURE(std::string(number));
    const std::string too_large = "' is larger than 2147483647";
    const std::string task = std::string("/job:ps/task:") + number, device = std::string("/device:CPU:") + number;
    CHECK(parse_error(task) == malformed(task, std::string("the task '") + number + too_large));
    CHECK(parse_error(device) == malformed(device, std::string("the device number '") + number + too_large));
  }
  CHECK(parse("/task:0000000000000000000000007").task == 7);
}

TEST_CASE("device_name: cpu and gpu are upper-cased in both forms and in any case, as Python does; other types are kept") {
  for (const char* text : {"/cpu:3", "/CPU:3", "/Cpu:3", "/device:cpu:3", "/device:Cpu:3", "/device:CPU:3"}) {
    CAPTURE(std::string(text));
    CHECK(to_text(parse(text)) == "/device:CPU:3");
  }
  for (const char* text : {"/gpu:*", "/Gpu:*", "/device:gpu:*", "/device:gpu", "/device:GPU"}) {
    CAPTURE(std::string(text));
    CHECK(to_text(parse(text)) == "/device:GPU:*");
  }
  CHECK(to_text(parse("/device:MyDevice:0")) == "/device:MyDevice:0");
  CHECK(to_text(parse("/device:tpu:0")) == "/device:tpu:0");
}

TEST_CASE("device_name: an error says which part is wrong and shows a right string") {
  CHECK(parse_error("job:work") == malformed("job:work", "it must begin with '/'"));
  CHECK(parse_error("//") == malformed("//", "a component is empty ('//')"));
  CHECK(parse_error("/job:ps/") == malformed("/job:ps/", "it ends in '/'"));
  CHECK(parse_error("/job:ps/tsak:0") == malformed("/job:ps/tsak:0", "'tsak:0' is none of job, replica, task, device, cpu, gpu"));
  CHECK(parse_error("/job") == malformed("/job", "'job' has no ':' and value"));
  CHECK(parse_error("/cpu") == malformed("/cpu", "'cpu' has no ':' and value"));
  CHECK(parse_error("/job:") == malformed("/job:", "the job name is empty"));
  CHECK(parse_error("/job:my-job") == malformed("/job:my-job", "the job name 'my-job' does not match [A-Za-z][A-Za-z0-9_]*"));
  CHECK(parse_error("/job:w/task:-1") == malformed("/job:w/task:-1", "the task '-1' is not a decimal number or '*'"));
  CHECK(parse_error("/job:w/task:") == malformed("/job:w/task:", "the task is empty"));
  CHECK(parse_error("/replica:one") == malformed("/replica:one", "the replica 'one' is not a decimal number or '*'"));
  CHECK(parse_error("/gpu:") == malformed("/gpu:", "the device number is empty"));
  CHECK(parse_error("/device:") == malformed("/device:", "the device type is empty"));
  CHECK(parse_error("/device:a-b:0") == malformed("/device:a-b:0", "the device type 'a-b' does not match [A-Za-z][A-Za-z0-9_]*"));
  CHECK(parse_error("/device:GPU:3:4") == malformed("/device:GPU:3:4", "the device number '3:4' is not a decimal number or '*'"));
}

TEST_CASE("device_name: an error begins with the user's line where it is known") {
  const weft::call_site where{"train.cpp", 42};
  CHECK_THROWS_WITH_AS(weft::parse_device_name("/jbo:ps", where),
                       "INVALID_ARGUMENT: train.cpp:42: device string '/jbo:ps' is malformed: 'jbo:ps' is none of job, replica, task, "
                       "device, cpu, gpu; expected something like '/job:ps/task:0/device:CPU:0'",
                       weft::error);
}

TEST_CASE("device_name: hostile strings give short printable messages") {
  const std::string long_text = "/job:" + std::string(100000, '-');
  std::string why;
  CHECK_FALSE(weft::try_parse_device_name(long_text, &why).has_value());
  CHECK(why.size() < 700);
  CHECK_FALSE(weft::try_parse_device_name(std::string_view("/job:a\n\0b", 9), &why).has_value());
  CHECK(why.find("'/job:a??b'") != std::string::npos);
  CHECK(weft::try_parse_device_name("/job:" + std::string(100000, 'a')).has_value());
}

TEST_CASE("device_name: parts are set as written and wildcards leave them unset") {
  const device_name full = parse("/job:foo_bar/replica:1/task:2/device:GPU:3");
  CHECK(full.job == "foo_bar");
  CHECK(full.replica == 1);
  CHECK(full.task == 2);
  CHECK(full.type == "GPU");
  CHECK(full.id == 3);
  for (const char* text : {"/job:*/replica:4/gpu:*", "/job:*/device:GPU/replica:4", "/gpu:*/job:*/replica:4"}) {
    CAPTURE(std::string(text));
    const device_name name = parse(text);
    CHECK_FALSE(name.job.has_value());
    CHECK(name.replica == 4);
    CHECK_FALSE(name.task.has_value());
    CHECK(name.type == "GPU");
    CHECK_FALSE(name.id.has_value());
  }
  CHECK(parse("/job:*/replica:4/device:myspecialdevice:13").type == "myspecialdevice");
  CHECK(parse("/job:*/replica:4/device:myspecialdevice:13").id == 13);
  CHECK(parse("").empty());
  CHECK(parse("/").empty());
  CHECK(parse("/job:*/replica:*/task:*/device:*:*").empty());
}

TEST_CASE("device_name: a number without a type is kept and printed, where TensorFlow prints nothing") {
  CHECK_FALSE(parse("/device:*:1").type.has_value());
  CHECK(parse("/device:*:1").id == 1);
  CHECK(to_text(parse("/device:*:1")) == "/device:*:1");
}

TEST_CASE("device_name: every subset of parts is printed in TensorFlow's order and reads back") {
  const struct {
    const char* given;
    const char* printed;
  } devices[] = {{"/device:CPU:3", "/device:CPU:3"}, {"/device:GPU:3", "/device:GPU:3"}, {"/cpu:3", "/device:CPU:3"},
                 {"/CPU:3", "/device:CPU:3"},        {"/gpu:3", "/device:GPU:3"},        {"/GPU:3", "/device:GPU:3"},
                 {"/device:someDevice:3", "/device:someDevice:3"}, {"", ""}};
  for (const auto& device : devices)
    for (int subset = 0; subset < 8; ++subset) {
      std::string task;
      for (const auto& [bit, part] : {std::pair(1, "/job:foo"), std::pair(2, "/replica:3"), std::pair(4, "/task:2")})
        if (subset & bit) task += part;
      CAPTURE(device.given + task);
      CHECK(to_text(parse(task + device.given)) == task + device.printed);
      CHECK(to_text(parse(device.given + task)) == task + device.printed);
      CHECK(to_text(parse(task + device.printed)) == task + device.printed);
    }
}

TEST_CASE("device_name: the short form omits replica 0, the full form prints it where a task is named") {
  const struct {
    const char* text;
    const char* brief;
    const char* full;
  } rows[] = {
      {"", "", ""},
      {"/job:ps", "/job:ps", "/job:ps"},
      {"/task:1", "/task:1", "/task:1"},
      {"/job:ps/task:0", "/job:ps/task:0", "/job:ps/replica:0/task:0"},
      {"/job:ps/replica:0/task:0", "/job:ps/task:0", "/job:ps/replica:0/task:0"},
      {"/job:ps/replica:0", "/job:ps", "/job:ps/replica:0"},
      {"/job:ps/replica:1/task:0", "/job:ps/replica:1/task:0", "/job:ps/replica:1/task:0"},
      {"/cpu:0/task:1/job:ps", "/job:ps/task:1/device:CPU:0", "/job:ps/replica:0/task:1/device:CPU:0"},
      {"/job:ps/task:1/device:GPU", "/job:ps/task:1/device:GPU:*", "/job:ps/replica:0/task:1/device:GPU:*"},
      {"/device:GPU:0/task:0/replica:0/job:foo", "/job:foo/task:0/device:GPU:0", "/job:foo/replica:0/task:0/device:GPU:0"},
  };
  for (const auto& row : rows) {
    CAPTURE(std::string(row.text));
    CHECK(to_text(parse(row.text)) == row.brief);
    CHECK(to_full_text(parse(row.text)) == row.full);
  }
  CHECK(weft::to_full_text({"hello", 1, 2, "CPU", 3}) == "/job:hello/replica:1/task:2/device:CPU:3");
  CHECK(task_text(parse("/job:ps/replica:0/task:0/device:CPU:0")) == "/job:ps/task:0");
  CHECK(task_text(parse("/job:ps/device:CPU:0")) == "/job:ps");
}

TEST_CASE("device_name: pairs merge and match as TensorFlow's do") {
  // a, b, MergeDevNames, the same with soft placement, MergeOverrideDevNames, IsSpecification, IsCompleteSpecification
  // (false where TensorFlow aborts because b is not complete). One answer is ours: '/job:ps/task:0/device:CPU:0' is complete.
  const struct {
    const char *a, *b, *merge, *soft, *override_;
    bool specification, complete;
  } rows[] = {
      {"", "", "", "", "", true, false},
      {"", "/job:ps", "/job:ps", "/job:ps", "/job:ps", true, false},
      {"/job:ps", "", "/job:ps", "/job:ps", "/job:ps", false, false},
      {"/job:ps", "/job:ps", "/job:ps", "/job:ps", "/job:ps", true, false},
      {"/job:ps", "/job:worker", "!jobs", "!jobs", "!jobs", false, false},
      {"/job:ps", "/task:7", "/job:ps/task:7", "/job:ps/task:7", "/job:ps/task:7", false, false},
      {"/task:7", "/job:ps", "/job:ps/task:7", "/job:ps/task:7", "/job:ps/task:7", false, false},
      {"/job:ps/task:0", "/task:1", "!tasks", "!tasks", "!tasks", false, false},
      {"/job:ps/task:0", "/job:ps/task:0", "/job:ps/task:0", "/job:ps/task:0", "/job:ps/task:0", true, false},
      {"/job:ps/task:0", "/job:ps/task:0/device:CPU:0",
       "/job:ps/task:0/device:CPU:0", "/job:ps/task:0/device:CPU:0", "/job:ps/task:0/device:CPU:0", true, true},
      {"/job:ps/task:0/device:CPU:0", "/job:ps/task:0",
       "/job:ps/task:0/device:CPU:0", "/job:ps/task:0/device:CPU:0", "/job:ps/task:0/device:CPU:0", false, false},
      {"/job:ps/task:0/device:CPU:0", "/job:ps/task:0/device:CPU:1",
       "!ids", "/job:ps/task:0/device:CPU:*", "/job:ps/task:0/device:CPU:1", false, false},
      {"/job:ps/task:0/device:CPU:0", "/job:ps/task:0/device:GPU:0",
       "!types", "/job:ps/task:0", "/job:ps/task:0/device:GPU:0", false, false},
      {"/replica:0", "/job:ps/task:1", "/job:ps/task:1", "/job:ps/task:1", "/job:ps/task:1", false, false},
      {"/device:GPU:1", "/gpu:*", "/device:GPU:1", "/device:GPU:1", "/device:GPU:1", false, false},
      {"/gpu:*", "/device:GPU:1", "/device:GPU:1", "/device:GPU:1", "/device:GPU:1", true, false},
      {"/device:GPU:1", "/device:GPU:2", "!ids", "/device:GPU:*", "/device:GPU:2", false, false},
      {"/device:GPU:1", "/device:CPU:1", "!types", "", "/device:CPU:1", false, false},
      {"/gpu:*", "/cpu:1", "!types", "", "/device:CPU:1", false, false},
      {"/gpu:0", "/cpu:1", "!types", "", "/device:CPU:1", false, false},
      {"/cpu:*", "/task:0/device:GPU:1", "!types", "/task:0", "/task:0/device:GPU:1", false, false},
      {"/job:foo/CPU:*", "/device:GPU:1", "!types", "/job:foo", "/job:foo/device:GPU:1", false, false},
      {"/device:GPU:*", "/device:CPU:*", "!types", "", "/device:CPU:*", false, false},
      {"/device:*:1", "/device:GPU:2", "!ids", "/device:GPU:*", "/device:GPU:2", false, false},
      {"/device:*:1", "/device:GPU:*", "/device:GPU:1", "/device:GPU:1", "/device:GPU:1", false, false},
      {"/job:*", "/replica:1", "/replica:1", "/replica:1", "/replica:1", true, false},
      {"/job:*/task:*", "/job:ps/task:1", "/job:ps/task:1", "/job:ps/task:1", "/job:ps/task:1", true, false},
      {"/task:2", "/job:foo/replica:1/task:2/device:GPU:3",
       "/job:foo/replica:1/task:2/device:GPU:3", "/job:foo/replica:1/task:2/device:GPU:3", "/job:foo/replica:1/task:2/device:GPU:3",
       true, true},
      {"/job:work/replica:1/task:2/device:GPU:3", "/gpu:*",
       "/job:work/replica:1/task:2/device:GPU:3", "/job:work/replica:1/task:2/device:GPU:3", "/job:work/replica:1/task:2/device:GPU:3",
       false, false},
      {"/gpu:*", "/job:work/replica:1/task:2/device:GPU:3",
       "/job:work/replica:1/task:2/device:GPU:3", "/job:work/replica:1/task:2/device:GPU:3", "/job:work/replica:1/task:2/device:GPU:3",
       true, true},
      {"/job:*/replica:*/task:*", "/job:work/replica:0/task:1/device:CPU:0",
       "/job:work/task:1/device:CPU:0", "/job:work/task:1/device:CPU:0", "/job:work/task:1/device:CPU:0", true, true},
      {"/gpu:*", "/job:work/replica:0/task:1/device:CPU:0",
       "!types", "/job:work/task:1", "/job:work/task:1/device:CPU:0", false, false},
      {"/cpu:*", "/job:work/replica:0/task:1/device:CPU:0",
       "/job:work/task:1/device:CPU:0", "/job:work/task:1/device:CPU:0", "/job:work/task:1/device:CPU:0", true, true},
      {"/device:CPU:1", "/job:work/replica:0/task:1/device:CPU:0",
       "!ids", "/job:work/task:1/device:CPU:*", "/job:work/task:1/device:CPU:0", false, false},
      {"/job:work/task:1", "/job:work/replica:0/task:1/device:CPU:0",
       "/job:work/task:1/device:CPU:0", "/job:work/task:1/device:CPU:0", "/job:work/task:1/device:CPU:0", true, true},
      {"/job:work/task:2", "/job:work/replica:0/task:1/device:CPU:0", "!tasks", "!tasks", "!tasks", false, false},
      {"/job:work/replica:0/task:1/cpu:0", "/job:work/replica:0/task:1/device:CPU:0",
       "/job:work/task:1/device:CPU:0", "/job:work/task:1/device:CPU:0", "/job:work/task:1/device:CPU:0", true, true},
      {"/job:work/replica:0/task:1/device:CPU:0", "/job:work/replica:0/task:1/device:CPU:0",
       "/job:work/task:1/device:CPU:0", "/job:work/task:1/device:CPU:0", "/job:work/task:1/device:CPU:0", true, true},
      {"/job:work/replica:0/task:1/device:CPU:0", "/job:work/replica:0/task:1/device:CPU:1",
       "!ids", "/job:work/task:1/device:CPU:*", "/job:work/task:1/device:CPU:1", false, false},
      {"/job:work/replica:0/task:1/device:CPU:0", "/job:work/replica:1/task:1/device:CPU:0",
       "!replicas", "!replicas", "!replicas", false, false},
      {"/job:work/replica:0/task:1/device:CPU:0", "/job:ps/replica:0/task:1/device:CPU:0", "!jobs", "!jobs", "!jobs", false, false},
      {"/device:MyDevice:0", "/device:mydevice:0", "!types", "", "/device:mydevice:0", false, false},
      {"/job:ps/task:1/device:GPU:7", "/device:CPU:*", "!types", "/job:ps/task:1", "/job:ps/task:1/device:CPU:7", false, false},
      {"/device:CPU:*", "/device:CPU:5", "/device:CPU:5", "/device:CPU:5", "/device:CPU:5", true, false},
      {"/task:1/cpu:0", "/job:boo/device:GPU:0", "!types", "/job:boo/task:1", "/job:boo/task:1/device:GPU:0", false, false},
      {"/job:boo/task:1/device:GPU:0", "/job:muu/cpu:2", "!jobs", "!jobs", "!jobs", false, false},
      {"/job:muu/task:1/device:CPU:2", "/device:MyFunnyDevice:2",
       "!types", "/job:muu/task:1", "/job:muu/task:1/device:MyFunnyDevice:2", false, false},
      {"/job:a/replica:1/task:2", "/job:b/replica:3/task:4", "!jobs", "!jobs", "!jobs", false, false},
      {"/job:a/replica:1/task:2", "/job:a/replica:3/task:4", "!replicas", "!replicas", "!replicas", false, false},
  };
  for (const auto& row : rows) {
    CAPTURE(std::string(row.a));
    CAPTURE(std::string(row.b));
    CHECK(merged(weft::merge_names, row.a, row.b) == row.merge);
    CHECK(merged(weft::merge_names_soft, row.a, row.b) == row.soft);
    CHECK(merged(weft::merge_override_names, row.a, row.b) == row.override_);
    CHECK(is_specification(parse(row.a), parse(row.b)) == row.specification);
    CHECK(is_complete_specification(parse(row.a), parse(row.b)) == row.complete);
  }
}

TEST_CASE("device_name: constraints merge the same in both orders, and conflicts name both") {
  const struct {
    const char *a, *b, *merged;
  } rows[] = {{"", "/job:foo", "/job:foo"}, {"/job:foo", "/task:7", "/job:foo/task:7"}, {"/device:GPU:1", "/gpu:*", "/device:GPU:1"}};
  for (const auto& row : rows) {
    CHECK(to_text(merge_names(parse(row.a), parse(row.b))) == row.merged);
    CHECK(to_text(merge_names(parse(row.b), parse(row.a))) == row.merged);
  }
  CHECK_THROWS_WITH_AS(merge_names(parse("/job:worker/task:1/cpu:0"), parse("/job:ps/task:0/cpu:0")),
                       "INVALID_ARGUMENT: Cannot merge devices with incompatible jobs: '/job:worker/task:1/device:CPU:0' and "
                       "'/job:ps/task:0/device:CPU:0'",
                       weft::error);
  CHECK_THROWS_WITH_AS(merge_names(parse("/replica:0"), parse("/replica:1")),
                       "INVALID_ARGUMENT: Cannot merge devices with incompatible replicas: '/replica:0' and '/replica:1'", weft::error);
}

TEST_CASE("device_name: in nested scopes the inner part wins, type and number apart") {
  const auto nested = [](std::initializer_list<const char*> scopes) {
    device_name name;
    for (const char* scope : scopes) name = merge_override(name, parse(scope));
    return to_text(name);
  };
  CHECK(nested({"/device:GPU:0", "/job:worker"}) == "/job:worker/device:GPU:0");
  CHECK(nested({"/device:GPU:0", "/job:worker", "/device:CPU:0"}) == "/job:worker/device:CPU:0");
  CHECK(nested({"/device:GPU:0", "/job:worker", "/device:CPU:0", "/job:ps"}) == "/job:ps/device:CPU:0");
  CHECK(nested({"/device:GPU:0", "/job:worker", "/device:CPU:0", "/job:ps", ""}) == "/job:ps/device:CPU:0");
  CHECK(nested({"", "/task:1/cpu:0", "/job:boo/device:GPU:0"}) == "/job:boo/task:1/device:GPU:0");
  CHECK(nested({"/task:1/cpu:0", "/job:boo/device:GPU:0", "/job:muu/cpu:2"}) == "/job:muu/task:1/device:CPU:2");
  CHECK(nested({"/job:muu/task:1/cpu:2", "/device:MyFunnyDevice:2"}) == "/job:muu/task:1/device:MyFunnyDevice:2");
  CHECK(nested({"/device:GPU:7", "/device:GPU:*"}) == "/device:GPU:7");
  CHECK(nested({"/device:GPU:7", "/device:CPU:*"}) == "/device:CPU:7");
  CHECK(nested({"/device:GPU:7", "/device:CPU:*", "/device:CPU:5"}) == "/device:CPU:5");
  CHECK(nested({"/device:GPU:1", "/cpu:*"}) == "/device:CPU:1");
}

TEST_CASE("device_name: a constraint covers a complete name") {
  const device_name actual = parse("/job:work/replica:1/task:2/device:GPU:3");
  for (const char* pattern : {"/job:*", "/job:*/replica:*", "/job:*/task:*", "/job:*/replica:*/task:*", "/job:*/replica:*/gpu:*", "/gpu:*",
                              "/job:*/replica:1/task:2/device:GPU:3", "/job:work/task:2"}) {
    CAPTURE(std::string(pattern));
    CHECK(is_complete_specification(parse(pattern), actual));
    CHECK(matches(parse(pattern), actual));
  }
  for (const char* pattern : {"/cpu:*", "/device:GPU:2", "/job:work/task:1", "/job:ps", "/replica:0"}) {
    CAPTURE(std::string(pattern));
    CHECK_FALSE(is_complete_specification(parse(pattern), actual));
    CHECK_FALSE(matches(parse(pattern), actual));
  }
  CHECK_FALSE(is_complete_specification(parse("/job:work"), parse("/job:work/task:2")));
  CHECK(matches(parse("/job:work"), parse("/job:work/task:2")));
}

TEST_CASE("device_name: one constraint is less specific than another, as written") {
  CHECK(is_specification(parse("/job:*"), parse("/replica:1")));
  CHECK(is_specification(parse("/task:2"), parse("/job:*/replica:1/task:2/device:GPU:3")));
  CHECK_FALSE(is_specification(parse("/cpu:*"), parse("/job:*/replica:1/task:2")));
  CHECK_FALSE(is_specification(parse("/job:work/replica:1/task:2/device:GPU:3"), parse("/gpu:*")));
  CHECK_FALSE(is_specification(parse("/job:work/replica:0/task:2"), parse("/job:work/replica:*/task:2/device:GPU:3")));
}

TEST_CASE("device_name: a task without a replica is replica 0, and replica 1 matches nothing of it") {
  const device_name brief = parse("/job:ps/task:0/device:CPU:0"), full = parse("/job:ps/replica:0/task:0/device:CPU:0");
  const device_name other = parse("/job:ps/replica:1/task:0/device:CPU:0");
  CHECK(brief == full);
  CHECK_FALSE(brief < full);
  CHECK_FALSE(full < brief);
  CHECK(brief != other);
  CHECK(brief.is_complete());
  CHECK(same_task(brief, full));
  CHECK_FALSE(same_task(brief, other));
  CHECK(matches(full, brief));
  CHECK(matches(brief, full));
  CHECK(is_complete_specification(parse("/replica:0"), brief));
  CHECK_FALSE(is_complete_specification(parse("/replica:1"), brief));
  CHECK(is_complete_specification(parse("/job:work/replica:0/task:2"), parse("/job:work/task:2/device:CPU:0")));
  CHECK(parse("/job:ps") != parse("/job:ps/replica:0"));
}

TEST_CASE("device_name: names are of one task if job, replica and task are set and equal") {
  const device_name base = parse("/job:foo/replica:1/task:2/cpu:3");
  CHECK(same_task(base, parse("/job:foo/replica:1/task:2/device:GPU:4")));
  CHECK_FALSE(same_task(base, parse("/job:foo/replica:1/task:3/cpu:3")));
  CHECK_FALSE(same_task(base, parse("/job:foo/replica:10/task:2/cpu:3")));
  CHECK_FALSE(same_task(base, parse("/job:bar/replica:1/task:2/cpu:3")));
  CHECK_FALSE(same_task(parse("/job:foo"), parse("/job:foo")));
  CHECK_FALSE(same_task(parse(""), parse("")));
}

TEST_CASE("device_name: devices sort by the text of the full name, so task 10 comes before task 2") {
  std::vector<device_name> names;
  for (const char* text : {"/job:work/task:2/cpu:0", "/job:ps/task:0/gpu:0", "/job:work/task:10/cpu:0", "/job:ps/task:0/cpu:1",
                           "/job:ps/task:0/cpu:0", "/job:work/task:1/cpu:0"})
    names.push_back(parse(text));
  std::sort(names.begin(), names.end());
  std::vector<std::string> texts;
  for (const device_name& name : names) texts.push_back(to_text(name));
  CHECK(texts == std::vector<std::string>{"/job:ps/task:0/device:CPU:0", "/job:ps/task:0/device:CPU:1", "/job:ps/task:0/device:GPU:0",
                                          "/job:work/task:1/device:CPU:0", "/job:work/task:10/device:CPU:0",
                                          "/job:work/task:2/device:CPU:0"});
}

TEST_CASE("device_name: a partial name is completed from a base") {
  const device_name base = parse("/job:work/replica:0/task:1/device:CPU:0");
  CHECK(to_full_text(canonical(parse("/device:CPU:1"), base)) == "/job:work/replica:0/task:1/device:CPU:1");
  CHECK(to_full_text(canonical(parse("/device:GPU:1"), base)) == "/job:work/replica:0/task:1/device:GPU:1");
  CHECK(to_full_text(canonical(parse("/job:ps/task:0/device:CPU:0"), base)) == "/job:ps/replica:0/task:0/device:CPU:0");
  CHECK(to_full_text(canonical(parse("/job:ps/task:0"), base)) == "/job:ps/replica:0/task:0/device:CPU:0");
  CHECK(to_full_text(canonical(parse("/cpu:*"), base)) == "/job:work/replica:0/task:1/device:CPU:0");
  CHECK(to_full_text(canonical(parse(""), base)) == "/job:work/replica:0/task:1/device:CPU:0");
  CHECK_THROWS_WITH_AS(canonical(parse("/cpu:0"), parse("/job:work/task:1")),
                       "INVALID_ARGUMENT: the base '/job:work/task:1' of device '/device:CPU:0' is not complete; expected something like "
                       "'/job:ps/task:0/device:CPU:0'",
                       weft::error);
}
