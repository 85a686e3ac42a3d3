#include <weft/kernels/array.hpp>

#include "run_kernel.hpp"

#include <doctest/doctest.h>

#include <cstdint>

using weft::bfloat16;
using weft::dtype;
using weft::half;
using weft::partial_shape;
using weft::shape;
using weft::tensor_value;
using weft_test::elements;
using weft_test::kernel_bench;
using weft_test::make;

namespace {
const tensor_value six = make<float>({2, 3}, {1, 2, 3, 4, 5, 6});
tensor_value sizes(std::initializer_list<std::int32_t> list) { return make<std::int32_t>({static_cast<std::int64_t>(list.size())}, list); }
}  // namespace

TEST_CASE("const: shares its value with every step") {
  kernel_bench bench;
  CHECK(bench("Const", {}, {{"value", six}, {"dtype", dtype::float32}}).raw_data() == six.raw_data());
  const auto words = make<std::string>({2}, {"a", "b"});
  CHECK(bench("Const", {}, {{"value", words}, {"dtype", dtype::string}}) == words);
}

TEST_CASE("identity: passes values on without a copy") {
  kernel_bench bench;
  CHECK(bench("Identity", {six}).raw_data() == six.raw_data());
  CHECK(bench("StopGradient", {six}).raw_data() == six.raw_data());
  const auto words = make<std::string>({1}, {"a"});
  const auto both = bench.run(bench.add("IdentityN", {dtype::float32, dtype::string}), {six, words});
  CHECK(both[0] == six);
  CHECK(both[1] == words);
}

TEST_CASE("placeholder: run without a value, it says what to feed") {
  kernel_bench bench;
  CHECK(bench.error("Placeholder", {}, {{"dtype", dtype::float32}, {"shape", partial_shape{-1, 784}}}) ==
        "INVALID_ARGUMENT: the placeholder must be fed a value of dtype float and shape [?,784]");
  CHECK(bench.error("Placeholder", {}, {{"dtype", dtype::int32}}) == "INVALID_ARGUMENT: the placeholder must be fed a value of dtype int32");
}

TEST_CASE("reshape: keeps the elements, one size may be open") {
  kernel_bench bench;
  CHECK(bench("Reshape", {six, sizes({3, 2})}).shape() == shape{3, 2});
  CHECK(bench("Reshape", {six, sizes({3, 2})}).raw_data() == six.raw_data());
  CHECK(bench("Reshape", {six, sizes({-1})}).shape() == shape{6});
  CHECK(bench("Reshape", {six, make<std::int64_t>({3}, {1, -1, 2})}).shape() == shape{1, 3, 2});
  CHECK(bench("Reshape", {tensor_value::scalar(1.f), sizes({})}).shape() == shape{});
  CHECK(bench("Reshape", {tensor_value(dtype::float32, {0, 2}), sizes({-1, 0})}).shape() == shape{0, 0});
  CHECK(bench("Reshape", {make<std::string>({2}, {"a", "b"}), sizes({2, 1})}).shape() == shape{2, 1});
}

TEST_CASE("reshape: shapes that do not fit") {
  kernel_bench bench;
  CHECK(bench.error("Reshape", {six, sizes({4})}) == "INVALID_ARGUMENT: a tensor of shape [2,3] has 6 elements and cannot be given shape [4]");
  CHECK(bench.error("Reshape", {six, sizes({4, -1})}) == "INVALID_ARGUMENT: a tensor of shape [2,3] has 6 elements and cannot be given shape [4,-1]");
  CHECK(bench.error("Reshape", {six, sizes({-1, -1})}) == "INVALID_ARGUMENT: the wanted shape [-1,-1] has more than one -1");
  CHECK(bench.error("Reshape", {six, sizes({-2, 3})}) == "INVALID_ARGUMENT: the wanted shape [-2,3] has a negative size other than -1");
  CHECK(bench.error("Reshape", {six, make<std::int32_t>({1, 1}, {6})}) == "INVALID_ARGUMENT: the wanted shape must be a vector, found shape [1,1]");
  CHECK(bench.error("Reshape", {six, make<std::int64_t>({2}, {std::int64_t{1} << 62, 8})}).substr(0, 16) == "INVALID_ARGUMENT");
  CHECK(bench.error("Reshape", {six, make<std::int64_t>({3}, {std::int64_t{1} << 62, 8, -1})}).substr(0, 16) == "INVALID_ARGUMENT");
}

