#include <weft/format/graphdef.hpp>

#include <weft/graph/text.hpp>
#include <weft/ops/array.hpp>
#include <weft/ops/linear.hpp>
#include <weft/ops/math.hpp>
#include <weft/ops/reduce.hpp>
#include <weft/partition/partition.hpp>
#include <weft/session/local_session.hpp>
#include <weft/tensor/xtensor.hpp>

#include <doctest/doctest.h>

#include <cstdio>
#include <string>
#include <vector>

namespace {

// A graph of these nodes, each the text of one.
std::string nodes(const std::vector<std::string>& all) {
  std::string out = R"({"node": [)";
  for (std::size_t i = 0; i < all.size(); ++i) out += (i ? ", " : "") + all[i];
  return out + "]}";
}
const std::string x = R"({"name": "x", "op": "Placeholder", "attr": {"dtype": {"type": "DT_FLOAT"}}})";
std::string identity(const std::string& name, const std::string& input) {
  return R"({"name": ")" + name + R"(", "op": "Identity", "input": [)" + input + R"(], "attr": {"T": {"type": "DT_FLOAT"}}})";
}
std::string constant(const std::string& tensor) { return nodes({R"({"name": "c", "op": "Const", "attr": {"dtype": {"type": "DT_FLOAT"}, "value": {"tensor": )" + tensor + "}}}"}); }

std::string fault(const std::string& text, const weft::import_options& options = {}) {
  try {
    (void)weft::from_graphdef_json(text, options);
  } catch (const weft::error& e) {
    return std::string(to_text(e.code())) + ": " + e.message();
  }
  return "";
}

std::string loop(const std::string& first_input) {
  return nodes({R"({"name": "n", "op": "Merge", "input": [")" + first_input + R"(", "next"], "attr": {"N": {"i": "2"}, "T": {"type": "DT_INT32"}}})",
                R"({"name": "zero", "op": "Const", "attr": {"dtype": {"type": "DT_INT32"}, "value": {"tensor": {"dtype": "DT_INT32", "tensorShape": {}}}}})",
                R"({"name": "enter", "op": "Enter", "input": ["zero"], "attr": {"T": {"type": "DT_INT32"}, "frame_name": {"s": "bG9vcA=="}}})",
                R"({"name": "next", "op": "NextIteration", "input": ["n"], "attr": {"T": {"type": "DT_INT32"}}})"});
}

}  // namespace

TEST_CASE("graphdef: a graph is written as protobuf writes it") {
  weft::graph g;
  const auto scope = g.as_default();
  {
    const auto device = weft::with_device("/job:ps/task:1");
    const auto a = weft::placeholder<float, 2>("a");
    const auto b = weft::constant(std::vector<float>{1.0F, 2.0F}, "b");
    weft::matmul(a, a, "c");
    weft::add(a, b, "d");
  }
  weft::export_options compact;
  compact.indent = 0;
  CHECK(weft::to_graphdef_json(g, compact) ==
        R"({"node":[{"name":"a","op":"Placeholder","device":"/job:ps/task:1","attr":{"dtype":{"type":"DT_FLOAT"},"shape":{"shape":{"dim":[{"size":"-1"},{"size":"-1"}]}}}},)"
        R"({"name":"b","op":"Const","device":"/job:ps/task:1","attr":{"dtype":{"type":"DT_FLOAT"},"value":{"tensor":{"dtype":"DT_FLOAT","tensorShape":{"dim":[{"size":"2"}]},"tensorContent":"AACAPwAAAEA="}}}},)"
        R"({"name":"c","op":"MatMul","input":["a","a"],"device":"/job:ps/task:1","attr":{"T":{"type":"DT_FLOAT"}}},)"
        R"({"name":"d","op":"AddV2","input":["a","b"],"device":"/job:ps/task:1","attr":{"T":{"type":"DT_FLOAT"}}}],"versions":{"producer":27}})");
  compact.strip_defaults = false;
  compact.proto_field_names = true;
  const std::string full = weft::to_graphdef_json(g, compact);
  CHECK(full.find(R"("transpose_a":{"b":false})") != std::string::npos);
  CHECK(full.find("tensor_content") != std::string::npos);
  CHECK(weft::to_graphdef_json(weft::from_graphdef_json(full)) == weft::to_graphdef_json(g));
}

