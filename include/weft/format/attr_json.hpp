#ifndef WEFT_FORMAT_ATTR_JSON_HPP
#define WEFT_FORMAT_ATTR_JSON_HPP
// AttrValue, OpDef and NodeDef read from protobuf-JSON.

#include <weft/format/tensor_proto.hpp>
#include <weft/graph/attr.hpp>
#include <weft/graph/op_def.hpp>

namespace weft::detail {

// An attribute's value. An empty list does not say of what: `kind` (`list(int)`) does where it is known; otherwise it counts as one of strings.
attr_value attr_at(const json_at& at, std::string_view kind, std::uint64_t& room);
// The attributes in the member `attr` of a node or function; the definition, where there is one, says what empty lists are.
attr_map attrs_at(const json_at& at, const op_def* def, std::uint64_t& room);
// A definition; dtypes that weft has not are left out of what it allows.
op_def op_def_at(const json_at& at);

}  // namespace weft::detail

#if WEFT_HAS_FORMAT_BODIES
namespace weft::detail {

inline const json_value* first_field(const json_at& at, std::string_view& name, std::initializer_list<std::string_view> fields) {
  expect_fields(at, fields);
  const json_value* found = nullptr;
  for (const std::string_view field : fields)
    if (const json_value* v = find_field(at, field)) {
      if (found != nullptr) bad_json(at, "an attribute has one value, found '" + std::string(name) + "' and '" + std::string(field) + "'");
      found = v;
      name = field;
    }
  return found;
}

inline func_attr func_at(const json_at& at, std::uint64_t& room) {
  expect_fields(at, {"name", "attr"});
  func_attr out;
  if (const json_value* name = find_field(at, "name")) out.name = string_at(json_at(*name, at, "name"));
  out.attrs = attrs_at(at, nullptr, room);
  return out;
}

template <class T, class Read> attr_value list_of(const json_at& list, Read read) {
  std::vector<T> out;
  const auto& items = elements_at(list);
  out.reserve(items.size());
  for (std::size_t i = 0; i < items.size(); ++i) out.push_back(read(json_at(items[i], list, i)));
  return out;
}

inline attr_value empty_list(std::string_view kind) {
  if (kind == "list(int)") return std::vector<std::int64_t>();
  if (kind == "list(float)") return std::vector<float>();
  if (kind == "list(bool)") return std::vector<bool>();
  if (kind == "list(type)") return std::vector<dtype>();
  if (kind == "list(shape)") return std::vector<partial_shape>();
  if (kind == "list(tensor)") return std::vector<tensor_value>();
  if (kind == "list(func)") return std::vector<func_attr>();
  return std::vector<std::string>();
}

inline attr_value list_at(const json_at& at, std::string_view kind, std::uint64_t& room) {
  std::string_view field;
  const json_value* found = first_field(at, field, {"s", "i", "f", "b", "type", "shape", "tensor", "func"});
  if (found == nullptr || (found->kind == json_kind::array && found->items.empty())) return empty_list(kind);
  const json_at list(*found, at, field);
  if (field == "s") return list_of<std::string>(list, bytes_at);
  if (field == "i") return list_of<std::int64_t>(list, [](const json_at& v) { return integer_at(v); });
  if (field == "f") return list_of<float>(list, float_at);
  if (field == "b") return list_of<bool>(list, bool_at);
  if (field == "type") return list_of<dtype>(list, dtype_at);
  if (field == "shape") return list_of<partial_shape>(list, shape_at);
  if (field == "tensor") return list_of<tensor_value>(list, [&room](const json_at& v) { return tensor_at(v, room); });
  return list_of<func_attr>(list, [&room](const json_at& v) { return func_at(v, room); });
}

WEFT_DECL attr_value attr_at(const json_at& at, std::string_view kind, std::uint64_t& room) {
  std::string_view field;
  const json_value* found = first_field(at, field, {"list", "s", "i", "f", "b", "type", "shape", "tensor", "placeholder", "func"});
  if (found == nullptr) return {};
  const json_at v(*found, at, field);
  if (field == "list") return list_at(v, kind, room);
  if (field == "s") return bytes_at(v);
  if (field == "i") return integer_at(v);
  if (field == "f") return float_at(v);
  if (field == "b") return bool_at(v);
  if (field == "type") return dtype_at(v);
  if (field == "shape") return shape_at(v);
  if (field == "tensor") return tensor_at(v, room);
  if (field == "func") return func_at(v, room);
  return placeholder_attr{string_at(v)};
}

WEFT_DECL attr_map attrs_at(const json_at& at, const op_def* def, std::uint64_t& room) {
  attr_map out;
  const json_value* attrs = find_field(at, "attr");
  if (attrs == nullptr) return out;
  const json_at map(*attrs, at, "attr");
  if (attrs->kind != json_kind::object) bad_json(map, "expected an object");
  for (const json_value& member : attrs->items) {
    const attr_def* declared = def == nullptr ? nullptr : def->find_attr(member.key);
    out.emplace(member.key, attr_at(json_at(member, map, member.key), declared == nullptr ? std::string_view() : std::string_view(declared->kind), room));
  }
  return out;
}

inline std::string text_field(const json_at& at, std::string_view field) {
  const json_value* v = find_field(at, field);
  return v == nullptr ? std::string() : string_at(json_at(*v, at, field));
}
inline bool bool_field(const json_at& at, std::string_view field) {
  const json_value* v = find_field(at, field);
  return v != nullptr && bool_at(json_at(*v, at, field));
}

inline arg_def arg_at(const json_at& at) {
  expect_fields(at, {"name", "description", "type", "type_attr", "number_attr", "type_list_attr", "handle_data", "is_ref", "experimental_full_type"});
  arg_def out;
  out.name = text_field(at, "name");
  if (const json_value* type = find_field(at, "type")) out.type = dtype_at(json_at(*type, at, "type"));
  out.type_attr = text_field(at, "type_attr");
  out.number_attr = text_field(at, "number_attr");
  out.type_list_attr = text_field(at, "type_list_attr");
  out.is_ref = bool_field(at, "is_ref");
  return out;
}

// The values an attribute may have: dtypes or strings.
inline void read_allowed(const json_at& at, attr_def& into, std::uint64_t& room) {
  const json_value* list = find_field(at, "list");
  if (list == nullptr) return;
  const json_at where(*list, at, "list");
  if (const json_value* types = find_field(where, "type")) {
    const json_at all(*types, where, "type");
    for (const json_value& type : elements_at(all)) {
      const json_at one(type, all, static_cast<std::size_t>(&type - types->items.data()));
      try {
        into.allowed_types.push_back(dtype_at(one));
      } catch (const error& e) {
        if (e.code() != error_code::unimplemented) throw;
      }
    }
    return;
  }
  const attr_value strings = list_at(where, "list(string)", room);
  if (const auto* texts = strings.get<std::vector<std::string>>()) into.allowed_strings = *texts;
}

inline attr_def attr_def_at(const json_at& at, std::uint64_t& room) {
  expect_fields(at, {"name", "type", "default_value", "description", "has_minimum", "minimum", "allowed_values"});
  attr_def out;
  out.name = text_field(at, "name");
  out.kind = text_field(at, "type");
  if (const json_value* v = find_field(at, "default_value")) out.default_value = attr_at(json_at(*v, at, "default_value"), out.kind, room);
  if (const json_value* v = find_field(at, "minimum")) out.minimum = integer_at(json_at(*v, at, "minimum"));
  else if (bool_field(at, "has_minimum")) out.minimum = 0;
  if (const json_value* v = find_field(at, "allowed_values")) read_allowed(json_at(*v, at, "allowed_values"), out, room);
  return out;
}

WEFT_DECL op_def op_def_at(const json_at& at) {
  expect_fields(at, {"name", "input_arg", "output_arg", "control_output", "attr", "deprecation", "summary", "description", "is_commutative", "is_aggregate", "is_stateful",
                     "allows_uninitialized_input", "is_distributed_communication"});
  op_def out;
  out.name = text_field(at, "name");
  std::uint64_t room = usual_room;
  const auto each = [&at](const char* field, auto read) {
    const json_value* list = find_field(at, field);
    if (list == nullptr) return;
    const json_at where(*list, at, field);
    const auto& items = elements_at(where);
    for (std::size_t i = 0; i < items.size(); ++i) read(json_at(items[i], where, i));
  };
  each("input_arg", [&out](const json_at& v) { out.inputs.push_back(arg_at(v)); });
  each("output_arg", [&out](const json_at& v) { out.outputs.push_back(arg_at(v)); });
  each("attr", [&](const json_at& v) { out.attrs.push_back(attr_def_at(v, room)); });
  out.stateful = bool_field(at, "is_stateful");
  out.commutative = bool_field(at, "is_commutative");
  return out;
}

}  // namespace weft::detail
#endif

#endif
