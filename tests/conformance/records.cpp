// Records of single nodes: values, errors, random numbers, static shapes.
#include "runner.hpp"

#include <weft/gradients/gradients.hpp>
#include <weft/kernels/standard.hpp>
#include <weft/ops/standard.hpp>
#include <weft/partition/prune.hpp>
#include <weft/runtime/kernel.hpp>
#include <weft/session/local_session.hpp>

#include <cmath>

namespace conformance {

using namespace weft::detail;
using weft::tensor_value;

namespace {

// The values of a list field.
std::vector<tensor_value> values_at(const json_at& record, std::string_view name) {
  const json_at list = field(record, name);
  std::vector<tensor_value> out;
  for (std::size_t i = 0; i < elements_at(list).size(); ++i) {
    const json_value& item = list.value.items[i];
    out.push_back(item.kind == json_kind::null ? tensor_value() : value_at(json_at(item, list, i), string_form::text));
  }
  return out;
}

/// One task and one session in which kernels run.
struct bench {
  bench() {
    environment.resources = &resources;
    environment.session_state = &session_state;
    environment.pool = &pool;
  }
  weft::resource_manager resources, session_state;
  weft::thread_pool pool{1};
  weft::step_environment environment;
};

/// The node of a record in a graph of its own.
class one_node {
 public:
  explicit one_node(const json_at& record) : record_(record), op_(text_field_of(record, "op")) {}

  void add_placeholder(weft::dtype type, const weft::partial_shape& shape) {
    weft::node_spec spec;
    spec.op = "Placeholder";
    spec.attrs = {{"dtype", type}, {"shape", shape}};
    inputs_.push_back({&graph_.add(std::move(spec)), 0});
  }
  void add_constant(const tensor_value& v) {
    weft::node_spec spec;
    spec.op = "Const";
    spec.attrs = {{"dtype", v.dtype()}, {"value", v}};
    inputs_.push_back({&graph_.add(std::move(spec)), 0});
  }
  const weft::graph& graph() const { return graph_; }
  const weft::node& build() {
    std::uint64_t room = usual_room;
    weft::node_spec spec;
    spec.op = op_;
    spec.name = "node";
    spec.inputs = inputs_;
    spec.attrs = attrs_at(record_, graph_.ops().find(op_).get(), room);
    return graph_.add(std::move(spec));
  }

