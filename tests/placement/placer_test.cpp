#include <weft/placement/placer.hpp>

#include "small_world.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

using small::world;

TEST_CASE("placer: a node that asks for nothing goes to the session's own task") {
  world w;
  const auto& x = w.add("Const", "x");
  const auto& y = w.add("Neg", "y", {&x});
  CHECK(w.where(y) == "/job:work/task:1/device:CPU:0 (default device)");
  CHECK(w.where(x) == "/job:work/task:1/device:CPU:0 (with its consumer 'y')");
  w.options.default_task = "/job:ps/replica:0/task:1";
  CHECK(w.where(y) == "/job:ps/task:1/device:CPU:0 (default device)");
  w.options.default_task = "";
  CHECK(w.where(y) == "/job:ps/task:0/device:CPU:0 (default device)");
}

TEST_CASE("placer: in TensorFlow's order a node that asks for nothing goes to the first name") {
  world w;
  const auto& y = w.add("Neg", "y", {&w.add("Const", "x")});
  w.options.order = weft::placement_order::tensorflow;
  CHECK(w.where(y) == "/job:ps/task:0/device:CPU:0 (default device)");
}

TEST_CASE("placer: a node pinned by job goes to the session's task when that fits, else to the first name") {
  world w;
  const auto& work = w.add("NoOp", "on_work", {}, "/job:work");
  const auto& ps = w.add("NoOp", "on_ps", {}, "/job:ps");
  const auto& task = w.add("NoOp", "on_task", {}, "/task:1");
  CHECK(w.where(work) == "/job:work/task:1/device:CPU:0 (pinned at train.cpp:10)");
  CHECK(w.where(ps) == "/job:ps/task:0/device:CPU:0 (pinned at train.cpp:11)");
  CHECK(w.where(task) == "/job:work/task:1/device:CPU:0 (pinned at train.cpp:12)");
}

TEST_CASE("placer: names are compared as text, so task 10 comes before task 2") {
  world w;
  w.devices = weft::device_set::of_cluster(weft::cluster_spec({{"ps", {{0, ""}}}, {"work", {{2, ""}, {10, ""}}}}));
  w.options.default_task = "/job:ps/task:0";
  CHECK(w.where(w.add("NoOp", "n", {}, "/job:work")) == "/job:work/task:10/device:CPU:0 (pinned at train.cpp:10)");
}

TEST_CASE("placer: a device that is not the CPU is preferred where it has the kernel") {
  world w;
  w.devices = weft::device_set::of_cluster({{"work", 2}}, {{"CPU", 1}, {"GPU", 1}});
  CHECK(w.where(w.add("NoOp", "n")) == "/job:work/task:1/device:GPU:0 (default device)");
}

TEST_CASE("placer: what touches a variable goes to it, whatever it asked for") {
  world w;
  const auto& v = w.add("VarHandleOp", "w", {}, "/job:ps/task:1");
  const auto& read = w.add("ReadVariableOp", "read", {&v});
  const auto& far = w.add("ReadVariableOp", "far", {&v}, "/job:work/task:0");
  CHECK(w.where(v) == "/job:ps/task:1/device:CPU:0 (pinned at train.cpp:10)");
  CHECK(w.where(read) == "/job:ps/task:1/device:CPU:0 (with its variable 'w')");
  CHECK(w.where(far) == "/job:ps/task:1/device:CPU:0 (with its variable 'w', not '/job:work/task:0' as asked)");
}

TEST_CASE("placer: the first of several reads decides where an unpinned variable lives") {
  world w;
  const auto& v = w.add("VarHandleOp", "w");
  w.add("ReadVariableOp", "r1", {&v}, "/job:ps/task:1");
  const auto& r2 = w.add("ReadVariableOp", "r2", {&v}, "/job:ps/task:0");
  CHECK(w.where(v) == "/job:ps/task:1/device:CPU:0 (colocated with 'r1')");
  CHECK(w.where(r2) == "/job:ps/task:1/device:CPU:0 (with its variable 'w', not '/job:ps/task:0' as asked)");
}

