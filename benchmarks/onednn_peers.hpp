#ifndef WEFT_BENCHMARKS_ONEDNN_PEERS_HPP
#define WEFT_BENCHMARKS_ONEDNN_PEERS_HPP
// oneDNN's work beside which elementwise ops, sums and products are measured: on matrices of 1000 x 1000 floats, products of any size.

#include "measure.hpp"

#if WITH_ONEDNN
inline work_function peer_eltwise(dnnl::algorithm algorithm, float alpha, float beta, float* in, float* out) {
  const auto desc = matrix_desc(1000, 1000);
  const dnnl::eltwise_forward::desc what(dnnl::prop_kind::forward_inference, algorithm, desc, alpha, beta);
  const dnnl::eltwise_forward primitive(dnnl::eltwise_forward::primitive_desc(what, engine()));
  const dnnl::memory source(desc, engine(), in), target(desc, engine(), out);
  return [=] {
    primitive.execute(stream(), {{DNNL_ARG_SRC, source}, {DNNL_ARG_DST, target}});
    stream().wait();
  };
}

inline work_function peer_add(std::size_t b_rows, std::size_t b_columns, float* a, float* b, float* out) {
  const auto desc = matrix_desc(1000, 1000), b_desc = matrix_desc(b_rows, b_columns);
  const dnnl::binary::desc what(dnnl::algorithm::binary_add, desc, b_desc, desc);
  const dnnl::binary primitive(dnnl::binary::primitive_desc(what, engine()));
  const dnnl::memory left(desc, engine(), a), right(b_desc, engine(), b), target(desc, engine(), out);
  return [=] {
    primitive.execute(stream(), {{DNNL_ARG_SRC_0, left}, {DNNL_ARG_SRC_1, right}, {DNNL_ARG_DST, target}});
    stream().wait();
  };
}

inline work_function peer_sum(std::size_t out_rows, std::size_t out_columns, float* in, float* out) {
  const auto desc = matrix_desc(1000, 1000), out_desc = matrix_desc(out_rows, out_columns);
  const dnnl::reduction::desc what(dnnl::algorithm::reduction_sum, desc, out_desc, 0.f, 0.f);
  const dnnl::reduction primitive(dnnl::reduction::primitive_desc(what, engine()));
  const dnnl::memory source(desc, engine(), in), target(out_desc, engine(), out);
  return [=] {
    primitive.execute(stream(), {{DNNL_ARG_SRC, source}, {DNNL_ARG_DST, target}});
    stream().wait();
  };
}

inline work_function peer_matmul(std::size_t m, std::size_t k, std::size_t n, const float* a, const float* b, float* c, char a_order,
                          char b_order) {
  const auto rows = static_cast<dnnl_dim_t>(m), inner = static_cast<dnnl_dim_t>(k), columns = static_cast<dnnl_dim_t>(n);
  return [=] {
    dnnl_sgemm(a_order, b_order, rows, columns, inner, 1.f, a, a_order == 'N' ? inner : rows, b, b_order == 'N' ? columns : inner, 0.f, c,
               columns);
  };
}
#endif

#endif