 private:
  const json_at& record_;
  std::string op_;
  weft::graph graph_;
  std::vector<weft::output> inputs_;
};

const weft::node& behind_placeholders(one_node& at, const std::vector<tensor_value>& inputs) {
  for (const tensor_value& v : inputs) at.add_placeholder(v.dtype(), {});
  return at.build();
}
const weft::node& behind_constants(one_node& at, const std::vector<tensor_value>& inputs) {
  for (const tensor_value& v : inputs) at.add_constant(v);
  return at.build();
}

std::unique_ptr<weft::kernel> kernel_of(const weft::node& n) { return weft::standard_kernels().make({n, "/job:localhost/task:0/device:CPU:0"}, "CPU"); }

std::vector<tensor_value> run_kernel(weft::kernel& k, const weft::node& n, bench& where, std::vector<tensor_value> inputs) {
  std::vector<tensor_value> outputs(static_cast<std::size_t>(n.output_count()));
  weft::kernel_context context(n, where.environment, inputs.data(), inputs.size(), outputs.data());
  (void)k.expensive(context);
  k.compute(context);
  return outputs;
}

std::vector<tensor_value> unshared(const std::vector<tensor_value>& values) {
  std::vector<tensor_value> out;
  for (const tensor_value& v : values) out.push_back(conformance::unshared(v));
  return out;
}

// Notes of answers that need not be copied.
bool is_open(const json_at& record) {
  const json_value* note = find_field(record, "note");
  if (note == nullptr) return false;
  for (const char* word : {"denormal", "open", "not specified", "undefined"})
    if (note->text.find(word) != std::string::npos) return true;
  return false;
}

// Whether the op is there at all; says so if not.
bool is_there(const std::string& op, const std::string& name, report& into) {
  if (weft::standard_ops().find(op) == nullptr) return into.missing(op, name, op, "definition"), false;
  if (op != "Placeholder" && weft::standard_catalogue().kernels_of(op).empty()) return into.missing(op, name, op, "kernel"), false;
  return true;
}

struct expected_error {
  bool build = false;
  std::string code, message;
};
expected_error error_of(const json_at& record) {
  const json_at at = field(record, "error");
  return {text_field_of(at, "when") == "build", text_field_of(at, "code"), text_field_of(at, "message")};
}

void check_error(const json_at& record, const std::string& op, const std::string& name, report& into) {
  const expected_error expected = error_of(record);
  const std::string wanted = "expected " + expected.code + " (" + expected.message + ")";
  try {
    const auto inputs = values_at(record, "inputs");
    one_node made(record);
    if (expected.build) {
      behind_constants(made, inputs);
      return into.failed(op, name, wanted + " when the node is built, found none");
    }
    const weft::node& n = behind_placeholders(made, inputs);
    if (op == "Placeholder") return into.passed(op, name);
    bench where;
    run_kernel(*kernel_of(n), n, where, unshared(inputs));
    into.failed(op, name, wanted + " when the node runs, found none");
  } catch (const weft::error& e) {
    if (to_text(e.code()) == expected.code) into.passed(op, name);
    else into.failed(op, name, wanted + ", found " + e.what());
  }
}

// What the kernel gives, run on inputs of its own and again on shared ones, which it must leave alone; "" when all is right.
std::string check_values(const json_at& record, const std::vector<tensor_value>& inputs, const std::vector<tensor_value>& expected) {
  one_node dynamic(record), constant(record);
  const weft::node& n = behind_placeholders(dynamic, inputs);
  if (n.output_count() != static_cast<int>(expected.size())) return "expected " + std::to_string(expected.size()) + " outputs, found " + std::to_string(n.output_count());
  const weft::node& built = behind_constants(constant, inputs);
  const auto tol = tolerance_at(record);
  bench where;
  const auto made = kernel_of(n);
  const auto first = run_kernel(*made, n, where, unshared(inputs));
  const auto kept = unshared(inputs);
  const auto second = run_kernel(*made, n, where, inputs);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    if (expected[i].empty()) continue;
    const std::string output = expected.size() == 1 ? "" : "output " + std::to_string(i) + ": ";
    if (const std::string why = compare(expected[i], first[i], tol); !why.empty()) return output + why;
    if (const std::string why = compare(first[i], second[i], tolerance()); !why.empty()) return output + "on shared inputs " + why;
    for (const weft::node* of : {&n, &built}) {
      const auto& shape = of->output_shape(static_cast<int>(i));
      if (!shape.accepts(expected[i].shape())) return output + "the value has shape " + expected[i].shape().text() + ", the static shape is " + shape.text() + (of == &n ? "" : " behind constants");
      if (of->output_dtype(static_cast<int>(i)) != expected[i].dtype()) return output + "the static dtype is " + to_text(of->output_dtype(static_cast<int>(i)));
    }
  }
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i] != kept[i]) return "the kernel wrote its input " + std::to_string(i) + ", which somebody else holds";
  return "";
}

// A graph in which the node's floating inputs are fed, so that nothing of them is known, and the others are constants, as they mostly are in programs.
class fed_node {
 public:
  fed_node(const json_at& record, const std::vector<tensor_value>& inputs) : made_(record) {
    for (const tensor_value& v : inputs) {
      if (weft::is_floating(v.dtype())) made_.add_placeholder(v.dtype(), {});
      else made_.add_constant(v);
    }
    const weft::node& n = made_.build();
    node_ = &n;
    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (weft::is_floating(inputs[i].dtype())) {
        signature.feeds.push_back(n.inputs()[i]);
        fed.push_back(inputs[i]);
      }
  }
  const weft::node& about() const { return *node_; }
  const weft::graph& graph() const { return made_.graph(); }
  weft::step_signature signature;
  std::vector<tensor_value> fed;

 private:
  one_node made_;
  const weft::node* node_ = nullptr;
};

