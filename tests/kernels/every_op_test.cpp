// Every op that has a kernel on random inputs and attributes made from its definition, hostile numbers among them: an answer or an error, never anything else.
#include <weft/kernels/standard.hpp>

#include "run_kernel.hpp"

#include <weft/ops/standard_catalogue.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <set>
#include <string>
#include <vector>

using weft::attr_map;
using weft::dtype;
using weft::shape;
using weft::tensor_value;
using weft_test::kernel_bench;

namespace {

constexpr std::int64_t hostile[] = {2147483647, -2147483648, std::int64_t{1} << 40, std::int64_t{1} << 62, INT64_MAX, INT64_MIN, INT64_MIN + 1, -1000, 1000000, 0};
constexpr double strange[] = {std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity(), -std::numeric_limits<double>::infinity(), -0.0, 1e300, 1e-300, -1e30, 0.0};
constexpr dtype types[] = {dtype::float32, dtype::float64, dtype::half, dtype::bfloat16, dtype::int8, dtype::int16, dtype::int32, dtype::int64, dtype::uint8, dtype::uint16, dtype::boolean, dtype::string, dtype::complex64};

/// Random inputs and attributes for an op.
class generator {
 public:
  generator(const weft::op_def& op, unsigned seed) : op_(op), engine_(seed) {
    base_ = random_shape();
    common_ = types[below(13)];
    for (const weft::attr_def& a : op.attrs)
      if ((a.name == "T" || a.name == "dtype") && !a.allowed_types.empty() && !rarely()) common_ = one_of(a.allowed_types);
  }
  attr_map attributes() {
    attr_map out;
    for (const weft::attr_def& a : op_.attrs) {
      if (a.default_value && below(3) != 0) continue;
      set(out, a);
    }
    return out;
  }
  std::vector<tensor_value> inputs(const attr_map& attrs, kernel_bench& bench) {
    std::vector<tensor_value> out;
    for (const weft::arg_def& arg : op_.inputs) {
      if (!arg.type_list_attr.empty()) {
        if (const auto* list = find<std::vector<dtype>>(attrs, arg.type_list_attr))
          for (const dtype t : *list) out.push_back(value(t, bench));
        continue;
      }
      const dtype* named = arg.type_attr.empty() ? nullptr : find<dtype>(attrs, arg.type_attr);
      const std::int64_t* number = arg.number_attr.empty() ? nullptr : find<std::int64_t>(attrs, arg.number_attr);
      for (std::int64_t i = 0; i < (number != nullptr ? *number : 1); ++i) out.push_back(value(named != nullptr ? *named : arg.type != dtype::invalid ? arg.type : common_, bench));
    }
    return out;
  }

