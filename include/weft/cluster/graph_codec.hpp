#ifndef WEFT_CLUSTER_GRAPH_CODEC_HPP
#define WEFT_CLUSTER_GRAPH_CODEC_HPP
// Nodes of a graph in a message: binary, with inputs by the number of their node; tensors stand in the message's body and are
// named by their index there, so that a constant is neither turned into text nor copied. Call sites stay at home.

#include <weft/cluster/wire.hpp>
#include <weft/core/config.hpp>
#include <weft/graph/graph.hpp>
#include <weft/placement/placement.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace weft {

/// Appends the nodes from number `first` on, which must be in the order of their numbers, and their tensors; with a placement each asks for its device there.
void encode_nodes(wire_writer& to, std::vector<tensor_value>& tensors, const std::vector<const node*>& nodes, std::size_t first, const placement* where = nullptr);

/// What is accepted of a graph from elsewhere; the members of `server_options` with these names say more.
struct graph_limits {
  std::size_t max_graph_nodes = 4000000, max_node_inputs = 100000, max_name_bytes = 1024;
};

/// Adds the nodes of a message to a graph that has all earlier ones. Nodes of ops that the graph knows are bound and checked
/// as if they were built here; other nodes keep the output types that were sent. Throws INVALID_ARGUMENT, RESOURCE_EXHAUSTED past a limit,
/// and what building throws.
void decode_nodes(wire_reader& from, const std::vector<tensor_value>& tensors, const graph& into, const graph_limits& limits);

namespace detail {

// A name, within its limit.
std::string limited_name(wire_reader& from, std::size_t most);

/// Writes attributes.
class attr_encoder {
 public:
  attr_encoder(wire_writer& to, std::vector<tensor_value>& tensors) : to_(to), tensors_(tensors) {}

  void attrs(const attr_map& all) {
    to_.count(all.size());
    for (const auto& [name, value] : all) {
      to_.string(name).u8(static_cast<std::uint8_t>(value.number()));
      if (!value.empty()) value.visit([this](const auto& v) { write(v); });
    }
  }
  void write(const partial_shape& v) {
    to_.boolean(v.known_rank());
    if (!v.known_rank()) return;
    to_.count(v.sizes().size());
    for (const std::int64_t size : v.sizes()) to_.i64(size);
  }

 private:
  void write(const std::string& v) { to_.string(v); }
  void write(std::int64_t v) { to_.i64(v); }
  void write(float v) {
    std::uint32_t bits;
    std::memcpy(&bits, &v, sizeof bits);
    to_.u32(bits);
  }
  void write(bool v) { to_.boolean(v); }
  void write(dtype v) { to_.enumerator(v); }
  void write(const tensor_value& v) {
    to_.boolean(!v.empty());
    if (v.empty()) return;
    to_.count(tensors_.size());
    tensors_.push_back(v);
  }
  void write(const func_attr& v) {
    to_.string(v.name);
    attrs(v.attrs);
  }
  void write(const placeholder_attr& v) { to_.string(v.name); }
  template <class T> void write(const std::vector<T>& v) {
    to_.count(v.size());
    for (std::size_t i = 0; i < v.size(); ++i) write(static_cast<const T&>(v[i]));
  }

  wire_writer& to_;
  std::vector<tensor_value>& tensors_;
};

/// Reads attributes; the nesting of functions is bounded.
class attr_decoder {
 public:
  attr_decoder(wire_reader& from, const std::vector<tensor_value>& tensors, std::size_t max_name_bytes = graph_limits().max_name_bytes) : from_(from), tensors_(tensors), max_name_(max_name_bytes) {}

