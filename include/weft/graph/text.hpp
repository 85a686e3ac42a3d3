#ifndef WEFT_GRAPH_TEXT_HPP
#define WEFT_GRAPH_TEXT_HPP
// A graph as lines for people, logs and tests: stable, without call sites.

#include <weft/core/config.hpp>
#include <weft/graph/graph.hpp>

#include <algorithm>
#include <ostream>
#include <string>
#include <vector>

namespace weft {

namespace detail {

template <class T> std::string element_text(const T& v) {
  if constexpr (std::is_same_v<T, std::string>) return attr_quoted(v);
  else if constexpr (std::is_same_v<T, bool>) return v ? "true" : "false";
  else if constexpr (std::is_same_v<T, resource_handle>) return "'" + v.name + "'";
  else if constexpr (std::is_integral_v<T>) return std::to_string(v);
  else if constexpr (std::is_same_v<T, double>) {
    char text[32];
    for (int digits = 6; digits <= 17; ++digits) {
      std::snprintf(text, sizeof text, "%.*g", digits, v);
      if (std::strtod(text, nullptr) == v) break;
    }
    return text;
  } else return number_text(static_cast<float>(v));
}

template <class T> std::string elements_text(const tensor_value& v) {
  const auto n = static_cast<std::size_t>(v.elements());
  const T* data = v.data<T>();
  std::string out;
  for (std::size_t i = 0; i < n; ++i) out += (i ? ", " : "") + element_text(data[i]);
  return v.shape().rank() == 0 ? out : "[" + out + "]";
}

}  // namespace detail

/// One line: name, op, inputs (`^x` for a control input), dtypes and shapes of the outputs, device, attributes, two spaces between:
/// `y = Mul(x, c)  float[100]  /job:work/task:1`. Parts with nothing to say are left out.
std::string to_text(const node& n);

/// One line per node, in the order of creation.
std::string to_text(const graph& g);

inline std::ostream& operator<<(std::ostream& out, const node& n) { return out << to_text(n); }
inline std::ostream& operator<<(std::ostream& out, const graph& g) { return out << to_text(g); }

}  // namespace weft

#if WEFT_HAS_BODIES
namespace weft::detail {

// Attributes that inputs and outputs show already: dtypes and counts of arguments.
WEFT_DECL bool is_implied_attr(const node& n, const std::string& name) {
  if (n.def() == nullptr) return false;
  for (const auto* args : {&n.def()->inputs, &n.def()->outputs})
    for (const arg_def& arg : *args)
      if (arg.type_attr == name || arg.number_attr == name || arg.type_list_attr == name) return true;
  return false;
}

WEFT_DECL bool is_default_attr(const node& n, const std::string& name, const attr_value& value) {
  const attr_def* def = n.def() == nullptr ? nullptr : n.def()->find_attr(name);
  return def != nullptr && def->default_value && *def->default_value == value;
}

// The elements of a value with at most four of them; dtype and shape of a larger one.
WEFT_DECL std::string value_text(const tensor_value& v) {
  if (v.empty() || v.elements() > 4 || v.shape().rank() > 1 || (v.buffer() && !v.buffer()->host())) return text_of(v);
  switch (v.dtype()) {
    case dtype::float32: return elements_text<float>(v);
    case dtype::float64: return elements_text<double>(v);
    case dtype::half: return elements_text<half>(v);
    case dtype::bfloat16: return elements_text<bfloat16>(v);
    case dtype::int8: return elements_text<std::int8_t>(v);
    case dtype::int16: return elements_text<std::int16_t>(v);
    case dtype::int32: return elements_text<std::int32_t>(v);
    case dtype::int64: return elements_text<std::int64_t>(v);
    case dtype::uint8: return elements_text<std::uint8_t>(v);
    case dtype::uint16: return elements_text<std::uint16_t>(v);
    case dtype::uint32: return elements_text<std::uint32_t>(v);
    case dtype::uint64: return elements_text<std::uint64_t>(v);
    case dtype::boolean: return elements_text<bool>(v);
    case dtype::string: return elements_text<std::string>(v);
    default: return text_of(v);
  }
}

// `name=value, ...` of the attributes that say more than the rest of the line.
WEFT_DECL std::string attrs_text(const node& n) {
  if (n.op() == "_Send" || n.op() == "_Recv") {
    const auto* edge = n.find_attr<std::string>("tensor_name");
    const auto* other = n.find_attr<std::string>(n.op() == "_Send" ? "recv_device" : "send_device");
    if (edge != nullptr && other != nullptr) return *edge + (n.op() == "_Send" ? " to " : " from ") + *other;
  }
  std::string out;
  for (const auto& [name, value] : n.attrs()) {
    if ((name[0] == '_' && name != "_class") || is_implied_attr(n, name) || is_default_attr(n, name, value)) continue;
    const tensor_value* tensor = value.get<tensor_value>();
    out += (out.empty() ? "" : ", ") + name + "=" + (tensor == nullptr ? to_text(value) : value_text(*tensor));
  }
  return out;
}

WEFT_DECL std::string outputs_text(const node& n) {
  std::string out;
  for (const output_type& type : n.outputs()) {
    out += (out.empty() ? "" : ", ") + std::string(type.is_ref ? "ref " : "") + to_text(type.dtype);
    if (type.dtype != dtype::resource) out += type.shape.text();
  }
  return out;
}

}  // namespace weft::detail

namespace weft {

WEFT_DECL std::string to_text(const node& n) {
  std::string inputs;
  for (const output& in : n.inputs()) inputs += (inputs.empty() ? "" : ", ") + to_text(in);
  for (const node* before : n.control_inputs()) inputs += (inputs.empty() ? "^" : ", ^") + before->name();
  std::string out = n.name() + " = " + n.op() + "(" + inputs + ")";
  for (const std::string& part : {detail::outputs_text(n), n.device()})
    if (!part.empty()) out += "  " + part;
  if (const std::string attrs = detail::attrs_text(n); !attrs.empty()) out += "  {" + attrs + "}";
  return out;
}

WEFT_DECL std::string to_text(const graph& g) {
  std::string out;
  for (const node* n : g.nodes()) out += to_text(*n) + "\n";
  return out;
}

}  // namespace weft
#endif

#endif