TEST_CASE("graphdef: attributes of every kind come back") {
  const std::vector<std::pair<weft::attr_value, const char*>> kinds{
      {weft::attr_value(std::string("a\0\xff", 3)), R"({"s":"YQD/"})"},
      {weft::attr_value(std::int64_t(-5)), R"({"i":"-5"})"},
      {weft::attr_value(0.1F), R"({"f":0.1})"},
      {weft::attr_value(-0.0F), R"({"f":-0.0})"},
      {weft::attr_value(7.038531e-26F), R"({"f":7.038530691851209e-26})"},
      {weft::attr_value(false), R"({"b":false})"},
      {weft::attr_value(weft::dtype::bfloat16), R"({"type":"DT_BFLOAT16"})"},
      {weft::attr_value(weft::partial_shape()), R"({"shape":{"unknownRank":true}})"},
      {weft::attr_value(weft::partial_shape({2, -1, 0})), R"({"shape":{"dim":[{"size":"2"},{"size":"-1"},{}]}})"},
      {weft::attr_value(weft::tensor_value::from<std::int64_t>({2}, {7, 7})), R"({"tensor":{"dtype":"DT_INT64","tensorShape":{"dim":[{"size":"2"}]},"int64Val":["7"]}})"},
      {weft::attr_value(weft::tensor_value::from<std::string>({2}, {"a", ""})), R"({"tensor":{"dtype":"DT_STRING","tensorShape":{"dim":[{"size":"2"}]},"stringVal":["YQ==",""]}})"},
      {weft::attr_value(weft::func_attr{"f", {{"T", weft::attr_value(weft::dtype::int32)}}}), R"({"func":{"name":"f","attr":{"T":{"type":"DT_INT32"}}}})"},
      {weft::attr_value(weft::placeholder_attr{"T"}), R"({"placeholder":"T"})"},
      {weft::attr_value(std::vector<std::string>{"x"}), R"({"list":{"s":["eA=="]}})"},
      {weft::attr_value(std::vector<std::int64_t>{1, -2}), R"({"list":{"i":["1","-2"]}})"},
      {weft::attr_value(std::vector<float>{0.5F}), R"({"list":{"f":[0.5]}})"},
      {weft::attr_value(std::vector<bool>{true, false}), R"({"list":{"b":[true,false]}})"},
      {weft::attr_value(std::vector<weft::dtype>{weft::dtype::half}), R"({"list":{"type":["DT_HALF"]}})"},
      {weft::attr_value(std::vector<weft::partial_shape>{weft::partial_shape({})}), R"({"list":{"shape":[{}]}})"},
      {weft::attr_value(std::vector<weft::func_attr>{{"f", {}}}), R"({"list":{"func":[{"name":"f"}]}})"},
      {weft::attr_value(std::vector<std::string>()), R"({"list":{}})"},
  };
  for (const auto& [value, text] : kinds) {
    CHECK(weft::to_attr_json(value) == text);
    const weft::graph g = weft::from_graphdef_json(nodes({R"({"name": "n", "op": "NoOp", "attr": {"_a": )" + std::string(text) + "}}"}));
    CHECK(g.find("n")->attrs().at("_a") == value);
  }
}