// Gradients that are there, beside those that should be; "" when all are right. `lacks` becomes an op without a kernel.
std::string compare_gradients(fed_node& at, const json_at& record, const json_at& expected, const std::vector<weft::gradient_output>& found, std::string& lacks) {
  std::vector<std::size_t> fetched;
  for (std::size_t i = 0; i < found.size(); ++i) {
    const bool none = expected.value.items[i].kind == json_kind::null;
    const std::string input = "input " + std::to_string(i) + ": ";
    if (none != found[i].empty()) return input + (none ? "expected no gradient, found one" : "expected a gradient, found none");
    if (none) continue;
    at.signature.fetches.push_back(dense_gradient(found[i], weft::call_site()));
    fetched.push_back(i);
  }
  if (fetched.empty()) return "";
  for (const weft::node* n : prune(at.graph(), at.signature.feeds, at.signature.fetches, {}))
    if (weft::standard_catalogue().kernels_of(n->op()).empty()) return lacks = n->op(), "";
  weft::session_options options;
  options.kernel_threads = 1;
  options.optimizer = passes();
  weft::local_session session(options, weft::graph(at.graph().state()));
  const auto got = run_step(session, at.signature, at.fed);
  for (std::size_t k = 0; k < fetched.size(); ++k)
    if (const std::string why = compare(value_at(json_at(expected.value.items[fetched[k]], expected, fetched[k]), string_form::text), got[k], tolerance_at(record)); !why.empty())
      return "input " + std::to_string(fetched[k]) + ": " + why;
  return "";
}

void check_gradient(const json_at& record, const std::string& op, const std::string& record_name, report& into) {
  const std::string name = record_name + " gradient";
  const json_at at = field(record, "gradient"), expected = field(at, "inputs");
  std::string why, lacks;
  try {
    const auto inputs = values_at(record, "inputs"), given = values_at(at, "grad_ys");
    fed_node fed(record, inputs);
    const auto scope = fed.graph().as_default();
    std::vector<weft::output> ys;
    weft::gradient_options options;
    for (std::size_t i = 0; i < given.size(); ++i) {
      if (given[i].empty()) continue;
      ys.push_back({&fed.about(), static_cast<int>(i)});
      options.grad_ys.push_back(weft::output{&add_const(given[i], weft::op_name("given"), fed.graph().state().get()), 0});
    }
    const auto found = weft::gradients(ys, fed.about().inputs(), options);
    why = compare_gradients(fed, record, expected, found, lacks);
  } catch (const weft::error& e) {
    why = std::string("found ") + e.what();
  }
  if (!lacks.empty()) into.missing(op, name, lacks, "kernel");
  else if (why.empty()) into.passed(op, name);
  else if (is_open(record)) into.skipped(op, name, "the answer need not be copied (its note says why)");
  else into.failed(op, name, why);
}

}  // namespace

void run_op_record(const json_at& record, const options& asked, report& into) {
  const std::string op = text_field_of(record, "op"), name = text_field_of(record, "name");
  if (!asked.wants(op)) return;
  if (!is_there(op, name, into)) return;
  if (find_field(record, "error") != nullptr) return check_error(record, op, name, into);
  std::string why;
  try {
    const auto inputs = values_at(record, "inputs"), expected = values_at(record, "outputs");
    if (op == "Placeholder") {
      one_node made(record);
      behind_constants(made, inputs);
    } else {
      why = check_values(record, inputs, expected);
    }
  } catch (const weft::error& e) {
    why = std::string("found ") + e.what();
  }
  if (why.empty()) into.passed(op, name);
  else if (is_open(record)) into.skipped(op, name, "the answer need not be copied (its note says why)");
  else into.failed(op, name, why);
  if (find_field(record, "gradient") != nullptr) check_gradient(record, op, name, into);
}

