#include <weft/gradients/standard.hpp>

#include "difference_quotients.hpp"

#include <doctest/doctest.h>

#include <string>
#include <utility>
#include <vector>

using difference_quotients::argument;
using difference_quotients::check;
using difference_quotients::integers;
using difference_quotients::numbers;
using difference_quotients::real;
using difference_quotients::row;
using difference_quotients::truths;

namespace {

using sizes = std::vector<std::int64_t>;

/// A unary op and where its arguments lie.
struct unary {
  const char* op;
  double from, to;
};

}  // namespace

TEST_CASE("gradients of unary ops: as difference quotients, twice") {
  const unary ops[] = {{"Abs", 0.2, 2}, {"Acos", -0.8, 0.8}, {"Acosh", 1.2, 3}, {"Asin", -0.8, 0.8}, {"Asinh", -2, 2}, {"Atan", -2, 2}, {"Atanh", -0.8, 0.8}, {"Cos", -3, 3}, {"Cosh", -2, 2},
                       {"Digamma", 0.5, 3}, {"Elu", -2, 2}, {"Erf", -2, 2}, {"Erfc", -2, 2}, {"Exp", -2, 2}, {"Expm1", -2, 2}, {"Inv", 0.3, 2}, {"LeakyRelu", -2, 2}, {"Lgamma", 0.5, 3}, {"Log", 0.3, 3},
                       {"Log1p", -0.5, 2}, {"Neg", -2, 2}, {"Reciprocal", -2, -0.3}, {"Relu", -2, 2}, {"Relu6", -2, 8}, {"Rsqrt", 0.3, 3}, {"Selu", -2, 2}, {"Sigmoid", -3, 3}, {"Sin", -3, 3}, {"Sinh", -2, 2},
                       {"Softplus", -3, 3}, {"Sqrt", 0.3, 3}, {"Square", -2, 2}, {"Tan", -1, 1}, {"Tanh", -2, 2}, {"Identity", -1, 1}, {"Sign", 0.2, 2}};
  const sizes shapes[] = {{}, {5}, {2, 3}, {0, 2}, {1, 2, 2}};
  for (const unary& u : ops)
    for (const sizes& shape : shapes) check({u.op, {real(shape, u.from, u.to)}, {}, 2});
  check({"Softsign", {real({2, 3}, 0.2, 2)}, {}, 1});
}

TEST_CASE("gradients of binary ops: as difference quotients, summed where a side was repeated") {
  const char* ops[] = {"Add", "AddV2", "Sub", "Mul", "Div", "RealDiv", "DivNoNan", "MulNoNan", "Maximum", "Minimum", "Pow", "SquaredDifference", "Atan2", "Xlogy", "Xdivy"};
  const sizes pairs[][2] = {{{}, {}}, {{3}, {3}}, {{2, 3}, {3}}, {{2, 3}, {2, 1}}, {{1, 3}, {2, 1}}, {{3}, {2, 1, 3}}, {{}, {2, 2}}, {{2, 1, 3}, {4, 1}}, {{0, 3}, {3}}, {{1}, {1, 1}}};
  for (const char* op : ops)
    for (const auto& pair : pairs) check({op, {real(pair[0], 0.4, 2), real(pair[1], 0.4, 2)}, {}, 2});
  check({"FloorMod", {real({2, 3}, 3, 3.9), real({3}, 1.4, 1.45)}, {}, 1});
  check({"AddN", {real({2, 3}), real({2, 3}), real({2, 3})}, {}, 2});
  check({"AccumulateNV2", {real({2, 3}), real({2, 3}), real({2, 3})}, {{"shape", weft::partial_shape{2, 3}}}, 1});
}

