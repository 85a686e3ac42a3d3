#include <weft/cluster/graph_codec.hpp>

#include <weft/cluster/messages.hpp>
#include <weft/ops/standard.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

using weft::attr_value;
using weft::dtype;

namespace {

weft::node_spec plain(const char* op, const char* name, std::vector<weft::output> inputs = {}, weft::attr_map attrs = {}) {
  weft::node_spec out;
  out.op = op;
  out.name = name;
  out.exact_name = true;
  out.scoped = false;
  out.inputs = std::move(inputs);
  out.attrs = std::move(attrs);
  return out;
}

weft::graph round_trip(const weft::graph& g) {
  weft::wire_writer to;
  std::vector<weft::tensor_value> tensors;
  weft::encode_nodes(to, tensors, g.nodes(), 0);
  weft::graph out;
  weft::wire_reader from(to.bytes(), "graph");
  weft::decode_nodes(from, tensors, out, {1000});
  from.finish();
  return out;
}

std::string fault_of(const std::string& bytes) {
  const weft::graph out;
  weft::wire_reader from(bytes, "graph");
  try {
    weft::decode_nodes(from, {}, out, {1000});
  } catch (const weft::error& e) {
    return e.message();
  }
  return "";
}

}  // namespace

TEST_CASE("graph_codec: names, inputs, control inputs, devices and shapes survive") {
  const weft::graph g;
  const weft::node& x = g.add(plain("Const", "x", {}, {{"value", weft::tensor_value::from(weft::shape{2}, std::vector<float>{1, 2})}, {"dtype", dtype::float32}}));
  auto spec = plain("AddV2", "scope/sum", {{&x, 0}, {&x, 0}});
  spec.control_inputs = {&x};
  spec.device = "/job:work/task:1";
  g.add(std::move(spec));
  const weft::graph copy = round_trip(g);
  const auto nodes = copy.nodes();
  REQUIRE(nodes.size() == 2);
  const weft::node& sum = *nodes[1];
  CHECK(sum.name() == "scope/sum");
  CHECK(sum.op() == "AddV2");
  CHECK(sum.device() == "/job:work/task:1");
  REQUIRE(sum.inputs().size() == 2);
  CHECK(sum.inputs()[1].from == nodes[0]);
  REQUIRE(sum.control_inputs().size() == 1);
  CHECK(sum.control_inputs()[0] == nodes[0]);
  CHECK(sum.output_dtype(0) == dtype::float32);
  CHECK(sum.output_shape(0) == weft::partial_shape{2});
  CHECK(nodes[0]->attrs() == x.attrs());
}

TEST_CASE("graph_codec: every kind of attribute survives") {
  const weft::graph g;
  weft::func_attr inner{"inner", {{"T", dtype::int64}}}, outer{"outer", {{"f", weft::func_attr(inner)}, {"n", 3}}};
  const weft::tensor_value t = weft::tensor_value::from(weft::shape{2}, std::vector<std::string>{"a", std::string("\0b", 2)});
  weft::attr_map attrs{{"none", attr_value()}, {"s", std::string("\0\xff", 2)}, {"i", std::int64_t{-5}}, {"f", -0.f}, {"b", true}, {"type", dtype::half}, {"shape", weft::partial_shape{-1, 3}},
                       {"unknown", weft::partial_shape()}, {"t", t}, {"func", outer}, {"place", weft::placeholder_attr{"T"}}, {"ls", std::vector<std::string>{"x", ""}},
                       {"li", std::vector<std::int64_t>{1, -2}}, {"lf", std::vector<float>{0.1f}}, {"lb", std::vector<bool>{true, false}}, {"lt", std::vector<dtype>{dtype::string}},
                       {"lsh", std::vector<weft::partial_shape>{weft::partial_shape(), weft::partial_shape{}}}, {"lte", std::vector<weft::tensor_value>{t, t}}, {"lfn", std::vector<weft::func_attr>{inner}}};
  auto spec = plain("SomethingElse", "n", {}, attrs);
  spec.outputs = std::vector<weft::output_type>{{dtype::float32, weft::partial_shape{-1}, true}};
  g.add(std::move(spec));
  const weft::graph copy = round_trip(g);
  const auto nodes = copy.nodes();
  REQUIRE(nodes.size() == 1);
  CHECK(nodes[0]->attrs() == attrs);
  CHECK(nodes[0]->outputs()[0].is_ref);
  CHECK(nodes[0]->output_shape(0) == weft::partial_shape{-1});
}