namespace {

// The summary of one output of a random node: the first values, then hash or mean and deviation.
std::string compare_drawn(const json_at& at, const tensor_value& found, const std::optional<tolerance>& tol) {
  const json_at values = field(at, "values"), sizes = field(at, "shape");
  std::vector<std::int64_t> dims;
  for (std::size_t i = 0; i < elements_at(sizes).size(); ++i) dims.push_back(integer_at(json_at(sizes.value.items[i], sizes, i)));
  const weft::dtype type = dtype_at(field(at, "dtype"));
  if (found.dtype() != type || found.shape() != weft::shape(dims)) return "expected " + std::string(to_text(type)) + weft::shape(dims).text() + ", found " + to_text(found.dtype()) + found.shape().text();
  const auto& items = elements_at(values);
  const tolerance use = tol.value_or(tolerance());
  for (std::size_t i = 0; i < items.size(); ++i) {
    // Half types are written as the double they stand for, and floats in as few digits as read back.
    double expected = real_at(json_at(items[i], values, i));
    if (type == weft::dtype::float32) expected = static_cast<double>(static_cast<float>(expected));
    const double got = element(found, static_cast<std::int64_t>(i));
    if (!(std::abs(expected - got) <= use.absolute + use.relative * std::abs(expected))) return "value " + std::to_string(i) + ": expected " + std::to_string(expected) + ", found " + std::to_string(got);
  }
  const json_value* hash = find_field(at, "sha256");
  if (!tol && hash != nullptr && sha256(found) != hash->text) return "the first " + std::to_string(items.size()) + " values are right, the hash of all is not";
  const json_value *mean = find_field(at, "mean"), *deviation = find_field(at, "std");
  if (tol && mean != nullptr && deviation != nullptr) {
    double sum = 0, squares = 0;
    const auto n = static_cast<double>(found.elements());
    for (std::int64_t i = 0; i < found.elements(); ++i) sum += element(found, i);
    for (std::int64_t i = 0; i < found.elements(); ++i) squares += (element(found, i) - sum / n) * (element(found, i) - sum / n);
    const double spread = std::sqrt(squares / n), wanted_mean = real_at(json_at(*mean, at, "mean")), wanted_spread = real_at(json_at(*deviation, at, "std"));
    const double allowed = use.absolute + use.relative * wanted_spread;
    if (std::abs(sum / n - wanted_mean) > allowed || std::abs(spread - wanted_spread) > allowed)
      return "expected mean " + std::to_string(wanted_mean) + " and deviation " + std::to_string(wanted_spread) + ", found " + std::to_string(sum / n) + " and " + std::to_string(spread);
  }
  return "";
}

std::string check_runs(const json_at& record) {
  const auto inputs = values_at(record, "inputs");
  one_node made(record);
  const weft::node& n = behind_placeholders(made, inputs);
  bench where;
  const auto k = kernel_of(n);
  const json_at runs = field(record, "runs");
  for (std::size_t r = 0; r < elements_at(runs).size(); ++r) {
    const json_at one(runs.value.items[r], runs, r), outputs = field(one, "outputs");
    const auto found = run_kernel(*k, n, where, unshared(inputs));
    if (elements_at(outputs).size() != found.size()) return "expected " + std::to_string(outputs.value.items.size()) + " outputs, found " + std::to_string(found.size());
    for (std::size_t i = 0; i < found.size(); ++i)
      if (const std::string why = compare_drawn(json_at(outputs.value.items[i], outputs, i), found[i], tolerance_at(record)); !why.empty()) return "run " + std::to_string(r) + ": " + why;
  }
  return "";
}

}  // namespace

void run_random_record(const json_at& record, const options& asked, report& into) {
  const std::string op = text_field_of(record, "op"), name = text_field_of(record, "name");
  if (!asked.wants(op) || !is_there(op, name, into)) return;
  try {
    const std::string why = check_runs(record);
    if (why.empty()) into.passed(op, name);
    else into.failed(op, name, why);
  } catch (const weft::error& e) {
    into.failed(op, name, std::string("found ") + e.what());
  }
}

