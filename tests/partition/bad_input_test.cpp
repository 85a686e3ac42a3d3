// What place() and partition() say to input that makes no sense: who is to blame, with the user's lines, and nothing is half done.
#include <weft/partition/partition.hpp>

#include "../placement/small_world.hpp"

#include <doctest/doctest.h>

#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace {

struct bench : small::world {
  weft::partition_options step;
  weft::cluster_spec cluster{{"ps", 2}, {"work", 2}};
  std::vector<std::shared_ptr<small::world>> others;

  const weft::node& stranger() {
    others.push_back(std::make_shared<small::world>());
    return others.back()->add("Const", "stranger");
  }
  std::string error_of(const std::function<void(bench&)>& action) {
    const std::string before = to_text(graph);
    std::string what = "no error";
    try {
      action(*this);
    } catch (const weft::error& e) {
      what = e.what();
    }
    CHECK(to_text(graph) == before);
    return what;
  }
};

struct row {
  const char* what;
  std::function<void(bench&)> build;
  std::string error;
};

void placing(bench& b) { weft::place(b.graph, b.devices, b.options); }
void cutting(bench& b) { weft::partition(b.graph, b.cluster, b.step); }

// A kernel catalogue without kernels.
void without_kernels(bench& b) {
  for (const std::string& task : b.devices.tasks()) b.devices.set_catalogue(task, std::make_shared<const weft::kernel_catalogue>());
}

std::shared_ptr<const weft::placer> answering(const char* answer) {
  return weft::place_by([answer](const weft::node&, const std::vector<std::string>&) { return std::string(answer); }, "mine");
}

const std::string tasks = "/job:ps/task:0, /job:ps/task:1, /job:work/task:0, /job:work/task:1";

}  // namespace

TEST_CASE("bad input: place") {
  const std::vector<row> rows{
      {"no devices", [](bench& b) { b.add("Const", "x"), b.devices = {}; }, "FAILED_PRECONDITION: no devices are registered; add at least one to the device_set"},
      {"a device string that is none", [](bench& b) { b.add("Const", "x", {}, "ps:0"); }, "INVALID_ARGUMENT: Const 'x' (train.cpp:10): device string 'ps:0' is malformed"},
      {"a component twice", [](bench& b) { b.add("Const", "x", {}, "/job:ps/job:work"); }, "INVALID_ARGUMENT: Const 'x' (train.cpp:10): device string '/job:ps/job:work' is malformed"},
      {"an unknown job", [](bench& b) { b.add("Const", "x", {}, "/job:pss"); }, "INVALID_ARGUMENT: Const 'x' (train.cpp:10): asks for device '/job:pss', but the cluster has the tasks " + tasks},
      {"an unknown task of a resource that others use", [](bench& b) { b.add("ReadVariableOp", "read", {&b.add("VarHandleOp", "w", {}, "/job:ps/task:7")}); },
       "INVALID_ARGUMENT: VarHandleOp 'w' (train.cpp:10): asks for device '/job:ps/task:7', but the cluster has the tasks " + tasks},
      {"members that ask for two jobs", [](bench& b) { b.add("Const", "a", {}, "/job:ps"), b.add("Const", "b", {}, "/job:work", {}, {"loc:@a"}); },
       "INVALID_ARGUMENT: Const 'b' (train.cpp:11): cannot be colocated with 'a': 'b' (train.cpp:11) on '/job:work' against 'a' (train.cpp:10) on '/job:ps': Cannot merge devices with incompatible "
       "jobs: '/job:work' and '/job:ps'; give both one device, or allow soft placement"},
      {"members of a circle that ask for two tasks", [](bench& b) { b.add("Const", "a", {}, "/job:ps/task:0", {}, {"loc:@b"}), b.add("Const", "b", {}, "/job:ps/task:1", {}, {"loc:@a"}); },
       "INVALID_ARGUMENT: Const 'b' (train.cpp:11): cannot be colocated with 'a': 'b' (train.cpp:11) on '/job:ps/task:1' against 'a' (train.cpp:10) on '/job:ps/task:0': Cannot merge devices with "
       "incompatible tasks"},
      {"an op without a kernel", [](bench& b) { b.add("Const", "x"), without_kernels(b); },
       "INVALID_ARGUMENT: Const 'x' (train.cpp:10): no device has a kernel for op 'Const'; no kernels of it are registered"},
      {"a session's task that is not there", [](bench& b) { b.options.default_task = "/job:work/task:9"; }, "INVALID_ARGUMENT: the session's task '/job:work/task:9' has no devices; tasks that have are " + tasks},
      {"a session's task that is no name", [](bench& b) { b.options.default_task = "work:0"; }, "INVALID_ARGUMENT: device string 'work:0' is malformed"},
      {"a device that was assigned and is not there", [](bench& b) { b.add("Const", "x"), b.options.assigned = {"/job:ps"}; },
       "INTERNAL: Const 'x' (train.cpp:10): assigned device '/job:ps' is not the name of one device of the cluster"},
      {"an earlier placement of another graph",
       [](bench& b) {
         b.stranger();
         static weft::placement earlier;
         earlier = weft::place(b.others[0]->graph, b.devices);
         b.options.earlier = &earlier;
       },
       "INVALID_ARGUMENT: the earlier placement is of another graph"},
      {"a placer that names nothing that is", [](bench& b) { b.add("Const", "x"), b.options.placer = answering("/job:nowhere"); },
       "INVALID_ARGUMENT: Const 'x' (train.cpp:10): placer 'mine': cannot go to '/job:nowhere'; open to it are /job:work/task:1/device:CPU:0, "},
      {"a placer that names nonsense", [](bench& b) { b.add("Const", "x"), b.options.placer = answering("?"); },
       "INVALID_ARGUMENT: Const 'x' (train.cpp:10): placer 'mine': device string '?' is malformed"},
      {"a placer that throws",
       [](bench& b) {
         b.add("Const", "x");
         b.options.placer = weft::place_by([](const weft::node&, const std::vector<std::string>&) -> std::string { throw std::out_of_range("no idea"); }, "mine");
       },
       "UNKNOWN: Const 'x' (train.cpp:10): placer 'mine': when asked for its device: no idea"}};
  for (const row& r : rows) {
    CAPTURE(r.what);
    bench b;
    r.build(b);
    const std::string found = b.error_of(placing);
    CHECK_MESSAGE(found.compare(0, r.error.size(), r.error) == 0, found);
  }
}

