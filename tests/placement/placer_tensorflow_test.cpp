// What TensorFlow's own placer tests state, with two fake device types.
#include <weft/placement/placer.hpp>

#include "fake_devices.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using fake::cpu;
using fake::gpu;
using fake::out;
using fake::world;

TEST_CASE("placer: without constraints the preferred type that has a kernel is taken") {
  world w;
  const auto& in = w.add("TestInput", "in");
  w.add("TestRelu", "n1", {out(in, 0)});
  w.add("TestRelu", "n2", {out(in, 1)});
  CHECK(w.device("in") == cpu);
  CHECK(w.device("n1") == gpu);
  CHECK(w.device("n2") == gpu);
}

TEST_CASE("placer: the priority of kernels comes before the preference of types") {
  world w;
  const auto& in = w.add("TestInput", "in");
  w.add("ReluPrefersCPU", "n1", {out(in)});
  CHECK(w.device("n1") == cpu);
}

TEST_CASE("placer: a colocated node goes where its group can run, whatever it prefers") {
  world w;
  const auto& in = w.add("TestGPUOutput", "in");
  w.add("ReluPrefersCPU", "tied", {out(in)}, "", {"loc:@in"});
  w.add("ReluPrefersCPU", "free", {out(in)});
  CHECK(w.device("tied") == gpu);
  CHECK(w.device("free") == cpu);
}

TEST_CASE("placer: priorities that contradict each other in a group count for nothing") {
  world w;
  const auto& handle = w.add("HandlePrefersCPU", "handle");
  w.add("UsePrefersGPU", "use", {out(handle)});
  CHECK(w.device("handle") == gpu);
  CHECK(w.device("use") == gpu);
  world same;
  const auto& other = same.add("HandlePrefersCPU", "handle");
  same.add("UsePrefersCPU", "use", {out(other)});
  CHECK(same.device("handle") == cpu);
  world one;
  const auto& plain = one.add("TestHandle", "handle");
  one.add("UsePrefersCPU", "use", {out(plain)});
  CHECK(one.device("handle") == cpu);
}

TEST_CASE("placer: a variable and its assignment share the type that both can run on") {
  world w;
  const auto& in = w.add("TestInput", "in");
  const auto& on_cpu = w.add("VariableCPU", "var_cpu");
  w.add("AssignCPU", "assign_cpu", {out(on_cpu), out(in)});
  const auto& on_gpu = w.add("VariableGPU", "var_gpu");
  w.add("AssignGPU", "assign_gpu", {out(on_gpu), out(in)});
  CHECK(w.device("in") == cpu);
  CHECK(w.device("var_cpu") == cpu);
  CHECK(w.device("assign_cpu") == cpu);
  CHECK(w.device("var_gpu") == gpu);
  CHECK(w.device("assign_gpu") == gpu);
}

TEST_CASE("placer: Shape goes with its input") {
  world w;
  const auto& var = w.add("VariableCPU", "var");
  w.add("Shape", "shape", {out(var)});
  CHECK(w.device("var") == cpu);
  CHECK(w.device("shape") == cpu);
}

TEST_CASE("placer: a generator follows its only consumer") {
  world w;
  const auto& var = w.add("VariableCPU", "var");
  const auto& in = w.add("TestCPUGPUOutput", "in");
  w.add("TestAssign", "assign", {out(var), out(in)});
  CHECK(w.device("in") == cpu);
  CHECK(w.device("assign") == cpu);
}

TEST_CASE("placer: a generator that asks for another device stays there") {
  world w;
  const auto& var = w.add("VariableCPU", "var");
  const auto& in = w.add("TestCPUGPUOutput", "in", {}, "/device:FakeCPU:1");
  w.add("TestAssign", "assign", {out(var), out(in)});
  CHECK(w.device("in") == "/job:a/task:0/device:FakeCPU:1");
  CHECK(w.device("var") == cpu);
  CHECK(w.device("assign") == cpu);
}