TEST_CASE("placer: a constant follows its consumers when they agree, also those that only wait for it") {
  world w;
  const auto& a = w.add("Const", "a");
  w.add("Neg", "y", {&a}, "/job:ps/task:1");
  w.add("NoOp", "after", {}, "/job:ps/task:1", {&a});
  CHECK(w.where(a) == "/job:ps/task:1/device:CPU:0 (with its consumers 'y', ...)");
  const auto& b = w.add("Const", "b");
  w.add("Neg", "z", {&b}, "/job:ps/task:1");
  w.add("NoOp", "elsewhere", {}, "/job:ps/task:0", {&b});
  CHECK(w.where(b) == "/job:work/task:1/device:CPU:0 (default device)");
}

TEST_CASE("placer: a shape is taken where its input is") {
  world w;
  const auto& x = w.add("Neg", "x", {&w.add("Const", "c")}, "/job:ps/task:1");
  CHECK(w.where(w.add("Shape", "shape", {&x})) == "/job:ps/task:1/device:CPU:0 (with its input 'x')");
}

TEST_CASE("placer: groups that share a member merge what they ask for") {
  world w;
  const auto& a = w.add("Const", "a", {}, "/job:ps");
  w.add("Const", "b", {}, "/task:1");
  const auto& c = w.add("Const", "c", {}, "", {}, {"loc:@a", "loc:@b"});
  CHECK(w.where(a) == "/job:ps/task:1/device:CPU:0 (pinned at train.cpp:10)");
  CHECK(w.where(c) == "/job:ps/task:1/device:CPU:0 (colocated with 'a')");
}

TEST_CASE("placer: a group whose name no node has still ties its members") {
  world w;
  w.add("Const", "a", {}, "/job:ps/task:1", {}, {"loc:@ghost"});
  CHECK(w.where(w.add("Const", "b", {}, "", {}, {"loc:@ghost"})) == "/job:ps/task:1/device:CPU:0 (colocated with 'a')");
}

TEST_CASE("placer: a group that asks for two places names both lines") {
  world w;
  w.add("Const", "a", {}, "/job:ps/task:1");
  const auto& b = w.add("Const", "b", {}, "/job:work/task:1", {}, {"loc:@a"});
  CHECK(w.failure() ==
        "INVALID_ARGUMENT: Const 'b' (train.cpp:11): cannot be colocated with 'a': 'b' (train.cpp:11) on '/job:work/task:1' against 'a' (train.cpp:10) on "
        "'/job:ps/task:1': Cannot merge devices with incompatible jobs: '/job:work/task:1' and '/job:ps/task:1'; give both one device, or allow soft placement");
  w.options.allow_soft_placement = true;
  CHECK(w.where(b) == "/job:work/task:1/device:CPU:0 (pinned at train.cpp:11)");
}

TEST_CASE("placer: an unknown job or task lists the tasks there are, also when soft") {
  for (const bool soft : {false, true}) {
    world w;
    w.options.allow_soft_placement = soft;
    w.add("Const", "x", {}, "/job:nosuch/task:0");
    CHECK(w.failure() ==
          "INVALID_ARGUMENT: Const 'x' (train.cpp:10): asks for device '/job:nosuch/task:0', but the cluster has the tasks /job:ps/task:0, /job:ps/task:1, "
          "/job:work/task:0, /job:work/task:1");
  }
}

TEST_CASE("placer: a local session says that it is local when a job is asked for") {
  world w;
  w.devices = weft::device_set::of_task();
  w.options = {};
  w.add("VarHandleOp", "v", {}, "/job:ps/task:0");
  CHECK(w.failure() ==
        "INVALID_ARGUMENT: VarHandleOp 'v' (train.cpp:10): asks for device '/job:ps/task:0', but the session is local; pass the server's target (the local "
        "session has only /job:localhost/task:0)");
}

