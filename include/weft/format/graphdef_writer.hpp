#ifndef WEFT_FORMAT_GRAPHDEF_WRITER_HPP
#define WEFT_FORMAT_GRAPHDEF_WRITER_HPP
// A graph as protobuf-JSON of GraphDef.

#include <weft/core/config.hpp>
#include <weft/graph/graph.hpp>

#include <string>

namespace weft {

/// How a graph is written.
struct export_options {
  /// `tensor_shape` as in the .proto files instead of `tensorShape`; readers take both.
  bool proto_field_names = false;
  /// Leave out attributes that have their default, among which those that an older TensorFlow does not know; readers fill them in.
  bool strip_defaults = true;
  /// Spaces per level; 0 puts everything on one line.
  int indent = 2;
};

/// GraphDef in JSON: nodes in the order of creation, attributes by name. Equal graphs give equal bytes, and reading the text gives an equal graph.
std::string to_graphdef_json(const graph& g, const export_options& options = {});
/// The same into a file, which is replaced as a whole. Throws UNAVAILABLE when it cannot be written.
void write_graphdef_json(const graph& g, const std::string& path, const export_options& options = {});
/// One attribute's value on one line, as AttrValue.
std::string to_attr_json(const attr_value& value);

}  // namespace weft

#include <weft/format/json_writer.hpp>
#include <weft/format/tensor_proto.hpp>

#if WEFT_HAS_FORMAT_BODIES
#include <cerrno>
#include <cstdio>
#include <cstring>

namespace weft::detail {

/// Writes attributes and what is in them.
class attr_writer {
 public:
  explicit attr_writer(json_writer& out) : out_(out) {}

  // {"i":"3"}
  void attr(const attr_value& v) {
    out_.begin('{');
    if (!v.empty()) v.visit([this](const auto& x) { member(x); });
    out_.end('}');
  }
  void attrs(const attr_map& all, const op_def* def, bool strip) {
    bool any = false;
    for (const auto& [name, value] : all) {
      const attr_def* declared = def == nullptr || !strip ? nullptr : def->find_attr(name);
      if (declared != nullptr && declared->default_value && *declared->default_value == value) continue;
      if (!any) out_.field("attr").begin('{');
      any = true;
      out_.key(name);
      attr(value);
    }
    if (any) out_.end('}');
  }

 private:
  static const char* name_of(const std::string&) { return "s"; }
  static const char* name_of(std::int64_t) { return "i"; }
  static const char* name_of(float) { return "f"; }
  static const char* name_of(bool) { return "b"; }
  static const char* name_of(dtype) { return "type"; }
  static const char* name_of(const partial_shape&) { return "shape"; }
  static const char* name_of(const tensor_value&) { return "tensor"; }
  static const char* name_of(const func_attr&) { return "func"; }
  static const char* name_of(const placeholder_attr&) { return "placeholder"; }
  template <class T> void member(const T& v) {
    out_.field(name_of(v));
    value(v);
  }
  template <class T> void member(const std::vector<T>& list) {
    out_.field("list").begin('{');
    if (!list.empty()) {
      out_.field(name_of(T())).begin('[');
      for (std::size_t i = 0; i < list.size(); ++i) value(static_cast<const T&>(list[i]));
      out_.end(']');
    }
    out_.end('}');
  }

  void value(const std::string& v) { out_.bytes(v); }
  void value(std::int64_t v) { out_.integer(v); }
  void value(float v) { out_.real(v); }
  void value(bool v) { out_.boolean(v); }
  void value(dtype v) { out_.string(proto_name(v)); }
  void value(const placeholder_attr& v) { out_.string(v.name); }
  void value(const partial_shape& v);
  void value(const tensor_value& v);
  void value(const func_attr& v) {
    out_.begin('{').field("name").string(v.name);
    attrs(v.attrs, nullptr, false);
    out_.end('}');
  }
  void sizes(const std::int64_t* begin, std::size_t rank);
  void repeated(const tensor_value& v);
  void handles(const tensor_value& v);
  void text_member(const char* name, const std::string& text) {
    if (!text.empty()) out_.field(name).string(text);
  }

