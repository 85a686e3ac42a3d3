#ifndef WEFT_TESTS_GRADIENTS_DIFFERENCE_QUOTIENTS_HPP
#define WEFT_TESTS_GRADIENTS_DIFFERENCE_QUOTIENTS_HPP
// Compares what a gradient rule gives with central differences of the op itself: a weighted sum of the outputs, its gradient by the rule, and
// (in order 2) the same for a weighted sum of that gradient.

#include <weft/gradients.hpp>
#include <weft/session.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace difference_quotients {

/// One input of an op: random numbers that are differentiated for, or values that are not.
struct argument {
  std::vector<std::int64_t> shape;
  double from = 0, to = 0;
  weft::tensor_value value;
  bool differentiated = false;
  /// A number that the op does not depend on in a way that is differentiated.
  argument constant() const { argument a = *this; a.differentiated = false; return a; }
};
inline argument real(std::vector<std::int64_t> shape, double from = -1, double to = 1) { return {std::move(shape), from, to, {}, true}; }
inline argument integers(std::vector<std::int64_t> shape, const std::vector<std::int64_t>& values, weft::dtype type = weft::dtype::int32) {
  argument a{shape, 0, 0, weft::tensor_value(type, weft::shape(shape))};
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (type == weft::dtype::int64) a.value.mutable_data<std::int64_t>()[i] = values[i];
    else a.value.mutable_data<std::int32_t>()[i] = static_cast<std::int32_t>(values[i]);
  }
  return a;
}
inline argument numbers(std::vector<std::int64_t> shape, const std::vector<double>& values) { return {shape, 0, 0, weft::tensor_value::from<double>(weft::shape(shape), values)}; }
inline argument truths(std::vector<std::int64_t> shape, const std::vector<bool>& values) {
  argument a{shape, 0, 0, weft::tensor_value(weft::dtype::boolean, weft::shape(shape))};
  for (std::size_t i = 0; i < values.size(); ++i) a.value.mutable_data<bool>()[i] = values[i];
  return a;
}

/// One use of an op. `order` 2 also differentiates the gradient; `outputs` limits which outputs count (0: all of real numbers);
/// `open` also tries shapes that are not known while the graph is built.
struct row {
  std::string op;
  std::vector<argument> inputs;
  weft::attr_map attrs = {};
  int order = 1;
  int outputs = 0;
  weft::dtype type = weft::dtype::float64;
  bool open = true;
};

inline weft::tensor_value random_value(const std::vector<std::int64_t>& shape, double from, double to, weft::dtype type, std::mt19937& random) {
  weft::tensor_value v(type, weft::shape(shape));
  for (std::int64_t i = 0; i < v.elements(); ++i) {
    const double x = from + (to - from) * static_cast<double>(random()) / 4294967296.0;
    if (type == weft::dtype::float64) v.mutable_data<double>()[i] = x;
    else v.mutable_data<float>()[i] = static_cast<float>(x);
  }
  return v;
}
inline double element(const weft::tensor_value& v, std::int64_t i) { return v.dtype() == weft::dtype::float64 ? v.data<double>()[i] : static_cast<double>(v.data<float>()[i]); }
inline void set_element(weft::tensor_value& v, std::int64_t i, double x) {
  if (v.dtype() == weft::dtype::float64) v.mutable_data<double>()[i] = x;
  else v.mutable_data<float>()[i] = static_cast<float>(x);
}

/// A graph with the op in it, the values of its inputs, and the sum that is differentiated.
class experiment {
 public:
  experiment(const row& r, bool shapes_known, unsigned seed) : row_(r), random_(seed) {
    const auto scope = graph_.as_default();
    std::vector<weft::output> inputs;
    for (const argument& a : row_.inputs) inputs.push_back(add_input(a, shapes_known));
    weft::node_spec spec;
    spec.op = row_.op;
    spec.name = "op";
    spec.inputs = inputs;
    spec.attrs = row_.attrs;
    const weft::node& op = graph_.add(std::move(spec));
    weft::session session(options(), graph_);
    std::vector<weft::output> ys;
    for (int i = 0; i < op.output_count(); ++i)
      if (op.output_dtype(i) == row_.type && (row_.outputs == 0 || i < row_.outputs)) ys.push_back({&op, i});
    order(session, ys, 1);
    if (row_.order < 2) return;
    std::vector<weft::output> firsts;
    for (const auto& g : gradients_)
      if (!g.empty()) firsts.push_back(weft::detail::dense_gradient(g, {}));
    if (!firsts.empty()) order(session, firsts, 2);
  }

