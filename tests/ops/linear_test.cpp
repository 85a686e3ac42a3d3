#include <weft/ops/linear.hpp>

#include <doctest/doctest.h>
#include <weft/ops/standard.hpp>

#include <string>

using weft::matmul;
using weft::placeholder;
using weft::tensor;

namespace {
struct fixture {
  weft::graph g;
  weft::detail::graph_scope scope = g.as_default();
};
tensor<float, 2> matrix(std::int64_t rows, std::int64_t columns) { return placeholder<float>({rows, columns}); }
}  // namespace

TEST_CASE("matmul: rows of the first by columns of the second, either transposed") {
  fixture t;
  CHECK(matmul(matrix(2, 3), matrix(3, 4)).shape().text() == "[2,4]");
  CHECK(matmul(matrix(3, 2), matrix(3, 4), weft::transpose_a).shape().text() == "[2,4]");
  CHECK(matmul(matrix(2, 3), matrix(4, 3), weft::transpose_b).shape().text() == "[2,4]");
  CHECK(matmul(matrix(3, 2), matrix(4, 3), weft::transpose_a | weft::transpose_b).shape().text() == "[2,4]");
  CHECK(matmul(matrix(-1, 3), matrix(-1, 4)).shape().text() == "[?,4]");
  CHECK(matmul(placeholder<float>(), placeholder<float>()).shape().text() == "[?,?]");
  CHECK(matmul(matrix(0, 3), matrix(3, 4)).shape().text() == "[0,4]");
}

TEST_CASE("matmul: its attributes say what is transposed") {
  fixture t;
  const weft::node& n = *matmul(matrix(2, 3), matrix(4, 3), weft::transpose_b, "product").raw().from;
  CHECK(n.op() == "MatMul");
  CHECK(n.name() == "product");
  CHECK_FALSE(n.attr<bool>("transpose_a"));
  CHECK(n.attr<bool>("transpose_b"));
  CHECK(n.attr<weft::dtype>("T") == weft::dtype::float32);
}

TEST_CASE("matmul: inner dimensions that differ are an error at that line") {
  fixture t;
  CHECK_THROWS_WITH_AS((void)matmul(matrix(2, 3), matrix(4, 5), {"mul", {"train.cpp", 42}}),
                       "INVALID_ARGUMENT: MatMul 'mul' (train.cpp:42): inner dimensions 3 and 4 differ ([2,3] x [4,5])", weft::error);
  CHECK_THROWS_WITH_AS((void)matmul(matrix(2, 3), matrix(4, 5), weft::transpose_a | weft::transpose_b, {"mul", {"train.cpp", 42}}),
                       "INVALID_ARGUMENT: MatMul 'mul' (train.cpp:42): inner dimensions 2 and 5 differ ([2,3] transposed x [4,5] transposed)", weft::error);
}

TEST_CASE("matmul: a rank that is found only when the node is made") {
  fixture t;
  const tensor<float> vector = placeholder<float>({3});
  CHECK_THROWS_WITH_AS((void)matmul(vector, matrix(3, 4), {"mul", {"train.cpp", 7}}), "INVALID_ARGUMENT: MatMul 'mul' (train.cpp:7): a must have rank 2, found shape [3]", weft::error);
}

TEST_CASE("batch_matmul: shapes of matrices and batches") {
  const weft::graph g;
  const auto scope = g.as_default();
  const auto a = placeholder<float>({5, 2, 3}, "a");
  const auto b = placeholder<float>({3, 4}, "b");
  const weft::tensor<float, 3> product = weft::batch_matmul(a, b);
  CHECK(product.raw().from->op() == "BatchMatMulV2");
  CHECK(product.shape() == weft::partial_shape{5, 2, 4});
  CHECK(weft::batch_matmul(a, placeholder<float>({7, 1, 2, 6}), weft::transpose_a).shape() == weft::partial_shape{7, 5, 3, 6});
  CHECK(weft::batch_matmul(a, placeholder<float>({weft::unknown, 4, 3}), weft::transpose_b).shape() == weft::partial_shape{5, 2, 4});
  CHECK(!weft::batch_matmul(a, placeholder<float>()).shape().known_rank());
  CHECK_THROWS_WITH_AS((void)weft::batch_matmul(a, placeholder<float>({6, 3, 4}), {"m", {"user.cpp", 4}}),
                       "INVALID_ARGUMENT: BatchMatMulV2 'm' (user.cpp:4): batches [5] and [6] cannot be broadcast", weft::error);
  CHECK_THROWS_WITH_AS((void)weft::batch_matmul(a, placeholder<float>({2, 4}), {"m", {"user.cpp", 4}}),
                       "INVALID_ARGUMENT: BatchMatMulV2 'm' (user.cpp:4): inner dimensions 3 and 2 differ ([5,2,3] x [2,4])", weft::error);
  CHECK_THROWS_WITH_AS(weft::detail::add_node("BatchMatMul", {a.raw(), b.raw()}, {"n", {"user.cpp", 4}}),
                       "INVALID_ARGUMENT: BatchMatMul 'n' (user.cpp:4): batches [5] and [] differ", weft::error);
}
