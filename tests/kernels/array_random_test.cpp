// Every op on arrays with random shapes, dtypes, attributes and hostile integers: an answer or an error, never anything else.
#include <weft/kernels/array_select.hpp>

#include "../long_tests.hpp"
#include "run_kernel.hpp"

#include <doctest/doctest.h>
#include <sys/resource.h>

#include <algorithm>
#include <cstdint>
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

class dice {
 public:
  explicit dice(unsigned seed) : engine_(seed) {}
  int below(int n) { return static_cast<int>(engine_() % static_cast<unsigned>(n)); }
  bool rarely() { return below(12) == 0; }
  std::uint64_t bits() { return engine_(); }

 private:
  std::mt19937_64 engine_;
};

constexpr std::int64_t huge[] = {2147483647, -2147483648, 2147483648, std::int64_t{1} << 40, std::int64_t{1} << 62, INT64_MAX, INT64_MIN, INT64_MIN + 1, -1000, 1000000};

// Mostly a small number, sometimes one that nothing can hold.
std::int64_t number(dice& d, int low, int high) { return d.rarely() && d.rarely() ? huge[d.below(10)] : low + d.below(high - low + 1); }

shape random_shape(dice& d, int rank) {
  std::vector<std::int64_t> sizes;
  for (int i = 0; i < rank; ++i) sizes.push_back(d.rarely() ? 0 : 1 + d.below(4));
  return shape(sizes);
}

tensor_value integers(dice& d, dtype type, const shape& s, int low, int high) {
  tensor_value out(type, s);
  for (std::int64_t i = 0; i < out.elements(); ++i) {
    const std::int64_t v = number(d, low, high);
    switch (type) {
      case dtype::int64: out.mutable_data<std::int64_t>()[i] = v; break;
      case dtype::int16: out.mutable_data<std::int16_t>()[i] = static_cast<std::int16_t>(v); break;
      case dtype::int8: out.mutable_data<std::int8_t>()[i] = static_cast<std::int8_t>(v); break;
      case dtype::uint8: out.mutable_data<std::uint8_t>()[i] = static_cast<std::uint8_t>(v); break;
      case dtype::uint16: out.mutable_data<std::uint16_t>()[i] = static_cast<std::uint16_t>(v); break;
      case dtype::boolean: out.mutable_data<bool>()[i] = (v & 1) != 0; break;
      default: out.mutable_data<std::int32_t>()[i] = static_cast<std::int32_t>(v); break;
    }
  }
  return out;
}

tensor_value elements(dice& d, dtype type, const shape& s) {
  tensor_value out(type, s);
  for (std::int64_t i = 0; i < out.elements(); ++i) {
    if (type == dtype::string) out.mutable_data<std::string>()[i] = std::string(static_cast<std::size_t>(d.below(30)), static_cast<char>('a' + d.below(3)));
    else if (type == dtype::boolean) out.mutable_data<bool>()[i] = d.below(2) != 0;
  }
  const std::size_t bytes = weft::is_plain(type) && type != dtype::boolean ? out.bytes() : 0;
  for (std::size_t i = 0; i < bytes; ++i) out.mutable_raw_data()[i] = static_cast<std::byte>(d.bits());
  return out;
}

constexpr dtype moved[] = {dtype::float32, dtype::float64, dtype::half, dtype::bfloat16, dtype::int8, dtype::int16, dtype::int32, dtype::int64, dtype::uint8, dtype::boolean, dtype::string, dtype::complex64, dtype::complex128};
constexpr dtype counted[] = {dtype::int32, dtype::int64};

