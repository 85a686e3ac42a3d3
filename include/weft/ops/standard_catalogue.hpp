#ifndef WEFT_OPS_STANDARD_CATALOGUE_HPP
#define WEFT_OPS_STANDARD_CATALOGUE_HPP
// Which kernels a task has when nothing was added to the standard ones: plain data, for placing a graph without seeing a kernel.

#include <weft/core/config.hpp>
#include <weft/graph/kernel_catalogue.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weft {

/// The catalogue of the standard kernels.
const kernel_catalogue& standard_catalogue();

#if WEFT_HAS_BODIES
namespace detail::catalogue {
// A set of dtypes, one bit for each by its number.
using dtype_set = std::uint32_t;
template <class... Types> constexpr dtype_set dtypes(Types... types) noexcept { return (dtype_set(0) | ... | (dtype_set(1) << static_cast<unsigned>(types))); }

inline constexpr dtype_set floats = dtypes(dtype::float32, dtype::float64, dtype::half, dtype::bfloat16);
inline constexpr dtype_set signed_integers = dtypes(dtype::int8, dtype::int16, dtype::int32, dtype::int64);
inline constexpr dtype_set integers = signed_integers | dtypes(dtype::uint8, dtype::uint16, dtype::uint32, dtype::uint64);
inline constexpr dtype_set numbers = floats | integers;
inline constexpr dtype_set numbers_and_string = numbers | dtypes(dtype::string);
inline constexpr dtype_set numbers_and_bool = numbers | dtypes(dtype::boolean);
inline constexpr dtype_set values = numbers_and_bool | dtypes(dtype::string);
inline constexpr dtype_set complex = dtypes(dtype::complex64, dtype::complex128);
// What kernels move without looking at it.
inline constexpr dtype_set movable = values | complex;

// Ops, separated by spaces, that have a kernel on the CPU for these dtypes of these attributes (also separated by spaces).
struct kernel_row {
  const char* ops;
  const char* attrs;
  dtype_set types;
};

inline constexpr kernel_row standard_kernel_rows[] = {
    // Elementwise.
    {"Add AddV2", "T", numbers_and_string},
    {"Sub Mul Div RealDiv FloorDiv TruncateDiv Mod FloorMod TruncateMod Maximum Minimum SquaredDifference AddN AccumulateNV2", "T", numbers},
    {"DivNoNan MulNoNan Xdivy Xlogy Atan2", "T", floats},
    {"Polygamma", "T", dtypes(dtype::float32, dtype::float64)},
    {"Pow Neg Abs Sign Round", "T", floats | signed_integers},
    {"BitwiseAnd BitwiseOr BitwiseXor LeftShift RightShift Invert", "T", integers},
    {"Less LessEqual Greater GreaterEqual ApproximateEqual", "T", numbers},
    {"Equal NotEqual", "T", values},
    {"LogicalAnd LogicalOr LogicalNot", "", 0},
    {"Square", "T", numbers},
    {"Reciprocal Inv Sqrt Rsqrt Exp Expm1 Log Log1p Sin Cos Tan Asin Acos Atan Sinh Cosh Tanh Asinh Acosh Atanh Sigmoid Erf Erfc Lgamma Digamma", "T", floats},
    {"Floor Ceil Rint IsNan IsInf IsFinite", "T", floats},
    {"Relu Relu6 ReluGrad Relu6Grad", "T", numbers},
    {"LeakyRelu Elu Selu Softplus Softsign LeakyReluGrad EluGrad SeluGrad SoftplusGrad SoftsignGrad", "T", floats},
    {"TanhGrad SigmoidGrad SqrtGrad RsqrtGrad ReciprocalGrad InvGrad", "T", floats},
    {"Cast", "SrcT DstT", numbers_and_bool},
    // Reductions and products.
    {"Sum Mean Prod Max Min EuclideanNorm Cumsum Cumprod", "T", numbers},
    {"All Any", "", 0},
    {"L2Loss", "T", floats},
    {"ArgMax ArgMin", "T", numbers_and_bool},
    {"Bincount", "T", dtypes(dtype::int32, dtype::int64, dtype::float32, dtype::float64)},
    {"SegmentSum SegmentMean SegmentProd SegmentMax SegmentMin", "T", numbers},
    {"UnsortedSegmentSum UnsortedSegmentProd UnsortedSegmentMax UnsortedSegmentMin", "T", numbers},
    {"SparseSegmentSum", "T", numbers},
    {"SparseSegmentMean SparseSegmentSqrtN", "T", floats},
    {"MatMul BatchMatMul BatchMatMulV2", "T", numbers},
    {"Qr", "T", dtypes(dtype::float32, dtype::float64, dtype::half)},
    // Arrays.
    {"Const Placeholder PlaceholderV2 PlaceholderWithDefault", "dtype", movable},
    {"Identity StopGradient PreventGradient Snapshot Shape ShapeN Size Rank", "T", movable | dtypes(dtype::resource)},
    {"IdentityN", "", 0},
    {"Reshape ExpandDims Squeeze EnsureShape DeepCopy ZerosLike Fill BroadcastTo", "T", movable},
    {"OnesLike", "T", numbers_and_bool},
    {"CheckNumerics LinSpace", "T", floats},
    {"Bitcast", "T type", numbers | complex},
    {"Range", "Tidx", numbers ^ dtypes(dtype::uint8)},
    {"BroadcastArgs BroadcastGradientArgs InvertPermutation", "T", dtypes(dtype::int32, dtype::int64)},
    {"Concat ConcatV2 Pack Unpack Split SplitV Tile Pad PadV2 MirrorPad", "T", movable},
    {"ConcatOffset", "", 0},
    {"MirrorPadGrad", "T", numbers},
    {"Slice StridedSlice StridedSliceGrad TensorScatterUpdate ReverseV2 ReverseSequence", "T", movable},
    {"Gather GatherV2 GatherNd", "Tparams", movable},
    {"ScatterNd", "T", movable},
    {"TensorScatterAdd TensorScatterSub", "T", numbers | complex},
    {"TensorScatterMax TensorScatterMin", "T", numbers},
    {"Transpose SpaceToDepth DepthToSpace SpaceToBatchND BatchToSpaceND SpaceToBatch BatchToSpace MatrixDiag MatrixDiagPart MatrixSetDiag", "T", movable},
    {"MatrixBandPart", "T", numbers_and_bool | complex},
    {"Diag DiagPart", "T", floats | complex | dtypes(dtype::int32, dtype::int64)},
    {"Select SelectV2 OneHot DynamicPartition DynamicStitch ParallelDynamicStitch", "T", movable},
    {"Where", "T", numbers_and_bool | complex},
    {"TopK TopKV2", "T", numbers},
    {"Unique UniqueV2 UniqueWithCounts UniqueWithCountsV2 ListDiff", "T", movable},
    // Neural networks.
    {"BiasAdd BiasAddV1 BiasAddGrad", "T", numbers},
    {"Softmax LogSoftmax SoftmaxCrossEntropyWithLogits SparseSoftmaxCrossEntropyWithLogits", "T", floats},
    {"InTopK InTopKV2", "T", dtypes(dtype::int32, dtype::int64)},
    {"FusedBatchNorm FusedBatchNormGrad", "T", dtypes(dtype::float32)},
    {"FusedBatchNormV2 FusedBatchNormV3 FusedBatchNormGradV2 FusedBatchNormGradV3", "T", dtypes(dtype::float32, dtype::half, dtype::bfloat16)},
    {"LRN LRNGrad", "T", dtypes(dtype::float32, dtype::half, dtype::bfloat16)},
    {"Conv2D Conv2DBackpropInput", "T", floats | dtypes(dtype::int32)},
    {"Conv2DBackpropFilter DepthwiseConv2dNative DepthwiseConv2dNativeBackpropInput DepthwiseConv2dNativeBackpropFilter", "T", floats},
    {"AvgPool AvgPoolGrad", "T", floats},
    {"MaxPool MaxPoolGrad MaxPoolGradGrad", "T", numbers},
    // Random numbers.
    {"RandomUniform RandomStandardNormal TruncatedNormal StatelessRandomUniform StatelessRandomNormal StatelessTruncatedNormal", "dtype", floats},
    {"RandomUniformInt", "Tout", dtypes(dtype::int32, dtype::int64)},
    {"StatelessRandomUniformInt", "dtype", dtypes(dtype::int32, dtype::int64)},
    {"StatelessRandomUniformFullInt", "dtype", dtypes(dtype::int32, dtype::int64, dtype::uint32, dtype::uint64)},
    {"RandomShuffle", "T", values},
    {"Multinomial", "T", numbers},
    // State.
    {"VarHandleOp ReadVariableOp AssignVariableOp", "dtype", values},
    {"AssignAddVariableOp AssignSubVariableOp", "dtype", numbers},
    {"VarIsInitializedOp DestroyResourceOp VariableShape", "", 0},
    {"ResourceGather ResourceGatherNd ResourceScatterUpdate", "dtype", values},
    {"ResourceScatterAdd ResourceScatterSub ResourceScatterMul ResourceScatterDiv ResourceScatterMin ResourceScatterMax", "dtype", numbers},
    {"ResourceScatterNdUpdate", "T", values},
    {"ResourceScatterNdAdd ResourceScatterNdSub ResourceScatterNdMin ResourceScatterNdMax", "T", numbers},
    {"ResourceCountUpTo", "T", dtypes(dtype::int32, dtype::int64)},
    {"ResourceApplyGradientDescent ResourceApplyProximalGradientDescent ResourceApplyMomentum ResourceApplyKerasMomentum ResourceApplyAdagrad ResourceApplyAdagradV2 ResourceApplyAdagradDA "
     "ResourceApplyProximalAdagrad ResourceApplyAdadelta ResourceApplyRMSProp ResourceApplyCenteredRMSProp ResourceApplyAdam ResourceApplyAdamWithAmsgrad ResourceApplyAdaMax ResourceApplyFtrl ResourceApplyFtrlV2 "
     "ResourceApplyAddSign ResourceApplyPowerSign", "T", floats},
    {"ResourceSparseApplyProximalGradientDescent ResourceSparseApplyMomentum ResourceSparseApplyKerasMomentum ResourceSparseApplyAdagrad ResourceSparseApplyAdagradV2 "
     "ResourceSparseApplyAdagradDA ResourceSparseApplyProximalAdagrad ResourceSparseApplyAdadelta ResourceSparseApplyRMSProp ResourceSparseApplyCenteredRMSProp ResourceSparseApplyFtrl "
     "ResourceSparseApplyFtrlV2", "T", floats},
    // Queues and accumulators.
    {"FIFOQueueV2 PaddingFIFOQueueV2 RandomShuffleQueueV2 PriorityQueueV2 QueueEnqueueV2 QueueEnqueueManyV2 QueueDequeueV2 QueueDequeueManyV2 QueueDequeueUpToV2 QueueCloseV2 QueueSizeV2 "
     "QueueIsClosedV2", "", 0},
    {"ConditionalAccumulator AccumulatorApplyGradient AccumulatorTakeGradient ResourceConditionalAccumulator ResourceAccumulatorApplyGradient ResourceAccumulatorTakeGradient "
     "SparseConditionalAccumulator SparseAccumulatorApplyGradient SparseAccumulatorTakeGradient", "dtype", floats},
    {"_StepBarrier _StepBarrierArrive _StepBarrierWait _StepBarrierReady _StepBarrierInterrupt _StepBarrierLeave _StepBarrierAdvance", "", 0},
    {"AccumulatorNumAccumulated AccumulatorSetGlobalStep ResourceAccumulatorNumAccumulated ResourceAccumulatorSetGlobalStep", "", 0},
    // Control, and what the executor carries out itself.
    {"NoOp ControlTrigger Assert Print PrintV2", "", 0},
    {"_Arg _Retval _Send _Recv", "", 0},
    {"_Fused", "T", dtypes(dtype::float32, dtype::float64)},
};

inline std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> out;
  while (!text.empty()) {
    const auto space = text.find(' ');
    out.push_back(text.substr(0, space));
    text = space == std::string_view::npos ? std::string_view() : text.substr(space + 1);
  }
  return out;
}

/// Calls `visit` with the catalogue entry of each op of the table, in its order.
template <class Visit> void for_each_standard_kernel(Visit visit) {
  for (const kernel_row& row : standard_kernel_rows) {
    std::vector<dtype> types;
    for (unsigned number = 1; number < 32; ++number)
      if ((row.types >> number & 1U) != 0) types.push_back(static_cast<dtype>(number));
    for (const std::string_view op : words_of(row.ops)) {
      kernel_entry entry;
      entry.op = std::string(op);
      entry.device_type = "CPU";
      for (const std::string_view attr : words_of(row.attrs)) entry.constraints.emplace(attr, types);
      visit(std::move(entry));
    }
  }
}
}  // namespace detail::catalogue

WEFT_DECL const kernel_catalogue& standard_catalogue() {
  static const kernel_catalogue catalogue = [] {
    kernel_catalogue out;
    detail::catalogue::for_each_standard_kernel([&](kernel_entry entry) { out.add(std::move(entry)); });
    return out;
  }();
  return catalogue;
}
#endif

}  // namespace weft

#endif
