// Graphs for partition tests: the first letters of a node's name say where it goes, as in TensorFlow's own tests.
#ifndef WEFT_TESTS_PARTITION_LETTERS_HPP
#define WEFT_TESTS_PARTITION_LETTERS_HPP

#include <weft/partition/partition.hpp>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

namespace letters {

inline weft::op_registry ops() {
  weft::op_registry out;
  out.add(weft::op("FloatInput").output("o: float"));
  out.add(weft::op("RandomInput").output("o: float").stateful());
  out.add(weft::op("Placeholder").output("o: float"));
  out.add(weft::op("Const").output("o: dtype").attr("value: tensor").attr("dtype: type"));
  out.add(weft::op("Combine").input("a: float").input("b: float").output("o: float"));
  out.add(weft::op("Sum").input("a: float").input("b: float").output("o: float").commutative());
  out.add(weft::op("Split").input("a: float").output("o1: float").output("o2: float"));
  out.add(weft::op("Identity").input("input: T").output("output: T").attr("T: type"));
  out.add(weft::op("Print").input("a: float").stateful());
  out.add(weft::op("NoOp"));
  return out;
}

// Devices by letter: A and B are two devices of one task, C and D those of another, E is a third task.
inline std::string device_of(const std::string& name) {
  switch (name[0]) {
    case 'A': return "/job:a/task:0/device:CPU:0";
    case 'B': return "/job:a/task:0/device:CPU:1";
    case 'C': return "/job:a/task:1/device:CPU:0";
    case 'D': return "/job:a/task:1/device:CPU:1";
    default: return "/job:b/task:0/device:CPU:0";
  }
}

inline const weft::cluster_spec cluster{{"a", 2}, {"b", 1}};

struct world {
  weft::graph graph{ops()};
  weft::partition_options options;
  world() { options.devices = {{"CPU", 2}}; }

  const weft::node& add(const char* op, const char* name, std::vector<weft::output> inputs = {}, std::vector<const weft::node*> control = {}) {
    weft::node_spec spec;
    spec.op = op;
    spec.name = name;
    spec.exact_name = true;
    spec.inputs = std::move(inputs);
    spec.control_inputs = std::move(control);
    spec.scoped = false;
    spec.device = device_of(name);
    return graph.add(std::move(spec));
  }
  const weft::node& constant(const char* name, weft::tensor_value value) {
    weft::node_spec spec;
    spec.op = "Const";
    spec.name = name;
    spec.exact_name = true;
    spec.scoped = false;
    spec.device = device_of(name);
    spec.outputs = std::vector<weft::output_type>{{value.dtype(), value.shape(), false}};
    spec.attrs = {{"dtype", value.dtype()}, {"value", std::move(value)}};
    return graph.add(std::move(spec));
  }
  weft::partitioned_graph parts() const { return weft::partition(graph, cluster, options); }
};

inline weft::output out(const weft::node& n, int index = 0) { return {&n, index}; }

inline int count(const weft::partitioned_graph& parts, const char* op) {
  int found = 0;
  for (const weft::part& p : parts.parts())
    for (const weft::node* n : p.graph.nodes()) found += n->op() == op ? 1 : 0;
  return found;
}

// Every receive has exactly one send with the same key, and the other way round.
inline bool all_meet(const weft::partitioned_graph& parts) {
  std::vector<std::string> sent, received;
  for (const weft::part& p : parts.parts())
    for (const weft::node* n : p.graph.nodes()) {
      if (n->op() != "_Send" && n->op() != "_Recv") continue;
      std::string key = std::to_string(n->attr<std::int64_t>("_edge")) + " " + n->attr<std::string>("tensor_name") + " " + n->attr<std::string>("send_device") + " " +
                        n->attr<std::string>("recv_device") + " " + std::to_string(n->attr<std::int64_t>("send_device_incarnation"));
      if (n->device() != n->attr<std::string>(n->op() == "_Send" ? "send_device" : "recv_device")) return false;
      (n->op() == "_Send" ? sent : received).push_back(std::move(key));
    }
  std::sort(sent.begin(), sent.end());
  std::sort(received.begin(), received.end());
  return sent == received && std::adjacent_find(sent.begin(), sent.end()) == sent.end() && sent.size() == parts.transfers().size();
}

}  // namespace letters

#endif