TEST_CASE("bad input: partition") {
  const std::vector<row> rows{
      {"no tasks", [](bench& b) { b.cluster = weft::cluster_spec(); }, "INVALID_ARGUMENT: the cluster has no tasks; name at least one, as in {{\"work\", 1}}"},
      {"a job without tasks", [](bench& b) { b.cluster = weft::cluster_spec{{"ps", 0}}; }, "INVALID_ARGUMENT: the cluster has no tasks; name at least one, as in {{\"work\", 1}}"},
      {"no devices", [](bench& b) { b.step.devices.clear(); }, "INVALID_ARGUMENT: partition_options: there is no device; leave 'devices' as it is, or name at least {\"CPU\", 1}"},
      {"a negative number of devices", [](bench& b) { b.step.devices = {{"CPU", -1}}; }, "INVALID_ARGUMENT: partition_options: there is no device; leave 'devices' as it is, or name at least {\"CPU\", 1}"},
      {"a device type that is none", [](bench& b) { b.step.devices = {{"", 1}}; }, "INVALID_ARGUMENT: device string '/job:ps/task:0/device::0' is malformed"},
      {"a session's task that is not there", [](bench& b) { b.step.master = "/job:chief/task:0"; }, "INVALID_ARGUMENT: the session's task '/job:chief/task:0' has no devices; tasks that have are " + tasks},
      {"a pin to no task", [](bench& b) { b.add("Const", "x", {}, "/job:ps/task:2"); }, "INVALID_ARGUMENT: Const 'x' (train.cpp:10): asks for device '/job:ps/task:2', but the cluster has the tasks " + tasks},
      {"a feed of another graph", [](bench& b) { b.step.feeds = {{&b.stranger(), 0}}; }, "INVALID_ARGUMENT: Const 'stranger' (train.cpp:10): is a feed, but belongs to another graph"},
      {"a fetch of another graph", [](bench& b) { b.step.fetches = {{&b.stranger(), 0}}; }, "INVALID_ARGUMENT: Const 'stranger' (train.cpp:10): is a fetch, but belongs to another graph"},
      {"a target of another graph", [](bench& b) { b.step.targets = {&b.stranger()}; }, "INVALID_ARGUMENT: Const 'stranger' (train.cpp:10): is a target, but belongs to another graph"},
      {"an empty feed", [](bench& b) { b.step.feeds = {{}}; }, "INVALID_ARGUMENT: a feed is empty, not made by any op"},
      {"an empty fetch", [](bench& b) { b.step.fetches = {{}}; }, "INVALID_ARGUMENT: a fetch is empty, not made by any op"},
      {"an empty target", [](bench& b) { b.step.targets = {nullptr}; }, "INVALID_ARGUMENT: a target is empty, not made by any op"},
      {"an output that the node has not", [](bench& b) { b.step.fetches = {{&b.add("Const", "x"), 1}}; }, "INVALID_ARGUMENT: Const 'x' (train.cpp:10): has 1 outputs; asked for number 1 as a fetch"},
      {"an output below the first", [](bench& b) { b.step.feeds = {{&b.add("Const", "x"), -1}}; }, "INVALID_ARGUMENT: Const 'x' (train.cpp:10): has 1 outputs; asked for number -1 as a feed"},
      {"one feed twice", [](bench& b) { b.step.feeds = std::vector<weft::output>(2, {&b.add("Const", "x"), 0}); }, "INVALID_ARGUMENT: Const 'x' (train.cpp:10): is fed twice ('x')"},
      {"a placer that names nothing that is", [](bench& b) { b.add("Const", "x"), b.step.placer = answering("/job:nowhere"); },
       "INVALID_ARGUMENT: Const 'x' (train.cpp:10): placer 'mine': cannot go to '/job:nowhere'; open to it are /job:ps/task:0/device:CPU:0, "},
      {"a cost that throws",
       [](bench& b) {
         b.add("Const", "x");
         b.step.schedule_recvs = true;
         b.step.node_seconds = [](const weft::node&) -> double { throw std::out_of_range("not measured"); };
       },
       "UNKNOWN: Const 'x' (train.cpp:10): partition_options::node_seconds: not measured"},
      {"TensorFlow's form where the session's task has no CPU",
       [](bench& b) {
         b.step.form = weft::partition_form::tensorflow;
         b.step.devices = {{"GPU", 1}};
         b.step.fetches = {{&b.add("Const", "x"), 0}};
       },
       "INVALID_ARGUMENT: feeds and fetches pass through '/job:ps/task:0/device:CPU:0' in TensorFlow's form, and there is no such device"}};
  for (const row& r : rows) {
    CAPTURE(r.what);
    bench b;
    r.build(b);
    const std::string found = b.error_of(cutting);
    CHECK_MESSAGE(found.compare(0, r.error.size(), r.error) == 0, found);
  }
}