TEST_CASE("placer: a generator whose consumers are apart goes to the default device") {
  world w;
  const auto& var1 = w.add("VariableCPU", "var1", {}, "/device:FakeCPU:1");
  const auto& var2 = w.add("VariableCPU", "var2", {}, "/device:FakeCPU:2");
  const auto& in = w.add("TestCPUGPUOutput", "in");
  w.add("TestAssign", "assign1", {out(var1), out(in)});
  w.add("TestAssign", "assign2", {out(var2), out(in)});
  CHECK(w.device("in") == gpu);
  CHECK(w.device("assign1") == "/job:a/task:0/device:FakeCPU:1");
  CHECK(w.device("assign2") == "/job:a/task:0/device:FakeCPU:2");
}

TEST_CASE("placer: a partial request is completed by type and number") {
  world w;
  w.add("TestInput", "in", {}, "/job:a");
  w.add("TestVariable", "var", {}, "/job:a");
  CHECK(w.device("in") == cpu);
  CHECK(w.device("var") == gpu);
}

TEST_CASE("placer: a node that is assigned already stays") {
  world w;
  w.add("TestInput", "in");
  w.options.assigned = {"/job:a/replica:0/task:0/device:FakeCPU:7"};
  CHECK(w.device("in") == "/job:a/task:0/device:FakeCPU:7");
}

TEST_CASE("placer: soft placement takes another type when there is no kernel, and the asked one when there is") {
  world w;
  w.options.allow_soft_placement = true;
  w.add("TestInput", "in", {}, "/device:FakeGPU:0");
  w.add("TestVariable", "var", {}, "/device:FakeGPU:0");
  CHECK(w.device("in") == cpu);
  CHECK(w.device("var") == gpu);
}

TEST_CASE("placer: a reference joins what both sides can run on") {
  struct row {
    const char *variable, *assign, *device;
  };
  for (const row& r : {row{"TestVariable", "TestAssign", "FakeGPU"}, row{"TestVariable", "AssignCPU", "FakeCPU"}, row{"TestVariable", "AssignGPU", "FakeGPU"},
                       row{"VariableCPU", "TestAssign", "FakeCPU"}, row{"VariableGPU", "TestAssign", "FakeGPU"}, row{"VariableCPU", "AssignCPU", "FakeCPU"},
                       row{"VariableGPU", "AssignGPU", "FakeGPU"}}) {
    CAPTURE(r.variable);
    CAPTURE(r.assign);
    world w;
    const auto& var = w.add(r.variable, "var");
    const auto& in = w.add("TestInput", "in");
    w.add(r.assign, "assign", {out(var), out(in)});
    const std::string expected = std::string("/job:a/task:0/device:") + r.device + ":0";
    CHECK(w.device("var") == expected);
    CHECK(w.device("assign") == expected);
  }
  for (const row& r : {row{"VariableCPU", "AssignGPU", ""}, row{"VariableGPU", "AssignCPU", ""}}) {
    world w;
    const auto& var = w.add(r.variable, "var");
    const auto& in = w.add("TestInput", "in");
    w.add(r.assign, "assign", {out(var), out(in)});
    CHECK(w.failure().code == weft::error_code::invalid_argument);
    CHECK(w.failure().node == "assign");
    CHECK(w.failure().message.find("no device type has kernels for both") != std::string::npos);
  }
}

TEST_CASE("placer: two resources on different devices cannot meet in one op, soft or hard") {
  for (const bool soft : {false, true}) {
    world w;
    w.options.allow_soft_placement = soft;
    const auto& a = w.add("TestHandle", "a", {}, "/device:FakeCPU:0", {}, {"model.cpp", 3});
    const auto& b = w.add("TestHandle", "b", {}, "/device:FakeGPU:0", {}, {"model.cpp", 4});
    w.add("UseTwoHandles", "use", {out(a), out(b)}, "", {}, {"model.cpp", 5});
    CHECK(w.failure().text() ==
          "INVALID_ARGUMENT: UseTwoHandles 'use' (model.cpp:5): uses resources on different devices: 'b' (model.cpp:4) on '/device:FakeGPU:0' against "
          "'a' (model.cpp:3) on '/device:FakeCPU:0' ('/device:FakeGPU:0' and '/device:FakeCPU:0'); put both on one device");
  }
}

