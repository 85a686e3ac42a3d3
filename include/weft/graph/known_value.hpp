#ifndef WEFT_GRAPH_KNOWN_VALUE_HPP
#define WEFT_GRAPH_KNOWN_VALUE_HPP
// Integers that can be known while a graph is built: constants, and what ops on shapes make of them. Shape rules use them where a value decides a shape.

#include <weft/core/config.hpp>
#include <weft/graph/node.hpp>

#include <algorithm>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weft {

/// The integers of a tensor in C order; single ones may be open.
struct known_integers {
  static constexpr std::int64_t open = std::numeric_limits<std::int64_t>::min();
  std::vector<std::int64_t> values;
  /// The tensor's shape.
  std::vector<std::int64_t> dims;

  bool scalar() const noexcept { return dims.empty(); }
  /// Whether no integer is open.
  bool complete() const noexcept { return std::find(values.begin(), values.end(), open) == values.end(); }
};

/// What is known of an integer output before the graph runs; nothing where its value depends on the step. Follows constants through Shape, Pack, Concat, StridedSlice, Cast, Range, Gather,
/// arithmetic and the like, as TensorFlow's shape inference does; only Shape, Pack, Concat, StridedSlice and Cast pass on integers of which some are open. The effort is bounded.
std::optional<known_integers> known_value(const output& of);

}  // namespace weft

#if WEFT_HAS_BODIES
namespace weft::detail {

template <class T> std::vector<std::int64_t> copy_integers(const tensor_value& v) { return std::vector<std::int64_t>(v.data<T>(), v.data<T>() + v.elements()); }
/// The elements of a tensor of integers that fit, or nothing for other dtypes.
inline std::optional<std::vector<std::int64_t>> integers_of(const tensor_value& v) {
  switch (v.dtype()) {
    case dtype::int32: return copy_integers<std::int32_t>(v);
    case dtype::int64: return copy_integers<std::int64_t>(v);
    case dtype::int16: return copy_integers<std::int16_t>(v);
    case dtype::uint16: return copy_integers<std::uint16_t>(v);
    case dtype::int8: return copy_integers<std::int8_t>(v);
    default: return std::nullopt;
  }
}

/// Evaluates the nodes behind an output. A rule returns whether it found its value.
class known_reader {
 public:
  bool read(const output& of, known_integers& out);

 private:
  // A graph can be deep, or reach one node on many ways.
  static constexpr int most_depth = 64, most_visits = 2000;
  static constexpr std::size_t most_elements = 4096;

  using rule = bool (known_reader::*)(const output&, known_integers&);
  struct entry {
    const char* ops;
    rule read;
  };
  static rule rule_of(const std::string& op) noexcept;

  bool input(const output& of, std::size_t i, known_integers& out) { return i < of.from->inputs().size() && read(of.from->inputs()[i], out); }
  bool whole_input(const output& of, std::size_t i, known_integers& out) { return input(of, i, out) && out.complete(); }
  bool number(const output& of, std::size_t i, std::int64_t& out);
  static bool vector_of(known_integers& out) {
    out.dims = {static_cast<std::int64_t>(out.values.size())};
    return out.values.size() <= most_elements;
  }
  static bool number_of(std::int64_t value, known_integers& out) {
    out = {{value}, {}};
    return true;
  }
  static bool dims_of(const partial_shape& s, known_integers& out);

  bool constant(const output& of, known_integers& out);
  bool same(const output& of, known_integers& out) { return input(of, 0, out); }
  bool cast(const output& of, known_integers& out);
  bool shape(const output& of, known_integers& out);
  bool size(const output& of, known_integers& out);
  bool rank(const output& of, known_integers& out);
  bool pack(const output& of, known_integers& out);
  bool unpack(const output& of, known_integers& out);
  bool concat(const output& of, known_integers& out);
  bool strided_slice(const output& of, known_integers& out);
  bool slice(const output& of, known_integers& out);
  bool gather(const output& of, known_integers& out);
  bool range(const output& of, known_integers& out);
  bool fill(const output& of, known_integers& out);
  bool reshaped(const output& of, known_integers& out);
  bool inverse(const output& of, known_integers& out);
  bool broadcast_args(const output& of, known_integers& out);
  bool reverse(const output& of, known_integers& out);
  bool stitch(const output& of, known_integers& out);
  bool arithmetic(const output& of, known_integers& out);
  bool reduction(const output& of, known_integers& out);

