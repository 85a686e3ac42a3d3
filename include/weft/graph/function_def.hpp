#ifndef WEFT_GRAPH_FUNCTION_DEF_HPP
#define WEFT_GRAPH_FUNCTION_DEF_HPP
// A function of a graph's library: TensorFlow's FunctionDef as a C++ value. Graphs carry them from file to file; they cannot run yet.

#include <weft/graph/attr.hpp>
#include <weft/graph/op_def.hpp>

#include <map>
#include <string>
#include <vector>

namespace weft {

/// A node in the body of a function. Inputs are texts: `x` for an argument, `sum:z:0` for an output, `^sum` for a control input.
struct function_node {
  std::string name, op, device;
  std::vector<std::string> inputs;
  attr_map attrs;
};

/// A function: a graph with arguments and results, used as an op or named by an attribute of kind func.
struct function_def {
  /// Its name, arguments, results and attributes, as those of an op.
  op_def signature;
  std::vector<function_node> nodes;
  /// For each result the output in the body that it is; for each control output the node.
  std::map<std::string, std::string> results, control_results;
  /// The control outputs in the order of the signature.
  std::vector<std::string> control_outputs;
  attr_map attrs;
  /// Attributes of arguments, by their number.
  std::map<std::int64_t, attr_map> argument_attrs;
  /// The function that computes its gradient; empty when there is none of its own.
  std::string gradient;
};

}  // namespace weft

#endif
