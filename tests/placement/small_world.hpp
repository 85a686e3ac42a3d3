// A cluster of two ps and two work tasks, and graphs that are written node by node, each on a line of train.cpp of its own.
#ifndef WEFT_TESTS_PLACEMENT_SMALL_WORLD_HPP
#define WEFT_TESTS_PLACEMENT_SMALL_WORLD_HPP

#include <weft/placement/placer.hpp>

#include <string>
#include <utility>
#include <vector>

namespace small {

inline weft::op_registry ops() {
  weft::op_registry out;
  out.add(weft::op("Const").output("o: float"));
  out.add(weft::op("Neg").input("x: float").output("y: float"));
  out.add(weft::op("Add").input("x: float").input("z: float").output("y: float"));
  out.add(weft::op("Shape").input("x: float").output("y: int32"));
  out.add(weft::op("NoOp"));
  out.add(weft::op("VarHandleOp").output("o: resource").attr("dtype: type = float").attr("shape: shape = {}").stateful());
  out.add(weft::op("ReadVariableOp").input("r: resource").output("o: float").stateful());
  return out;
}

struct world {
  weft::graph graph{ops()};
  weft::device_set devices = weft::device_set::of_cluster({{"ps", 2}, {"work", 2}});
  weft::placement_options options{"/job:work/task:1"};
  int line = 10;

  // Each node gets a line of its own: the first is train.cpp:10.
  const weft::node& add(const char* op, const char* name, std::vector<const weft::node*> inputs = {}, const char* device = "",
                        std::vector<const weft::node*> control = {}, std::vector<std::string> classes = {}, weft::attr_map attrs = {}) {
    weft::node_spec spec;
    spec.op = op;
    spec.name = name;
    for (const weft::node* in : inputs) spec.inputs.push_back({in, 0});
    spec.control_inputs = std::move(control);
    spec.scoped = false;
    spec.device = device;
    spec.site = {"train.cpp", line++};
    spec.attrs = std::move(attrs);
    if (!classes.empty()) spec.attrs["_class"] = std::move(classes);
    return graph.add(std::move(spec));
  }
  // `device (reason)` of a node.
  std::string where(const weft::node& n) const {
    const auto placed = weft::place(graph, devices, options);
    return placed.device_of(n) + " (" + placed.reason_of(n) + ")";
  }
  std::string failure() const {
    try {
      weft::place(graph, devices, options);
    } catch (const weft::error& e) {
      return e.what();
    }
    return "placed";
  }
};

}  // namespace small

#endif