// As Tensor::FromProto of TensorFlow.
TEST_CASE("graphdef: a tensor's content goes before its values, its last value is repeated, and what is too much is left") {
  using weft::tensor_value;
  const std::pair<const char*, tensor_value> cases[] = {
      {R"({"dtype":"DT_FLOAT","tensorShape":{"dim":[{"size":"2"}]},"tensorContent":"AACAPwAAAEA=","floatVal":[9,9]})", tensor_value::from<float>({2}, {1, 2})},
      {R"({"dtype":"DT_FLOAT","tensorShape":{"dim":[{"size":"5"}]},"floatVal":[1,2]})", tensor_value::from<float>({5}, {1, 2, 2, 2, 2})},
      {R"({"dtype":"DT_FLOAT","tensorShape":{"dim":[{"size":"2"}]},"floatVal":[1,2,3]})", tensor_value::from<float>({2}, {1, 2})},
      {R"({"dtype":"DT_FLOAT","tensorShape":{"dim":[{"size":"2"}]}})", tensor_value::from<float>({2}, {0, 0})},
      {R"({"dtype":"DT_STRING","tensorShape":{"dim":[{"size":"2"}]},"stringVal":["AGE="]})", tensor_value::from<std::string>({2}, {std::string("\0a", 2), std::string("\0a", 2)})},
      {R"({"dtype":"DT_STRING","tensorShape":{"dim":[{"size":"2"}]},"stringVal":["eA=="," AGE=", "eA=="]})", tensor_value()},
  };
  for (const auto& [text, value] : cases) {
    const std::string file = nodes({R"({"name": "n", "op": "NoOp", "attr": {"_a": {"tensor": )" + std::string(text) + "}}}"});
    if (value.empty()) CHECK(fault(file).find("INVALID_ARGUMENT: node[0].attr._a.tensor.string_val[1]") == 0);  // no blanks in base64
    else CHECK(weft::from_graphdef_json(file).find("n")->attrs().at("_a") == weft::attr_value(value));
  }
}

TEST_CASE("graphdef: values that text cannot hold keep their bits") {
  const float bits[] = {-0.0F, std::numeric_limits<float>::infinity(), std::numeric_limits<float>::denorm_min(), std::nanf("7")};
  for (const float v : bits) {
    const weft::attr_value scalar(weft::tensor_value::scalar(v));
    const weft::graph g = weft::from_graphdef_json(nodes({R"({"name": "n", "op": "NoOp", "attr": {"_a": )" + weft::to_attr_json(scalar) + "}}"}));
    CHECK(g.find("n")->attrs().at("_a") == scalar);
  }
}

TEST_CASE("graphdef: nodes may come in any order, defaults are filled in, tensors are found by name") {
  const weft::graph g = weft::from_graphdef_json(nodes({R"({"name": "y", "op": "MatMul", "input": ["x:0", "x", "^first"]})", identity("first", "\"x\""), x}));
  CHECK(to_text(g) == "x = Placeholder()  float<unknown>\nfirst = Identity(x)  float<unknown>\ny = MatMul(x, x, ^first)  float[?,?]\n");
  CHECK(g.find("y")->attr<bool>("transpose_a") == false);
  const auto input = g.tensor<float>("x:0");
  const auto y = g.tensor<float, 2>("y");
  weft::local_session session({}, weft::graph(g.state()));
  const std::vector<weft::feed> feeds{{input.raw(), weft::tensor_value::from<float>({1, 1}, {3.0F})}};
  CHECK(session.run(feeds, weft::reduce_sum(y)) == 9.0F);
}

TEST_CASE("graphdef: a prefix goes before every name") {
  weft::import_options options;
  options.prefix = "import";
  const weft::graph g = weft::from_graphdef_json(nodes({x, identity("y", "\"x\"")}), options);
  CHECK(to_text(*g.find("import/y")) == "import/y = Identity(import/x)  float<unknown>");
}

TEST_CASE("graphdef: loops are loaded, copied and written, and say so when they are to run") {
  const weft::graph g = weft::from_graphdef_json(loop("enter"));
  const std::string text = "zero = Const()  int32[]  {value=0}\nenter = Enter(zero)  int32[]  {frame_name=\"loop\"}\nn = Merge(enter, next)  int32<unknown>, int32[]\nnext = NextIteration(n)  int32<unknown>\n";
  CHECK(to_text(g) == text);
  const weft::graph copy = g;
  CHECK(to_text(copy) == text);
  CHECK(weft::to_graphdef_json(weft::from_graphdef_json(weft::to_graphdef_json(copy))) == weft::to_graphdef_json(g));
  weft::partition_options step;
  step.fetches = {g.find_output("n")};
  CHECK_THROWS_WITH_AS(weft::partition(g, weft::cluster_spec{{"work", 1}}, step),
                       "UNIMPLEMENTED: Merge 'n': closes a loop (its input 'next' is made after it), and loops cannot run yet", weft::error);
  CHECK(fault(loop("next")) == "INVALID_ARGUMENT: node[0]: the first input of the Merge of a loop must come from outside the loop");
}

