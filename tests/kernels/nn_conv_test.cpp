#include <weft/kernels/nn_conv.hpp>

#include "run_kernel.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <random>

using weft::dtype;
using weft::shape;
using weft::tensor_value;
using weft_test::elements;
using weft_test::kernel_bench;
using weft_test::make;
using list = std::vector<std::int64_t>;

namespace {

struct geometry {
  std::int64_t batch, rows, columns, channels, filter_rows, filter_columns, depth, outputs;
  list strides, dilations, paddings;  // rows and columns; top, bottom, left, right
};

tensor_value random_values(dtype type, const shape& s, std::mt19937& random) {
  tensor_value out(type, s);
  for (std::int64_t i = 0; i < out.elements(); ++i) {
    const double x = static_cast<double>(static_cast<std::int64_t>(random() % 2001)) / 1000 - 1;
    if (type == dtype::float64) out.mutable_data<double>()[i] = x;
    else if (type == dtype::int32) out.mutable_data<std::int32_t>()[i] = static_cast<std::int32_t>(random() % 100) - 50;
    else out.mutable_data<float>()[i] = static_cast<float>(x);
  }
  return out;
}
double number(const tensor_value& v, std::int64_t i) { return v.dtype() == dtype::float64 ? v.data<double>()[i] : v.dtype() == dtype::int32 ? v.data<std::int32_t>()[i] : static_cast<double>(v.data<float>()[i]); }

// Visits every product of a convolution by its definition: offsets into output, input and filter.
template <class Visit> void each_product(const geometry& g, Visit visit) {
  const std::int64_t groups = g.channels / g.depth, out_rows = (g.rows + g.paddings[0] + g.paddings[1] - (g.filter_rows - 1) * g.dilations[0] - 1) / g.strides[0] + 1,
                     out_columns = (g.columns + g.paddings[2] + g.paddings[3] - (g.filter_columns - 1) * g.dilations[1] - 1) / g.strides[1] + 1;
  for (std::int64_t n = 0; n < g.batch; ++n)
    for (std::int64_t y = 0; y < out_rows; ++y)
      for (std::int64_t x = 0; x < out_columns; ++x)
        for (std::int64_t o = 0; o < g.outputs; ++o)
          for (std::int64_t i = 0; i < g.filter_rows; ++i)
            for (std::int64_t j = 0; j < g.filter_columns; ++j)
              for (std::int64_t c = 0; c < g.depth; ++c) {
                const std::int64_t row = y * g.strides[0] - g.paddings[0] + i * g.dilations[0], column = x * g.strides[1] - g.paddings[2] + j * g.dilations[1];
                if (row < 0 || row >= g.rows || column < 0 || column >= g.columns) continue;
                const std::int64_t channel = o / (g.outputs / groups) * g.depth + c;
                visit(((n * out_rows + y) * out_columns + x) * g.outputs + o, ((n * g.rows + row) * g.columns + column) * g.channels + channel, ((i * g.filter_columns + j) * g.depth + c) * g.outputs + o);
              }
}

weft::attr_map attrs_of(const geometry& g) {
  return {{"strides", list{1, g.strides[0], g.strides[1], 1}},
          {"dilations", list{1, g.dilations[0], g.dilations[1], 1}},
          {"padding", "EXPLICIT"},
          {"explicit_paddings", list{0, 0, g.paddings[0], g.paddings[1], g.paddings[2], g.paddings[3], 0, 0}}};
}

void check_all(const tensor_value& found, const std::vector<double>& wanted, double tolerance) {
  REQUIRE(found.elements() == static_cast<std::int64_t>(wanted.size()));
  double worst = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i) worst = std::max(worst, std::abs(number(found, static_cast<std::int64_t>(i)) - wanted[i]));
  CHECK(worst <= tolerance);
}

tensor_value sizes_of(const shape& s) { return make<std::int32_t>({4}, {static_cast<std::int32_t>(s[0]), static_cast<std::int32_t>(s[1]), static_cast<std::int32_t>(s[2]), static_cast<std::int32_t>(s[3])}); }