TEST_CASE("placer: two resources that were assigned apart cannot meet either") {
  world w;
  const auto& a = w.add("TestHandle", "a");
  const auto& b = w.add("TestHandle", "b");
  w.add("UseTwoHandles", "use", {out(a), out(b)});
  w.options.assigned = {cpu, gpu};
  CHECK(w.failure().code == weft::error_code::invalid_argument);
  CHECK(w.failure().message.find("uses resources assigned to different devices") == 0);
}

TEST_CASE("placer: a resource passes on its device through other ops") {
  world w;
  const auto& a = w.add("TestHandle", "a", {}, "/device:FakeCPU:3");
  const auto& pass = w.add("PassHandle", "pass", {out(a)}, "/device:FakeGPU:1");
  w.add("UseHandle", "use", {out(pass)});
  CHECK(w.device("pass") == "/job:a/task:0/device:FakeCPU:3");
  CHECK(w.device("use") == "/job:a/task:0/device:FakeCPU:3");
}

TEST_CASE("placer: the request of an assignment that its variable cannot meet is ignored") {
  world w;
  const auto& in = w.add("TestInput", "in");
  const auto& var = w.add("VariableGPU", "var", {}, "/device:FakeGPU:0");
  w.add("TestAssign", "assign", {out(var), out(in)}, "/device:FakeCPU:0");
  CHECK(w.device("var") == gpu);
  CHECK(w.device("assign") == gpu);
}

TEST_CASE("placer: what an assignment asks for beyond its variable counts for both") {
  for (const char* device : {"/job:a/task:0", ""}) {
    world w;
    const auto& in = w.add("TestInput", "in");
    const auto& var = w.add("TestVariable", "var", {}, device);
    w.add("TestAssign", "assign", {out(var), out(in)}, "/job:a/task:0/device:FakeCPU:0");
    CHECK(w.device("var") == cpu);
    CHECK(w.device("assign") == cpu);
  }
}

TEST_CASE("placer: members of a colocation group share a device, others do not join") {
  world w;
  const auto& in = w.add("TestInput", "in");
  w.add("TestRelu", "tied", {out(in)}, "", {"loc:@in"});
  w.add("TestRelu", "free", {out(in)});
  CHECK(w.device("tied") == cpu);
  CHECK(w.device("free") == gpu);
}

TEST_CASE("placer: groups that no type can hold are an error, or fall apart when soft") {
  world w;
  const auto& in = w.add("TestInput", "in");
  const auto& colocated = w.add("ReluCPU", "colocated_1", {out(in)});
  w.add("ReluGPU", "foo", {out(in)}, "", {"loc:@in", "loc:@colocated_1"});
  CHECK(w.failure().text() ==
        "INVALID_ARGUMENT: ReluGPU 'foo': cannot be colocated with 'in': 'foo' against 'in': no device type has kernels for both (FakeGPU against "
        "FakeCPU); give both one device, or allow soft placement");
  w.options.allow_soft_placement = true;
  CHECK(w.device("foo") == gpu);
  CHECK(w.device(colocated) == cpu);
}

TEST_CASE("placer: a class that contradicts a reference is an error, or is dropped when soft") {
  world w;
  const auto& in = w.add("TestInput", "in");
  const auto& var1 = w.add("VariableCPU", "var1");
  const auto& var2 = w.add("VariableCPU", "var2");
  const auto& var3 = w.add("VariableGPU", "var3");
  w.add("TestAssign", "assign1", {out(var1), out(in)}, "", {"loc:@var1"});
  w.add("TestAssign", "assign2", {out(var2), out(in)}, "", {"loc:@var2"});
  w.add("TestAssign", "assign3", {out(var3), out(in)}, "", {"loc:@var2"});
  CHECK(w.failure().code == weft::error_code::invalid_argument);
  CHECK(w.failure().node == "assign3");
  CHECK(w.failure().message.find("'var2'") != std::string::npos);
  w.options.allow_soft_placement = true;
  CHECK(w.device("assign3") == gpu);
  CHECK(w.device("assign2") == cpu);
}

