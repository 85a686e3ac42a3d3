// Softmax and convolutions beside oneDNN, one thread each, in the same run. Link with -ldnnl.

#undef WEFT_SEPARATE_COMPILATION  // loops are templates, compiled where they are measured
#include <weft/kernels/nn.hpp>
#include <weft/kernels/nn_conv.hpp>
#include <weft/kernels/nn_norm.hpp>
#include <weft/kernels/nn_pool.hpp>

#include "measure.hpp"

#include <random>
#include <string>
#include <vector>

namespace d = weft::detail;

namespace {

std::vector<float> numbers(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<float> out(count);
  for (float& value : out) value = static_cast<float>(random()) * 0x1p-31f - 1.f;
  return out;
}

/// A convolution with SAME padding over images of equal sides.
struct images {
  std::int64_t batch, side, channels, outputs, window, stride;
};

d::convolution plan_of(const images& i) {
  d::convolution c;
  const std::int64_t out = (i.side + i.stride - 1) / i.stride, padding = std::max<std::int64_t>(0, (out - 1) * i.stride + i.window - i.side);
  c.in = {i.batch, i.side, i.side, i.channels};
  c.out = {i.batch, out, out, i.outputs};
  c.rows.size = c.columns.size = i.window;
  c.rows.stride = c.columns.stride = i.stride;
  c.rows_before = c.columns_before = padding / 2;
  c.depth = i.channels;
  c.outputs = i.outputs;
  return c;
}

#if WITH_ONEDNN
using tag = dnnl::memory::format_tag;
using dims = dnnl::memory::dims;
dnnl::memory::desc described(const dims& sizes, tag order) { return {sizes, dnnl::memory::data_type::f32, order}; }

work_function peer_softmax(float* in, float* out) {
  const auto desc = matrix_desc(1000, 1000);
  const dnnl::softmax_forward::desc what(dnnl::prop_kind::forward_inference, desc, 1);
  const dnnl::softmax_forward primitive(dnnl::softmax_forward::primitive_desc(what, engine()));
  const dnnl::memory source(desc, engine(), in), target(desc, engine(), out);
  return [=] {
    primitive.execute(stream(), {{DNNL_ARG_SRC, source}, {DNNL_ARG_DST, target}});
    stream().wait();
  };
}

// Images channels last, as weft has them; the filter in the peer's own order, which is made once.
work_function peer_convolution(const images& i, float* in, float* filter, float* out) {
  const d::convolution c = plan_of(i);
  const std::int64_t padding = std::max<std::int64_t>(0, (c.out.rows - 1) * i.stride + i.window - i.side);
  const dims source_dims{i.batch, i.channels, i.side, i.side}, filter_dims{i.outputs, i.channels, i.window, i.window}, target_dims{i.batch, i.outputs, c.out.rows, c.out.columns};
  const dims strides{i.stride, i.stride}, before{padding / 2, padding / 2}, after{padding - padding / 2, padding - padding / 2};
  const dnnl::convolution_forward::desc what(dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_auto, described(source_dims, tag::nhwc), described(filter_dims, tag::any),
                                             described(target_dims, tag::nhwc), strides, before, after);
  const dnnl::convolution_forward::primitive_desc found(what, engine());
  const dnnl::convolution_forward primitive(found);
  const dnnl::memory source(described(source_dims, tag::nhwc), engine(), in), target(described(target_dims, tag::nhwc), engine(), out);
  dnnl::memory plain(described(filter_dims, tag::hwio), engine(), filter), ordered(found.weights_desc(), engine());
  dnnl::reorder(plain, ordered).execute(stream(), plain, ordered);
  stream().wait();
  return [=] {
    primitive.execute(stream(), {{DNNL_ARG_SRC, source}, {DNNL_ARG_WEIGHTS, ordered}, {DNNL_ARG_DST, target}});
    stream().wait();
  };
}
#endif

void convolutions() {
  for (const images& i : {images{32, 28, 16, 32, 3, 1}, images{32, 28, 16, 32, 3, 2}, images{32, 28, 1, 16, 5, 1}, images{8, 56, 64, 64, 3, 1}, images{8, 14, 256, 256, 3, 1}, images{8, 28, 256, 64, 1, 1}}) {
    const d::convolution c = plan_of(i);
    const std::size_t in_count = static_cast<std::size_t>(i.batch * i.side * i.side * i.channels), out_count = static_cast<std::size_t>(i.batch * c.out.rows * c.out.columns * i.outputs);
    const std::size_t filter_count = static_cast<std::size_t>(i.window * i.window * i.channels * i.outputs);
    std::vector<float> in = numbers(in_count, 1), filter = numbers(filter_count, 2), out(out_count), peer(out_count);
    const std::string name = std::to_string(i.batch) + "x" + std::to_string(i.side) + "x" + std::to_string(i.side) + "x" + std::to_string(i.channels) + " -> " + std::to_string(i.outputs) + ", " +
                             std::to_string(i.window) + "x" + std::to_string(i.window) + (i.stride > 1 ? ", stride 2" : "");
    const double work = 2e-9 * static_cast<double>(out_count) * static_cast<double>(c.window());
    report(
        "conv2d " + name, "GFLOP/s", work, [&] { d::convolve<float>(c, in.data(), filter.data(), out.data(), nullptr); }, PEER(peer_convolution(i, in.data(), filter.data(), peer.data())));
    for (std::size_t at = 0; WITH_ONEDNN && at < out_count; ++at)
      if (std::abs(out[at] - peer[at]) > 1e-3f) {
        std::printf("weft and the peer differ: %g and %g\n", static_cast<double>(out[at]), static_cast<double>(peer[at]));
        break;
      }
    report(
        "conv2d, gradient of the images " + name, "GFLOP/s", work, [&] { d::convolve_back_to_input<float>(c, out.data(), filter.data(), in.data(), nullptr); }, work_function());
    report(
        "conv2d, gradient of the filter " + name, "GFLOP/s", work, [&] { d::convolve_back_to_filter<float>(c, in.data(), out.data(), filter.data(), nullptr); }, work_function());
  }
}

}  // namespace

int main(int, char** argv) {
  use_one_thread(argv);
  std::vector<float> in = numbers(1000 * 1000, 1), out(in.size()), peer(in.size());
  report(
      "softmax 1000x1000", "us", 0, [&] { d::softmax_rows<float>(in.data(), out.data(), 1000, 1000, false); }, PEER(peer_softmax(in.data(), peer.data())));
  report(
      "log softmax 1000x1000", "us", 0, [&] { d::softmax_rows<float>(in.data(), out.data(), 1000, 1000, true); }, work_function());
  report(
      "softmax 100000x10", "us", 0, [&] { d::softmax_rows<float>(in.data(), out.data(), 100000, 10, false); }, work_function());
  report(
      "bias_add 100000x10", "us", 0, [&] { d::add_bias<float>(in.data(), peer.data(), out.data(), 100000, 10, 1); }, work_function());
  convolutions();
}