namespace {

// "" when what weft knows is at least what TensorFlow knows and does not contradict it.
std::string compare_shapes(const weft::partial_shape& expected, const weft::partial_shape& found) {
  const auto both = merge_shapes(expected, found);
  if (both && *both == found) return "";
  return "expected " + expected.text() + ", found " + found.text();
}

void check_graph_shapes(const json_at& record, const std::string& name, report& into) {
  const json_at def = field(record, "graph_def"), shapes = field(record, "output_shapes");
  if (const lack l = find_lack(def, false); l.what != nullptr) return into.missing("graph", name, l.op, l.what);
  const weft::graph g = graph_at(def, import_of_data());
  for (const json_value& member : shapes.value.items) {
    const weft::output o = g.find_output(member.key);
    if (const std::string why = compare_shapes(partial_shape_at(json_at(member, shapes, member.key)), o.from->output_shape(o.index)); !why.empty())
      return into.failed("graph", name, "'" + member.key + "': " + why);
  }
  into.passed("graph", name);
}

std::string check_node_shapes(const json_at& record) {
  const json_at types = field(record, "input_dtypes"), shapes = field(record, "input_shapes");
  const json_value* constants = find_field(record, "const_inputs");
  one_node made(record);
  for (std::size_t i = 0; i < elements_at(types).size(); ++i) {
    const json_value* constant = constants == nullptr ? nullptr : find_field(json_at(*constants, record, "const_inputs"), std::to_string(i));
    if (constant != nullptr) made.add_constant(value_at(json_at(*constant, record, "const_inputs"), string_form::text));
    else made.add_placeholder(dtype_at(json_at(types.value.items[i], types, i)), partial_shape_at(json_at(shapes.value.items[i], shapes, i)));
  }
  const weft::node& n = made.build();
  if (find_field(record, "error") != nullptr) {
    const expected_error expected = error_of(record);
    return "expected " + expected.code + " (" + expected.message + "), found " + (n.output_count() == 0 ? std::string("none") : "shape " + n.output_shape(0).text());
  }
  const json_at outputs = field(record, "output_shapes");
  if (elements_at(outputs).size() != static_cast<std::size_t>(n.output_count())) return "expected " + std::to_string(outputs.value.items.size()) + " outputs, found " + std::to_string(n.output_count());
  for (std::size_t i = 0; i < outputs.value.items.size(); ++i)
    if (const std::string why = compare_shapes(partial_shape_at(json_at(outputs.value.items[i], outputs, i)), n.output_shape(static_cast<int>(i))); !why.empty())
      return "output " + std::to_string(i) + ": " + why;
  return "";
}

}  // namespace

void run_shape_record(const json_at& record, const options& asked, report& into) {
  const json_value* op_field = find_field(record, "op");
  const std::string name = text_field_of(record, "name"), op = op_field == nullptr ? "graph" : op_field->text;
  if (!asked.wants(op)) return;
  try {
    if (op_field == nullptr) return check_graph_shapes(record, name, into);
    if (weft::standard_ops().find(op) == nullptr) return into.missing(op, name, op, "definition");
    const std::string why = check_node_shapes(record);
    if (why.empty()) into.passed(op, name);
    else into.failed(op, name, why);
  } catch (const weft::error& e) {
    if (find_field(record, "error") == nullptr) into.failed(op, name, std::string("found ") + e.what());
    else if (const expected_error expected = error_of(record); to_text(e.code()) == expected.code) into.passed(op, name);
    else into.failed(op, name, "expected " + expected.code + " (" + expected.message + "), found " + e.what());
  }
}

void run_seed_record(const json_at& record, const options& asked, report& into) {
  const std::string name = text_field_of(record, "name"), op = "seeds";
  if (!asked.wants(op)) return;
  if (find_field(record, "nodes") != nullptr) return into.skipped(op, name, "a program of builders in Python, which data alone does not say");
  const auto optional_at = [&record](const char* which) {
    const json_value* v = find_field(record, which);
    return v == nullptr ? std::optional<std::int64_t>() : integer_at(json_at(*v, record, which));
  };
  weft::graph g;
  g.state()->set_seed(optional_at("graph_seed"));
  for (std::int64_t i = optional_at("ops_before").value_or(0); i > 0; --i) {
    weft::node_spec spec;
    spec.op = "NoOp";
    g.add(std::move(spec));
  }
  const auto found = op_seeds(*g.state(), optional_at("op_seed"));
  const auto tensorflow1 = optional_at("seed2_tensorflow1");
  const std::pair<std::int64_t, std::int64_t> expected{optional_at("seed").value(), tensorflow1 ? *tensorflow1 : optional_at("seed2").value()};
  if (found == expected) into.passed(op, name);
  else into.failed(op, name, "expected " + std::to_string(expected.first) + ", " + std::to_string(expected.second) + ", found " + std::to_string(found.first) + ", " + std::to_string(found.second));
}

}  // namespace conformance