TEST_CASE("gradients of reductions: as difference quotients") {
  for (const char* op : {"Sum", "Mean", "Prod", "Max", "Min", "EuclideanNorm"})
    for (const bool keep : {false, true})
      for (const sizes& axes : {sizes{}, sizes{0}, sizes{-1}, sizes{1, 0}, sizes{0, 1, 2}, sizes{2, 0}})
        check({op, {real({2, 3, 2}, 0.3, 2), integers({static_cast<std::int64_t>(axes.size())}, axes)}, {{"keep_dims", keep}}, keep ? 2 : 1});
  for (const char* op : {"Cumsum", "Cumprod"})
    for (const bool exclusive : {false, true})
      for (const bool reverse : {false, true}) check({op, {real({2, 4}, 0.3, 2), integers({}, {1})}, {{"exclusive", exclusive}, {"reverse", reverse}}, 1});
  check({"L2Loss", {real({2, 3})}, {}, 2});
  for (const char* op : {"SegmentSum", "SegmentMean", "SegmentProd", "SegmentMax", "SegmentMin"}) check({op, {real({4, 2}, 0.3, 2), integers({4}, {0, 0, 1, 3})}, {}, 1});
  for (const char* op : {"UnsortedSegmentSum", "UnsortedSegmentProd", "UnsortedSegmentMax", "UnsortedSegmentMin"}) {
    check({op, {real({5, 2}, 0.3, 2), integers({5}, {2, -1, 2, 0, 1}), integers({}, {3})}, {}, 1});
    check({op, {real({2, 3}, 0.3, 2), integers({2, 3}, {1, 0, 1, -1, 2, 1}), integers({}, {3})}, {}, 1});
  }
  for (const char* op : {"SparseSegmentSum", "SparseSegmentMean", "SparseSegmentSqrtN"}) check({op, {real({4, 2}), integers({3}, {3, 0, 3}), integers({3}, {0, 0, 1})}, {}, 1});
}

TEST_CASE("gradients of products: as difference quotients, for every transposition") {
  for (const bool a : {false, true})
    for (const bool b : {false, true}) {
      check({"MatMul", {real(a ? sizes{3, 2} : sizes{2, 3}), real(b ? sizes{4, 3} : sizes{3, 4})}, {{"transpose_a", a}, {"transpose_b", b}}, 2});
      check({"BatchMatMul", {real(a ? sizes{2, 3, 2} : sizes{2, 2, 3}), real(b ? sizes{2, 4, 3} : sizes{2, 3, 4})}, {{"adj_x", a}, {"adj_y", b}}, 1});
      check({"BatchMatMulV2", {real(a ? sizes{2, 1, 3, 2} : sizes{2, 1, 2, 3}), real(b ? sizes{3, 4, 3} : sizes{3, 3, 4})}, {{"adj_x", a}, {"adj_y", b}}, 2});
    }
}

TEST_CASE("gradients of QR decompositions: as difference quotients, twice, for square and tall matrices and batches") {
  const sizes shapes[] = {{1, 1}, {2, 2}, {3, 3}, {4, 1}, {5, 3}, {2, 4, 3}, {2, 1, 5, 5}, {0, 3, 2}, {3, 0}};
  for (const sizes& shape : shapes)
    for (const bool full : {false, true}) {
      row qr{"Qr", {real(shape)}, {{"full_matrices", full}}, 2};
      qr.open = false;
      if (!full || shape.back() == shape[shape.size() - 2]) check(qr);
    }
}

