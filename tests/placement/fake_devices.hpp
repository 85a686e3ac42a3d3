// A world of ops and devices for placement tests: FakeCPU:0..9 and FakeGPU:0..9 on one task, FakeGPU preferred, and ops that have
// kernels for one type or for both.
#ifndef WEFT_TESTS_PLACEMENT_FAKE_DEVICES_HPP
#define WEFT_TESTS_PLACEMENT_FAKE_DEVICES_HPP

#include <weft/placement/placer.hpp>

#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace fake {

inline weft::op_registry ops() {
  weft::op_registry out;
  out.add(weft::op("TestInput").output("a: float").output("b: float"));
  for (const char* name : {"TestRelu", "ReluCPU", "ReluGPU", "ReluPrefersCPU"}) out.add(weft::op(name).input("i: float").output("o: float"));
  for (const char* name : {"VariableCPU", "VariableGPU", "TestVariable", "VariableNoKernels"}) out.add(weft::op(name).output("o: Ref(float)").stateful());
  for (const char* name : {"TestAssign", "AssignCPU", "AssignGPU"}) out.add(weft::op(name).input("ref: Ref(float)").input("value: float"));
  for (const char* name : {"TestHandle", "HandlePrefersCPU", "HandlePrefersGPU"}) out.add(weft::op(name).output("o: resource").stateful());
  for (const char* name : {"UseHandle", "UsePrefersCPU", "UsePrefersGPU"}) out.add(weft::op(name).input("a: resource").stateful());
  out.add(weft::op("UseTwoHandles").input("a: resource").input("b: resource").stateful());
  out.add(weft::op("PassHandle").input("a: resource").output("o: resource"));
  for (const char* name : {"TestCPUGPUOutput", "TestGPUOutput"}) out.add(weft::op(name).output("o: float"));
  out.add(weft::op("TestDevice").output("a: float").output("b: float"));
  out.add(weft::op("Shape").input("input: float").output("output: int32"));
  return out;
}

inline std::shared_ptr<const weft::kernel_catalogue> kernels() {
  weft::kernel_catalogue out;
  const auto add = [&](const char* op, const char* type, int priority = 0) {
    weft::kernel_entry entry;
    entry.op = op;
    entry.device_type = type;
    entry.priority = priority;
    out.add(std::move(entry));
  };
  for (const char* name : {"TestInput", "ReluCPU", "VariableCPU", "AssignCPU"}) add(name, "FakeCPU");
  for (const char* name : {"ReluGPU", "VariableGPU", "AssignGPU", "TestGPUOutput", "TestDevice"}) add(name, "FakeGPU");
  for (const char* name : {"TestRelu", "TestVariable", "TestAssign", "TestHandle", "UseHandle", "UseTwoHandles", "PassHandle", "TestCPUGPUOutput", "Shape"})
    for (const char* type : {"FakeCPU", "FakeGPU"}) add(name, type);
  for (const char* name : {"ReluPrefersCPU", "HandlePrefersCPU", "UsePrefersCPU"}) {
    add(name, "FakeCPU", 2);
    add(name, "FakeGPU", 1);
  }
  for (const char* name : {"HandlePrefersGPU", "UsePrefersGPU"}) {
    add(name, "FakeCPU", 1);
    add(name, "FakeGPU", 2);
  }
  return std::make_shared<const weft::kernel_catalogue>(std::move(out));
}

inline weft::device_set devices() {
  weft::device_set out;
  for (int i = 9; i >= 0; --i) {
    out.add({"/job:a/task:0/device:FakeCPU:" + std::to_string(i), "FakeCPU"});
    out.add({"/job:a/task:0/device:FakeGPU:" + std::to_string(i), "FakeGPU"});
  }
  out.set_catalogue("/job:a/task:0", kernels());
  out.set_type_order({"FakeGPU", "FakeCPU"});
  return out;
}

inline const std::string cpu = "/job:a/task:0/device:FakeCPU:0";
inline const std::string gpu = "/job:a/task:0/device:FakeGPU:0";

// A graph that is written node by node: op, name, inputs, device, classes (`loc:@x`).
struct world {
  weft::graph graph{ops()};
  weft::device_set where = devices();
  weft::placement_options options;

  const weft::node& add(const char* op, const char* name, std::vector<weft::output> inputs = {}, const char* device = "",
                        std::vector<std::string> classes = {}, weft::call_site site = {}) {
    weft::node_spec spec;
    spec.op = op;
    spec.name = name;
    spec.exact_name = true;
    spec.inputs = std::move(inputs);
    spec.scoped = false;
    spec.device = device;
    spec.site = site;
    if (!classes.empty()) spec.attrs["_class"] = std::move(classes);
    return graph.add(std::move(spec));
  }
  // Device of a node after placing the graph.
  std::string device(const weft::node& n) const { return weft::place(graph, where, options).device_of(n); }
  std::string device(const char* name) const { return device(*graph.find(name)); }
  // The error of placing the graph; an ok status when there is none.
  weft::status failure() const {
    try {
      weft::place(graph, where, options);
    } catch (const weft::error& e) {
      return e.status();
    }
    return weft::status();
  }
};

inline weft::output out(const weft::node& n, int index = 0) { return {&n, index}; }

}  // namespace fake

#endif