// One kind of input: what stands for it in a row of the table below.
//   x a tensor, mostly of the row's shape, k one of its diagonals; w sizes of parts, one of them "the rest"; a to f tensors of 0 to 5 dimensions of that dtype; b bools; s a number, v a vector, m a matrix of two columns, i a tensor, all of small integers.
tensor_value input(dice& d, char kind, dtype type, dtype small, const shape& base) {
  const int rank = base.rank(), length = d.below(6) != 0 ? rank : d.below(5);
  switch (kind) {
    case 'x': return elements(d, type, d.rarely() ? random_shape(d, d.below(7)) : base);
    case 'k': {
      if (rank < 2 || d.rarely()) return elements(d, type, random_shape(d, d.below(4)));
      std::vector<std::int64_t> sizes(base.begin(), base.end() - 1);
      sizes.back() = std::min(sizes.back(), base[rank - 1]);
      return elements(d, type, shape(sizes));
    }
    case 'w': {
      tensor_value sizes = integers(d, small, shape{1 + d.below(4)}, 0, 1);
      small == dtype::int64 ? void(sizes.mutable_data<std::int64_t>()[0] = -1) : void(sizes.mutable_data<std::int32_t>()[0] = -1);
      return sizes;
    }
    case 'b': return elements(d, dtype::boolean, d.below(2) ? base : random_shape(d, d.below(3)));
    case 's': return integers(d, small, random_shape(d, d.rarely() ? 1 : 0), -3, 4);
    case 'v': return integers(d, small, d.rarely() ? random_shape(d, 2) : shape{length}, -2, 4);
    case 'm': return integers(d, small, shape{length, d.rarely() ? 3 : 2}, d.rarely() ? -1 : 0, 2);
    case 'i': return integers(d, dtype::int32, random_shape(d, d.below(3)), d.rarely() ? -1 : 0, d.below(4));
    default: return elements(d, type, random_shape(d, kind - 'a'));
  }
}

struct row {
  const char* op;
  const char* inputs;
  const char* attrs;
};
// Attributes: `i` a small integer, `m` a mask, `b` a bool, `M` the mode, `F` the format, `T` a type, `I` int32 or int64, `S` a partial shape, `L` a list, `t` a text, `n` a number of outputs.
constexpr row rows[] = {
    {"Reshape", "xv", ""}, {"ExpandDims", "xs", ""}, {"Squeeze", "x", "squeeze_dims:L"}, {"EnsureShape", "x", "shape:S"}, {"Bitcast", "x", "type:T"}, {"Shape", "x", "out_type:I"}, {"ShapeN", "xxx", "out_type:I"},
    {"BroadcastTo", "xv", ""}, {"BroadcastArgs", "vv", ""}, {"BroadcastGradientArgs", "vv", ""}, {"Fill", "va", ""}, {"Range", "sss", ""}, {"LinSpace", "aas", ""}, {"CheckNumerics", "x", "message:t"},
    {"Concat", "sxxx", ""}, {"ConcatV2", "xxs", ""}, {"ConcatOffset", "svvv", ""}, {"Pack", "xx", "axis:i"}, {"Unpack", "x", "num:n axis:i"}, {"Split", "sx", "num_split:n"}, {"SplitV", "xws", "num_split:n"},
    {"Tile", "xv", ""}, {"Pad", "xm", ""}, {"PadV2", "xma", ""}, {"MirrorPad", "xm", "mode:M"}, {"MirrorPadGrad", "xm", "mode:M"}, {"Slice", "xvv", ""},
    {"StridedSlice", "xvvv", "begin_mask:m end_mask:m ellipsis_mask:m new_axis_mask:m shrink_axis_mask:m"}, {"StridedSliceGrad", "vvvvx", "begin_mask:m end_mask:m ellipsis_mask:m new_axis_mask:m shrink_axis_mask:m"},
    {"Gather", "xi", ""}, {"GatherV2", "xis", "batch_dims:i"}, {"GatherNd", "xi", ""}, {"ScatterNd", "ixv", ""}, {"TensorScatterUpdate", "xix", ""}, {"TensorScatterAdd", "xix", ""}, {"TensorScatterSub", "xix", ""},
    {"TensorScatterMax", "xix", ""}, {"TensorScatterMin", "xix", ""}, {"ReverseV2", "xv", ""}, {"ReverseSequence", "xv", "seq_dim:i batch_dim:i"}, {"Transpose", "xv", ""}, {"InvertPermutation", "v", ""},
    {"SpaceToDepth", "e", "block_size:i data_format:F"}, {"DepthToSpace", "e", "block_size:i data_format:F"}, {"SpaceToBatchND", "xvm", ""}, {"BatchToSpaceND", "xvm", ""}, {"SpaceToBatch", "em", "block_size:i"},
    {"BatchToSpace", "em", "block_size:i"}, {"Diag", "x", ""}, {"DiagPart", "x", ""}, {"MatrixDiag", "x", ""}, {"MatrixDiagPart", "x", ""}, {"MatrixSetDiag", "xk", ""}, {"MatrixBandPart", "xss", ""},
    {"Select", "bxx", ""}, {"SelectV2", "bxx", ""}, {"Where", "x", ""}, {"OneHot", "isaa", "axis:i"}, {"TopKV2", "xs", "sorted:b"}, {"Unique", "x", "out_idx:I"}, {"UniqueV2", "xv", "out_idx:I"},
    {"UniqueWithCounts", "b", ""}, {"ListDiff", "bb", ""}, {"DynamicPartition", "xi", "num_partitions:n"}, {"DynamicStitch", "iixx", ""}, {"DeepCopy", "x", ""},
};

