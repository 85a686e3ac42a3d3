#undef WEFT_SEPARATE_COMPILATION  // products are templates, compiled where they are tested
#include <weft/kernels/gemm.hpp>

#include <weft/tensor/dtype.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <limits>
#include <random>
#include <thread>
#include <vector>

namespace d = weft::detail;
using weft::bfloat16;
using weft::half;

namespace {

constexpr d::transposition orders[] = {d::transposition::none, d::transposition::transposed};

template <class Check>
void for_each_set(Check check) {
  for (d::instruction_set set : d::all_instruction_sets) {
    if (!d::processor_has(set)) continue;
    CAPTURE(d::name_of(set));
    check(set);
  }
}

// A stored matrix whose rows are longer than its columns, with small integers in it so that sums are exact.
template <class T>
struct stored {
  std::size_t rows, columns, stride;
  std::vector<T> data;

  stored(std::size_t r, std::size_t c, std::size_t padding, std::mt19937& random)
      : rows(r), columns(c), stride(c + padding), data(r * stride + 1) {
    for (T& value : data) value = static_cast<T>(static_cast<int>(random() % 7) - 3);
  }
  T at(std::size_t i, std::size_t j, d::transposition order) const {
    return order == d::transposition::none ? data[i * stride + j] : data[j * stride + i];
  }
};

template <class T>
void check_product(std::size_t m, std::size_t n, std::size_t k, d::transposition a_order, d::transposition b_order, d::instruction_set set,
                   std::mt19937& random) {
  CAPTURE(m);
  CAPTURE(n);
  CAPTURE(k);
  const bool a_turned = a_order == d::transposition::transposed, b_turned = b_order == d::transposition::transposed;
  const stored<T> a(a_turned ? k : m, a_turned ? m : k, random() % 3, random), b(b_turned ? n : k, b_turned ? k : n, random() % 3, random);
  stored<T> c(m, n, 2, random);
  const std::vector<T> before = c.data;
  d::gemm<T>({m, n, k}, {a.data.data(), a.stride, a_order}, {b.data.data(), b.stride, b_order}, {c.data.data(), c.stride}, set);
  std::size_t wrong = 0;
  for (std::size_t i = 0; i < m; ++i) {
    for (std::size_t j = 0; j < n; ++j) {
      double sum = 0;
      for (std::size_t p = 0; p < k; ++p) sum += static_cast<double>(a.at(i, p, a_order)) * static_cast<double>(b.at(p, j, b_order));
      wrong += c.data[i * c.stride + j] != static_cast<T>(static_cast<std::int64_t>(sum)) ? 1 : 0;
    }
    for (std::size_t j = n; j < c.stride; ++j) wrong += c.data[i * c.stride + j] != before[i * c.stride + j] ? 1 : 0;  // the padding
  }
  CHECK(wrong == 0);
}

}  // namespace

TEST_CASE("gemm: a product by hand, either side transposed") {
  const float a[] = {1, 2, 3, 4, 5, 6}, a_turned[] = {1, 4, 2, 5, 3, 6}, b[] = {7, 8, 9, 10, 11, 12}, b_turned[] = {7, 9, 11, 8, 10, 12};
  const std::vector<float> expected{58, 64, 139, 154};
  for_each_set([&](d::instruction_set set) {
    std::vector<float> c(4);
    d::gemm<float>({2, 2, 3}, {a, 3}, {b, 2}, {c.data(), 2}, set);
    CHECK(c == expected);
    c.assign(4, -1.f);
    d::gemm<float>({2, 2, 3}, {a_turned, 2, d::transposition::transposed}, {b, 2}, {c.data(), 2}, set);
    CHECK(c == expected);
    c.assign(4, -1.f);
    d::gemm<float>({2, 2, 3}, {a, 3}, {b_turned, 3, d::transposition::transposed}, {c.data(), 2}, set);
    CHECK(c == expected);
  });
}

TEST_CASE("gemm: all sizes around the tiles and all orders agree with a plain sum") {
  std::mt19937 random(3);
  for_each_set([&](d::instruction_set set) {
    const std::size_t sizes[] = {1, 2, 3, 5, 6, 7, 8, 12, 13, 15, 16, 17, 24, 31, 32, 33, 40, 64, 65};
    for (int round = 0; round < 60; ++round) {
      const std::size_t m = sizes[random() % 19], n = sizes[random() % 19], k = sizes[random() % 19];
      for (d::transposition a : orders) {
        for (d::transposition b : orders) {
          check_product<float>(m, n, k, a, b, set, random);
          check_product<double>(m, n, k, a, b, set, random);
          check_product<std::int32_t>(m, n, k, a, b, set, random);
        }
      }
      check_product<std::int64_t>(m, n, k, orders[round % 2], orders[round / 2 % 2], set, random);
      check_product<std::int8_t>(m, n, k, orders[round % 2], orders[round / 2 % 2], set, random);
      check_product<std::uint16_t>(m, n, k, orders[round % 2], orders[round / 2 % 2], set, random);
    }
  });
}

