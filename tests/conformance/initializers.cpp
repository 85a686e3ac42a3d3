// Initializers, nodes of random numbers and seeds.
#include "runner.hpp"

#include <weft/ops/standard.hpp>
#include <weft/session/local_session.hpp>
#include <weft/train/initializers.hpp>

#include <map>

namespace conformance {

using namespace weft::detail;
using weft::scaling_distribution;
using weft::scaling_mode;

namespace {

struct arguments {
  json_at at;
  const json_value* find(const char* name) const { return find_field(at, name); }
  double number(const char* name, double otherwise) const {
    const json_value* v = find(name);
    return v == nullptr ? otherwise : real_at(json_at(*v, at, name));
  }
  std::string text(const char* name, const char* otherwise) const {
    const json_value* v = find(name);
    return v == nullptr ? otherwise : v->text;
  }
};

weft::initializer scaled(const arguments& a, std::int64_t seed) {
  static const std::map<std::string, scaling_mode> modes = {{"fan_in", scaling_mode::fan_in}, {"fan_out", scaling_mode::fan_out}, {"fan_avg", scaling_mode::fan_avg}};
  static const std::map<std::string, scaling_distribution> distributions = {{"normal", scaling_distribution::truncated_normal}, {"truncated_normal", scaling_distribution::truncated_normal},
                                                                            {"untruncated_normal", scaling_distribution::untruncated_normal}, {"uniform", scaling_distribution::uniform}};
  return weft::variance_scaling_initializer(a.number("scale", 1), modes.at(a.text("mode", "fan_in")), distributions.at(a.text("distribution", "truncated_normal")), seed);
}

weft::initializer constant(const arguments& a) {
  const json_value* v = a.find("value");
  if (v == nullptr) return weft::constant_initializer(0.);
  const json_at at(*v, a.at, "value");
  if (v->kind != json_kind::array) return weft::constant_initializer(real_at(at));
  std::vector<double> all;
  for (std::size_t i = 0; i < v->items.size(); ++i) all.push_back(real_at(json_at(v->items[i], at, i)));
  return weft::constant_initializer(all);
}

// TensorFlow's name of an initializer without what its modules and its kind say.
weft::initializer initializer_of(std::string name, const arguments& a, std::int64_t seed) {
  if (name.compare(0, 13, "initializers.") == 0) name = name.substr(13);
  if (const auto at = name.find("_initializer"); at != std::string::npos) name.resize(at);
  if (name == "zeros") return weft::zeros_initializer();
  if (name == "ones") return weft::ones_initializer();
  if (name == "constant") return constant(a);
  if (name == "random_uniform") return weft::random_uniform_initializer(a.number("minval", 0), a.number("maxval", 1), seed);
  if (name == "random_normal") return weft::random_normal_initializer(a.number("mean", 0), a.number("stddev", 1), seed);
  if (name == "truncated_normal") return weft::truncated_normal_initializer(a.number("mean", 0), a.number("stddev", 1), seed);
  if (name == "uniform_unit_scaling") return weft::uniform_unit_scaling_initializer(a.number("factor", 1), seed);
  if (name == "variance_scaling") return scaled(a, seed);
  if (name == "glorot_uniform") return weft::glorot_uniform_initializer(seed);
  if (name == "glorot_normal") return weft::glorot_normal_initializer(seed);
  if (name == "he_uniform") return weft::he_uniform_initializer(seed);
  if (name == "he_normal") return weft::he_normal_initializer(seed);
  if (name == "lecun_uniform") return weft::lecun_uniform_initializer(seed);
  if (name == "lecun_normal") return weft::lecun_normal_initializer(seed);
  if (name == "orthogonal") return weft::orthogonal_initializer(a.number("gain", 1), seed);
  if (name == "identity") return weft::identity_initializer(a.number("gain", 1));
  weft::fail(weft::error_code::unimplemented, "there is no initializer '" + name + "'");
}

weft::shape sizes_at(const json_at& record) { return weft::shape(partial_shape_at(field(record, "shape")).sizes()); }

std::string check_initializer(const json_at& record) {
  const json_at expect = field(record, "expect");
  const weft::output made =
      initializer_of(text_field_of(record, "initializer"), {field(record, "arguments")}, integer_at(field(record, "seed"))).make({sizes_at(record), type_at(field(record, "dtype"))});
  if (const json_value* error = find_field(expect, "error")) return "expected an error (" + text_field_of(json_at(*error, expect, "error"), "message") + "), found none";
  if (const json_value* nodes = find_field(expect, "random_nodes")) {
    const json_at list(*nodes, expect, "random_nodes");
    std::vector<const weft::node*> found;
    for (const weft::node* n : weft::default_graph().nodes())
      if (n->find_attr<std::int64_t>("seed") != nullptr) found.push_back(n);
    if (found.size() != nodes->items.size()) return "expected " + std::to_string(nodes->items.size()) + " random nodes, found " + std::to_string(found.size());
    for (std::size_t i = 0; i < found.size(); ++i) {
      const json_at one(nodes->items[i], list, i);
      if (found[i]->op() != text_field_of(one, "op") || found[i]->attr<std::int64_t>("seed") != integer_at(field(one, "seed")) || found[i]->attr<std::int64_t>("seed2") != integer_at(field(one, "seed2")))
        return "the random node " + found[i]->op() + " has other seeds";
    }
  }
  weft::local_session session;
  return compare(value_at(field(expect, "values"), string_form::text), run_step(session, {{}, {made}, {}}, {})[0], std::nullopt);
}

// A node of random numbers, run some times in one session.
std::string check_random(const json_at& record) {
  const std::string op = text_field_of(record, "op");
  const weft::dtype type = type_at(field(record, "dtype"));
  const weft::shape s = sizes_at(record);
  weft::attr_map attrs{{"seed", integer_at(field(record, "seed"))}, {"seed2", integer_at(field(record, "seed2"))}};
  std::vector<weft::output> inputs;
  const auto constant = [&](weft::tensor_value v) { inputs.push_back({&add_const(std::move(v), weft::op_name()), 0}); };
  const auto number = [&](const char* name) {
    const std::int64_t x = integer_at(field(record, name));
    constant(type == weft::dtype::int64 ? weft::tensor_value::scalar(x) : weft::tensor_value::scalar(static_cast<std::int32_t>(x)));
  };
  if (op == "Multinomial") {
    std::vector<float> logits;
    std::int64_t rows = 0;
    const json_at list = field(record, "logits");
    for (std::size_t i = 0; i < list.value.items.size(); ++i, ++rows)
      for (std::size_t j = 0; j < list.value.items[i].items.size(); ++j) logits.push_back(static_cast<float>(real_at(json_at(list.value.items[i].items[j], list, j))));
    constant(weft::tensor_value::from<float>({rows, static_cast<std::int64_t>(logits.size()) / rows}, logits));
    constant(weft::tensor_value::scalar(static_cast<std::int32_t>(s[1])));
    attrs["output_dtype"] = type;
  } else if (op == "RandomShuffle") {
    std::vector<std::int32_t> counted;
    for (std::int32_t i = 0; i < s[0]; ++i) counted.push_back(i);
    constant(weft::tensor_value::from<std::int32_t>(s, counted));
  } else {
    constant(weft::tensor_value::from<std::int64_t>({s.rank()}, std::vector<std::int64_t>(s.begin(), s.end())));
    if (op == "RandomUniformInt") {
      number("minval");
      number("maxval");
    }
    attrs[op == "RandomUniformInt" ? "Tout" : "dtype"] = type;
  }
  const weft::output drawn{&add_node(op.c_str(), inputs, weft::op_name(), attrs), 0};
  weft::local_session session;
  const json_at expect = field(record, "expect"), runs = field(expect, "runs");
  for (std::size_t i = 0; i < runs.value.items.size(); ++i) {
    const std::string why = compare(value_at(json_at(runs.value.items[i], runs, i), string_form::text), run_step(session, {{}, {drawn}, {}}, {})[0], std::nullopt);
    if (!why.empty()) return "run " + std::to_string(i) + ": " + why;
  }
  return "";
}

std::string check_seeds(const json_at& record) {
  const auto optional_at = [&record](const char* which) {
    const json_value* v = find_field(record, which);
    return v == nullptr ? std::optional<std::int64_t>() : integer_at(json_at(*v, record, which));
  };
  weft::default_graph().state()->set_seed(optional_at("graph_seed"));
  const json_at expect = field(record, "expect"), nodes = field(expect, "nodes");
  for (std::size_t i = 0; i < nodes.value.items.size(); ++i) {
    const json_at one(nodes.value.items[i], nodes, i);
    const weft::node& n = *weft::random_uniform({3}, 0.f, 1.f, optional_at("op_seed")).raw().from;
    const std::int64_t found[] = {n.attr<std::int64_t>("seed"), n.attr<std::int64_t>("seed2")};
    if (found[0] != integer_at(field(one, "seed")) || found[1] != integer_at(field(one, "seed2")))
      return "node " + std::to_string(i) + ": expected " + std::to_string(integer_at(field(one, "seed"))) + ", " + std::to_string(integer_at(field(one, "seed2"))) + ", found " +
             std::to_string(found[0]) + ", " + std::to_string(found[1]);
  }
  return "";
}

}  // namespace

void run_initializer_record(const json_at& record, const options& asked, report& into) {
  const std::string kind = text_field_of(record, "kind"), name = text_field_of(record, "name");
  if (!asked.wants(kind)) return;
  if (kind == "facts") return into.skipped(kind, name, "a description");
  const weft::graph g;
  const auto scope = g.as_default();
  try {
    const std::string why = kind == "initializer" ? check_initializer(record) : kind == "random" ? check_random(record) : check_seeds(record);
    if (why.empty()) into.passed(kind, name);
    else into.failed(kind, name, why);
  } catch (const weft::error& e) {
    if (find_field(field(record, "expect"), "error") != nullptr) into.passed(kind, name);
    else into.failed(kind, name, std::string("found ") + e.what());
  }
}

}  // namespace conformance
