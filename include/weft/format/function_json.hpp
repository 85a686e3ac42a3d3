#ifndef WEFT_FORMAT_FUNCTION_JSON_HPP
#define WEFT_FORMAT_FUNCTION_JSON_HPP
// FunctionDefLibrary read from protobuf-JSON.

#include <weft/format/attr_json.hpp>
#include <weft/graph/function_def.hpp>
#include <weft/graph/op_registry.hpp>

#include <memory>

#if WEFT_HAS_FORMAT_BODIES
namespace weft::detail {

// The strings of a map from strings.
inline std::map<std::string, std::string> names_at(const json_at& at, const char* field) {
  std::map<std::string, std::string> out;
  const json_value* map = find_field(at, field);
  if (map == nullptr) return out;
  const json_at where(*map, at, field);
  expect_kind(where, json_kind::object);
  for (const json_value& member : map->items) out.emplace(member.key, string_at(json_at(member, where, member.key)));
  return out;
}

inline std::vector<std::string> strings_at(const json_at& at, const char* field) {
  std::vector<std::string> out;
  const json_value* list = find_field(at, field);
  if (list == nullptr) return out;
  const json_at where(*list, at, field);
  for (std::size_t i = 0; i < elements_at(where).size(); ++i) out.push_back(string_at(json_at(list->items[i], where, i)));
  return out;
}

inline function_node function_node_at(const json_at& at, const op_registry& ops, std::uint64_t& room) {
  expect_fields(at, {"name", "op", "input", "device", "attr", "experimental_debug_info", "experimental_type"});
  function_node out;
  out.name = text_field(at, "name");
  out.op = text_field(at, "op");
  out.device = text_field(at, "device");
  out.inputs = strings_at(at, "input");
  out.attrs = attrs_at(at, ops.find(out.op).get(), room);
  return out;
}

inline function_def function_at(const json_at& at, const op_registry& ops, std::uint64_t& room) {
  expect_fields(at, {"signature", "attr", "arg_attr", "resource_arg_unique_id", "node_def", "ret", "control_ret"});
  function_def out;
  const json_value* signature = find_field(at, "signature");
  if (signature == nullptr) bad_json(at, "the function has no signature");
  const json_at signature_at(*signature, at, "signature");
  out.signature = op_def_at(signature_at);
  if (out.signature.name.empty()) bad_json(signature_at, "the function has no name");
  out.control_outputs = strings_at(signature_at, "control_output");
  out.attrs = attrs_at(at, nullptr, room);
  out.results = names_at(at, "ret");
  out.control_results = names_at(at, "control_ret");
  if (const json_value* map = find_field(at, "arg_attr")) {
    const json_at where(*map, at, "arg_attr");
    expect_kind(where, json_kind::object);
    for (const json_value& member : map->items) {
      const json_at one(member, where, member.key);
      json_value number;
      number.kind = json_kind::string;
      number.text = member.key;
      expect_fields(one, {"attr"});
      out.argument_attrs.emplace(integer_at(json_at(number, where, member.key), 0, UINT32_MAX), attrs_at(one, nullptr, room));
    }
  }
  if (const json_value* nodes = find_field(at, "node_def")) {
    const json_at where(*nodes, at, "node_def");
    for (std::size_t i = 0; i < elements_at(where).size(); ++i) out.nodes.push_back(function_node_at(json_at(nodes->items[i], where, i), ops, room));
  }
  return out;
}

// The functions of a library; their signatures join the ops.
inline std::vector<std::shared_ptr<const function_def>> functions_at(const json_at& at, op_registry& ops, std::uint64_t& room) {
  expect_fields(at, {"function", "gradient", "registered_gradients"});
  std::vector<function_def> read;
  if (const json_value* list = find_field(at, "function")) {
    const json_at where(*list, at, "function");
    for (std::size_t i = 0; i < elements_at(where).size(); ++i) {
      const json_at one(list->items[i], where, i);
      read.push_back(function_at(one, ops, room));
      if (ops.find(read.back().signature.name) != nullptr) bad_json(one, "there is already an op or function '" + read.back().signature.name.substr(0, 200) + "'", error_code::already_exists);
      ops.add(read.back().signature);
    }
  }
  if (const json_value* list = find_field(at, "gradient")) {
    const json_at where(*list, at, "gradient");
    for (std::size_t i = 0; i < elements_at(where).size(); ++i) {
      const json_at one(list->items[i], where, i);
      expect_fields(one, {"function_name", "gradient_func"});
      const std::string name = text_field(one, "function_name");
      const auto of = std::find_if(read.begin(), read.end(), [&name](const function_def& f) { return f.signature.name == name; });
      if (of == read.end()) bad_json(one, "there is no function '" + name.substr(0, 200) + "'");
      of->gradient = text_field(one, "gradient_func");
    }
  }
  std::vector<std::shared_ptr<const function_def>> out;
  for (function_def& f : read) out.push_back(std::make_shared<function_def>(std::move(f)));
  return out;
}

}  // namespace weft::detail
#endif

#endif