  json_writer& out_;
};

inline void attr_writer::sizes(const std::int64_t* begin, std::size_t rank) {
  if (rank == 0) return;
  out_.field("dim").begin('[');
  for (std::size_t i = 0; i < rank; ++i) {
    out_.begin('{');
    if (begin[i] != 0) out_.field("size").integer(begin[i]);
    out_.end('}');
  }
  out_.end(']');
}

inline void attr_writer::value(const partial_shape& v) {
  out_.begin('{');
  if (v.known_rank()) sizes(v.sizes().data(), v.sizes().size());
  else out_.field("unknown_rank").boolean(true);
  out_.end('}');
}

template <class T> T first_of(const tensor_value& v) {
  T out;
  std::memcpy(&out, v.raw_data(), sizeof out);
  return out;
}

// Whether every element has the bits of the first, which are not those of a NaN (its text would not keep them).
inline bool repeats_first(const tensor_value& v) {
  const std::size_t size = size_of(v.dtype());
  if (v.dtype() == dtype::complex64 || v.dtype() == dtype::complex128) return false;
  if (v.dtype() == dtype::float32 && std::isnan(first_of<float>(v))) return false;
  if (v.dtype() == dtype::float64 && std::isnan(first_of<double>(v))) return false;
  return v.bytes() == size || std::memcmp(v.raw_data(), v.raw_data() + size, v.bytes() - size) == 0;
}

// One value, which readers repeat.
inline void attr_writer::repeated(const tensor_value& v) {
  switch (v.dtype()) {
    case dtype::float32: return void(out_.field("float_val").begin('[').real(first_of<float>(v)).end(']'));
    case dtype::float64: return void(out_.field("double_val").begin('[').real(first_of<double>(v)).end(']'));
    case dtype::boolean: return void(out_.field("bool_val").begin('[').boolean(*v.data<bool>()).end(']'));
    case dtype::int64: return void(out_.field("int64_val").begin('[').integer(*v.data<std::int64_t>()).end(']'));
    case dtype::uint64: return void(out_.field("uint64_val").begin('[').natural(*v.data<std::uint64_t>()).end(']'));
    case dtype::uint32: return void(out_.field("uint32_val").begin('[').small(*v.data<std::uint32_t>()).end(']'));
    case dtype::int32: return void(out_.field("int_val").begin('[').small(*v.data<std::int32_t>()).end(']'));
    case dtype::int16: return void(out_.field("int_val").begin('[').small(*v.data<std::int16_t>()).end(']'));
    case dtype::int8: return void(out_.field("int_val").begin('[').small(*v.data<std::int8_t>()).end(']'));
    case dtype::uint16: return void(out_.field("int_val").begin('[').small(*v.data<std::uint16_t>()).end(']'));
    case dtype::uint8: return void(out_.field("int_val").begin('[').small(*v.data<std::uint8_t>()).end(']'));
    default: return void(out_.field("half_val").begin('[').small(first_of<std::uint16_t>(v)).end(']'));
  }
}

inline void attr_writer::handles(const tensor_value& v) {
  out_.field("resource_handle_val").begin('[');
  for (std::size_t i = 0; i < static_cast<std::size_t>(v.elements()); ++i) {
    const resource_handle& handle = v.data<resource_handle>()[i];
    out_.begin('{');
    text_member("device", handle.device);
    text_member("container", handle.container);
    text_member("name", handle.name);
    text_member("maybe_type_name", handle.kind);
    out_.end('}');
  }
  out_.end(']');
}

inline void attr_writer::value(const tensor_value& v) {
  out_.begin('{');
  if (!v.empty()) {
    out_.field("dtype").string(proto_name(v.dtype())).field("tensor_shape").begin('{');
    sizes(v.shape().data(), static_cast<std::size_t>(v.shape().rank()));
    out_.end('}');
  }
  if (v.empty() || v.elements() == 0) {
  } else if (v.dtype() == dtype::string) {
    out_.field("string_val").begin('[');
    for (std::size_t i = 0; i < static_cast<std::size_t>(v.elements()); ++i) out_.bytes(v.data<std::string>()[i]);
    out_.end(']');
  } else if (v.dtype() == dtype::resource) {
    handles(v);
  } else if (repeats_first(v)) {
    repeated(v);
  } else {
    out_.field("tensor_content").bytes({reinterpret_cast<const char*>(v.raw_data()), v.bytes()});
  }
  out_.end('}');
}

inline void write_inputs(json_writer& out, const std::vector<std::string>& inputs) {
  if (inputs.empty()) return;
  out.field("input").begin('[');
  for (const std::string& in : inputs) out.string(in);
  out.end(']');
}

inline void write_node(json_writer& out, const node& n, const export_options& options) {
  std::vector<std::string> inputs;
  for (const output& in : n.inputs()) inputs.push_back(to_text(in));
  for (const node* before : n.control_inputs()) inputs.push_back("^" + before->name());
  out.begin('{').field("name").string(n.name()).field("op").string(n.op());
  write_inputs(out, inputs);
  if (!n.device().empty()) out.field("device").string(n.device());
  attr_writer(out).attrs(n.attrs(), n.def(), options.strip_defaults);
  out.end('}');
}

inline void write_args(json_writer& out, const char* field, const std::vector<arg_def>& args) {
  if (args.empty()) return;
  out.field(field).begin('[');
  for (const arg_def& a : args) {
    out.begin('{').field("name").string(a.name);
    if (a.type != dtype::invalid) out.field("type").string(proto_name(a.type));
    if (!a.type_attr.empty()) out.field("type_attr").string(a.type_attr);
    if (!a.number_attr.empty()) out.field("number_attr").string(a.number_attr);
    if (!a.type_list_attr.empty()) out.field("type_list_attr").string(a.type_list_attr);
    if (a.is_ref) out.field("is_ref").boolean(true);
    out.end('}');
  }
  out.end(']');
}

inline void write_attr_def(json_writer& out, const attr_def& a) {
  out.begin('{').field("name").string(a.name).field("type").string(a.kind);
  if (a.default_value) {
    out.field("default_value");
    attr_writer(out).attr(*a.default_value);
  }
  if (a.minimum) out.field("has_minimum").boolean(true).field("minimum").integer(*a.minimum);
  if (!a.allowed_types.empty() || !a.allowed_strings.empty()) {
    out.field("allowed_values");
    attr_writer(out).attr(a.allowed_types.empty() ? attr_value(a.allowed_strings) : attr_value(a.allowed_types));
  }
  out.end('}');
}

inline void write_names(json_writer& out, const char* field, const std::map<std::string, std::string>& names) {
  if (names.empty()) return;
  out.field(field).begin('{');
  for (const auto& [name, value] : names) out.key(name).string(value);
  out.end('}');
}

inline void write_function(json_writer& out, const function_def& f) {
  out.begin('{').field("signature").begin('{').field("name").string(f.signature.name);
  write_args(out, "input_arg", f.signature.inputs);
  write_args(out, "output_arg", f.signature.outputs);
  if (!f.signature.attrs.empty()) {
    out.field("attr").begin('[');
    for (const attr_def& a : f.signature.attrs) write_attr_def(out, a);
    out.end(']');
  }
  if (f.signature.stateful) out.field("is_stateful").boolean(true);
  if (f.signature.commutative) out.field("is_commutative").boolean(true);
  if (!f.control_outputs.empty()) {
    out.field("control_output").begin('[');
    for (const std::string& name : f.control_outputs) out.string(name);
    out.end(']');
  }
  out.end('}');
  if (!f.nodes.empty()) {
    out.field("node_def").begin('[');
    for (const function_node& n : f.nodes) {
      out.begin('{').field("name").string(n.name).field("op").string(n.op);
      write_inputs(out, n.inputs);
      if (!n.device.empty()) out.field("device").string(n.device);
      attr_writer(out).attrs(n.attrs, nullptr, false);
      out.end('}');
    }
    out.end(']');
  }
  write_names(out, "ret", f.results);
  write_names(out, "control_ret", f.control_results);
  attr_writer(out).attrs(f.attrs, nullptr, false);
  if (!f.argument_attrs.empty()) {
    out.field("arg_attr").begin('{');
    for (const auto& [number, attrs] : f.argument_attrs) {
      out.key(std::to_string(number)).begin('{');
      attr_writer(out).attrs(attrs, nullptr, false);
      out.end('}');
    }
    out.end('}');
  }
  out.end('}');
}

inline void write_library(json_writer& out, const std::vector<std::shared_ptr<const function_def>>& functions) {
  if (functions.empty()) return;
  out.field("library").begin('{').field("function").begin('[');
  bool gradients = false;
  for (const auto& f : functions) {
    write_function(out, *f);
    gradients = gradients || !f->gradient.empty();
  }
  out.end(']');
  if (gradients) {
    out.field("gradient").begin('[');
    for (const auto& f : functions)
      if (!f->gradient.empty()) out.begin('{').field("function_name").string(f->signature.name).field("gradient_func").string(f->gradient).end('}');
    out.end(']');
  }
  out.end('}');
}

}  // namespace weft::detail