TEST_CASE("placer: a type or number that does not exist is refused, or dropped with a reason when soft") {
  struct row {
    const char *device, *error, *soft;
  };
  const std::string rest = ", but the devices are /job:ps/task:0/device:CPU:0, /job:ps/task:1/device:CPU:0, /job:work/task:0/device:CPU:0, "
                           "/job:work/task:1/device:CPU:0; choose one of them, or allow soft placement";
  for (const row& r : {row{"/job:ps/task:1/device:GPU:0", "'/job:ps/task:1/device:GPU:0'", "/job:ps/task:1/device:CPU:0 (soft: no GPU device in /job:ps/task:1)"},
                       row{"/job:ps/task:1/device:CPU:7", "'/job:ps/task:1/device:CPU:7'", "/job:ps/task:1/device:CPU:0 (soft: no device CPU:7 in /job:ps/task:1)"},
                       row{"/device:dummy:0", "'/device:dummy:0'", "/job:work/task:1/device:CPU:0 (soft: no dummy device)"}}) {
    world w;
    const auto& x = w.add("Const", "x", {}, r.device);
    CHECK(w.failure() == std::string("INVALID_ARGUMENT: Const 'x' (train.cpp:10): asks for device ") + r.error + rest);
    w.options.allow_soft_placement = true;
    CHECK(w.where(x) == r.soft);
  }
}

TEST_CASE("placer: kernels are looked up in the catalogue of each task") {
  world w;
  weft::kernel_catalogue without_neg;
  for (const char* op : {"Const", "NoOp"}) {
    weft::kernel_entry entry;
    entry.op = op;
    entry.device_type = "CPU";
    without_neg.add(entry);
  }
  w.devices.set_catalogue("/job:work/task:1", std::make_shared<const weft::kernel_catalogue>(without_neg));
  const auto& x = w.add("Const", "x");
  CHECK(w.where(w.add("Neg", "y", {&x})) == "/job:ps/task:0/device:CPU:0 (default device)");
  w.add("Neg", "z", {&x}, "/job:work/task:1");
  CHECK(w.failure() ==
        "INVALID_ARGUMENT: Neg 'z' (train.cpp:12): asks for device '/job:work/task:1', but op 'Neg' has no kernel there; its kernels are for CPU devices. "
        "Choose such a device, or allow soft placement");
}

TEST_CASE("placer: nodes of an earlier placement stay, for the same reasons") {
  world w;
  const auto& v = w.add("VarHandleOp", "w");
  const auto before = weft::place(w.graph, w.devices, w.options);
  CHECK(before.device_of(v) == "/job:work/task:1/device:CPU:0");
  const auto& read = w.add("ReadVariableOp", "read", {&v}, "/job:ps/task:0");
  CHECK(w.where(v) == "/job:ps/task:0/device:CPU:0 (colocated with 'read')");
  w.options.earlier = &before;
  CHECK(w.where(v) == "/job:work/task:1/device:CPU:0 (default device)");
  CHECK(w.where(read) == "/job:work/task:1/device:CPU:0 (with its variable 'w', not '/job:ps/task:0' as asked)");
}

TEST_CASE("placer: after an earlier placement only new nodes are looked at, with those that they share a device with") {
  world w;
  const auto& v = w.add("VarHandleOp", "w", {}, "/job:ps/task:1");
  const weft::node* last = &w.add("Const", "x", {}, "/job:work/task:0");
  for (int i = 0; i < 50; ++i) last = &w.add("Neg", ("n" + std::to_string(i)).c_str(), {last}, "/job:work/task:0");
  const auto before = weft::place(w.graph, w.devices, w.options);
  CHECK(before.looked_at() == 52);
  w.options.earlier = &before;
  const auto& read = w.add("ReadVariableOp", "read", {&v});
  const auto& shape = w.add("Shape", "shape", {last});
  const auto& tied = w.add("Neg", "tied", {&read}, "", {}, {"loc:@n7"});
  const auto placed = weft::place(w.graph, w.devices, w.options);
  CHECK(placed.looked_at() == 5);
  CHECK(placed.device_of(read) + " (" + placed.reason_of(read) + ")" == "/job:ps/task:1/device:CPU:0 (with its variable 'w')");
  CHECK(placed.device_of(shape) + " (" + placed.reason_of(shape) + ")" == "/job:work/task:0/device:CPU:0 (with its input 'n49')");
  CHECK(placed.device_of(tied) + " (" + placed.reason_of(tied) + ")" == "/job:work/task:0/device:CPU:0 (colocated with 'n7')");
  CHECK(placed.explain(tied) ==
        "'tied' (Neg, train.cpp:64) runs on /job:work/task:0/device:CPU:0\n"
        "  because: colocated with 'n7'\n"
        "  asks for: nothing\n"
        "  shares its device with: 'n7' (Neg, train.cpp:19) placed before, whose request counts\n"
        "  open to it: /job:work/task:0/device:CPU:0\n"
        "  left out: /job:ps/task:0/device:CPU:0, /job:ps/task:1/device:CPU:0, /job:work/task:1/device:CPU:0 (not in '/job:work/task:0/device:CPU:0')\n"
        "  decided by: 'n7', which was placed before\n");
}