TEST_CASE("graphdef: the library of functions is kept, and its functions are ops") {
  const std::string text =
      R"({"node": [)" + x + R"(, {"name": "y", "op": "twice", "input": ["x"]}], "library": {"function": [{"signature": {"name": "twice", "inputArg": [{"name": "a", "type": "DT_FLOAT"}],)"
      R"( "outputArg": [{"name": "z", "type": "DT_FLOAT"}]}, "nodeDef": [{"name": "sum", "op": "AddV2", "input": ["a", "a"], "attr": {"T": {"type": "DT_FLOAT"}}}], "ret": {"z": "sum:z:0"},)"
      R"( "argAttr": {"0": {"attr": {"_label": {"s": "YQ=="}}}}}], "gradient": [{"functionName": "twice", "gradientFunc": "twice_gradient"}]}})";
  const weft::graph g = weft::from_graphdef_json(text);
  REQUIRE(g.functions().size() == 1);
  const weft::function_def& f = *g.functions()[0];
  CHECK(f.signature.name == "twice");
  CHECK(f.nodes[0].inputs == std::vector<std::string>{"a", "a"});
  CHECK(f.results.at("z") == "sum:z:0");
  CHECK(f.argument_attrs.at(0).at("_label") == weft::attr_value("a"));
  CHECK(f.gradient == "twice_gradient");
  CHECK(to_text(*g.find("y")) == "y = twice(x)  float<unknown>");
  const weft::graph copy = g;
  const std::string written = weft::to_graphdef_json(copy);
  CHECK(written.find(R"("minConsumer": 12)") != std::string::npos);
  CHECK(weft::to_graphdef_json(weft::from_graphdef_json(written)) == written);
}

TEST_CASE("graphdef: reference variables are loaded and printed") {
  const weft::graph g = weft::from_graphdef_json(
      nodes({R"({"name": "v", "op": "VariableV2", "attr": {"dtype": {"type": "DT_FLOAT"}, "shape": {"shape": {"dim": [{"size": "2"}]}}}})", x,
             R"({"name": "assign", "op": "Assign", "input": ["v", "x"], "attr": {"T": {"type": "DT_FLOAT"}}})", identity("read", "\"v\"")}));
  CHECK(to_text(*g.find("assign")) == "assign = Assign(v, x)  ref float[2]");
  CHECK(to_text(*g.find("read")) == "read = Identity(v)  float[2]");
  weft::local_session session({}, weft::graph(g.state()));
  CHECK_THROWS_AS(session.run(g.tensor<float, 1>("read")), weft::error);
}