namespace weft {

WEFT_DECL std::string to_graphdef_json(const graph& g, const export_options& options) {
  detail::json_writer out(options.indent, options.proto_field_names);
  out.begin('{');
  const auto nodes = g.nodes();
  if (!nodes.empty()) {
    out.field("node").begin('[');
    for (const node* n : nodes) detail::write_node(out, *n, options);
    out.end(']');
  }
  const auto functions = g.functions();
  detail::write_library(out, functions);
  // TensorFlow 1.13 wrote 27; functions are read from 12 on.
  out.field("versions").begin('{').field("producer").small(27);
  if (!functions.empty()) out.field("min_consumer").small(12);
  out.end('}').end('}');
  return out.take();
}

WEFT_DECL std::string to_attr_json(const attr_value& value) {
  detail::json_writer out(0, false);
  detail::attr_writer(out).attr(value);
  return out.take();
}

WEFT_DECL void write_graphdef_json(const graph& g, const std::string& path, const export_options& options) {
  const std::string text = to_graphdef_json(g, options);
  // A reader never sees half a file: it is written beside its place and moved there.
  const std::string beside = path + ".part";
  std::FILE* file = std::fopen(beside.c_str(), "wb");
  bool ok = file != nullptr && std::fwrite(text.data(), 1, text.size(), file) == text.size();
  if (file != nullptr) ok = std::fclose(file) == 0 && ok;
  ok = ok && std::rename(beside.c_str(), path.c_str()) == 0;
  if (ok) return;
  const std::string why = std::strerror(errno);
  if (file != nullptr) std::remove(beside.c_str());
  fail(error_code::unavailable, "cannot write '" + path + "': " + why);
}

}  // namespace weft
#endif

#endif
