#undef WEFT_SEPARATE_COMPILATION  // loops are templates, compiled where they are tested
#include <weft/kernels/strided_copy.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

using weft::dtype;
using weft::shape;
using weft::tensor_value;
namespace detail = weft::detail;

namespace {

template <std::size_t Size> void check_exchange(std::int64_t rows, std::int64_t columns) {
  std::vector<std::byte> from(static_cast<std::size_t>(rows * columns) * Size), to(from.size());
  std::mt19937 random(1);
  for (auto& byte : from) byte = static_cast<std::byte>(random());
  const auto size = static_cast<std::int64_t>(Size);
  for (const auto set : detail::all_instruction_sets) {
    if (!detail::processor_has(set)) continue;
    std::fill(to.begin(), to.end(), std::byte{0});
    detail::dispatch<detail::exchange_body<Size>>(set, static_cast<const std::byte*>(from.data()), columns * size, to.data(), rows * size, rows, columns);
    bool equal = true;
    for (std::int64_t r = 0; r < rows; ++r)
      for (std::int64_t c = 0; c < columns; ++c) equal = equal && std::memcmp(from.data() + (r * columns + c) * size, to.data() + (c * rows + r) * size, Size) == 0;
    CAPTURE(detail::name_of(set));
    CHECK(equal);
  }
}

}  // namespace

TEST_CASE("exchange: rows become columns in every instruction set, edges included") {
  for (const std::int64_t rows : {1, 7, 64, 131})
    for (const std::int64_t columns : {1, 16, 67, 128}) {
      check_exchange<1>(rows, columns);
      check_exchange<2>(rows, columns);
      check_exchange<4>(rows, columns);
      check_exchange<8>(rows, columns);
    }
}

TEST_CASE("strided copy: random axes copy what single elements would") {
  std::mt19937 random(2);
  const auto below = [&](int n) { return static_cast<std::int64_t>(random() % static_cast<unsigned>(n)); };
  for (int trial = 0; trial < 300; ++trial) {
    // Axes of the source in a random order, some of them in reverse or repeated.
    const int rank = static_cast<int>(1 + below(4));
    std::vector<std::int64_t> extents, from_steps(static_cast<std::size_t>(rank)), to_steps(static_cast<std::size_t>(rank));
    std::int64_t elements = 1, source = 1, start = 0;
    std::vector<int> order;
    for (int i = 0; i < rank; ++i) {
      extents.push_back(1 + below(trial % 3 == 0 ? 40 : 6));
      order.insert(order.begin() + below(i + 1), i);
    }
    for (int i = rank - 1; i >= 0; --i) {
      to_steps[static_cast<std::size_t>(i)] = elements;
      elements *= extents[static_cast<std::size_t>(i)];
    }
    for (const int i : order) {
      const std::int64_t extent = extents[static_cast<std::size_t>(i)], kind = below(6);
      from_steps[static_cast<std::size_t>(i)] = kind == 0 ? 0 : kind == 1 ? -source : source;
      if (kind == 1) start += (extent - 1) * source;
      if (kind != 0) source *= extent;
    }
    if (elements > 100000) continue;
    for (const dtype type : {dtype::uint8, dtype::half, dtype::int32, dtype::float64, dtype::complex128, dtype::string}) {
      tensor_value from(type, shape{source}), to(type, shape{elements});
      if (type == dtype::string)
        for (std::int64_t i = 0; i < source; ++i) from.mutable_data<std::string>()[i] = "a string that is too long to lie inside its object, number " + std::to_string(i);
      else
        for (std::size_t i = 0; i < from.bytes(); ++i) from.mutable_raw_data()[i] = static_cast<std::byte>(random());
      detail::strided_copy copy;
      for (int i = 0; i < rank; ++i) copy.add(extents[static_cast<std::size_t>(i)], from_steps[static_cast<std::size_t>(i)], to_steps[static_cast<std::size_t>(i)]);
      copy.run(detail::source_of(from), start, detail::target_of(to), 0);
      bool equal = true;
      for (std::int64_t at = 0; at < elements; ++at) {
        std::int64_t where = start, rest = at;
        for (int i = 0; i < rank; ++i) {
          where += rest / to_steps[static_cast<std::size_t>(i)] * from_steps[static_cast<std::size_t>(i)];
          rest %= to_steps[static_cast<std::size_t>(i)];
        }
        if (type == dtype::string) equal = equal && to.data<std::string>()[at] == from.data<std::string>()[where];
        else equal = equal && std::memcmp(to.raw_data() + at * static_cast<std::int64_t>(weft::size_of(type)), from.raw_data() + where * static_cast<std::int64_t>(weft::size_of(type)), weft::size_of(type)) == 0;
      }
      CAPTURE(trial);
      CHECK(equal);
    }
  }
}

TEST_CASE("strided copy: nothing is copied along an axis without elements") {
  tensor_value from(dtype::int32, shape{4}), to(dtype::int32, shape{4});
  std::fill_n(to.mutable_data<std::int32_t>(), 4, 7);
  detail::strided_copy copy;
  copy.add(4, 1, 1);
  copy.add(0, 1, 1);
  copy.run(detail::source_of(from), 0, detail::target_of(to), 0);
  CHECK(to.data<std::int32_t>()[0] == 7);
}

TEST_CASE("strided copy: a single element without any axis") {
  tensor_value from = tensor_value::scalar(3.f), to(dtype::float32, shape());
  detail::strided_copy().run(detail::source_of(from), 0, detail::target_of(to), 0);
  CHECK(to == from);
}