TEST_CASE("placer: a hundred variables in a few groups stay with their assignments") {
  world w;
  const auto& in = w.add("TestInput", "in");
  std::vector<const weft::node*> variables, assigns;
  for (int i = 0; i < 100; ++i) {
    const std::string var = "var_" + std::to_string(i), assign = "assign_" + std::to_string(i);
    variables.push_back(&w.add("TestVariable", var.c_str(), {}, "", {"loc:@var_" + std::to_string(i % 6)}));
    assigns.push_back(&w.add("TestAssign", assign.c_str(), {out(*variables.back()), out(in)}, "", {"loc:@assign_" + std::to_string(i % 3)}));
  }
  const auto placed = weft::place(w.graph, w.where, w.options);
  for (int i = 0; i < 100; ++i) CHECK(placed.device_of(*variables[static_cast<std::size_t>(i)]) == placed.device_of(*assigns[static_cast<std::size_t>(i)]));
}

TEST_CASE("placer: without devices nothing can be placed") {
  world w;
  w.add("TestInput", "in");
  w.where = weft::device_set();
  CHECK(w.failure().text() == "FAILED_PRECONDITION: no devices are registered; add at least one to the device_set");
}

TEST_CASE("placer: a group is refused when the task it asks for lacks its type") {
  world w;
  w.where = weft::device_set();
  w.where.add({"/job:b/task:0/device:FakeGPU:0", "FakeGPU"});
  w.where.add({"/job:b/task:1/device:FakeCPU:0", "FakeCPU"});
  w.where.set_catalogue("/job:b/task:0", fake::kernels());
  w.where.set_catalogue("/job:b/task:1", fake::kernels());
  const auto& in = w.add("TestInput", "in");
  const auto& var = w.add("VariableGPU", "var");
  w.add("TestAssign", "assign", {out(var), out(in)}, "/job:b/task:1", {}, {"model.cpp", 7});
  CHECK(w.failure().code == weft::error_code::invalid_argument);
  CHECK(w.failure().message == "is colocated with 'assign' (model.cpp:7), which needs device '/job:b/task:1', but the group has kernels only for FakeGPU devices");
}

TEST_CASE("placer: an unknown job is refused, also when soft") {
  for (const bool soft : {false, true}) {
    world w;
    w.options.allow_soft_placement = soft;
    w.add("TestInput", "in", {}, "/job:foo");
    CHECK(w.failure().text() == "INVALID_ARGUMENT: TestInput 'in': asks for device '/job:foo', but the cluster has the task /job:a/task:0");
  }
}

TEST_CASE("placer: an assigned device must name one device") {
  for (const char* device : {"/job:foo", "/foo:bar", "/job:a"}) {
    world w;
    w.add("TestInput", "in");
    w.options.assigned = {device};
    CHECK(w.failure().text() == "INTERNAL: TestInput 'in': assigned device '" + std::string(device) + "' is not the name of one device of the cluster");
  }
}

TEST_CASE("placer: an op without kernels is refused, but goes to a task whose kernels are unknown") {
  for (const char* device : {"", "/job:a"}) {
    world w;
    w.add("VariableNoKernels", "var", {}, device);
    CHECK(w.failure().text() ==
          "INVALID_ARGUMENT: VariableNoKernels 'var': no device has a kernel for op 'VariableNoKernels'; no kernels of it are registered");
  }
  world w;
  w.where.add({"/job:b/task:0/device:FakeCPU:0", "FakeCPU"});
  w.add("VariableNoKernels", "var", {}, "/job:b/task:0/device:FakeCPU:0");
  CHECK(w.device("var") == "/job:b/task:0/device:FakeCPU:0");
}

TEST_CASE("placer: a malformed device string is refused") {
  world w;
  w.add("TestInput", "in", {}, "/foo:bar");
  CHECK(w.failure().code == weft::error_code::invalid_argument);
  CHECK(w.failure().message.find("device string '/foo:bar' is malformed") == 0);
}

TEST_CASE("placer: a device number that does not exist is refused, or replaced when soft") {
  world w;
  w.add("TestDevice", "in", {}, "/device:FakeGPU:11");
  CHECK(w.failure().code == weft::error_code::invalid_argument);
  CHECK(w.failure().node == "in");
  CHECK(w.failure().message.find("asks for device '/device:FakeGPU:11', but the devices are /job:a/task:0/device:FakeCPU:0, ") == 0);
  w.options.allow_soft_placement = true;
  CHECK(w.device("in") == gpu);
}

