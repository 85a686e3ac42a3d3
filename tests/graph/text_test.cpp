#include <weft/graph/text.hpp>

#include <weft/graph/dot.hpp>

#include <doctest/doctest.h>

#include <sstream>
#include <string>
#include <vector>

namespace {

weft::op_registry ops() {
  weft::op_registry out;
  out.add(weft::op("Const").output("output: dtype").attr("value: tensor").attr("dtype: type"));
  out.add(weft::op("MatMul").input("a: T").input("b: T").output("product: T").attr("transpose_a: bool = false").attr("transpose_b: bool = false").attr("T: type"));
  out.add(weft::op("NoOp"));
  out.add(weft::op("VarHandleOp").output("resource: resource").attr("dtype: type").attr("shape: shape").attr("shared_name: string = \"\"").stateful());
  return out;
}

weft::node_spec spec(const char* op, const char* name, const char* device = "") {
  weft::node_spec out;
  out.op = op;
  out.name = name;
  out.scoped = false;
  out.device = device;
  return out;
}

const weft::node& constant(const weft::graph& g, const char* name, weft::tensor_value value, const char* device = "") {
  auto s = spec("Const", name, device);
  s.outputs = std::vector<weft::output_type>{{value.dtype(), value.shape(), false}};
  s.attrs = {{"dtype", value.dtype()}, {"value", std::move(value)}};
  return g.add(std::move(s));
}

}  // namespace

TEST_CASE("text: a node is one line of name, op, inputs, outputs, device and what attributes add") {
  weft::graph g(ops());
  const auto& x = constant(g, "x", weft::tensor_value(weft::dtype::float32, weft::shape{2, 3}), "/job:ps/task:0");
  auto s = spec("MatMul", "y", "/job:work");
  s.inputs = {{&x, 0}, {&x, 0}};
  s.control_inputs = {&x};
  s.attrs["transpose_b"] = true;
  s.outputs = std::vector<weft::output_type>{{weft::dtype::float32, weft::partial_shape{2, -1}, false}};
  s.attrs["T"] = weft::dtype::float32;
  s.attrs["transpose_a"] = false;
  const auto& y = g.add(std::move(s));
  CHECK(to_text(x) == "x = Const()  float[2,3]  /job:ps/task:0  {value=float[2,3]}");
  CHECK(to_text(y) == "y = MatMul(x, x, ^x)  float[2,?]  /job:work  {transpose_b=true}");
  CHECK(to_text(g.add(spec("NoOp", "n"))) == "n = NoOp()");
  std::ostringstream printed;
  printed << g;
  CHECK(printed.str() == to_text(x) + "\n" + to_text(y) + "\nn = NoOp()\n");
}

TEST_CASE("text: small values are printed, larger ones by dtype and shape") {
  weft::graph g(ops());
  using weft::tensor_value;
  CHECK(to_text(constant(g, "a", tensor_value::scalar(0.1F))) == "a = Const()  float[]  {value=0.1}");
  CHECK(to_text(constant(g, "b", tensor_value::from(weft::shape{2}, std::vector<std::int32_t>{-1, 7}))) == "b = Const()  int32[2]  {value=[-1, 7]}");
  CHECK(to_text(constant(g, "c", tensor_value::scalar(true))) == "c = Const()  bool[]  {value=true}");
  CHECK(to_text(constant(g, "d", tensor_value::scalar(std::string("say \"hi\"\n")))) == "d = Const()  string[]  {value=\"say \\\"hi\\\"\\x0a\"}");
  CHECK(to_text(constant(g, "e", tensor_value::scalar(0.1))) == "e = Const()  double[]  {value=0.1}");
  CHECK(to_text(constant(g, "f", tensor_value::from(weft::shape{5}, std::vector<std::int64_t>{1, 2, 3, 4, 5}))) == "f = Const()  int64[5]  {value=int64[5]}");
  CHECK(to_text(constant(g, "g", tensor_value(weft::dtype::float32, weft::shape{0}))) == "g = Const()  float[0]  {value=[]}");
}

TEST_CASE("text: a resource has no shape, and attributes that inputs do not show are printed") {
  weft::graph g(ops());
  auto s = spec("VarHandleOp", "w");
  s.attrs = {{"dtype", weft::dtype::float32}, {"shape", weft::partial_shape{2, 2}}, {"shared_name", "w"}, {"_class", std::vector<std::string>{"loc:@w"}}};
  CHECK(to_text(g.add(std::move(s))) == "w = VarHandleOp()  resource  {_class=[\"loc:@w\"], dtype=float, shape=[2,2], shared_name=\"w\"}");
}

TEST_CASE("text: a graph of another graph's nodes prints the same") {
  weft::graph g(ops());
  constant(g, "x", weft::tensor_value::scalar(1.0F), "/cpu:0");
  const weft::graph copy = g;
  CHECK(to_text(copy) == to_text(g));
}

TEST_CASE("dot: a box per device, labelled data edges, dashed control edges") {
  weft::graph g(ops());
  const auto& x = constant(g, "x", weft::tensor_value(weft::dtype::float32, weft::shape{2, 2}), "/cpu:0");
  auto s = spec("MatMul", "y");
  s.inputs = {{&x, 0}, {&x, 0}};
  const auto& y = g.add(std::move(s));
  auto after = spec("NoOp", "after");
  after.control_inputs = {&y};
  g.add(std::move(after));
  CHECK(to_dot(g) ==
        "digraph {\n"
        "  node [shape=box];\n"
        "  \"y\" [label=\"y\\nMatMul\"];\n"
        "  \"after\" [label=\"after\\nNoOp\"];\n"
        "  subgraph \"cluster /cpu:0\" {\n"
        "    label=\"/cpu:0\";\n"
        "    \"x\" [label=\"x\\nConst\"];\n"
        "  }\n"
        "  \"x\" -> \"y\" [label=\"float[2,2]\"];\n"
        "  \"x\" -> \"y\" [label=\"float[2,2]\"];\n"
        "  \"y\" -> \"after\" [style=dashed];\n"
        "}\n");
}
