#ifndef WEFT_KERNELS_ONEDNN_HPP
#define WEFT_KERNELS_ONEDNN_HPP
// Opt-in: float matrix products, convolutions and softmax by oneDNN (2 or 3) in place of weft's own loops. Nothing else includes this header; a program that does links with
// -ldnnl, and hands `with_onednn()` to a session or a server as its kernels.

#include <weft/core/config.hpp>
#include <weft/runtime/kernel.hpp>

namespace weft {

/// These kernels and, preferred to them, oneDNN's for float MatMul, Conv2D and Softmax. What oneDNN does not take (empty tensors, groups, channels first) weft computes itself.
kernel_registry with_onednn(kernel_registry kernels);
/// The standard kernels with oneDNN's in front of them.
kernel_registry with_onednn();

}  // namespace weft

#if WEFT_HAS_KERNEL_BODIES
#include <weft/kernels/linear.hpp>
#include <weft/kernels/nn.hpp>
#include <weft/kernels/nn_conv.hpp>
#include <weft/kernels/nn_convolution.hpp>
#include <weft/kernels/standard.hpp>

#include <oneapi/dnnl/dnnl.hpp>

#include <algorithm>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

namespace weft::detail {

inline const dnnl::engine& onednn_engine() {
  static const dnnl::engine cpu(dnnl::engine::kind::cpu, 0);
  return cpu;
}
inline dnnl::memory::desc onednn_desc(const dnnl::memory::dims& sizes, dnnl::memory::format_tag order) { return {sizes, dnnl::memory::data_type::f32, order}; }
inline dnnl::memory onednn_memory(const dnnl::memory::desc& desc, const void* data) { return {desc, onednn_engine(), const_cast<void*>(data)}; }

/// A kernel that leaves to weft's own what it does not take.
class onednn_kernel : public kernel {
 public:
  onednn_kernel(const kernel_construction& what, kernel_factory own) : own_(own(what)) {}
  void compute(kernel_context& context) final {
    try {
      if (run(context)) return;
    } catch (const dnnl::error& e) {
      if (e.status != dnnl_unimplemented) context.fail(error_code::internal, std::string("oneDNN: ") + e.what());
    }
    own_->compute(context);
  }
  bool expensive(const kernel_context& context) const noexcept final { return own_->expensive(context); }

 protected:
  /// Computes the outputs, or returns false before it touches one.
  virtual bool run(kernel_context& context) = 0;

 private:
  std::unique_ptr<kernel> own_;
};

class onednn_matmul final : public onednn_kernel {
 public:
  explicit onednn_matmul(const kernel_construction& what)
      : onednn_kernel(what, linear_kernel("MatMul")), transpose_a_(what.about.attr<bool>("transpose_a")), transpose_b_(what.about.attr<bool>("transpose_b")) {}

 private:
  bool run(kernel_context& context) override {
    if (context.input_count() != 2 || context.input(0).dtype() != dtype::float32 || context.input(1).dtype() != dtype::float32) return false;
    const shape a = context.input(0).shape(), b = context.input(1).shape();
    if (a.rank() != 2 || b.rank() != 2 || a.elements() == 0 || b.elements() == 0 || a[transpose_a_ ? 0 : 1] != b[transpose_b_ ? 1 : 0]) return false;
    const std::int64_t m = a[transpose_a_ ? 1 : 0], n = b[transpose_b_ ? 0 : 1], k = a[transpose_a_ ? 0 : 1];
    tensor_value out = context.allocate(dtype::float32, shape{m, n});
    const dnnl_status_t status = dnnl_sgemm(transpose_a_ ? 'T' : 'N', transpose_b_ ? 'T' : 'N', m, n, k, 1.f, context.input(0).data<float>(), a[1], context.input(1).data<float>(), b[1], 0.f,
                                            out.mutable_data<float>(), n);
    if (status != dnnl_success) return false;
    context.set_output(0, std::move(out));
    return true;
  }
  bool transpose_a_, transpose_b_;
};

/// The primitive for shapes that a node saw last; most nodes see no others.
template <class Prepared> class onednn_last {
 public:
  template <class Make> std::shared_ptr<const Prepared> find(const shape& a, const shape& b, Make make) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (last_ == nullptr || a_ != a || b_ != b) {
      last_ = std::make_shared<const Prepared>(make());
      a_ = a;
      b_ = b;
    }
    return last_;
  }

 private:
  std::mutex mutex_;
  shape a_, b_;
  std::shared_ptr<const Prepared> last_;
};

class onednn_softmax final : public onednn_kernel {
 public:
  explicit onednn_softmax(const kernel_construction& what) : onednn_kernel(what, nn_kernel("Softmax")) {}

 private:
  static dnnl::softmax_forward make(const dnnl::memory::desc& rows) {
#if DNNL_VERSION_MAJOR >= 3
    return dnnl::softmax_forward({onednn_engine(), dnnl::prop_kind::forward_inference, dnnl::algorithm::softmax_accurate, rows, rows, 1});
#else
    return dnnl::softmax_forward({{dnnl::prop_kind::forward_inference, rows, 1}, onednn_engine()});
#endif
  }
  bool run(kernel_context& context) override {
    if (context.input_count() != 1 || context.input(0).dtype() != dtype::float32 || context.input(0).shape().rank() < 1 || context.input(0).elements() == 0) return false;
    const shape s = context.input(0).shape();
    const std::int64_t columns = s[s.rank() - 1];
    const auto rows = onednn_desc({s.elements() / columns, columns}, dnnl::memory::format_tag::ab);
    const auto primitive = last_.find(s, s, [&] { return make(rows); });
    tensor_value out = context.allocate(dtype::float32, s);
    dnnl::stream stream(onednn_engine());
    primitive->execute(stream, {{DNNL_ARG_SRC, onednn_memory(rows, context.input(0).raw_data())}, {DNNL_ARG_DST, onednn_memory(rows, out.raw_data())}});
    stream.wait();
    context.set_output(0, std::move(out));
    return true;
  }
  onednn_last<dnnl::softmax_forward> last_;
};

