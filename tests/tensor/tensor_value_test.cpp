#include <weft/tensor/tensor_value.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <cstdlib>
#include <limits>
#include <memory>
#include <string>
#include <vector>

using weft::dtype;
using weft::shape;
using weft::tensor_value;

namespace {
class far_memory : public weft::memory {
 public:
  void* allocate(std::size_t bytes) override { return std::malloc(bytes); }
  void deallocate(void* data, std::size_t) noexcept override { std::free(data); }
  bool host() const noexcept override { return false; }
  std::string_view name() const noexcept override { return "FAR:0"; }
};
}  // namespace

TEST_CASE("tensor_value: a default one is empty") {
  const tensor_value none;
  CHECK(none.empty());
  CHECK(none.dtype() == dtype::invalid);
  CHECK(none.bytes() == 0);
  CHECK_FALSE(none.writable());
  CHECK(none == tensor_value());
}

TEST_CASE("tensor_value: dtype, shape, elements and bytes") {
  const tensor_value v = tensor_value::from<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  CHECK(v.dtype() == dtype::float32);
  CHECK(v.shape() == shape{2, 3});
  CHECK(v.elements() == 6);
  CHECK(v.bytes() == 24);
  CHECK(v.data<float>()[5] == 6.f);
  CHECK(tensor_value(dtype::complex128, {3}).bytes() == 48);
  CHECK(tensor_value(dtype::float64, {0, 5}).bytes() == 0);
  CHECK(tensor_value(dtype::string, {2}).bytes() == 2 * sizeof(std::string));
  CHECK(tensor_value(dtype::resource, {1}).bytes() == sizeof(weft::resource_handle));
}

TEST_CASE("tensor_value: scalars of every kind") {
  CHECK(tensor_value::scalar(2.5).item<double>() == 2.5);
  CHECK(tensor_value::scalar(true).item<bool>());
  CHECK(tensor_value::scalar(std::string("text")).item<std::string>() == "text");
  CHECK(tensor_value::scalar(weft::half(1.5f)).item<weft::half>().bits == 0x3e00);
  CHECK(tensor_value::scalar(std::uint64_t{1} << 63).item<std::uint64_t>() == 9223372036854775808ULL);
  CHECK(tensor_value::scalar(1.f).shape().rank() == 0);
}

TEST_CASE("tensor_value: vector<bool> elements are bytes") {
  const tensor_value v = tensor_value::from<bool>({3}, {true, false, true});
  CHECK(v.bytes() == 3);
  CHECK(static_cast<int>(v.raw_data()[0]) == 1);
  CHECK(static_cast<int>(v.raw_data()[1]) == 0);
}

TEST_CASE("tensor_value: copies share the elements, which may be written when one holder is left") {
  tensor_value a = tensor_value::from<std::int32_t>({2}, {1, 2});
  CHECK(a.writable());
  {
    const tensor_value b = a;
    CHECK_FALSE(a.writable());
    CHECK(b.data<std::int32_t>() == a.data<std::int32_t>());
  }
  CHECK(a.writable());
  a.mutable_data<std::int32_t>()[0] = 9;
  CHECK(a.data<std::int32_t>()[0] == 9);
}

TEST_CASE("tensor_value: wrapped elements") {
  auto numbers = std::make_shared<std::vector<float>>(std::vector<float>{1, 2, 3, 4});
  const tensor_value v(dtype::float32, {2, 2}, weft::buffer_ptr::wrap(numbers->data(), 16, numbers));
  numbers->at(3) = 8.f;
  CHECK(v.data<float>()[3] == 8.f);
  CHECK(numbers.use_count() == 2);
}

TEST_CASE("tensor_value: another shape for the same elements") {
  tensor_value v = tensor_value::from<float>({2, 3}, {1, 2, 3, 4, 5, 6});
  const float* before = v.data<float>();
  v.reshape({3, 2});
  CHECK(v.shape() == shape{3, 2});
  CHECK(v.data<float>() == before);
  CHECK_THROWS_WITH_AS(v.reshape({4, 2}), "INVALID_ARGUMENT: a value of shape [3,2] cannot be given shape [4,2]", weft::error);
  CHECK_THROWS_WITH_AS(v.reshape({-3, -2}), "INVALID_ARGUMENT: a value of shape [3,2] cannot be given shape [-3,-2]", weft::error);
}

TEST_CASE("tensor_value: what cannot be made") {
  CHECK_THROWS_WITH_AS(tensor_value(dtype::float32, {2, -1}), "INVALID_ARGUMENT: shape [2,-1] has a negative size or more elements than memory can address", weft::error);
  CHECK_THROWS_WITH_AS(tensor_value(dtype::float32, {std::int64_t{1} << 40, std::int64_t{1} << 40}),
                       "INVALID_ARGUMENT: shape [1099511627776,1099511627776] has a negative size or more elements than memory can address", weft::error);
  CHECK_THROWS_WITH_AS(tensor_value(dtype::variant, {}), "UNIMPLEMENTED: values of dtype variant cannot be held", weft::error);
  CHECK_THROWS_WITH_AS(tensor_value(dtype::invalid, {}), "UNIMPLEMENTED: values of dtype invalid cannot be held", weft::error);
  CHECK_THROWS_WITH_AS(tensor_value::from<float>({2, 2}, {1, 2, 3}), "INVALID_ARGUMENT: shape [2,2] needs 4 elements, found 3", weft::error);
}

TEST_CASE("tensor_value: reading it as another dtype, or one of many as the only one") {
  const tensor_value v = tensor_value::from<float>({2}, {1, 2});
  CHECK_THROWS_WITH_AS(v.data<double>(), "INTERNAL: a value of dtype float was read as double", weft::error);
  CHECK_THROWS_WITH_AS(v.item<float>(), "INVALID_ARGUMENT: expected a single element, found shape [2]", weft::error);
  CHECK(tensor_value::from<float>({1, 1}, {3}).item<float>() == 3.f);
}

TEST_CASE("tensor_value: memory of a device is not read by the host") {
  tensor_value v(dtype::float32, {4}, std::make_shared<far_memory>());
  CHECK_FALSE(v.writable());
  CHECK_THROWS_WITH_AS(v.data<float>(), "FAILED_PRECONDITION: the value is in FAR:0 memory, which the host cannot read; copy it first", weft::error);
  CHECK_THROWS_AS(v.mutable_raw_data(), weft::error);
}

TEST_CASE("tensor_value: equal bit for bit") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  CHECK(tensor_value::scalar(nan) == tensor_value::scalar(nan));
  CHECK(tensor_value::scalar(0.f) != tensor_value::scalar(-0.f));
  CHECK(tensor_value::scalar(1.f) != tensor_value::scalar(1.0));
  CHECK(tensor_value::from<float>({2}, {1, 2}) != tensor_value::from<float>({1, 2}, {1, 2}));
  CHECK(tensor_value::from<float>({0}, {}) == tensor_value::from<float>({0}, {}));
  CHECK(tensor_value::from<std::string>({2}, {"a", "b"}) == tensor_value::from<std::string>({2}, {"a", "b"}));
  CHECK(tensor_value::from<std::string>({2}, {"a", "b"}) != tensor_value::from<std::string>({2}, {"a", "c"}));
  CHECK(tensor_value::from<weft::resource_handle>({}, {{"d", "", "x", "k"}}) != tensor_value::from<weft::resource_handle>({}, {{"d", "", "y", "k"}}));
}