TEST_CASE("gradients of ops on shapes: as difference quotients") {
  check({"Fill", {integers({2}, {2, 3}), real({})}});
  check({"Reshape", {real({2, 3}), integers({2}, {3, -1})}, {}, 2});
  check({"ExpandDims", {real({2, 3}), integers({}, {1})}});
  check({"Squeeze", {real({2, 1, 3})}, {{"squeeze_dims", sizes{1}}}});
  check({"EnsureShape", {real({2, 3})}, {{"shape", weft::partial_shape{2, -1}}}});
  check({"BroadcastTo", {real({1, 3}), integers({3}, {2, 2, 3})}, {}, 2});
  check({"DepthToSpace", {real({1, 2, 1, 4})}, {{"block_size", 2}}});
  check({"SpaceToDepth", {real({1, 2, 4, 1})}, {{"block_size", 2}}});
  check({"Diag", {real({3})}});
  check({"DiagPart", {real({3, 3})}});
  check({"MatrixDiag", {real({2, 3})}});
  check({"MatrixDiagPart", {real({2, 3, 4})}});
  check({"MatrixBandPart", {real({3, 4}), integers({}, {1}, weft::dtype::int64), integers({}, {0}, weft::dtype::int64)}});
  check({"SpaceToBatchND", {real({1, 3, 4, 1}), integers({2}, {2, 2}), integers({2, 2}, {1, 0, 0, 0})}});
  check({"BatchToSpaceND", {real({4, 2, 2, 1}), integers({2}, {2, 2}), integers({2, 2}, {1, 0, 0, 1})}});
  check({"SpaceToBatch", {real({1, 3, 4, 1}), integers({2, 2}, {1, 0, 0, 0})}, {{"block_size", 2}}, 2});
  check({"BatchToSpace", {real({4, 2, 2, 1}), integers({2, 2}, {1, 0, 0, 1})}, {{"block_size", 2}}, 2});
  check({"MatrixSetDiag", {real({2, 3, 4}), real({2, 3})}, {}, 2});
  check({"MatrixSetDiag", {real({3, 2}), real({2})}});
  check({"ReverseV2", {real({2, 3}), integers({1}, {-1})}});
  check({"ReverseSequence", {real({2, 4}), integers({2}, {3, 1}, weft::dtype::int64)}, {{"seq_dim", 1}}});
  check({"Transpose", {real({2, 3, 4}), integers({3}, {2, 0, 1})}});
  check({"Tile", {real({2, 3}), integers({2}, {2, 3})}, {}, 2});
  check({"Pad", {real({2, 3}), integers({2, 2}, {1, 0, 2, 1})}});
  check({"PadV2", {real({2, 3}), integers({2, 2}, {1, 0, 2, 1}), real({}).constant()}});
  for (const char* mode : {"REFLECT", "SYMMETRIC"}) check({"MirrorPad", {real({3, 3}), integers({2, 2}, {1, 2, 2, 0})}, {{"mode", mode}}, 2});
  check({"Slice", {real({3, 4}), integers({2}, {1, 2}), integers({2}, {2, -1})}, {}, 2});
  check({"StridedSlice", {real({4, 5}), integers({2}, {3, 0}), integers({2}, {0, 4}), integers({2}, {-2, 2})}, {}, 2});
  check({"StridedSlice", {real({4, 5}), integers({3}, {1, 0, 2}), integers({3}, {2, 0, 3}), integers({3}, {1, 1, 1})}, {{"shrink_axis_mask", 1}, {"new_axis_mask", 2}}});
  check({"Concat", {integers({}, {1}), real({2, 1}), real({2, 3})}});
  check({"ConcatV2", {real({2, 1}), real({2, 3}), real({2, 2}), integers({}, {-1})}, {}, 2});
  check({"Split", {integers({}, {1}), real({2, 4})}, {{"num_split", 2}}});
  check({"Split", {integers({}, {1}), real({2, 4})}, {{"num_split", 1}}});
  check({"ConcatV2", {real({0, 2}), real({3, 2}), integers({}, {0})}});
  check({"IdentityN", {real({2}), integers({2}, {1, 2}), real({3})}});
  check({"SplitV", {real({2, 4}), integers({2}, {1, 3}), integers({}, {1})}, {{"num_split", 2}}});
  check({"Pack", {real({2, 3}), real({2, 3})}, {{"axis", 1}}, 2});
  check({"Unpack", {real({2, 3})}, {{"num", 3}, {"axis", -1}}, 2});
}

TEST_CASE("gradients of ops that choose elements: as difference quotients") {
  check({"Gather", {real({4, 2}), integers({2, 2}, {3, 0, 3, 1})}});
  check({"GatherV2", {real({4, 2}), integers({3}, {3, 0, 3}), integers({}, {0})}});
  check({"GatherV2", {real({2, 4, 2}), integers({3}, {3, 0, 3}), integers({}, {1})}, {}, 2});
  check({"GatherV2", {real({2, 4}), integers({2, 2}, {3, 0, 3, 1}), integers({}, {-1})}});
  check({"GatherV2", {real({2, 3, 2}), integers({2, 2}, {2, 0, 1, 1}), integers({}, {1})}, {{"batch_dims", 1}}});
  check({"GatherV2", {real({2, 2, 3}), integers({2, 2}, {2, 0, 1, 1}), integers({}, {-1})}, {{"batch_dims", 1}}});
  check({"GatherNd", {real({3, 2}), integers({2, 2}, {2, 1, 0, 0})}, {}, 2});
  check({"GatherNd", {real({3, 2}), integers({3, 1}, {2, 0, 2})}});
  check({"ScatterNd", {integers({2, 1}, {2, 0}), real({2, 2}), integers({2}, {4, 2})}});
  check({"TensorScatterUpdate", {real({4, 2}), integers({2, 1}, {2, 0}), real({2, 2})}});
  check({"TensorScatterAdd", {real({4, 2}), integers({2, 1}, {2, 0}), real({2, 2})}});
  check({"TensorScatterSub", {real({4, 2}), integers({2, 1}, {2, 0}), real({2, 2})}});
  check({"Select", {truths({2, 2}, {true, false, false, true}), real({2, 2}), real({2, 2})}});
  check({"Select", {truths({2}, {true, false}), real({2, 2}), real({2, 2})}});
  check({"SelectV2", {truths({2}, {true, false}), real({3, 1}), real({2})}, {}, 2});
  check({"DynamicPartition", {real({4, 2}), integers({4}, {1, 0, 1, 1})}, {{"num_partitions", 2}}});
  check({"DynamicStitch", {integers({2}, {3, 0}), integers({2}, {1, 2}), real({2, 2}), real({2, 2})}, {{"N", 2}}});
  check({"TopKV2", {real({2, 4}), integers({}, {2})}});
}