attr_map attributes(dice& d, const std::string& text) {
  attr_map out;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t colon = text.find(':', at);
    const std::string name = text.substr(at, colon - at);
    switch (text[colon + 1]) {
      case 'm': out[name] = d.below(3) == 0 ? number(d, 0, 31) : std::int64_t{0}; break;
      case 'b': out[name] = d.below(2) != 0; break;
      case 'M': out[name] = d.below(2) ? "REFLECT" : "SYMMETRIC"; break;
      case 'F': out[name] = d.below(2) ? "NHWC" : "NCHW"; break;
      case 'T': out[name] = moved[d.below(9)]; break;
      case 'I': out[name] = counted[d.below(2)]; break;
      case 'S': out[name] = weft::partial_shape(random_shape(d, d.below(4))); break;
      case 'L': out[name] = std::vector<std::int64_t>{number(d, -3, 3)}; break;
      case 't': out[name] = "text"; break;
      case 'n': out[name] = std::int64_t{1 + d.below(4)}; break;
      default: out[name] = number(d, -2, 4); break;
    }
    const std::size_t space = text.find(' ', at);
    at = space == std::string::npos ? text.size() : space + 1;
  }
  return out;
}

// Until it goes this process may take a gigabyte: an output of billions of elements is then an error, not minutes of filling them. What watches memory takes more for itself: it has its own limit below.
struct little_memory {
  little_memory() {
    ::getrlimit(RLIMIT_AS, &before);
    rlimit little = before;
    little.rlim_cur = rlim_t{1} << 30;
    if (!is_sanitized) ::setrlimit(RLIMIT_AS, &little);
  }
  ~little_memory() { ::setrlimit(RLIMIT_AS, &before); }
  rlimit before{};
};

}  // namespace

#if WEFT_TESTS_SANITIZED
// Options of the sanitizers' runtime, which asks for them by these names, before it can watch a call.
#define WEFT_SANITIZER_OPTIONS "max_allocation_size_mb=256:allocator_may_return_null=1"
extern "C" const char* __asan_default_options();
extern "C" const char* __tsan_default_options();
extern "C" const char* __asan_default_options() { return WEFT_SANITIZER_OPTIONS; }
extern "C" const char* __tsan_default_options() { return WEFT_SANITIZER_OPTIONS; }
#endif

TEST_CASE("ops on arrays: random inputs give an answer that the shape rule foretold, or an error") {
  const little_memory limited;
  kernel_bench bench;
  std::set<std::string> answered;
  for (unsigned seed = 0; seed < 150; ++seed)
    for (const row& r : rows) {
      dice d(seed * 1000003U + static_cast<unsigned>(&r - rows));
      const dtype type = moved[d.below(13)];
      const dtype small = counted[d.below(2)];
      const shape base = random_shape(d, d.below(5));
      std::vector<tensor_value> values;
      std::vector<dtype> types;
      for (const char* kind = r.inputs; *kind != '\0'; ++kind) {
        values.push_back(input(d, *kind, type, small, base));
        types.push_back(values.back().dtype());
      }
      const auto before = values;
      CAPTURE(r.op);
      CAPTURE(seed);
      try {
        const weft::node& n = bench.add(r.op, types, attributes(d, r.attrs));
        const auto outputs = bench.run(n, values);
        answered.insert(r.op);
        for (std::size_t i = 0; i < outputs.size(); ++i) {
          CHECK(outputs[i].dtype() == n.output_dtype(static_cast<int>(i)));
          CHECK(n.output_shape(static_cast<int>(i)).accepts(outputs[i].shape()));
        }
        for (std::size_t i = 0; i < before.size(); ++i) CHECK(before[i] == values[i]);
      } catch (const weft::error& e) {
        CHECK(!e.message().empty());
        const bool known = e.code() == weft::error_code::invalid_argument || e.code() == weft::error_code::unimplemented || e.code() == weft::error_code::resource_exhausted;
        CHECK_MESSAGE(known, e.what());
      }
    }
  for (const row& r : rows) {  // each must have met inputs that fit it
    CAPTURE(r.op);
    CHECK(answered.count(r.op) == 1);
  }
}