  int depth_ = 0, visits_ = 0;
};

WEFT_DECL known_reader::rule known_reader::rule_of(const std::string& op) noexcept {
  static constexpr entry rules[] = {
      {" Const ", &known_reader::constant},
      {" Identity StopGradient Snapshot PlaceholderWithDefault PreventGradient EnsureShape DeepCopy ", &known_reader::same},
      {" Cast ", &known_reader::cast},
      {" Shape ShapeN ", &known_reader::shape},
      {" Size ", &known_reader::size},
      {" Rank ", &known_reader::rank},
      {" Pack ", &known_reader::pack},
      {" Unpack ", &known_reader::unpack},
      {" Concat ConcatV2 ", &known_reader::concat},
      {" StridedSlice ", &known_reader::strided_slice},
      {" Slice ", &known_reader::slice},
      {" Gather GatherV2 ", &known_reader::gather},
      {" Range ", &known_reader::range},
      {" Fill ZerosLike OnesLike ", &known_reader::fill},
      {" Reshape ExpandDims Squeeze ", &known_reader::reshaped},
      {" InvertPermutation ", &known_reader::inverse},
      {" BroadcastArgs ", &known_reader::broadcast_args},
      {" ReverseV2 ", &known_reader::reverse},
      {" DynamicStitch ", &known_reader::stitch},
      {" Add AddV2 Sub Mul Div FloorDiv TruncateDiv FloorMod Mod Maximum Minimum ", &known_reader::arithmetic},
      {" Sum Prod Max Min ", &known_reader::reduction},
  };
  const std::string word = " " + op + " ";
  for (const entry& e : rules)
    if (std::string_view(e.ops).find(word) != std::string_view::npos) return e.read;
  return nullptr;
}

// Only integers are followed; a fed placeholder with a default is not: it may get another value.
WEFT_DECL bool known_reader::read(const output& of, known_integers& out) {
  const dtype type = of.from->output_dtype(of.index);
  if (type != dtype::int32 && type != dtype::int64 && of.from->op() != "Const") return false;
  if (of.from->op() == "PlaceholderWithDefault") return false;
  const rule found = rule_of(of.from->op());
  if (found == nullptr || depth_ >= most_depth || ++visits_ > most_visits) return false;
  ++depth_;
  const bool known = (this->*found)(of, out);
  --depth_;
  return known;
}

WEFT_DECL bool known_reader::number(const output& of, std::size_t i, std::int64_t& out) {
  known_integers one;
  if (!whole_input(of, i, one) || one.values.size() != 1) return false;
  out = one.values[0];
  return true;
}

WEFT_DECL bool known_reader::constant(const output& of, known_integers& out) {
  const tensor_value* v = of.from->find_attr<tensor_value>("value");
  if (v == nullptr || v->elements() > static_cast<std::int64_t>(most_elements)) return false;
  auto values = integers_of(*v);
  if (!values) return false;
  out = {std::move(*values), {}};
  for (int i = 0; i < v->shape().rank(); ++i) out.dims.push_back(v->shape()[i]);
  return true;
}

WEFT_DECL bool known_reader::cast(const output& of, known_integers& out) {
  if (!input(of, 0, out)) return false;
  if (of.from->output_dtype(of.index) == dtype::int32)
    for (const std::int64_t v : out.values)
      if (v != known_integers::open && v != static_cast<std::int32_t>(v)) return false;
  return true;
}

WEFT_DECL bool known_reader::dims_of(const partial_shape& s, known_integers& out) {
  if (!s.known_rank()) return false;
  out = {};
  for (int i = 0; i < s.rank(); ++i) out.values.push_back(s[i] < 0 ? known_integers::open : s[i]);
  return vector_of(out);
}
WEFT_DECL bool known_reader::shape(const output& of, known_integers& out) {
  const output& in = of.from->inputs()[static_cast<std::size_t>(of.index)];
  return dims_of(in.from->output_shape(in.index), out);
}
WEFT_DECL bool known_reader::size(const output& of, known_integers& out) {
  const output& in = of.from->inputs()[0];
  const partial_shape& s = in.from->output_shape(in.index);
  std::int64_t product = 1;
  if (!s.known_rank()) return false;
  for (int i = 0; i < s.rank(); ++i)
    if (s[i] < 0 || __builtin_mul_overflow(product, s[i], &product)) return false;
  return number_of(product, out);
}
WEFT_DECL bool known_reader::rank(const output& of, known_integers& out) {
  const output& in = of.from->inputs()[0];
  const partial_shape& s = in.from->output_shape(in.index);
  return s.known_rank() && number_of(s.rank(), out);
}

WEFT_DECL bool known_reader::pack(const output& of, known_integers& out) {
  const std::int64_t* axis = of.from->find_attr<std::int64_t>("axis");
  known_integers part, all;
  for (std::size_t i = 0; i < of.from->inputs().size(); ++i) {
    // An open number is still an element of the result.
    if (!input(of, i, part)) {
      const output& in = of.from->inputs()[i];
      const partial_shape& s = in.from->output_shape(in.index);
      if (!s.known_rank() || s.rank() != 0) return false;
      part = {{known_integers::open}, {}};
    }
    if (i > 0 && part.dims.size() + 1 != all.dims.size()) return false;
    if (!part.dims.empty() && axis != nullptr && *axis != 0) return false;
    all.dims = part.dims;
    all.dims.insert(all.dims.begin(), static_cast<std::int64_t>(i + 1));
    all.values.insert(all.values.end(), part.values.begin(), part.values.end());
  }
  out = std::move(all);
  return out.values.size() <= most_elements;
}
WEFT_DECL bool known_reader::unpack(const output& of, known_integers& out) {
  known_integers in;
  const auto at = static_cast<std::size_t>(of.index);
  return whole_input(of, 0, in) && in.dims.size() == 1 && at < in.values.size() && number_of(in.values[at], out);
}

WEFT_DECL bool known_reader::concat(const output& of, known_integers& out) {
  const std::size_t last = of.from->inputs().size() - 1, first_part = of.from->op() == "Concat" ? 1 : 0;
  std::int64_t axis = 0;
  if (!number(of, first_part == 1 ? 0 : last, axis) || (axis != 0 && axis != -1)) return false;
  known_integers part, all;
  for (std::size_t i = first_part; i < last + first_part; ++i) {
    if (!input(of, i, part)) {
      // A vector of known length may be open as a whole.
      const output& in = of.from->inputs()[i];
      const partial_shape& s = in.from->output_shape(in.index);
      if (!s.known_rank() || s.rank() != 1 || s[0] < 0 || s[0] > static_cast<std::int64_t>(most_elements)) return false;
      part = {std::vector<std::int64_t>(static_cast<std::size_t>(s[0]), known_integers::open), {s[0]}};
    }
    if (part.dims.size() != 1) return false;
    all.values.insert(all.values.end(), part.values.begin(), part.values.end());
  }
  out = std::move(all);
  return vector_of(out);
}

// One range of a vector, or one of its numbers.
WEFT_DECL bool known_reader::strided_slice(const output& of, known_integers& out) {
  known_integers in, begin, end, stride;
  if (!input(of, 0, in) || in.dims.size() != 1 || !whole_input(of, 1, begin) || !whole_input(of, 2, end) || !whole_input(of, 3, stride)) return false;
  if (begin.values.size() != 1 || end.values.size() != 1 || stride.values.size() != 1) return false;
  const auto masked = [&of](const char* name) {
    const std::int64_t* mask = of.from->find_attr<std::int64_t>(name);
    return mask != nullptr && (*mask & 1) != 0;
  };
  if (masked("ellipsis_mask") || masked("new_axis_mask")) return false;
  const auto n = static_cast<std::int64_t>(in.values.size());
  const std::int64_t step = stride.values[0];
  if (masked("shrink_axis_mask")) {
    const std::int64_t at = begin.values[0] < 0 ? begin.values[0] + n : begin.values[0];
    return at >= 0 && at < n && number_of(in.values[static_cast<std::size_t>(at)], out);
  }
  if (step == 0 || step == known_integers::open) return false;
  const std::int64_t low = step > 0 ? 0 : -1, high = step > 0 ? n : n - 1;
  const auto bound = [&](std::int64_t v, bool free, std::int64_t otherwise) { return free ? otherwise : std::clamp(v < 0 ? v + n : v, low, high); };
  const std::int64_t from = bound(begin.values[0], masked("begin_mask"), step > 0 ? 0 : n - 1), to = bound(end.values[0], masked("end_mask"), step > 0 ? n : -1);
  out = {};
  for (std::int64_t i = from; step > 0 ? i < to : i > to; i += std::clamp<std::int64_t>(step, -n - 1, n + 1)) out.values.push_back(in.values[static_cast<std::size_t>(i)]);
  return vector_of(out);
}
WEFT_DECL bool known_reader::slice(const output& of, known_integers& out) {
  known_integers in;
  std::int64_t begin = 0, size = 0;
  if (!whole_input(of, 0, in) || in.dims.size() != 1 || !number(of, 1, begin) || !number(of, 2, size)) return false;
  const auto n = static_cast<std::int64_t>(in.values.size());
  if (begin < 0 || begin > n) return false;
  if (size == -1) size = n - begin;
  if (size < 0 || size > n - begin) return false;
  out = {{in.values.begin() + begin, in.values.begin() + begin + size}, {}};
  return vector_of(out);
}
WEFT_DECL bool known_reader::gather(const output& of, known_integers& out) {
  known_integers in, at;
  std::int64_t axis = 0;
  if (of.from->op() == "GatherV2" && (!number(of, 2, axis) || axis != 0)) return false;
  if (!whole_input(of, 0, in) || in.dims.size() != 1 || !whole_input(of, 1, at)) return false;
  for (std::int64_t& i : at.values) {
    if (i < 0 || i >= static_cast<std::int64_t>(in.values.size())) return false;
    i = in.values[static_cast<std::size_t>(i)];
  }
  out = std::move(at);
  return true;
}

WEFT_DECL bool known_reader::range(const output& of, known_integers& out) {
  std::int64_t start = 0, limit = 0, delta = 0;
  if (!number(of, 0, start) || !number(of, 1, limit) || !number(of, 2, delta) || delta == 0) return false;
  out = {};
  while (delta > 0 ? start < limit : start > limit) {
    out.values.push_back(start);
    if (out.values.size() > most_elements || __builtin_add_overflow(start, delta, &start)) return false;
  }
  return vector_of(out);
}
WEFT_DECL bool known_reader::fill(const output& of, known_integers& out) {
  std::int64_t value = of.from->op() == "OnesLike" ? 1 : 0;
  if (of.from->op() == "Fill" && !number(of, 1, value)) return false;
  const partial_shape& s = of.from->output_shape(of.index);
  std::int64_t count = 1;
  out = {};
  if (!s.known_rank()) return false;
  for (int i = 0; i < s.rank(); ++i) {
    if (s[i] < 0 || s[i] > static_cast<std::int64_t>(most_elements) || (count *= s[i]) > static_cast<std::int64_t>(most_elements)) return false;
    out.dims.push_back(s[i]);
  }
  out.values.assign(static_cast<std::size_t>(count), value);
  return true;
}
// The same integers in the shape that the node's own rule found.
WEFT_DECL bool known_reader::reshaped(const output& of, known_integers& out) {
  if (!whole_input(of, 0, out)) return false;
  const partial_shape& s = of.from->output_shape(of.index);
  if (!s.fully_known()) return false;
  out.dims.clear();
  for (int i = 0; i < s.rank(); ++i) out.dims.push_back(s[i]);
  return true;
}
WEFT_DECL bool known_reader::inverse(const output& of, known_integers& out) {
  known_integers in;
  if (!whole_input(of, 0, in) || in.dims.size() != 1) return false;
  out = {std::vector<std::int64_t>(in.values.size(), known_integers::open), in.dims};
  for (std::size_t i = 0; i < in.values.size(); ++i) {
    if (in.values[i] < 0 || in.values[i] >= static_cast<std::int64_t>(in.values.size())) return false;
    out.values[static_cast<std::size_t>(in.values[i])] = static_cast<std::int64_t>(i);
  }
  return out.complete();
}
WEFT_DECL bool known_reader::broadcast_args(const output& of, known_integers& out) {
  known_integers b;
  if (!whole_input(of, 0, out) || !whole_input(of, 1, b) || out.dims.size() != 1 || b.dims.size() != 1) return false;
  if (out.values.size() < b.values.size()) std::swap(out, b);
  const std::size_t ahead = out.values.size() - b.values.size();
  for (std::size_t i = 0; i < b.values.size(); ++i) {
    std::int64_t& size = out.values[ahead + i];
    if (size == 1) size = b.values[i];
    else if (b.values[i] != 1 && b.values[i] != size) return false;
  }
  return true;
}
WEFT_DECL bool known_reader::reverse(const output& of, known_integers& out) {
  std::int64_t axis = 0;
  if (!whole_input(of, 0, out) || out.dims.size() != 1 || !number(of, 1, axis) || (axis != 0 && axis != -1)) return false;
  std::reverse(out.values.begin(), out.values.end());
  return true;
}
WEFT_DECL bool known_reader::stitch(const output& of, known_integers& out) {
  const std::size_t parts = of.from->inputs().size() / 2;
  out = {};
  for (std::size_t part = 0; part < parts; ++part) {
    known_integers at, data;
    if (!whole_input(of, part, at) || !whole_input(of, parts + part, data) || at.values.size() != data.values.size()) return false;
    for (std::size_t i = 0; i < at.values.size(); ++i) {
      if (at.values[i] < 0 || at.values[i] >= static_cast<std::int64_t>(most_elements)) return false;
      const auto to = static_cast<std::size_t>(at.values[i]);
      if (to >= out.values.size()) out.values.resize(to + 1, known_integers::open);
      out.values[to] = data.values[i];
    }
  }
  return out.complete() && vector_of(out);
}

// One of two integers op the other; false where the result does not fit or is not defined.
WEFT_DECL bool fold_integers(const std::string& op, std::int64_t a, std::int64_t b, std::int64_t& out) {
  if (op == "Add" || op == "AddV2" || op == "Sum") return !__builtin_add_overflow(a, b, &out);
  if (op == "Sub") return !__builtin_sub_overflow(a, b, &out);
  if (op == "Mul" || op == "Prod") return !__builtin_mul_overflow(a, b, &out);
  if (op == "Maximum" || op == "Max") return out = std::max(a, b), true;
  if (op == "Minimum" || op == "Min") return out = std::min(a, b), true;
  if (b == 0 || b == -1) return false;
  const bool down = a % b != 0 && (a < 0) != (b < 0);
  if (op == "FloorDiv") out = a / b - (down ? 1 : 0);
  else if (op == "FloorMod") out = a % b + (down ? b : 0);
  else out = op == "Mod" ? a % b : a / b;
  return true;
}
WEFT_DECL bool known_reader::arithmetic(const output& of, known_integers& out) {
  known_integers a, b;
  if (!whole_input(of, 0, a) || !whole_input(of, 1, b)) return false;
  if (a.dims != b.dims && a.values.size() != 1 && b.values.size() != 1) return false;
  if (a.dims != b.dims && a.dims.size() > 1 && b.dims.size() > 1) return false;
  const std::size_t count = a.values.size() == 1 ? b.values.size() : a.values.size();
  const bool b_leads = a.values.size() == 1 && b.dims.size() >= a.dims.size();
  out = {std::vector<std::int64_t>(count), b_leads ? b.dims : a.dims};
  for (std::size_t i = 0; i < count; ++i) {
    if (!fold_integers(of.from->op(), a.values[a.values.size() == 1 ? 0 : i], b.values[b.values.size() == 1 ? 0 : i], out.values[i])) return false;
    if (of.from->output_dtype(0) == dtype::int32 && out.values[i] != static_cast<std::int32_t>(out.values[i])) return false;
  }
  return true;
}
// All of a vector.
WEFT_DECL bool known_reader::reduction(const output& of, known_integers& out) {
  known_integers in, axes;
  if (!whole_input(of, 0, in) || in.dims.size() != 1 || in.values.empty() || !whole_input(of, 1, axes)) return false;
  if (axes.values.size() != 1 || (axes.values[0] != 0 && axes.values[0] != -1)) return false;
  std::int64_t result = in.values[0];
  for (std::size_t i = 1; i < in.values.size(); ++i)
    if (!fold_integers(of.from->op(), result, in.values[i], result)) return false;
  if (of.from->output_dtype(0) == dtype::int32 && result != static_cast<std::int32_t>(result)) return false;
  const bool* keep = of.from->find_attr<bool>("keep_dims");
  number_of(result, out);
  return keep == nullptr || !*keep || vector_of(out);
}

}  // namespace weft::detail

namespace weft {

WEFT_DECL std::optional<known_integers> known_value(const output& of) {
  known_integers out;
  if (!detail::known_reader().read(of, out)) return std::nullopt;
  return out;
}

}  // namespace weft
#endif

#endif
