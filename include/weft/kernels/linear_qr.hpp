#ifndef WEFT_KERNELS_LINEAR_QR_HPP
#define WEFT_KERNELS_LINEAR_QR_HPP
// The kernel of the QR decomposition, by Householder reflections in double precision.

#include <weft/kernels/element_types.hpp>
#include <weft/kernels/function_kernel.hpp>
#include <weft/kernels/simd.hpp>
#include <weft/ops/linear.hpp>
#include <weft/runtime/kernel.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weft::detail {
/// The factory of a QR decomposition; nullptr for other ops.
kernel_factory linear_qr_kernel(std::string_view op);
}  // namespace weft::detail

#if WEFT_HAS_KERNEL_BODIES
WEFT_SIMD_BEGIN
namespace weft::detail {

// Adds to `to`, of `count` elements, `by` times `x`.
inline void add_scaled(double* to, const double* x, double by, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) to[i] += by * x[i];
}
inline double inner_product(const double* a, const double* b, std::size_t count) {
  double sum = 0;
  for (std::size_t i = 0; i < count; ++i) sum += a[i] * b[i];
  return sum;
}

/// A matrix by columns, each of which is turned in place into R above its diagonal and, below, the vector of the reflection (whose first element is 1 and not kept).
struct reflected_matrix {
  double* data;
  std::size_t rows, columns;
  std::vector<double> scales;

  double* column(std::size_t j) const { return data + j * rows; }
  std::size_t steps() const { return std::min(rows, columns); }

  // Column k becomes a multiple of a unit vector from row k on; the first element changes its sign, so that nothing cancels.
  double reflect(std::size_t k) const {
    double* c = column(k) + k;
    const std::size_t tail = rows - k - 1;
    double largest = 0;
    for (std::size_t i = 1; i <= tail; ++i) largest = std::max(largest, std::abs(c[i]));
    if (!(largest > std::numeric_limits<double>::min())) return 0;
    const double unit = std::max(largest, std::abs(c[0]));
    double squares = 0;
    for (std::size_t i = 0; i <= tail; ++i) squares += (c[i] / unit) * (c[i] / unit);
    const double norm = unit * std::sqrt(squares), turned = c[0] >= 0 ? -norm : norm, first = c[0] - turned, scale = -first / turned;
    for (std::size_t i = 1; i <= tail; ++i) c[i] /= first;
    c[0] = turned;
    return scale;
  }
  // x, from row k on, less its part along the vector of reflection k, twice.
  void apply(std::size_t k, double* x) const {
    if (scales[k] == 0) return;
    const double* v = column(k) + k + 1;
    const std::size_t tail = rows - k - 1;
    const double along = scales[k] * (x[k] + inner_product(v, x + k + 1, tail));
    x[k] -= along;
    add_scaled(x + k + 1, v, -along, tail);
  }
  void decompose() {
    scales.assign(steps(), 0);
    for (std::size_t k = 0; k < steps(); ++k) {
      scales[k] = reflect(k);
      for (std::size_t j = k + 1; j < columns; ++j) apply(k, column(j));
    }
  }
};

template <class T> void load_columns(const T* from, double* to, std::size_t rows, std::size_t columns) {
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t j = 0; j < columns; ++j) to[j * rows + i] = static_cast<double>(from[i * columns + j]);
}

template <class T> void store_q(const reflected_matrix& m, double* column, T* q, std::size_t columns) {
  for (std::size_t j = 0; j < columns; ++j) {
    std::fill_n(column, m.rows, 0.);
    column[j] = 1;
    for (std::size_t k = m.steps(); k-- > 0;) m.apply(k, column);
    for (std::size_t i = 0; i < m.rows; ++i) q[i * columns + j] = static_cast<T>(column[i]);
  }
}
template <class T> void store_r(const reflected_matrix& m, T* r, std::size_t rows) {
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t j = 0; j < m.columns; ++j) r[i * m.columns + j] = i <= j && i < m.steps() ? static_cast<T>(m.column(j)[i]) : T(0);
}

template <class T> void decompose_all(const tensor_value& in, tensor_value& q, tensor_value& r, tensor_value& scratch) {
  const auto last = [](const tensor_value& v, int back) { return static_cast<std::size_t>(v.shape().end()[-back]); };
  const std::size_t rows = last(in, 2), columns = last(in, 1), q_columns = last(q, 1);
  if (q.elements() == 0 && r.elements() == 0) return;
  const std::size_t matrix = rows * columns, count = rows != 0 ? static_cast<std::size_t>(q.elements()) / (rows * std::max<std::size_t>(q_columns, 1)) : 0;
  for (std::size_t i = 0; i < count; ++i) {
    reflected_matrix m{scratch.mutable_data<double>() + rows, rows, columns, {}};
    load_columns(in.data<T>() + i * matrix, m.data, rows, columns);
    m.decompose();
    store_r(m, r.mutable_data<T>() + i * q_columns * columns, q_columns);
    store_q(m, scratch.mutable_data<double>(), q.mutable_data<T>() + i * rows * q_columns, q_columns);
  }
}

inline void compute_qr(kernel_context& context) {
  const dtype type = context.input(0).dtype();
  if (!is_floating(type)) context.fail(error_code::unimplemented, std::string("no kernel of this op takes elements of dtype ") + to_text(type));
  const std::vector<output_type> outs = outputs_now(context, qr_shape);
  const tensor_value in = widened(context.input(0));
  tensor_value q = context.allocate(in.dtype(), shape(outs[0].shape.sizes())), r = context.allocate(in.dtype(), shape(outs[1].shape.sizes()));
  const std::int64_t rows = in.shape().end()[-2], columns = in.shape().end()[-1];
  tensor_value scratch = context.allocate(dtype::float64, shape{columns + 1, rows});
  if (in.dtype() == dtype::float32) decompose_all<float>(in, q, r, scratch);
  else decompose_all<double>(in, q, r, scratch);
  context.set_output(0, narrowed(std::move(q), type));
  context.set_output(1, narrowed(std::move(r), type));
}

inline constexpr kernel_function linear_qr_functions[] = {{"Qr", compute_qr, 1, 2, kernel_cost::by_values}};

inline std::unique_ptr<kernel> make_linear_qr_kernel(const kernel_construction&) { return std::make_unique<function_kernel>(linear_qr_functions[0]); }
WEFT_DECL kernel_factory linear_qr_kernel(std::string_view op) { return find_function(linear_qr_functions, op) != nullptr ? &make_linear_qr_kernel : nullptr; }

}  // namespace weft::detail
WEFT_SIMD_END
#endif

#endif