  attr_map attrs(int depth = 0) {
    if (depth > max_depth) from_.bad("functions are nested more than " + std::to_string(max_depth) + " deep");
    attr_map out;
    for (std::size_t n = from_.count(5); n > 0; --n) {
      std::string name = limited_name(from_, max_name_);
      attr_value value = read_value(depth);
      if (!out.emplace(std::move(name), std::move(value)).second) from_.bad("an attribute is given twice");
    }
    return out;
  }
  void read(partial_shape& v) {
    if (!from_.boolean()) return void(v = partial_shape());
    const std::size_t rank = from_.count(8);
    if (rank > static_cast<std::size_t>(max_rank)) from_.bad("a shape has " + std::to_string(rank) + " dimensions");
    std::vector<std::int64_t> sizes(rank);
    for (std::int64_t& size : sizes)
      if ((size = from_.i64()) < -1) from_.bad("a dimension of a shape is " + std::to_string(size) + ", expected -1 (unknown) or more");
    v = partial_shape(std::move(sizes));
    if (v.fully_known() && !v.elements()) from_.bad("the shape " + v.text() + " has more elements than 64 bits count");
  }
  void read(dtype& v) {
    const std::uint8_t number = from_.u8();
    if (number != 0 && !is_known_dtype(number)) from_.bad("there is no dtype " + std::to_string(number));
    v = static_cast<dtype>(number);
  }

 private:
  static constexpr int max_depth = 16;

  attr_value read_value(int depth);
  void read(std::string& v) { v = from_.string(); }
  void read(std::int64_t& v) { v = from_.i64(); }
  void read(float& v) {
    const std::uint32_t bits = from_.u32();
    std::memcpy(&v, &bits, sizeof v);
  }
  void read(tensor_value& v) {
    if (!from_.boolean()) return;
    const std::size_t index = from_.u32();
    if (index >= tensors_.size()) from_.bad("tensor " + std::to_string(index) + " is not in the message, which has " + std::to_string(tensors_.size()));
    v = tensors_[index];
  }
  template <class T> attr_value scalar() {
    T v{};
    read(v);
    return attr_value(std::move(v));
  }
  template <class T> attr_value list() {
    std::vector<T> out(from_.count(1));
    for (std::size_t i = 0; i < out.size(); ++i) {
      T v{};
      read(v);
      out[i] = std::move(v);
    }
    return attr_value(std::move(out));
  }
  func_attr function(int depth) {
    func_attr out;
    out.name = from_.string();
    out.attrs = attrs(depth + 1);
    return out;
  }

  wire_reader& from_;
  const std::vector<tensor_value>& tensors_;
  const std::size_t max_name_;
};

static_assert(static_cast<int>(attr_kind::funcs) == 17, "a new kind of attribute needs a case in read_value");

void decode_node(wire_reader& from, const std::vector<tensor_value>& tensors, const graph& into, const graph_limits& limits, std::vector<const node*>& nodes);

#if WEFT_HAS_CLUSTER_BODIES

WEFT_DECL std::string limited_name(wire_reader& from, std::size_t most) {
  const std::string_view name = from.view();
  if (name.size() <= most) return std::string(name);
  fail(error_code::resource_exhausted, "the graph has a name of " + std::to_string(name.size()) + " bytes, at most " + std::to_string(most) + " are accepted (server_options::max_name_bytes): '" +
                                           std::string(name.substr(0, 64)) + "...'");
}

// The kinds in the order of detail::attr_kind.
WEFT_DECL attr_value attr_decoder::read_value(int depth) {
  const std::uint8_t kind = from_.u8();
  switch (kind) {
    case 0: return attr_value();
    case 1: return scalar<std::string>();
    case 2: return scalar<std::int64_t>();
    case 3: return scalar<float>();
    case 4: return attr_value(from_.boolean());
    case 5: return scalar<dtype>();
    case 6: return scalar<partial_shape>();
    case 7: return scalar<tensor_value>();
    case 8: return attr_value(function(depth));
    case 9: return attr_value(placeholder_attr{from_.string()});
    case 10: return list<std::string>();
    case 11: return list<std::int64_t>();
    case 12: return list<float>();
    case 13: {
      std::vector<bool> out(from_.count(1));
      for (std::size_t i = 0; i < out.size(); ++i) out[i] = from_.boolean();
      return attr_value(std::move(out));
    }
    case 14: return list<dtype>();
    case 15: return list<partial_shape>();
    case 16: return list<tensor_value>();
    case 17: {
      std::vector<func_attr> out;
      for (std::size_t n = from_.count(8); n > 0; --n) out.push_back(function(depth));
      return attr_value(std::move(out));
    }
    default: from_.bad("there is no kind of attribute " + std::to_string(kind));
  }
}

WEFT_DECL void decode_node(wire_reader& from, const std::vector<tensor_value>& tensors, const graph& into, const graph_limits& limits, std::vector<const node*>& nodes) {
  const auto earlier = [&](std::size_t index) {
    if (index >= nodes.size()) from.bad("a node refers to node " + std::to_string(index) + ", which is not before it");
    return nodes[index];
  };
  node_spec spec;
  spec.exact_name = true;
  spec.scoped = false;
  const auto count_inputs = [&](std::size_t least_bytes, const char* what) {
    const std::size_t n = from.count(least_bytes);
    if (n > limits.max_node_inputs)
      fail(error_code::resource_exhausted, spec.op + " '" + spec.name + "' has " + std::to_string(n) + what + ", at most " + std::to_string(limits.max_node_inputs) + " are accepted (server_options::max_node_inputs)");
    return n;
  };
  for (std::string* name : {&spec.name, &spec.op, &spec.device}) *name = limited_name(from, limits.max_name_bytes);
  if (spec.name.empty()) from.bad("a node has no name");
  for (std::size_t n = count_inputs(8, " inputs"); n > 0; --n) {
    const node* input = earlier(from.u32());
    spec.inputs.push_back({input, static_cast<int>(from.u32())});
  }
  for (std::size_t n = count_inputs(4, " control inputs"); n > 0; --n) spec.control_inputs.push_back(earlier(from.u32()));
  attr_decoder attrs(from, tensors, limits.max_name_bytes);
  std::vector<output_type> outputs(from.count(3));
  for (output_type& out : outputs) {
    attrs.read(out.dtype);
    out.is_ref = from.boolean();
    attrs.read(out.shape);
  }
  spec.attrs = attrs.attrs();
  if (into.ops().find(spec.op) == nullptr) spec.outputs = std::move(outputs);
  nodes.push_back(&into.add(std::move(spec)));
}

#endif

}  // namespace detail