TEST_CASE("expand dims, squeeze") {
  kernel_bench bench;
  const auto axis = [](std::int32_t a) { return tensor_value::scalar(a); };
  CHECK(bench("ExpandDims", {six, axis(0)}).shape() == shape{1, 2, 3});
  CHECK(bench("ExpandDims", {six, axis(2)}).shape() == shape{2, 3, 1});
  CHECK(bench("ExpandDims", {six, axis(-1)}).shape() == shape{2, 3, 1});
  CHECK(bench.error("ExpandDims", {six, axis(3)}) == "INVALID_ARGUMENT: axis 3 is not in [-3, 3)");
  CHECK(bench.error("ExpandDims", {six, sizes({0, 1})}) == "INVALID_ARGUMENT: the axis must be a single integer, found shape [2]");
  const auto thin = make<float>({1, 3, 1}, {1, 2, 3});
  CHECK(bench("Squeeze", {thin}).shape() == shape{3});
  CHECK(bench("Squeeze", {thin}, {{"squeeze_dims", std::vector<std::int64_t>{-1}}}).shape() == shape{1, 3});
  CHECK(bench.error("Squeeze", {thin}, {{"squeeze_dims", std::vector<std::int64_t>{1}}}) == "INVALID_ARGUMENT: dimension 1 of shape [1,3,1] cannot be dropped, its size is not 1");
  CHECK(bench.error("Squeeze", {thin}, {{"squeeze_dims", std::vector<std::int64_t>{3}}}) == "INVALID_ARGUMENT: axis 3 is not in [-3, 3)");
}

TEST_CASE("shape, size, rank") {
  kernel_bench bench;
  CHECK(elements<std::int32_t>(bench("Shape", {six})) == std::vector<std::int32_t>{2, 3});
  CHECK(elements<std::int64_t>(bench("Shape", {six}, {{"out_type", dtype::int64}})) == std::vector<std::int64_t>{2, 3});
  CHECK(bench("Shape", {tensor_value::scalar(1.f)}).shape() == shape{0});
  CHECK(bench("Size", {six}) == tensor_value::scalar(std::int32_t{6}));
  CHECK(bench("Rank", {six}) == tensor_value::scalar(std::int32_t{2}));
  CHECK(bench("Size", {make<std::string>({2}, {"a", "b"})}) == tensor_value::scalar(std::int32_t{2}));
  // No elements, but a size that int32 cannot hold.
  CHECK(bench.error("Shape", {tensor_value(dtype::float32, {0, std::int64_t{1} << 31})}) == "INVALID_ARGUMENT: 2147483648 does not fit into int32; ask for out_type int64");
}

TEST_CASE("fill, zeros like, ones like") {
  kernel_bench bench;
  CHECK(elements<float>(bench("Fill", {sizes({2, 2}), tensor_value::scalar(7.f)})) == std::vector<float>{7, 7, 7, 7});
  CHECK(elements<std::string>(bench("Fill", {sizes({2}), tensor_value::scalar(std::string("ab"))})) == std::vector<std::string>{"ab", "ab"});
  CHECK(bench("Fill", {sizes({0, 3}), tensor_value::scalar(1.f)}).shape() == shape{0, 3});
  CHECK(elements<std::uint16_t>(bench("Fill", {sizes({5}), tensor_value::scalar(std::uint16_t{3})})) == std::vector<std::uint16_t>{3, 3, 3, 3, 3});
  CHECK(elements<float>(bench("ZerosLike", {six})) == std::vector<float>(6, 0.f));
  CHECK(elements<std::string>(bench("ZerosLike", {make<std::string>({1}, {"x"})})) == std::vector<std::string>{""});
  CHECK(elements<float>(bench("OnesLike", {six})) == std::vector<float>(6, 1.f));
  CHECK(elements<half>(bench("OnesLike", {make<half>({1}, {half(3.f)})})) == std::vector<half>{half(1.f)});
  CHECK(elements<bfloat16>(bench("OnesLike", {make<bfloat16>({1}, {bfloat16(3.f)})})) == std::vector<bfloat16>{bfloat16(1.f)});
  CHECK(elements<std::int64_t>(bench("OnesLike", {make<std::int64_t>({2}, {5, 6})})) == std::vector<std::int64_t>{1, 1});
  CHECK(elements<bool>(bench("OnesLike", {make<bool>({1}, {false})})) == std::vector<bool>{true});
  CHECK(elements<double>(bench("OnesLike", {make<double>({1}, {0})})) == std::vector<double>{1});
}

TEST_CASE("fill: what is no shape") {
  kernel_bench bench;
  CHECK(bench.error("Fill", {sizes({-1}), tensor_value::scalar(1.f)}) == "INVALID_ARGUMENT: the wanted shape [-1] has a negative size or too many elements");
  CHECK(bench.error("Fill", {make<std::int64_t>({2}, {std::int64_t{1} << 40, std::int64_t{1} << 40}), tensor_value::scalar(1.f)}) ==
        "INVALID_ARGUMENT: the wanted shape [1099511627776,1099511627776] has a negative size or too many elements");
  CHECK(bench.error("Fill", {sizes({2}), make<float>({1}, {1})}) == "INVALID_ARGUMENT: the value must be a scalar, found shape [1]");
  CHECK(bench.error("Fill", {make<std::int32_t>({1, 1}, {1}), tensor_value::scalar(1.f)}) == "INVALID_ARGUMENT: the wanted shape must be a vector of sizes, found shape [1,1]");
}