class onednn_conv2d final : public onednn_kernel {
 public:
  explicit onednn_conv2d(const kernel_construction& what) : onednn_kernel(what, nn_conv_kernel("Conv2D")), attrs_(read_convolution(what.about, false)) {}

 private:
  struct prepared {
    convolution plan;
    dnnl::convolution_forward::primitive_desc desc;
    dnnl::convolution_forward primitive;
  };
  // The padding after an axis; less where the last places leave elements over.
  static std::int64_t padding_after(const window_axis& w, std::int64_t before, std::int64_t places, std::int64_t size) {
    return std::max<std::int64_t>(0, (places - 1) * w.stride + (w.size - 1) * w.dilation + 1 - size - before);
  }
  static prepared make(const convolution& c) {
    using tag = dnnl::memory::format_tag;
    const auto source = onednn_desc({c.in.batch, c.in.channels, c.in.rows, c.in.columns}, tag::nhwc), filter = onednn_desc({c.outputs, c.depth, c.rows.size, c.columns.size}, tag::any),
               target = onednn_desc({c.out.batch, c.outputs, c.out.rows, c.out.columns}, tag::nhwc);
    const dnnl::memory::dims strides{c.rows.stride, c.columns.stride}, dilations{c.rows.dilation - 1, c.columns.dilation - 1}, before{c.rows_before, c.columns_before},
        after{padding_after(c.rows, c.rows_before, c.out.rows, c.in.rows), padding_after(c.columns, c.columns_before, c.out.columns, c.in.columns)};
    constexpr auto kind = dnnl::prop_kind::forward_inference;
    constexpr auto algorithm = dnnl::algorithm::convolution_auto;
#if DNNL_VERSION_MAJOR >= 3
    const dnnl::convolution_forward::primitive_desc desc(onednn_engine(), kind, algorithm, source, filter, target, strides, dilations, before, after);
#else
    const dnnl::convolution_forward::primitive_desc desc({kind, algorithm, source, filter, target, strides, dilations, before, after}, onednn_engine());
#endif
    return {c, desc, dnnl::convolution_forward(desc)};
  }
  WEFT_INLINE bool run(kernel_context& context) override;
  window_attrs attrs_;
  onednn_last<prepared> last_;
};

inline bool onednn_conv2d::run(kernel_context& context) {
  if (context.input_count() != 2 || context.input(0).dtype() != dtype::float32 || context.input(1).dtype() != dtype::float32 || attrs_.channels_first) return false;
  const shape images = context.input(0).shape(), filter = context.input(1).shape();
  const convolution c = plan_convolution(context, attrs_, images, filter, false);
  constexpr std::int64_t most = 0x7fffffff;
  const std::int64_t sizes[] = {c.rows.size, c.columns.size, c.rows.dilation, c.columns.dilation, c.rows_before, c.columns_before, c.in.rows, c.in.columns};
  if (c.groups != 1 || context.input(0).elements() == 0 || context.input(1).elements() == 0 || c.out.shape(false).elements() == 0 || *std::max_element(std::begin(sizes), std::end(sizes)) > most / 4)
    return false;
  const auto p = last_.find(images, filter, [&] { return make(c); });
  tensor_value out = context.allocate(dtype::float32, c.out.shape(false));
  dnnl::stream stream(onednn_engine());
  // The filter may change from step to step: it is brought into oneDNN's order each time.
  dnnl::memory ordered(p->desc.weights_desc(), onednn_engine());
  dnnl::memory plain = onednn_memory(onednn_desc({c.outputs, c.depth, c.rows.size, c.columns.size}, dnnl::memory::format_tag::hwio), context.input(1).raw_data());
  dnnl::reorder(plain, ordered).execute(stream, plain, ordered);
  p->primitive.execute(stream, {{DNNL_ARG_SRC, onednn_memory(p->desc.src_desc(), context.input(0).raw_data())}, {DNNL_ARG_WEIGHTS, ordered}, {DNNL_ARG_DST, onednn_memory(p->desc.dst_desc(), out.raw_data())}});
  stream.wait();
  context.set_output(0, std::move(out));
  return true;
}

template <class K> std::unique_ptr<kernel> make_onednn_kernel(const kernel_construction& what) { return std::make_unique<K>(what); }

}  // namespace weft::detail

namespace weft {

WEFT_DECL kernel_registry with_onednn(kernel_registry kernels) {
  const std::pair<const char*, kernel_factory> ops[] = {{"MatMul", &detail::make_onednn_kernel<detail::onednn_matmul>},
                                                        {"Conv2D", &detail::make_onednn_kernel<detail::onednn_conv2d>},
                                                        {"Softmax", &detail::make_onednn_kernel<detail::onednn_softmax>}};
  for (const auto& [op, factory] : ops) {
    kernel_entry entry;
    entry.op = op;
    entry.device_type = "CPU";
    entry.constraints["T"] = {dtype::float32};
    entry.priority = 1;
    kernels.add(std::move(entry), factory);
  }
  return kernels;
}

WEFT_DECL kernel_registry with_onednn() { return with_onednn(standard_kernels()); }

}  // namespace weft
#endif

#endif
