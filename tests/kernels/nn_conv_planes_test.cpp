#undef WEFT_SEPARATE_COMPILATION  // convolutions are templates, compiled where they are tested
#include <weft/kernels/nn_conv.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

namespace d = weft::detail;

namespace {

int below(std::mt19937& random, int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); }

d::convolution random_convolution(std::mt19937& random) {
  d::convolution c;
  c.depth = 1 + below(random, 5);
  c.outputs = 1 + below(random, 36);
  c.in = {1 + below(random, 2), 1 + below(random, 15), 1 + below(random, 15), c.depth};
  c.rows.size = 1 + below(random, 5);
  c.columns.size = 1 + below(random, 5);
  c.rows.stride = 1 + below(random, 2);
  c.columns.stride = below(random, 4) == 0 ? 2 : 1;
  c.rows.dilation = 1 + below(random, 2);
  c.columns.dilation = 1 + below(random, 2);
  c.rows_before = below(random, 4);
  c.columns_before = below(random, 4);
  c.out = {c.in.batch, 1 + below(random, 15), 1 + below(random, 15), c.outputs};
  return c;
}

// One element by the definition.
template <class T> T expected(const d::convolution& c, const std::vector<T>& images, const std::vector<T>& filter, const std::int64_t (&at)[4]) {
  T sum = 0;
  for (std::int64_t i = 0; i < c.rows.size; ++i)
    for (std::int64_t j = 0; j < c.columns.size; ++j) {
      const std::int64_t row = at[1] * c.rows.stride - c.rows_before + i * c.rows.dilation, column = at[2] * c.columns.stride - c.columns_before + j * c.columns.dilation;
      if (row < 0 || row >= c.in.rows || column < 0 || column >= c.in.columns) continue;
      for (std::int64_t k = 0; k < c.depth; ++k)
        sum += images[static_cast<std::size_t>(((at[0] * c.in.rows + row) * c.in.columns + column) * c.depth + k)] *
               filter[static_cast<std::size_t>(((i * c.columns.size + j) * c.depth + k) * c.outputs + at[3])];
    }
  return sum;
}

// Elements are small integers, so that every order of additions gives the same.
template <class T> std::vector<T> small_integers(std::mt19937& random, std::int64_t count) {
  std::vector<T> out(static_cast<std::size_t>(count));
  for (T& value : out) value = static_cast<T>(below(random, 9) - 4);
  return out;
}

template <class T> void compare(unsigned seed) {
  std::mt19937 random(seed);
  const d::convolution c = random_convolution(random);
  const std::vector<T> images = small_integers<T>(random, c.in.batch * c.in.rows * c.in.columns * c.depth), filter = small_integers<T>(random, c.window() * c.outputs);
  const auto pixels = static_cast<std::size_t>(c.out.batch * c.out.rows * c.out.columns), outputs = static_cast<std::size_t>(c.outputs);
  std::vector<T> wanted;
  for (std::int64_t image = 0; image < c.out.batch; ++image)
    for (std::int64_t row = 0; row < c.out.rows; ++row)
      for (std::int64_t column = 0; column < c.out.columns; ++column)
        for (std::int64_t k = 0; k < c.outputs; ++k) wanted.push_back(expected(c, images, filter, {image, row, column, k}));
  for (const d::instruction_set set : d::all_instruction_sets) {
    if (!d::processor_has(set)) continue;
    std::vector<T> out(pixels * outputs, T(99));
    const d::packed_convolution<T> packed(c, images.data(), filter.data(), out.data(), set);
    const std::size_t part = 1 + static_cast<std::size_t>(below(random, static_cast<int>(packed.block())));
    for (std::size_t first = 0; first < pixels; first += part) packed.run(first, d::smaller(part, pixels - first));
    CHECK_MESSAGE(out == wanted, "seed " << seed << ", " << d::name_of(set));
  }
}

}  // namespace

TEST_CASE("convolution: windows of few channels, cut anywhere, are as the sums that define it") {
  for (unsigned seed = 0; seed < 120; ++seed) {
    compare<float>(seed);
    compare<double>(seed + 1000);
  }
}