TEST_CASE("placer: what was placed before is looked at again when the kernels of its task have become known") {
  world w;
  w.add("Neg", "y", {&w.add("Const", "x")}, "/job:work/task:0");
  const auto before = weft::place(w.graph, w.devices, w.options);
  w.options.earlier = &before;
  CHECK(weft::place(w.graph, w.devices, w.options) == before);
  w.devices.set_catalogue("/job:work/task:0", std::make_shared<const weft::kernel_catalogue>());
  const std::string why = w.failure();
  CHECK_MESSAGE(why.find("INVALID_ARGUMENT: Neg 'y' (train.cpp:11)") == 0, why);
  CHECK_MESSAGE(why.find("no kernel") != std::string::npos, why);
}

TEST_CASE("placer: a class that no node owns keeps its members together when the graph grows") {
  world w;
  w.add("Const", "x", {}, "/job:ps/task:1", {}, {"loc:@later"});
  auto placed = weft::place(w.graph, w.devices, w.options);
  const auto next = [&](const weft::node& n) {
    const auto before = placed;
    w.options.earlier = &before;
    placed = weft::place(w.graph, w.devices, w.options);
    w.options.earlier = nullptr;
    return placed.device_of(n);
  };
  CHECK(next(w.add("Const", "free")) == "/job:work/task:1/device:CPU:0");
  CHECK(next(w.add("Const", "y", {}, "", {}, {"loc:@later"})) == "/job:ps/task:1/device:CPU:0");
  CHECK(next(w.add("Const", "later")) == "/job:ps/task:1/device:CPU:0");
  CHECK(next(w.add("Const", "z", {}, "", {}, {"loc:@later"})) == "/job:ps/task:1/device:CPU:0");
  CHECK(placed.looked_at() == 2);
}

TEST_CASE("placement: placements of a graph that grows node by node share what they know") {
  world w;
  std::vector<weft::placement> all{weft::placement()};
  for (int i = 0; i < 70; ++i) {
    w.add("Const", ("c" + std::to_string(i)).c_str(), {}, i % 2 == 0 ? "/job:ps/task:0" : "/job:work/task:0");
    w.options.earlier = &all.back();
    all.push_back(weft::place(w.graph, w.devices, w.options));
  }
  const auto at_once = weft::place(w.graph, w.devices, weft::placement_options{"/job:work/task:1"});
  CHECK(all.back() == at_once);
  for (std::size_t i = 0; i < all.size(); ++i) {
    REQUIRE(all[i].size() == i);
    for (std::size_t k = 0; k < i; ++k) CHECK(all[i][k] == at_once[k]);
  }
  CHECK(all[5] != all[6]);
}

TEST_CASE("placement: a node that was added later is not placed") {
  world w;
  w.add("Const", "x");
  const auto placed = weft::place(w.graph, w.devices, w.options);
  const auto& late = w.add("Const", "late");
  CHECK(placed.size() == 1);
  CHECK_FALSE(placed.has(late));
  CHECK_THROWS_WITH_AS(placed.device_of(late), "FAILED_PRECONDITION: Const 'late' (train.cpp:11): was added after the graph was placed; place the graph again",
                       weft::error);
}

TEST_CASE("placement: the text has a line per node with its reason") {
  world w;
  const auto& x = w.add("Const", "x", {}, "/job:ps/task:0");
  w.add("Neg", "y", {&x});
  CHECK(to_text(weft::place(w.graph, w.devices, w.options), w.graph) ==
        "x (Const): /job:ps/task:0/device:CPU:0 (pinned at train.cpp:10)\n"
        "y (Neg): /job:work/task:1/device:CPU:0 (default device)\n");
}