TEST_CASE("bad input: a placement that does not fit its graph or its devices") {
  bench b;
  const auto& x = b.add("Const", "x");
  b.stranger();
  const auto of_other = weft::place(b.others[0]->graph, b.devices);
  CHECK_THROWS_WITH_AS(weft::partition(b.graph, b.devices, of_other), "INVALID_ARGUMENT: Const 'x' (train.cpp:10): belongs to another graph than the one that was placed", weft::error);
  CHECK_THROWS_WITH_AS(weft::partition(b.graph, weft::device_set::of_task(), weft::place(b.graph, b.devices)),
                       "INVALID_ARGUMENT: Const 'x' (train.cpp:10): is placed on '/job:ps/task:0/device:CPU:0', which is not in the device set", weft::error);
  CHECK_THROWS_WITH_AS(weft::partition(b.graph, {}, weft::place(b.graph, b.devices)), "FAILED_PRECONDITION: no devices are registered; add at least one to the device_set", weft::error);
  const auto before = weft::place(b.graph, b.devices);
  b.step.fetches = {{&b.add("Neg", "late", {&x}), 0}};
  CHECK_THROWS_WITH_AS(weft::partition(b.graph, b.devices, before, b.step), "FAILED_PRECONDITION: Neg 'late' (train.cpp:11): was added after the graph was placed; place the graph again", weft::error);
}

TEST_CASE("bad input: what looks odd and is not wrong") {
  bench b;
  CHECK(weft::partition(b.graph, b.cluster, b.step).parts().empty());
  b.add("Const", "a", {}, "", {}, {"loc:@a", "loc:@b", "loc:@a", "loc:@", "other"});
  b.add("Const", "b", {}, "/job:ps/task:1", {}, {"loc:@a"});
  CHECK(weft::partition(b.graph, b.cluster, b.step).placement().device_of(*b.graph.find("a")) == "/job:ps/task:1/device:CPU:0");
  b.step.fetches = b.step.feeds = {{b.graph.find("a"), 0}};
  CHECK(weft::partition(b.graph, b.cluster, b.step).parts().empty());
}

TEST_CASE("bad input: a graph cannot have a node without its inputs, or with those of another graph") {
  bench b;
  CHECK_THROWS_WITH_AS(b.add("Add", "y", {&b.add("Const", "x")}), "INVALID_ARGUMENT: Add 'y' (train.cpp:11): takes 2 inputs, found 1", weft::error);
  CHECK_THROWS_WITH_AS(b.add("Neg", "z", {&b.stranger()}), "INVALID_ARGUMENT: Neg 'z' (train.cpp:12): input 'stranger' belongs to another graph; all inputs of an op must be in one graph", weft::error);
  CHECK_THROWS_WITH_AS(b.add("Neg", "z", {nullptr}), "INVALID_ARGUMENT: Neg 'z' (train.cpp:13): an input is an empty tensor, not made by any op", weft::error);
  CHECK(b.graph.size() == 1);
}