TEST_CASE("placer: a type without a kernel is refused, or replaced when soft") {
  world w;
  w.add("VariableGPU", "var", {}, "/device:FakeCPU:0");
  CHECK(w.failure().text() ==
        "INVALID_ARGUMENT: VariableGPU 'var': asks for device '/device:FakeCPU:0', but op 'VariableGPU' has no kernel there; its kernels are for FakeGPU "
        "devices. Choose such a device, or allow soft placement");
  w.options.allow_soft_placement = true;
  CHECK(w.device("var") == gpu);
}

TEST_CASE("placer: another replica does not exist") {
  world w;
  w.add("TestInput", "in", {}, "/job:foo/replica:17");
  CHECK(w.failure().message == "asks for device '/job:foo/replica:17', but the cluster has the task /job:a/task:0");
}

TEST_CASE("placer: a reference between nodes without a common type is refused") {
  world w;
  const auto& in = w.add("TestInput", "in");
  const auto& var = w.add("VariableGPU", "var", {}, "", {}, {"model.cpp", 1});
  w.add("AssignCPU", "assign", {out(var), out(in)}, "", {}, {"model.cpp", 2});
  CHECK(w.failure().text() ==
        "INVALID_ARGUMENT: AssignCPU 'assign' (model.cpp:2): must be on the device of 'var' (model.cpp:1), whose resource it uses: no device type has kernels "
        "for both (FakeGPU against FakeCPU)");
}

TEST_CASE("placer: the device that creates a resource is fixed, what merely passes it on is not") {
  // Two chains handle -> pass -> use, tied by a class between the passing nodes.
  const auto build = [](world& w, const char* first, const char* second, const char* first_pass, const char* second_pass) {
    const auto& a = w.add("TestHandle", "a", {}, first);
    const auto& b = w.add("TestHandle", "b", {}, second);
    const auto& pass_a = w.add("PassHandle", "pass_a", {out(a)}, first_pass);
    const auto& pass_b = w.add("PassHandle", "pass_b", {out(b)}, second_pass, {"loc:@pass_a"});
    w.add("UseHandle", "use_a", {out(pass_a)});
    w.add("UseHandle", "use_b", {out(pass_b)});
  };
  world hard;
  build(hard, "/device:FakeCPU:0", "/device:FakeGPU:0", "", "");
  CHECK(hard.failure().message.find("Cannot merge devices with incompatible types") != std::string::npos);
  world soft;
  soft.options.allow_soft_placement = true;
  build(soft, "/device:FakeCPU:0", "/device:FakeGPU:0", "", "");
  CHECK(soft.device("use_a") == cpu);
  CHECK(soft.device("use_b") == gpu);
  world free;
  build(free, "", "", "/device:FakeCPU:2", "/device:FakeCPU:2");
  for (const char* name : {"a", "b", "pass_a", "pass_b", "use_a", "use_b"}) CHECK(free.device(name) == "/job:a/task:0/device:FakeCPU:2");
}

TEST_CASE("placer: devices that were assigned to resources are not overridden by a class") {
  const auto build = [](world& w) {
    const auto& a = w.add("TestHandle", "a");
    const auto& b = w.add("TestHandle", "b");
    const auto& pass_a = w.add("PassHandle", "pass_a", {out(a)});
    w.add("PassHandle", "pass_b", {out(b)}, "", {"loc:@pass_a"});
    w.add("UseHandle", "use_a", {out(pass_a)});
    w.options.assigned = {cpu, gpu};
  };
  world hard;
  build(hard);
  CHECK(hard.failure().code == weft::error_code::invalid_argument);
  CHECK(hard.failure().node == "pass_b");
  CHECK(hard.failure().message.find("Cannot merge devices with incompatible types") != std::string::npos);
  world soft;
  soft.options.allow_soft_placement = true;
  build(soft);
  CHECK(soft.device("use_a") == cpu);
  CHECK(soft.device("pass_b") == gpu);
}