TEST_CASE("graph_codec: nodes are added behind those that are there") {
  const weft::graph g;
  g.add(plain("NoOp", "a"));
  weft::wire_writer first, second;
  std::vector<weft::tensor_value> tensors;
  weft::encode_nodes(first, tensors, g.nodes(), 0);
  auto spec = plain("NoOp", "b");
  spec.control_inputs = {g.nodes()[0]};
  g.add(std::move(spec));
  weft::encode_nodes(second, tensors, g.nodes(), 1);
  const weft::graph out;
  weft::wire_reader one(first.bytes()), two(second.bytes()), again(second.bytes());
  weft::decode_nodes(one, {}, out, {2});
  weft::decode_nodes(two, {}, out, {2});
  CHECK(out.find("b")->control_inputs()[0] == out.find("a"));
  CHECK_THROWS_WITH(weft::decode_nodes(again, {}, out, {2}), "INVALID_ARGUMENT: message: expected nodes from number 2 on, found 1 (before byte 8 of 45)");
  CHECK_THROWS_WITH(
      [&] {
        weft::wire_reader more(first.bytes());
        weft::decode_nodes(more, {}, weft::graph(), {0});
      }(),
      "RESOURCE_EXHAUSTED: the graph would have 1 nodes, at most 0 are accepted (server_options::max_graph_nodes)");
}

TEST_CASE("graph_codec: what is large may take longer on its way") {
  CHECK(weft::time_to_carry(1000) == std::chrono::milliseconds(0));
  CHECK(weft::time_to_carry(std::size_t{16} << 20) == std::chrono::milliseconds(2000));
  weft::message m;
  m.tensors.push_back(weft::tensor_value(weft::dtype::float32, weft::shape({4 << 20})));
  CHECK(weft::time_to_carry(m) == std::chrono::milliseconds(2000));
}

TEST_CASE("graph_codec: what is not a graph is refused") {
  const auto node_with = [](std::uint32_t input, std::uint32_t index) {
    weft::wire_writer w;
    w.count(0).count(1).string("n").string("Identity").string("").count(1).u32(input).u32(index).count(0).count(0).count(0);
    return w.take();
  };
  CHECK(fault_of(node_with(0, 0)).find("a node refers to node 0, which is not before it") != std::string::npos);
  CHECK(fault_of(node_with(0xffffffff, 0)).find("which is not before it") != std::string::npos);
  weft::wire_writer many;
  many.count(0).count(0xffffffff);
  CHECK(fault_of(many.bytes()).find("does not fit into the 0 bytes that follow") != std::string::npos);

  // Functions in functions in functions.
  weft::wire_writer deep;
  deep.count(0).count(1).string("n").string("NoOp").string("").count(0).count(0).count(0);
  for (int i = 0; i < 100; ++i) deep.count(1).string("f").u8(8).string("g");
  deep.count(0);
  CHECK(fault_of(deep.bytes()).find("functions are nested more than 16 deep") != std::string::npos);

  weft::wire_writer kind;
  kind.count(0).count(1).string("n").string("NoOp").string("").count(0).count(0).count(0).count(1).string("a").u8(99);
  CHECK(fault_of(kind.bytes()).find("there is no kind of attribute 99") != std::string::npos);
  weft::wire_writer tensor;
  tensor.count(0).count(1).string("n").string("NoOp").string("").count(0).count(0).count(0).count(1).string("a").u8(7).boolean(true).u32(3);
  CHECK(fault_of(tensor.bytes()).find("tensor 3 is not in the message, which has 0") != std::string::npos);
}