TEST_CASE("gemm: several blocks in each direction") {
  std::mt19937 random(4);
  for_each_set([&](d::instruction_set set) {
    for (d::transposition order : orders) {
      check_product<float>(270, 40, 1100, order, order, set, random);
      check_product<float>(20, 1100, 400, order, order, set, random);
      check_product<double>(200, 33, 530, order, order, set, random);
      check_product<std::int32_t>(5, 1030, 130, order, order, set, random);
    }
  });
}

TEST_CASE("gemm: an extent of zero gives an empty or a zero result") {
  for_each_set([](d::instruction_set set) {
    std::vector<float> c{1, 2, 3, 4};
    const float a[] = {5}, b[] = {6};
    d::gemm<float>({2, 2, 0}, {a, 0}, {b, 2}, {c.data(), 2}, set);
    CHECK(c == std::vector<float>{0, 0, 0, 0});
    c.assign(4, 1.f);
    d::gemm<float>({0, 2, 3}, {a, 3}, {b, 2}, {c.data(), 2}, set);
    d::gemm<float>({2, 0, 3}, {a, 3}, {b, 0}, {c.data(), 0}, set);
    CHECK(c == std::vector<float>{1, 1, 1, 1});
    std::vector<std::int32_t> integers{1, 2};
    d::gemm<std::int32_t>({1, 2, 0}, {integers.data(), 0}, {integers.data(), 2}, {integers.data(), 2}, set);
    CHECK(integers == std::vector<std::int32_t>{0, 0});
  });
}

TEST_CASE("gemm: integers wrap") {
  for_each_set([](d::instruction_set set) {
    const std::int32_t a[] = {std::numeric_limits<std::int32_t>::max(), 65536}, b[] = {2, 65536};
    std::int32_t c = 0;
    d::gemm<std::int32_t>({1, 1, 2}, {a, 2}, {b, 1}, {&c, 1}, set);
    CHECK(c == -2);
    const std::uint8_t e[] = {200, 100}, f[] = {2, 1};
    std::uint8_t g = 0;
    d::gemm<std::uint8_t>({1, 1, 2}, {e, 2}, {f, 1}, {&g, 1}, set);
    CHECK(g == 244);
  });
}

TEST_CASE("gemm: NaN and infinity go where the sums take them") {
  const float inf = std::numeric_limits<float>::infinity();
  for_each_set([=](d::instruction_set set) {
    const float a[] = {0, 1, 1, 0}, b[] = {inf, 1, 2, 3};
    float c[4];
    d::gemm<float>({2, 2, 2}, {a, 2}, {b, 2}, {c, 2}, set);
    std::uint32_t bits;
    std::memcpy(&bits, c, sizeof bits);
    CHECK((bits & 0x7fffffffU) > 0x7f800000U);  // NaN: 0 * inf + 1 * 2
    CHECK(c[1] == 3.f);
    CHECK(c[2] == inf);
    CHECK(c[3] == 1.f);
  });
}

TEST_CASE("gemm: 16-bit floats are summed in float and rounded once") {
  for_each_set([](d::instruction_set set) {
    std::vector<half> a(2 * 100), b(100 * 3), c(6);
    for (half& value : a) value = half(0.5f);
    for (half& value : b) value = half(33.f);
    d::gemm<half>({2, 3, 100}, {a.data(), 100}, {b.data(), 100, d::transposition::transposed}, {c.data(), 3}, set);
    for (half value : c) CHECK(static_cast<float>(value) == 1650.f);
    const bfloat16 e[] = {bfloat16(256.f), bfloat16(1.f)}, f[] = {bfloat16(1.f), bfloat16(1.f)};
    bfloat16 g;
    d::gemm<bfloat16>({1, 1, 2}, {e, 2}, {f, 1}, {&g, 1}, set);
    CHECK(static_cast<float>(g) == 256.f);  // 257 lies between 256 and 258, and 256 is even
  });
}

TEST_CASE("gemm: parts in several threads give the bits of one thread") {
  std::mt19937 random(5);
  for (d::transposition order : orders) {
    for (const d::gemm_extents extents : {d::gemm_extents{300, 100, 120}, d::gemm_extents{70, 500, 64}, d::gemm_extents{10, 10, 10}}) {
      std::vector<float> a(extents.m * extents.k), b(extents.k * extents.n), one(extents.m * extents.n), many(one.size());
      for (float& value : a) value = static_cast<float>(random()) * 0x1p-32f - 0.5f;
      for (float& value : b) value = static_cast<float>(random()) * 0x1p-32f - 0.5f;
      const bool turned = order == d::transposition::transposed;
      const d::matrix_view<const float> left{a.data(), turned ? extents.m : extents.k, order},
          right{b.data(), turned ? extents.k : extents.n, order};
      d::gemm<float>(extents, left, right, {one.data(), extents.n});
      const auto parallel_for = [](std::size_t count, const auto& function) {
        std::vector<std::thread> threads;
        for (std::size_t i = 0; i < count; ++i) threads.emplace_back([&function, i] { function(i); });
        for (std::thread& thread : threads) thread.join();
      };
      d::gemm<float>(extents, left, right, {many.data(), extents.n}, 3, parallel_for);
      CHECK(one == many);
    }
  }
}