// A convolution and both gradients against the definition.
void check_geometry(kernel_bench& bench, const geometry& g, dtype type, std::mt19937& random) {
  const shape image_shape{g.batch, g.rows, g.columns, g.channels}, filter_shape{g.filter_rows, g.filter_columns, g.depth, g.outputs};
  const tensor_value images = random_values(type, image_shape, random), filter = random_values(type, filter_shape, random);
  const tensor_value out = bench("Conv2D", {images, filter}, attrs_of(g));
  const tensor_value gradient = random_values(type, out.shape(), random);
  std::vector<double> wanted_out(static_cast<std::size_t>(out.elements())), wanted_images(static_cast<std::size_t>(images.elements())), wanted_filter(static_cast<std::size_t>(filter.elements()));
  each_product(g, [&](std::int64_t o, std::int64_t i, std::int64_t f) {
    wanted_out[static_cast<std::size_t>(o)] += number(images, i) * number(filter, f);
    wanted_images[static_cast<std::size_t>(i)] += number(gradient, o) * number(filter, f);
    wanted_filter[static_cast<std::size_t>(f)] += number(images, i) * number(gradient, o);
  });
  const double tolerance = type == dtype::float64 ? 1e-12 : type == dtype::int32 ? 0 : 2e-4;
  check_all(out, wanted_out, tolerance);
  check_all(bench("Conv2DBackpropInput", {sizes_of(image_shape), filter, gradient}, attrs_of(g)), wanted_images, tolerance);
  if (type != dtype::int32) check_all(bench("Conv2DBackpropFilter", {images, sizes_of(filter_shape), gradient}, attrs_of(g)), wanted_filter, tolerance);
}

weft::attr_map simple(const char* padding = "VALID", const char* format = "NHWC") { return {{"strides", list{1, 1, 1, 1}}, {"padding", padding}, {"data_format", format}}; }

}  // namespace

TEST_CASE("conv2d: values by hand") {
  kernel_bench bench;
  const auto x = make<float>({1, 3, 3, 1}, {1, 2, 3, 4, 5, 6, 7, 8, 9}), w = make<float>({2, 2, 1, 1}, {1, 10, 100, 1000});
  CHECK(elements<float>(bench("Conv2D", {x, w}, simple())) == std::vector<float>{5421, 6532, 8754, 9865});
  CHECK(elements<float>(bench("Conv2D", {x, w}, simple("SAME"))) == std::vector<float>{5421, 6532, 603, 8754, 9865, 906, 87, 98, 9});
  const auto first = make<float>({1, 1, 3, 3}, {1, 2, 3, 4, 5, 6, 7, 8, 9});
  const tensor_value out = bench("Conv2D", {first, w}, simple("VALID", "NCHW"));
  CHECK(out.shape() == shape{1, 1, 2, 2});
  CHECK(elements<float>(out) == std::vector<float>{5421, 6532, 8754, 9865});
  CHECK(elements<weft::half>(bench("Conv2D", {make<weft::half>({1, 1, 1, 1}, {weft::half(2)}), make<weft::half>({1, 1, 1, 1}, {weft::half(3)})}, simple()))[0] == weft::half(6));
}

TEST_CASE("conv2d: chosen geometries and both gradients, by the definition") {
  kernel_bench bench;
  std::mt19937 random(3);
  const list one{1, 1}, none{0, 0, 0, 0};
  for (const dtype type : {dtype::float32, dtype::float64, dtype::int32}) {
    check_geometry(bench, {2, 5, 6, 3, 3, 2, 3, 4, one, one, none}, type, random);
    check_geometry(bench, {2, 7, 5, 2, 3, 3, 2, 3, {2, 3}, one, {1, 2, 0, 1}}, type, random);
    check_geometry(bench, {1, 9, 9, 1, 3, 2, 1, 5, one, {3, 2}, {2, 2, 1, 0}}, type, random);
    check_geometry(bench, {1, 4, 4, 6, 2, 2, 2, 9, one, one, {1, 0, 0, 1}}, type, random);  // three groups
    check_geometry(bench, {3, 4, 4, 5, 1, 1, 5, 33, one, one, none}, type, random);
  }
  // More than one block of pixels and of outputs, and windows too long to be packed.
  check_geometry(bench, {2, 30, 30, 8, 3, 3, 8, 40, one, one, {1, 1, 1, 1}}, dtype::float32, random);
  check_geometry(bench, {1, 6, 6, 130, 3, 3, 130, 3, one, one, {1, 1, 1, 1}}, dtype::float32, random);
}

TEST_CASE("conv2d: random geometries and both gradients, by the definition") {
  kernel_bench bench;
  std::mt19937 random(11);
  const auto upto = [&](unsigned most) { return static_cast<std::int64_t>(random() % most); };
  for (int round = 0; round < 60; ++round) {
    const std::int64_t groups = 1 + upto(2), depth = 1 + upto(3);
    geometry g{upto(3), 1 + upto(7), 1 + upto(7), groups * depth, 1 + upto(3), 1 + upto(3), depth, groups * upto(4), {1 + upto(3), 1 + upto(3)}, {1 + upto(2), 1 + upto(2)}, {upto(3), upto(3), upto(3), upto(3)}};
    const bool fits = g.rows + g.paddings[0] + g.paddings[1] > (g.filter_rows - 1) * g.dilations[0] && g.columns + g.paddings[2] + g.paddings[3] > (g.filter_columns - 1) * g.dilations[1];
    if (fits) check_geometry(bench, g, round % 2 == 0 ? dtype::float32 : dtype::float64, random);
  }
}

