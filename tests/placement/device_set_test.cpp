#include <weft/placement/device_set.hpp>

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

namespace {

std::vector<std::string> names(const weft::device_set& set) {
  std::vector<std::string> out;
  for (const weft::device& d : set.devices()) out.push_back(d.name);
  return out;
}

}  // namespace

TEST_CASE("device_set: every task of a cluster has the same devices, in the order of the tasks") {
  const auto set = weft::device_set::of_cluster({{"work", 2}, {"ps", 1}}, {{"CPU", 2}, {"GPU", 1}});
  CHECK(names(set) == std::vector<std::string>{"/job:ps/task:0/device:CPU:0", "/job:ps/task:0/device:CPU:1", "/job:ps/task:0/device:GPU:0",
                                               "/job:work/task:0/device:CPU:0", "/job:work/task:0/device:CPU:1", "/job:work/task:0/device:GPU:0",
                                               "/job:work/task:1/device:CPU:0", "/job:work/task:1/device:CPU:1", "/job:work/task:1/device:GPU:0"});
  CHECK(set.tasks() == std::vector<std::string>{"/job:ps/task:0", "/job:work/task:0", "/job:work/task:1"});
  CHECK(set.devices()[2].type == "GPU");
  CHECK_FALSE(set.is_local());
}

TEST_CASE("device_set: a session without a cluster has one CPU on its own task") {
  const auto set = weft::device_set::of_task();
  CHECK(names(set) == std::vector<std::string>{"/job:localhost/task:0/device:CPU:0"});
  CHECK(set.is_local());
}

TEST_CASE("device_set: a device is found by any form of its name") {
  const auto set = weft::device_set::of_cluster({{"ps", 1}});
  CHECK(set.find("/job:ps/replica:0/task:0/device:CPU:0") == &set.devices()[0]);
  CHECK(set.find("/task:0/cpu:0/job:ps") == &set.devices()[0]);
  CHECK(set.find("/job:ps/task:0") == nullptr);
  CHECK(set.find("/job:ps/task:1/cpu:0") == nullptr);
  CHECK(set.find("nonsense") == nullptr);
}

TEST_CASE("device_set: a name must be complete and new") {
  weft::device_set set;
  set.add({"/job:ps/replica:0/task:0/cpu:0", ""});
  CHECK(set.devices()[0] == weft::device{"/job:ps/task:0/device:CPU:0", "CPU"});
  CHECK_THROWS_WITH_AS(set.add({"/job:ps/task:0/device:CPU:0", "CPU"}), "ALREADY_EXISTS: device '/job:ps/task:0/device:CPU:0' is given twice", weft::error);
  CHECK_THROWS_WITH_AS(set.add({"/job:ps/task:0", "CPU"}),
                       "INVALID_ARGUMENT: device '/job:ps/task:0' must name job, task, type and number, as in '/job:ps/task:0/device:CPU:0'", weft::error);
}

TEST_CASE("device_set: a task without a catalogue has every kernel") {
  auto set = weft::device_set::of_cluster({{"ps", 2}});
  CHECK(set.catalogue_of("/job:ps/task:0") == nullptr);
  const auto kernels = std::make_shared<const weft::kernel_catalogue>();
  set.set_catalogue("/job:ps/replica:0/task:1", kernels);
  CHECK(set.catalogue_of("/job:ps/task:1") == kernels);
  CHECK(set.catalogue_of("/job:ps/task:0") == nullptr);
  CHECK(set.catalogue_of("/job:nosuch/task:0") == nullptr);
}

TEST_CASE("device_set: CPU is the last choice among types, unless told otherwise") {
  weft::device_set set;
  CHECK(set.rank_of("GPU") < set.rank_of("CPU"));
  CHECK(set.rank_of("ABACUS") < set.rank_of("GPU"));
  set.set_type_order({"CPU", "GPU"});
  CHECK(set.rank_of("CPU") < set.rank_of("GPU"));
}