#if WEFT_HAS_CLUSTER_BODIES

WEFT_DECL void encode_nodes(wire_writer& to, std::vector<tensor_value>& tensors, const std::vector<const node*>& nodes, std::size_t first, const placement* where) {
  detail::attr_encoder attrs(to, tensors);
  to.count(first).count(nodes.size() - first);
  for (std::size_t i = first; i < nodes.size(); ++i) {
    const node& n = *nodes[i];
    to.string(n.name()).string(n.op()).string(where == nullptr ? n.device() : where->device_of(n));
    to.count(n.inputs().size());
    for (std::size_t k = 0; k < n.inputs().size(); ++k)
      if (detail::is_loop_edge(n, k)) n.fail_about(error_code::unimplemented, "closes a loop, and graphs with loops cannot be sent to servers yet");
    for (const output& in : n.inputs()) to.u32(static_cast<std::uint32_t>(in.from->id())).u32(static_cast<std::uint32_t>(in.index));
    to.count(n.control_inputs().size());
    for (const node* control : n.control_inputs()) to.u32(static_cast<std::uint32_t>(control->id()));
    to.count(n.outputs().size());
    for (const output_type& out : n.outputs()) {
      to.enumerator(out.dtype).boolean(out.is_ref);
      attrs.write(out.shape);
    }
    attrs.attrs(n.attrs());
  }
}

WEFT_DECL void decode_nodes(wire_reader& from, const std::vector<tensor_value>& tensors, const graph& into, const graph_limits& limits) {
  const std::size_t max_nodes = limits.max_graph_nodes;
  std::vector<const node*> nodes = into.nodes();
  const std::size_t first = from.u32(), added = from.count(25);
  if (first != nodes.size()) from.bad("expected nodes from number " + std::to_string(nodes.size()) + " on, found " + std::to_string(first));
  if (added > max_nodes || nodes.size() > max_nodes - added)
    fail(error_code::resource_exhausted, "the graph would have " + std::to_string(nodes.size() + added) + " nodes, at most " + std::to_string(max_nodes) +
                                             " are accepted (server_options::max_graph_nodes)");
  nodes.reserve(nodes.size() + added);
  for (std::size_t i = 0; i < added; ++i) detail::decode_node(from, tensors, into, limits, nodes);
}

#endif

}  // namespace weft

#endif
