#ifndef WEFT_OPS_OP_INPUT_HPP
#define WEFT_OPS_OP_INPUT_HPP
// How builders add a node some of whose inputs are constants of its own: these are named below it, `concat/axis`, as TensorFlow names them.

#include <weft/core/config.hpp>
#include <weft/graph/tensor.hpp>

#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

namespace weft::detail {

/// A list of integers as an op takes it: braces, or a std::vector of any integers.
struct int_list {
  std::vector<std::int64_t> values;
  int_list(std::initializer_list<std::int64_t> list) : values(list) {}
  template <class I> int_list(const std::vector<I>& list) : values(list.begin(), list.end()) {}
};

/// An input: a tensor, or a value that becomes a constant named `below` the op.
struct op_input {
  op_input(output o) : from(o) {}
  op_input(const char* name, tensor_value v) : value(std::move(v)), below(name) {}
  /// Integers of rank 0, 1 or 2 (rows of two): int32 where they fit, else int64.
  op_input(const char* name, std::int64_t number) : value(integers_value({number}, shape())), below(name) {}
  op_input(const char* name, const int_list& list) : value(integers_value(list.values, shape{static_cast<std::int64_t>(list.values.size())})), below(name) {}
  static tensor_value integers_value(const std::vector<std::int64_t>& values, shape s);
  output from;
  tensor_value value;
  const char* below = nullptr;
};

/// A node of this op; without a name of its own it is called `otherwise`.
const node& add_op(const char* op, const char* otherwise, const std::vector<op_input>& inputs, const op_name& name, attr_map attrs = {});

/// Outputs `first` to `first + count` of a node as tensors.
template <class T, int N> std::vector<tensor<T, N>> outputs_of(const node& n, int first, int count) {
  std::vector<tensor<T, N>> out;
  for (int i = first; i < first + count; ++i) out.push_back(tensor<T, N>(output{&n, i}));
  return out;
}
/// The tensors of a list as inputs.
template <class T, int N> std::vector<op_input> inputs_of(const std::vector<tensor<T, N>>& list, call_site where) {
  std::vector<op_input> out;
  for (const auto& t : list) out.push_back(t.as_input(where));
  return out;
}

/// Fails at the user's line: `op: message`.
[[noreturn]] inline void fail_builder(const char* op, const std::string& message, const op_name& name) { throw error(error_code::invalid_argument, std::string(op) + ": " + message, name.site); }

#if WEFT_HAS_BODIES
WEFT_DECL tensor_value op_input::integers_value(const std::vector<std::int64_t>& values, shape s) {
  bool narrow = true;
  for (const std::int64_t v : values) narrow = narrow && v == static_cast<std::int32_t>(v);
  tensor_value out(narrow ? dtype::int32 : dtype::int64, std::move(s));
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (narrow) out.mutable_data<std::int32_t>()[i] = static_cast<std::int32_t>(values[i]);
    else out.mutable_data<std::int64_t>()[i] = values[i];
  }
  return out;
}

WEFT_DECL const node& add_op(const char* op, const char* otherwise, const std::vector<op_input>& inputs, const op_name& name, attr_map attrs) {
  const node* first = nullptr;
  bool plain = true;
  for (const op_input& in : inputs) {
    if (in.below != nullptr) plain = false;
    else if (in.from.from == nullptr) fail_builder(op, "an operand is an empty tensor, not made by any op", name);
    else if (first == nullptr) first = in.from.from;
  }
  std::vector<output> all;
  if (plain) {
    for (const op_input& in : inputs) all.push_back(in.from);
    return add_node(op, std::move(all), name.text.empty() ? op_name(otherwise, name.site) : name, std::move(attrs));
  }
  graph_state& to = first != nullptr ? first->owner() : *current_graph();
  const std::string full = claim_name(to, name, otherwise);
  for (const op_input& in : inputs) all.push_back(in.below == nullptr ? in.from : add_const_at(in.value, full + "/" + in.below, name.site, to));
  return *add_node_at(op, std::move(all), full, name.site, std::move(attrs)).from;
}
#endif

}  // namespace weft::detail

#endif