 private:
  static weft::session_options options() { return {}; }

  weft::output add_input(const argument& a, bool known) {
    weft::tensor_value value = a.value.empty() ? random_value(a.shape, a.from, a.to, row_.type, random_) : a.value;
    if (known && !a.differentiated) return {&weft::detail::add_const(value, {}), 0};
    weft::node_spec spec;
    spec.op = "Placeholder";
    spec.attrs = {{"dtype", value.dtype()}, {"shape", known ? weft::partial_shape(a.shape) : weft::partial_shape()}};
    const weft::output made{&graph_.add(std::move(spec)), 0};
    feeds_.emplace_back(made, value);
    if (a.differentiated) xs_.push_back(made);
    return made;
  }

  // Compares the gradient of the weighted sum of ys with its difference quotients.
  void order(weft::session& session, const std::vector<weft::output>& ys, int number) {
    CAPTURE(number);
    weft::gradient_options with;
    std::vector<weft::tensor_value> weights;
    for (const auto& y : session.run(weft::run_options(), feeds_, ys)) {
      weights.push_back(random_value(y.shape().vector(), 0.5, 1.5, row_.type, random_));
      with.grad_ys.emplace_back(weft::output{&weft::detail::add_const(weights.back(), {}), 0});
    }
    gradients_ = weft::gradients(ys, xs_, with);
    for (std::size_t k = 0; k < xs_.size(); ++k) {
      CAPTURE(k);
      weft::tensor_value found;
      if (!gradients_[k].empty()) found = session.run(weft::run_options(), feeds_, {weft::detail::dense_gradient(gradients_[k], {})})[0];
      compare(session, ys, weights, feed_of(xs_[k]), found);
    }
  }

  std::size_t feed_of(const weft::output& x) const {
    std::size_t i = 0;
    while (feeds_[i].to() != x) ++i;
    return i;
  }

  void compare(weft::session& session, const std::vector<weft::output>& ys, const std::vector<weft::tensor_value>& weights, std::size_t at, const weft::tensor_value& found) {
    const weft::feed original = feeds_[at];
    if (!found.empty()) CHECK(found.shape() == original.value().shape());
    const bool wide = row_.type == weft::dtype::float64;
    const double step = wide ? 1e-5 : 4e-3, close = wide ? 2e-6 : 2e-2;
    for (std::int64_t i = 0; i < original.value().elements(); ++i) {
      CAPTURE(i);
      double sums[2] = {};
      for (const int side : {0, 1}) {
        weft::tensor_value moved(row_.type, original.value().shape());
        for (std::int64_t j = 0; j < moved.elements(); ++j) set_element(moved, j, element(original.value(), j) + (j != i ? 0 : side == 0 ? step : -step));
        feeds_[at] = weft::feed(original.to(), moved);
        const auto values = session.run(weft::run_options(), feeds_, ys);
        for (std::size_t y = 0; y < values.size(); ++y)
          for (std::int64_t j = 0; j < values[y].elements(); ++j) sums[side] += element(values[y], j) * element(weights[y], j);
      }
      const double quotient = (sums[0] - sums[1]) / (2 * step), rule = found.empty() ? 0 : element(found, i);
      CHECK(std::abs(quotient - rule) <= close * std::max(1.0, std::abs(quotient)));
    }
    feeds_[at] = original;
  }

  row row_;
  std::mt19937 random_;
  weft::graph graph_;
  std::vector<weft::feed> feeds_;
  std::vector<weft::output> xs_;
  std::vector<weft::gradient_output> gradients_;
};

/// Runs the experiment with all shapes known while the graph is built, and with none.
inline void check(const row& r) {
  for (const bool known : {true, false}) {
    if (!known && !r.open) continue;
    std::string shapes;
    for (const argument& a : r.inputs) shapes += weft::shape(a.shape).text();
    INFO(r.op << " " << shapes << std::string(known ? ", shapes known" : ", shapes open"));
    try {
      experiment(r, known, 7);
    } catch (const weft::error& e) {
      FAIL_CHECK(std::string(e.what()));
    }
  }
}

}  // namespace difference_quotients

#endif