 private:
  int below(int n) { return static_cast<int>(engine_() % static_cast<unsigned>(n)); }
  template <class T> T one_of(const std::vector<T>& list) { return list[static_cast<std::size_t>(below(static_cast<int>(list.size())))]; }
  bool rarely() { return below(14) == 0; }
  std::int64_t number(int low, int high) { return rarely() && rarely() ? hostile[below(10)] : low + below(high - low + 1); }
  shape random_shape() {
    std::vector<std::int64_t> sizes;
    for (int i = below(5); i > 0; --i) sizes.push_back(rarely() ? 0 : 1 + below(4));
    return shape(sizes);
  }
  template <class T> static const T* find(const attr_map& attrs, const std::string& name) {
    const weft::attr_value* found = attrs.get(name);
    return found == nullptr ? nullptr : found->get<T>();
  }
  bool counts(const std::string& attr) const {
    for (const weft::arg_def& arg : op_.inputs)
      if (arg.number_attr == attr) return true;
    return false;
  }
  void set(attr_map& out, const weft::attr_def& a) {
    if (a.kind == "type") {
      const bool may = a.allowed_types.empty() || std::find(a.allowed_types.begin(), a.allowed_types.end(), common_) != a.allowed_types.end() || rarely();
      out[a.name] = may ? common_ : one_of(a.allowed_types);
    } else if (a.kind == "int") {
      out[a.name] = counts(a.name) ? std::int64_t{1} + below(3) : number(-1, 4);
    } else if (a.kind == "bool") {
      out[a.name] = below(2) != 0;
    } else if (a.kind == "float") {
      out[a.name] = rarely() ? static_cast<float>(strange[below(4)]) : 0.25f * static_cast<float>(below(8));
    } else if (a.kind == "string") {
      out[a.name] = a.allowed_strings.empty() ? std::string("text") : one_of(a.allowed_strings);
    } else if (a.kind == "shape") {
      out[a.name] = weft::partial_shape(base_);
    } else if (a.kind == "list(type)") {
      out[a.name] = std::vector<dtype>(static_cast<std::size_t>(1 + below(3)), common_);
    } else if (a.kind == "list(int)") {
      std::vector<std::int64_t> list{1, number(1, 2), number(1, 2), 1};
      if (rarely()) list.resize(static_cast<std::size_t>(below(5)));
      out[a.name] = list;
    }
  }
  tensor_value value(dtype type, kernel_bench& bench) {
    const shape s = below(3) == 0 ? random_shape() : below(4) == 0 ? shape{} : base_;
    if (type == dtype::resource) return variable(bench);
    if (type == dtype::string) return tensor_value(type, s);
    tensor_value out(type, s);
    const auto count = static_cast<std::size_t>(out.elements());
    for (std::size_t i = 0; i < count; ++i) {
      const std::int64_t n = number(-2, 4);
      const double x = rarely() ? strange[below(8)] : 0.5 * static_cast<double>(below(9)) - 2;
      switch (type) {
        case dtype::float32: out.mutable_data<float>()[i] = static_cast<float>(x); break;
        case dtype::float64: out.mutable_data<double>()[i] = x; break;
        case dtype::boolean: out.mutable_data<bool>()[i] = (n & 1) != 0; break;
        case dtype::int64: out.mutable_data<std::int64_t>()[i] = n; break;
        case dtype::int32: out.mutable_data<std::int32_t>()[i] = static_cast<std::int32_t>(n); break;
        default: {
          const std::uint64_t bits = engine_();
          std::memcpy(out.mutable_raw_data() + i * weft::size_of(type), &bits, weft::size_of(type) < 8 ? weft::size_of(type) : 8);
        }
      }
    }
    return out;
  }
  // The handle of a variable that mostly has a value.
  tensor_value variable(kernel_bench& bench) {
    const dtype type = rarely() ? dtype::float32 : common_;
    const std::string name = "v" + std::to_string(static_cast<int>(type)) + std::to_string(below(4));
    const tensor_value handle = bench("VarHandleOp", {}, {{"dtype", type}, {"shape", weft::partial_shape()}, {"shared_name", name}});
    if (!rarely() && type != dtype::string) bench.error("AssignVariableOp", {handle, value(type, bench)}, {{"dtype", type}});
    return handle;
  }

  const weft::op_def& op_;
  std::mt19937_64 engine_;
  shape base_;
  dtype common_ = dtype::float32;
};

// Ops that wait for others, or write where a test has nothing to write to; their own tests have hostile inputs.
bool left_out(const std::string& op) {
  for (const char* part : {"Queue", "Accumulator", "StepBarrier", "_Send", "_Recv", "_Arg", "_Retval", "Print", "_Fused"})
    if (op.find(part) != std::string::npos) return true;
  return false;
}

}  // namespace

TEST_CASE("every op with a kernel: random inputs and attributes give an answer or an error") {
  std::set<std::string> answered, tried;
  for (const auto& op : weft::standard_ops().all()) {
    if (weft::standard_catalogue().kernels_of(op->name).empty() || left_out(op->name)) continue;
    kernel_bench bench;
    tried.insert(op->name);
    for (unsigned seed = 0; seed < 30; ++seed) {
      generator random(*op, seed * 7919U + static_cast<unsigned>(tried.size()));
      const std::string name = op->name;
      CAPTURE(name);
      CAPTURE(seed);
      try {
        const attr_map attrs = random.attributes();
        const std::vector<tensor_value> values = random.inputs(attrs, bench);
        std::vector<dtype> of_inputs;
        for (const tensor_value& v : values) of_inputs.push_back(v.dtype());
        const weft::node& n = bench.add(op->name, of_inputs, attrs);
        const auto outputs = bench.run(n, values);
        answered.insert(op->name);
        // What these two say of their shape is the word of whoever made the node.
        if (op->name == "PlaceholderWithDefault" || op->name == "AccumulateNV2") continue;
        for (std::size_t i = 0; i < outputs.size(); ++i) CHECK(n.output_shape(static_cast<int>(i)).accepts(outputs[i].shape()));
      } catch (const weft::error& e) {
        CHECK(!e.message().empty());
        const bool as_tensorflow = e.code() == weft::error_code::internal && e.message().find("integer division by zero") != std::string::npos;
        CHECK_MESSAGE((as_tensorflow || (e.code() != weft::error_code::internal && e.code() != weft::error_code::unknown)), std::string(e.what()));
      }
    }
  }
  CHECK(answered.size() > tried.size() / 2);
}
