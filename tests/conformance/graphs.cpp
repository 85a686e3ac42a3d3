// Graphs of files: TensorProto, GraphDef with steps, gradients of graphs.
#include "runner.hpp"

#include <weft/gradients/gradients.hpp>
#include <weft/graph/text.hpp>
#include <weft/session/local_session.hpp>

#include <filesystem>

namespace conformance {

using namespace weft::detail;
using weft::tensor_value;

namespace {

// Code of the error in field `error`, with its message for people.
std::string error_code_at(const json_at& record) {
  const json_at at = field(record, "error");
  return find_field(at, "code") == nullptr ? "" : text_field_of(at, "code");
}
std::string error_text_at(const json_at& record) { return text_field_of(field(record, "error"), "message"); }

std::string bytes_of(const tensor_value& v) { return v.elements() == 0 ? "" : std::string(reinterpret_cast<const char*>(v.raw_data()), v.bytes()); }

// A Const of this value, built as an imported graph would have it.
tensor_value constant_of(const json_at& record) {
  std::uint64_t room = usual_room;
  const json_at proto = field(record, "proto");
  tensor_value v = tensor_at(proto, room);
  const json_value* other = find_field(record, "node_dtype");
  weft::graph g;
  weft::node_spec spec;
  spec.op = "Const";
  spec.attrs = {{"dtype", other == nullptr ? v.dtype() : dtype_at(json_at(*other, record, "node_dtype"))}, {"value", v}};
  return g.add(std::move(spec)).attr<tensor_value>("value");
}

std::string check_proto(const json_at& record) {
  const tensor_value v = constant_of(record);
  if (find_field(record, "error") != nullptr) return "expected " + error_code_at(record) + " (" + error_text_at(record) + "), found " + to_text(v.dtype()) + v.shape().text();
  const json_at expected = field(record, "value");
  if (const std::string why = compare(value_at(expected, string_form::base64), v, tolerance()); !why.empty()) return why;
  if (const json_value* bytes = find_field(expected, "bytes"); bytes != nullptr && bytes_at(json_at(*bytes, expected, "bytes")) != bytes_of(v)) return "the bytes differ";
  // Written and read again it is the same, bit for bit.
  const json_value written = parse_json(to_attr_json(v));
  std::uint64_t room = usual_room;
  if (attr_at(json_at(written), "", room) != weft::attr_value(v)) return "written and read again it differs: " + to_attr_json(v).substr(0, 200);
  return "";
}

}  // namespace

void run_tensor_proto(const json_at& record, const options& asked, report& into) {
  const std::string name = text_field_of(record, "name"), op = "tensorproto";
  if (!asked.wants(op)) return;
  try {
    const std::string why = check_proto(record);
    if (why.empty()) into.passed(op, name);
    else into.failed(op, name, why);
  } catch (const weft::error& e) {
    if (find_field(record, "error") != nullptr && error_code_at(record) == to_text(e.code())) into.passed(op, name);
    else into.failed(op, name, std::string("found ") + e.what());
  }
}

void run_graphdef_file(const json_at& graph_def, const std::string& name, const options& asked, report& into) {
  const std::string op = "graphdef";
  if (!asked.wants(op)) return;
  if (const lack l = find_lack(graph_def, false); l.what != nullptr) return into.missing(op, name, l.op, l.what);
  try {
    const weft::graph g = graph_at(graph_def, import_of_data());
    const json_value* nodes = find_field(graph_def, "node");
    if (g.size() != nodes->items.size()) return into.failed(op, name, "expected " + std::to_string(nodes->items.size()) + " nodes, found " + std::to_string(g.size()));
    const std::string written = to_graphdef_json(g);
    weft::export_options other;
    other.proto_field_names = true;
    other.strip_defaults = false;
    const weft::graph again = from_graphdef_json(written, import_of_data()), bare = from_graphdef_json(to_graphdef_json(g, other), import_of_data()), copy = g;
    for (const weft::graph* same : {&again, &bare, &copy})
      if (to_graphdef_json(*same) != written || to_text(*same) != to_text(g)) return into.failed(op, name, "written and read again the graph differs");
    into.passed(op, name);
  } catch (const weft::error& e) {
    into.failed(op, name, std::string("found ") + e.what());
  }
}

void run_graphdef_steps(const json_at& record, const options& asked, report& into) {
  const std::string name = text_field_of(record, "name"), op = "graphdef steps";
  if (!asked.wants(op)) return;
  const std::string path = asked.folder + "/graphdefs/" + name + ".json";
  if (!std::filesystem::exists(path)) return into.skipped(op, name, "the graph's file is not there");
  const json_value json = parse_json(read_whole_file(path));
  const json_at def(json), steps = field(record, "steps");
  if (const lack l = find_lack(def, !steps.value.items.empty()); l.what != nullptr) return into.missing(op, name, l.op, l.what);
  const std::string folder = (std::filesystem::temp_directory_path() / ("weft_conformance_" + name)).string();
  try {
    const weft::graph g = graph_at(def, import_of_data());
    if (g.size() != static_cast<std::size_t>(integer_at(field(record, "nodes")))) return into.failed(op, name, "found " + std::to_string(g.size()) + " nodes");
    const cluster_of_data cluster = cluster_at(record);
    weft::session_options options;
    options.kernel_threads = 1;
    options.optimizer = passes();
    options.cluster = cluster.spec;
    options.devices = {{"CPU", cluster.cpus}};
    weft::local_session session(options, g);
    std::string why;
    for (std::size_t i = 0; why.empty() && i < elements_at(steps).size(); ++i) {
      why = check_run(json_at(steps.value.items[i], steps, i), session, {"values", string_form::base64, folder}, std::nullopt);
      if (!why.empty()) why = "step " + std::to_string(i) + ": " + why;
    }
    if (why.empty()) into.passed(op, name);
    else into.failed(op, name, why);
  } catch (const weft::error& e) {
    into.failed(op, name, std::string("found ") + e.what());
  }
}

namespace {

// One gradient beside what TensorFlow gives: null, a value, or rows.
std::string compare_gradient(const json_at& expected, const weft::gradient_output& found, std::vector<weft::output>& fetches) {
  const bool none = expected.value.kind == json_kind::null;
  if (none != found.empty()) return none ? "expected none, found one" : "expected a gradient, found none";
  if (none) return "";
  const bool rows = find_field(expected, "indices") != nullptr;
  if (rows != found.is_sparse()) return rows ? "expected rows, found a dense gradient" : "expected a dense gradient, found rows";
  if (rows) {
    fetches.push_back(found.slices().indices);
    fetches.push_back(found.slices().values);
  } else {
    fetches.push_back(found.values());
  }
  return "";
}

std::string check_gradients_graph(const json_at& record) {
  const weft::graph g = graph_at(field(record, "graph_def"), import_of_data());
  const auto scope = g.as_default();
  const auto outputs_of = [&](const char* list) {
    std::vector<weft::output> out;
    for (const std::string& name : names_field_of(record, list)) out.push_back(g.find_output(name));
    return out;
  };
  weft::gradient_options options;
  if (const json_value* given = find_field(record, "grad_ys")) {
    const json_at list(*given, record, "grad_ys");
    for (std::size_t i = 0; i < given->items.size(); ++i)
      options.grad_ys.push_back(given->items[i].kind == json_kind::null ? weft::gradient_output() : weft::gradient_output(g.find_output(string_at(json_at(given->items[i], list, i)))));
  }
  for (const weft::output& o : outputs_of("stop_gradients")) options.stop_gradients.push_back(weft::operation(*o.from));
  if (const json_value* unconnected = find_field(record, "unconnected"); unconnected != nullptr && unconnected->text == "zero") options.unconnected = weft::unconnected_gradients::zero;
  if (const json_value* method = find_field(record, "aggregation"); method != nullptr && method->text.find("TREE") != std::string::npos) options.aggregation = weft::aggregation_method::tree;
  if (const json_value* method = find_field(record, "aggregation"); method != nullptr && method->text.find("ACCUMULATE") != std::string::npos) options.aggregation = weft::aggregation_method::accumulate_n;
  const auto found = weft::gradients(outputs_of("ys"), outputs_of("xs"), options);
  weft::step_signature signature;
  const json_value* gradients = find_field(record, "gradients");
  if (gradients == nullptr) {
    for (const weft::gradient_output& one : found)
      if (!one.empty()) signature.fetches.push_back(one.values());
  } else {
    const json_at list(*gradients, record, "gradients");
    for (std::size_t i = 0; i < elements_at(list).size(); ++i)
      if (const std::string why = compare_gradient(json_at(gradients->items[i], list, i), found[i], signature.fetches); !why.empty()) return "gradient " + std::to_string(i) + ": " + why;
  }
  if (signature.fetches.empty()) return "";
  weft::session_options one;
  one.kernel_threads = 1;
  one.optimizer = passes();
  weft::local_session session(one, weft::graph(g.state()));
  for (const std::string& name : names_field_of(record, "init")) {
    weft::step_signature init;
    init.targets = {g.operation(name).get()};
    run_step(session, init, {});
  }
  std::vector<tensor_value> fed;
  const json_at feeds = field(record, "feeds");
  for (const json_value& member : feeds.value.items) {
    signature.feeds.push_back(g.find_output(member.key));
    fed.push_back(value_at(json_at(member, feeds, member.key), string_form::base64));
  }
  const auto got = run_step(session, signature, fed);
  if (gradients == nullptr) return "";
  const json_at expected(*gradients, record, "gradients");
  std::size_t next = 0;
  const tolerance close{1e-5, 1e-6};
  for (std::size_t i = 0; i < expected.value.items.size(); ++i) {
    const json_at one_at(expected.value.items[i], expected, i);
    if (one_at.value.kind == json_kind::null) continue;
    const bool rows = find_field(one_at, "indices") != nullptr;
    for (const char* part : {"indices", "values"}) {
      if (!rows && std::string_view(part) == "indices") continue;
      const json_at want = rows ? field(one_at, part) : one_at;
      if (const std::string why = compare(value_at(want, string_form::base64), got[next++], close); !why.empty()) return "gradient " + std::to_string(i) + (rows ? std::string(" ") + part : "") + ": " + why;
    }
  }
  return "";
}

}  // namespace

void run_gradients_graph(const json_at& record, const options& asked, report& into) {
  const std::string name = text_field_of(record, "name"), op = "gradients";
  if (!asked.wants(op)) return;
  if (const lack l = find_lack(field(record, "graph_def"), false); l.what != nullptr) return into.missing(op, name, l.op, l.what);
  try {
    const std::string why = check_gradients_graph(record);
    if (find_field(record, "error") != nullptr) into.failed(op, name, "expected an error (" + error_text_at(record) + "), found none");
    else if (why.empty()) into.passed(op, name);
    else into.failed(op, name, why);
  } catch (const weft::error& e) {
    if (find_field(record, "error") != nullptr) into.passed(op, name);
    else into.failed(op, name, std::string("found ") + e.what());
  }
}

}  // namespace conformance