TEST_CASE("conv2d: nothing in, nothing out; gradients of nothing are zero") {
  kernel_bench bench;
  const auto w = make<float>({2, 2, 1, 1}, {1, 2, 3, 4});
  CHECK(bench("Conv2D", {make<float>({0, 3, 3, 1}, {}), w}, simple()).shape() == shape{0, 2, 2, 1});
  CHECK(bench("Conv2D", {make<float>({1, 3, 3, 1}, {1, 2, 3, 4, 5, 6, 7, 8, 9}), make<float>({2, 2, 1, 0}, {})}, simple()).shape() == shape{1, 2, 2, 0});
  CHECK(elements<float>(bench("Conv2DBackpropFilter", {make<float>({0, 3, 3, 1}, {}), make<std::int32_t>({4}, {2, 2, 1, 1}), make<float>({0, 2, 2, 1}, {})}, simple())) == std::vector<float>{0, 0, 0, 0});
  CHECK(bench("Conv2DBackpropInput", {make<std::int32_t>({2}, {3, 3}), w, make<float>({1, 2, 2, 1}, {1, 0, 0, 0})}, simple()).shape() == shape{1, 3, 3, 1});
}

TEST_CASE("conv2d: hostile attributes and sizes are errors") {
  kernel_bench bench;
  const auto x = make<float>({1, 3, 3, 1}, {1, 2, 3, 4, 5, 6, 7, 8, 9}), w = make<float>({2, 2, 1, 1}, {1, 2, 3, 4}), dy = make<float>({1, 2, 2, 1}, {1, 2, 3, 4});
  const auto sizes = [](std::int32_t a, std::int32_t b, std::int32_t c, std::int32_t d) { return make<std::int32_t>({4}, {a, b, c, d}); };
  CHECK(bench.error("Conv2D", {make<float>({3, 3, 1}, {1, 2, 3, 4, 5, 6, 7, 8, 9}), w}, simple()) == "INVALID_ARGUMENT: input must have rank 4, found shape [3,3,1]");
  CHECK(bench.error("Conv2D", {make<float>({1, 1, 1, 1}, {1}), w}, simple()) == "INVALID_ARGUMENT: a window that reaches over 2 elements has no place on an axis of 1 elements");
  CHECK(bench.error("Conv2D", {x, w}, {{"strides", list{2, 1, 1, 1}}, {"padding", "VALID"}}) == "UNIMPLEMENTED: no kernel of this op has strides over the batch or the depth");
  CHECK(bench.error("Conv2D", {x, w}, {{"strides", list{1, 1, 1, 1}}, {"padding", "VALID"}, {"dilations", list{1, 1, 1, 2}}}) == "UNIMPLEMENTED: no kernel of this op has dilations over the batch or the depth");
  CHECK(bench.error("Conv2DBackpropInput", {sizes(1, 5, 3, 1), w, dy}, simple()) == "INVALID_ARGUMENT: out_backprop must have shape [1,4,2,1], found [1,2,2,1]");
  CHECK(bench.error("Conv2DBackpropInput", {sizes(1, -3, 3, 1), w, dy}, simple()) == "INVALID_ARGUMENT: input_sizes [1,-3,3,1] has a negative size or too many elements");
  CHECK(bench.error("Conv2DBackpropInput", {sizes(2147483647, 2147483647, 2147483647, 2147483647), w, dy}, simple()) ==
        "INVALID_ARGUMENT: input_sizes [2147483647,2147483647,2147483647,2147483647] has a negative size or too many elements");
  CHECK(bench.error("Conv2DBackpropInput", {make<std::int32_t>({3}, {1, 3, 3}), w, dy}, simple()) == "INVALID_ARGUMENT: input_sizes must contain 4 values or 2, found 3");
  CHECK(bench.error("Conv2DBackpropFilter", {x, sizes(0, 2, 1, 1), dy}, simple()) == "INVALID_ARGUMENT: the filter must have rows and columns, found shape [0,2,1,1]");
  CHECK(bench.error("Conv2DBackpropFilter", {x, sizes(2, 2, 0, 1), dy}, simple()) == "INVALID_ARGUMENT: the filter must have at least one channel, found shape [2,2,0,1]");
  CHECK(bench.error("Conv2DBackpropFilter", {x, sizes(2, 2, 1, 2), dy}, simple()) == "INVALID_ARGUMENT: out_backprop must have shape [1,2,2,2], found [1,2,2,1]");
  // A window far wider than the image costs no memory.
  const tensor_value wide = bench("Conv2D", {x, w}, {{"strides", list{1, 1, 1, 1}}, {"padding", "SAME"}, {"dilations", list{1, 2147483647, 2147483647, 1}}});
  CHECK(wide.shape() == shape{1, 3, 3, 1});
  CHECK(elements<float>(wide) == std::vector<float>{0, 0, 0, 0, 0, 0, 0, 0, 0});
}
