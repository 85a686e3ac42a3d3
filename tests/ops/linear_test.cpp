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