TEST_CASE("graphdef: what is wrong is named with the way to it, and nothing is imported") {
  weft::import_options small;
  small.max_nodes = 1;
  weft::import_options little;
  little.max_repeated_bytes = 1000;
  const std::pair<std::string, std::string> cases[] = {
      {"[]", "INVALID_ARGUMENT: expected an object, found an array"},
      {R"({"nodes": []})", "INVALID_ARGUMENT: there is no field 'nodes' here"},
      {R"({"node": {}})", "INVALID_ARGUMENT: node: expected an array, found an object"},
      {R"({"node": [null]})", "INVALID_ARGUMENT: node[0]: expected an object, found null"},
      {nodes({R"({"op": "NoOp"})"}), "INVALID_ARGUMENT: node[0]: the node has no name"},
      {nodes({R"({"name": "a"})"}), "INVALID_ARGUMENT: node[0]: node 'a' does not say its op"},
      {nodes({R"({"name": "a", "op": "Nonsense"})", R"({"name": "b", "op": "Nonsense"})", R"({"name": "c", "op": "Other"})"}),
       "NOT_FOUND: the graph uses ops that are not defined: 'Nonsense' (node 'a' and 1 more), 'Other' (node 'c'); add their definitions to import_options::ops"},
      {nodes({x, x}), "ALREADY_EXISTS: node[1]: there is more than one node 'x'"},
      {nodes({x, R"({"name": "n", "op": "NoOp", "attr": {"a": {"type": "DT_FLOOT"}}})"}), "INVALID_ARGUMENT: node[1].attr.a.type: there is no dtype 'DT_FLOOT'"},
      {nodes({R"({"name": "n", "op": "NoOp", "attr": {"a": {"type": "DT_QINT8"}}})"}), "UNIMPLEMENTED: node[0].attr.a.type: values of dtype DT_QINT8 are not supported"},
      {nodes({R"({"name": "n", "op": "NoOp", "attr": {"a": {"type": "DT_FLOAT_REF"}}})"}), "INVALID_ARGUMENT: node[0].attr.a.type: a reference dtype cannot stand here, found 'DT_FLOAT_REF'"},
      {nodes({R"({"name": "n", "op": "NoOp", "attr": {"a": {"type": 101}}})"}), "INVALID_ARGUMENT: node[0].attr.a.type: a reference dtype cannot stand here, found number 101"},
      {nodes({R"({"name": "n", "op": "NoOp", "attr": {"a": {"type": 99}}})"}), "INVALID_ARGUMENT: node[0].attr.a.type: there is no dtype of number 99"},
      {nodes({R"({"name": "n", "op": "NoOp", "attr": {"a": {"i": "1", "f": 1}}})"}), "INVALID_ARGUMENT: node[0].attr.a: an attribute has one value, found 'i' and 'f'"},
      {nodes({R"({"name": "n", "op": "NoOp", "attr": {"a": {"x": 1}}})"}), "INVALID_ARGUMENT: node[0].attr.a: there is no field 'x' here"},
      {nodes({R"({"name": "n", "op": "NoOp", "attr": {"a": {"shape": {"dim": [{"size": "2.5"}]}}}})"}), "INVALID_ARGUMENT: node[0].attr.a.shape.dim[0].size: expected an integer"},
      {nodes({R"({"name": "n", "op": "NoOp", "device": "/job:a/job:b"})"}), "INVALID_ARGUMENT: node[0]: device string '/job:a/job:b' is malformed: a job is given twice; expected something like '/job:ps/task:0/device:CPU:0'"},
      {nodes({R"({"name": "a b", "op": "NoOp"})"}), "INVALID_ARGUMENT: node[0]: the name must match [A-Za-z0-9.][A-Za-z0-9._/\\->]* and have at most 1024 characters"},
      {nodes({x, identity("y", "\"z\"")}), "INVALID_ARGUMENT: node[1].input[0]: node 'y' has the input 'z', but there is no such node"},
      {nodes({x, identity("y", "\"\"")}), "INVALID_ARGUMENT: node[1].input[0]: node 'y' has the input '', but there is no such node"},
      {nodes({x, identity("y", "\"x:1\"")}), "INVALID_ARGUMENT: node[1]: 'x' has 1 outputs, asked for number 1"},
      {nodes({x, identity("y", "\"x:-1\"")}), "INVALID_ARGUMENT: node[1].input[0]: 'x:-1' is not an input; expected 'node', 'node:1' or '^node'"},
      {nodes({x, identity("y", "\"x:99999999999\"")}), "INVALID_ARGUMENT: node[1].input[0]: 'x:99999999999' is not an input; expected 'node', 'node:1' or '^node'"},
      {nodes({x, identity("y", "\"^x\", \"x\"")}), "INVALID_ARGUMENT: node[1].input[1]: control inputs come after all others"},
      {nodes({x, identity("y", "\"x\", \"x\"")}), "INVALID_ARGUMENT: node[1]: takes 1 inputs, found 2"},
      {nodes({identity("y", "\"y\"")}), "INVALID_ARGUMENT: nodes in a cycle: 'y' <- 'y'; only the edge from a NextIteration to a Merge may close one"},
      {nodes({identity("a", "\"b\""), identity("b", "\"c\""), identity("c", "\"a\"")}),
       "INVALID_ARGUMENT: nodes in a cycle: 'a' <- 'b' <- 'c' <- 'a'; only the edge from a NextIteration to a Merge may close one"},
      {nodes({x, identity("a", "\"x\", \"^b\""), identity("b", "\"a\"")}), "INVALID_ARGUMENT: nodes in a cycle: 'a' <- 'b' <- 'a'; only the edge from a NextIteration to a Merge may close one"},
      {constant("{}"), "INVALID_ARGUMENT: node[0].attr.value.tensor: a tensor needs a dtype"},
      {constant(R"({"dtype": "DT_FLOAT", "tensorShape": {"dim": [{"size": "-1"}]}})"), "INVALID_ARGUMENT: node[0].attr.value.tensor.tensor_shape.dim[0].size: expected an integer from 0 to 9223372036854775807, found -1"},
      {constant(R"({"dtype": "DT_FLOAT", "tensorShape": {"dim": [{"size": "4294967296"}, {"size": "4294967296"}]}})"),
       "INVALID_ARGUMENT: node[0].attr.value.tensor: shape [4294967296,4294967296] has more elements than memory can address"},
      {constant(R"({"dtype": "DT_FLOAT", "tensorShape": {"dim": [{"size": "1099511627776"}]}, "floatVal": [1]})"),
       "RESOURCE_EXHAUSTED: node[0].attr.value.tensor: shape [1099511627776] would take 4398046511104 bytes, more than import_options::max_repeated_bytes leaves (1073741824)"},
      {constant(R"({"dtype": "DT_FLOAT", "tensorShape": {"dim": [{"size": "2"}]}, "tensorContent": "AAAA"})"),
       "INVALID_ARGUMENT: node[0].attr.value.tensor: shape [2] of float needs 8 bytes of content, found 3"},
      {constant(R"({"dtype": "DT_FLOAT", "floatVal": ["one"]})"), "INVALID_ARGUMENT: node[0].attr.value.tensor.float_val[0]: expected a number, found \"one\""},
      {constant(R"({"dtype": "DT_VARIANT"})"), "UNIMPLEMENTED: node[0].attr.value.tensor: values of dtype variant are not supported"},
      {R"({"library": {"function": [{}]}})", "INVALID_ARGUMENT: library.function[0]: the function has no signature"},
      {R"({"library": {"function": [{"signature": {"name": "MatMul"}}]}})", "ALREADY_EXISTS: library.function[0]: there is already an op or function 'MatMul'"},
      {R"({"library": {"gradient": [{"functionName": "f"}]}})", "INVALID_ARGUMENT: library.gradient[0]: there is no function 'f'"},
  };
  for (const auto& [text, expected] : cases) CHECK(fault(text) == expected);
  CHECK(fault(nodes({x, identity("y", "\"x\"")}), small) == "RESOURCE_EXHAUSTED: node: the graph has 2 nodes, at most 1 are accepted (import_options::max_nodes)");
  CHECK(fault(constant(R"({"dtype": "DT_FLOAT", "tensorShape": {"dim": [{"size": "251"}]}, "floatVal": [1]})"), little).substr(0, 18) == "RESOURCE_EXHAUSTED");
  CHECK(fault(constant(R"({"dtype": "DT_FLOAT", "tensorShape": {"dim": [{"size": "250"}]}, "floatVal": [1]})"), little).empty());
}

