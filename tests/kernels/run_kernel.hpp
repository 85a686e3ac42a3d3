#ifndef WEFT_TESTS_KERNELS_RUN_KERNEL_HPP
#define WEFT_TESTS_KERNELS_RUN_KERNEL_HPP
// Runs one kernel of the standard registry on given inputs, without a session: the node stands behind placeholders of unknown shape.

#include <weft/graph/graph.hpp>
#include <weft/kernels/standard.hpp>
#include <weft/ops/standard.hpp>
#include <weft/runtime/kernel.hpp>

#include <atomic>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace weft_test {

/// One task and one session, and kernels that run in it.
class kernel_bench {
 public:
  kernel_bench() {
    environment_.resources = &resources;
    environment_.session_state = &session_state;
    environment_.pool = &pool;
  }

  /// A node of this op behind placeholders for the inputs; its name is `name`, or the op's.
  const weft::node& add(const std::string& op, const std::vector<weft::dtype>& inputs, weft::attr_map attrs = {}, const std::string& name = "") {
    weft::node_spec spec;
    spec.op = op;
    spec.name = name;
    spec.attrs = std::move(attrs);
    for (const weft::dtype type : inputs) {
      weft::node_spec placeholder;
      placeholder.op = "Placeholder";
      placeholder.attrs = {{"dtype", type}};
      spec.inputs.push_back({&graph_.add(std::move(placeholder)), 0});
    }
    return graph_.add(std::move(spec));
  }

  /// The outputs of a node's kernel. The inputs are given up to it, so that it may write them.
  std::vector<weft::tensor_value> run(const weft::node& n, std::vector<weft::tensor_value> inputs) {
    const auto kernel = weft::standard_kernels().make({n, "/job:localhost/task:0/device:CPU:0"}, "CPU");
    std::vector<weft::tensor_value> outputs(static_cast<std::size_t>(n.output_count()));
    weft::kernel_context context(n, environment_, inputs.data(), inputs.size(), outputs.data());
    expensive.store(kernel->expensive(context));
    kernel->compute(context);
    return outputs;
  }

  /// The first output of an op on these inputs.
  weft::tensor_value operator()(const std::string& op, std::vector<weft::tensor_value> inputs, weft::attr_map attrs = {}, const std::string& name = "") {
    std::vector<weft::dtype> types;
    for (const auto& v : inputs) types.push_back(v.dtype());
    auto outputs = run(add(op, types, std::move(attrs), name), std::move(inputs));
    return outputs.empty() ? weft::tensor_value() : outputs[0];
  }

  /// Code and message of the error that an op on these inputs throws; "" when it does not.
  std::string error(const std::string& op, std::vector<weft::tensor_value> inputs, weft::attr_map attrs = {}, const std::string& name = "") {
    try {
      (*this)(op, std::move(inputs), std::move(attrs), name);
    } catch (const weft::error& e) {
      return std::string(weft::to_text(e.code())) + ": " + e.message();
    }
    return "";
  }

  weft::resource_manager resources, session_state;
  weft::thread_pool pool{2};
  /// Whether the kernel that ran last called its work expensive.
  std::atomic<bool> expensive{false};

 private:
  // Ops whose kernels came before their builders.
  static weft::op_registry known_ops() {
    weft::op_registry ops = weft::standard_ops();
    for (weft::op_def def : {weft::op_def(weft::op("ExpandDims").input("input: T").input("dim: Tdim").output("output: T").attr("T: type").attr("Tdim: {int32, int64} = int32")),
                             weft::op_def(weft::op("Squeeze").input("input: T").output("output: T").attr("T: type").attr("squeeze_dims: list(int) = []")),
                             weft::op_def(weft::op("ConcatV2").input("values: N * T").input("axis: Tidx").output("output: T").attr("N: int >= 2").attr("T: type").attr("Tidx: {int32, int64} = int32")),
                             weft::op_def(weft::op("Pack").input("values: N * T").output("output: T").attr("N: int >= 1").attr("T: type").attr("axis: int = 0"))})
      if (ops.find(def.name) == nullptr) ops.add(std::move(def));
    return ops;
  }
  weft::graph graph_{known_ops()};
  weft::step_environment environment_;
};

/// A value of shape `s` from its elements in C order.
template <class T> weft::tensor_value make(weft::shape s, std::initializer_list<T> elements) { return weft::tensor_value::from<T>(std::move(s), std::vector<T>(elements)); }
/// The elements of a value as a vector.
template <class T> std::vector<T> elements(const weft::tensor_value& v) { return std::vector<T>(v.data<T>(), v.data<T>() + v.elements()); }

/// Calls `check` with a zero of each dtype of numbers.
template <class Check> void for_each_number_dtype(Check check) {
  check(0.f);
  check(0.0);
  check(weft::half());
  check(weft::bfloat16());
  check(std::int8_t{});
  check(std::int16_t{});
  check(std::int32_t{});
  check(std::int64_t{});
  check(std::uint8_t{});
  check(std::uint16_t{});
  check(std::uint32_t{});
  check(std::uint64_t{});
}

}  // namespace weft_test

#endif