TEST_CASE("gradients of the ops of neural networks: as difference quotients") {
  for (const char* op : {"Softmax", "LogSoftmax"}) check({op, {real({2, 4})}, {}, 2});
  // The fused op takes the labels of a row to sum to one.
  check({"SoftmaxCrossEntropyWithLogits", {real({2, 3}), numbers({2, 3}, {0.2, 0.3, 0.5, 1, 0, 0})}, {}, 2, 1});
  check({"SoftmaxCrossEntropyWithLogits", {numbers({2, 3}, {0.5, -1, 2, 0, 1, 1}), real({2, 3}, 0.1, 1)}, {}, 1, 1});
  check({"SparseSoftmaxCrossEntropyWithLogits", {real({2, 3}), integers({2}, {2, 0}, weft::dtype::int64)}, {}, 2, 1});
  check({"BiasAdd", {real({2, 3, 2}), real({2})}, {}, 2});
  check({"BiasAdd", {real({2, 3, 2}), real({3})}, {{"data_format", "NCHW"}}, 2});
  check({"BiasAddV1", {real({2, 3}), real({3})}});
  const std::vector<std::int64_t> strides{1, 2, 1, 1}, ones{1, 1, 1, 1}, window{1, 2, 2, 1};
  for (const char* padding : {"SAME", "VALID"}) {
    check({"Conv2D", {real({1, 4, 3, 2}), real({2, 2, 2, 2})}, {{"strides", strides}, {"padding", padding}}, 2});
    check({"DepthwiseConv2dNative", {real({1, 4, 3, 2}), real({2, 2, 2, 1})}, {{"strides", ones}, {"padding", padding}}, 2});
    check({"MaxPool", {real({1, 4, 3, 2})}, {{"ksize", window}, {"strides", strides}, {"padding", padding}}, 2});
    check({"AvgPool", {real({1, 4, 3, 2})}, {{"ksize", window}, {"strides", strides}, {"padding", padding}}, 2});
  }
  row norm{"FusedBatchNorm", {real({2, 2, 2, 3}), real({3}, 0.5, 2), real({3}), real({0}).constant(), real({0}).constant()}, {{"is_training", true}, {"epsilon", 0.01f}}, 1, 1};
  norm.type = weft::dtype::float32;
  check(norm);
  // Its gradient once more: with statistics that are given, the gradient op by itself too.
  const std::vector<std::pair<std::string, sizes>> formats{{"NHWC", {2, 2, 2, 3}}, {"NCHW", {2, 3, 2, 2}}, {"NDHWC", {2, 1, 2, 2, 3}}, {"NCDHW", {2, 3, 2, 1, 2}}};
  for (const auto& format : formats) {
    const argument x = real(format.second), scale = real({3}, 0.5, 2), offset = real({3}), mean = offset.constant(), variance = scale.constant(), unused = real({}).constant();
    for (const bool training : {true, false}) check({"FusedBatchNormV3", {x, scale, offset, mean, variance}, {{"is_training", training}, {"epsilon", 0.1f}, {"data_format", format.first}}, 2, 1, weft::dtype::float32});
    check({"FusedBatchNormGradV3", {x, x, scale, mean, variance, unused}, {{"is_training", false}, {"epsilon", 0.1f}, {"data_format", format.first}}, 2, 3, weft::dtype::float32});
    if (format.first.size() == 4)
      for (const char* op : {"FusedBatchNormGrad", "FusedBatchNormGradV2"}) check({op, {x, x, scale, mean, variance}, {{"is_training", false}, {"epsilon", 0.1f}, {"data_format", format.first}}, 1, 3, weft::dtype::float32});
  }
  row lrn{"LRN", {real({1, 2, 1, 5})}, {{"depth_radius", 1}, {"alpha", 0.5f}}};
  lrn.type = weft::dtype::float32;
  check(lrn);
}

TEST_CASE("gradients: every op has a rule, or is declared to have none, as in TensorFlow") {
  const weft::gradient_registry& rules = weft::standard_gradients();
  for (const char* op : {"Mod", "TruncateMod", "SoftsignGrad", "Bitcast", "Where", "AssignVariableOp", "All", "Unique"}) CHECK(!rules.has(op));
  for (const char* op : {"Shape", "OneHot", "Greater", "RandomUniform", "StopGradient", "VarIsInitializedOp"}) CHECK((rules.has(op) && rules.find(op) == nullptr));
  for (const char* op : {"Floor", "Round", "ArgMax"}) CHECK((rules.find(op) != nullptr));
}