TEST_CASE("graphdef: a chain of a hundred thousand nodes, last first, is read without recursion") {
  std::string text = R"({"node": [)";
  for (int i = 100000; i > 0; --i) text += identity("n" + std::to_string(i), i == 1 ? "\"x\"" : "\"n" + std::to_string(i - 1) + "\"") + ",";
  const weft::graph g = weft::from_graphdef_json(text + x + "]}");
  CHECK(g.size() == 100001);
}

TEST_CASE("graphdef: files are written as a whole, and faults name the file") {
  const std::string path = "graphdef_test.tmp.json";
  const weft::graph g = weft::from_graphdef_json(nodes({x, identity("y", "\"x\"")}));
  weft::write_graphdef_json(g, path);
  CHECK(to_text(weft::read_graphdef_json(path)) == to_text(g));
  std::FILE* file = std::fopen(path.c_str(), "wb");
  REQUIRE(file != nullptr);
  std::fputs("{\"node\": [{}]}", file);
  std::fclose(file);
  CHECK_THROWS_WITH_AS(weft::read_graphdef_json(path), ("INVALID_ARGUMENT: " + path + ": node[0]: the node has no name").c_str(), weft::error);
  std::remove(path.c_str());
  CHECK_THROWS_WITH_AS(weft::read_graphdef_json(path), ("NOT_FOUND: cannot open '" + path + "'").c_str(), weft::error);
  CHECK_THROWS_AS(weft::write_graphdef_json(g, "no/such/folder/g.json"), weft::error);
}
