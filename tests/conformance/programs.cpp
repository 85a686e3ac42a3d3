// Programs: a graph and runs of it in one session, in order.
#include "runner.hpp"
#include "values.hpp"

#include <weft/format/graphdef.hpp>
#include <weft/ops/standard.hpp>
#include <weft/ops/standard_catalogue.hpp>
#include <weft/session/local_session.hpp>

namespace conformance {

using namespace weft::detail;

namespace {

std::string text_at(const json_at& record, std::string_view field) { return string_at(json_at(*find_field(record, field), record, field)); }

// The strings of a list field that may be left out.
std::vector<std::string> names_at(const json_at& record, std::string_view field) {
  std::vector<std::string> out;
  const json_value* v = find_field(record, field);
  if (v == nullptr) return out;
  const json_at list(*v, record, field);
  for (std::size_t i = 0; i < elements_at(list).size(); ++i) out.push_back(string_at(json_at(v->items[i], list, i)));
  return out;
}

// One run: "" when it gives what it should.
std::string check_run(const json_at& run, weft::session_interface& session, const std::optional<tolerance>& tol) {
  const weft::graph& g = session.graph();
  weft::step_signature signature;
  std::vector<weft::tensor_value> fed, found;
  if (const json_value* feeds = find_field(run, "feeds")) {
    const json_at map(*feeds, run, "feeds");
    for (const json_value& member : feeds->items) {
      signature.feeds.push_back(g.find_output(member.key));
      fed.push_back(value_at(json_at(member, map, member.key), string_form::text));
    }
  }
  for (const std::string& name : names_at(run, "fetches")) signature.fetches.push_back(g.find_output(name));
  for (const std::string& name : names_at(run, "targets")) signature.targets.push_back(g.operation(name).get());
  const json_value* failure = find_field(run, "error");
  const std::string wanted = failure == nullptr ? "" : text_at(json_at(*failure, run, "error"), "code") + " (" + text_at(json_at(*failure, run, "error"), "message") + ")";
  try {
    weft::run_options limit;
    limit.timeout = std::chrono::seconds(20);
    for (std::size_t i = 0; i < fed.size(); ++i) check_feed(signature.feeds[i], fed[i], weft::call_site());
    session.prepare(signature)->run(fed, found, limit);
  } catch (const weft::error& e) {
    if (failure == nullptr) return std::string("found ") + e.what();
    return wanted.compare(0, wanted.find(' '), to_text(e.code())) == 0 ? "" : "expected " + wanted + ", found " + e.what();
  }
  if (failure != nullptr) return "expected " + wanted + ", found none";
  const json_value* expect = find_field(run, "expect");
  if (expect == nullptr) return "";
  const json_at list(*expect, run, "expect");
  for (std::size_t i = 0; i < elements_at(list).size(); ++i) {
    if (expect->items[i].kind == json_kind::null) continue;
    if (const std::string why = compare(value_at(json_at(expect->items[i], list, i), string_form::text), found[i], tol); !why.empty())
      return "'" + to_text(signature.fetches[i]) + "' " + why;
  }
  return "";
}

std::string check_static_shapes(const json_at& record, const weft::graph& g) {
  const json_value* shapes = find_field(record, "static_shapes");
  if (shapes == nullptr) return "";
  const json_at map(*shapes, record, "static_shapes");
  for (const json_value& member : shapes->items) {
    const weft::output o = g.find_output(member.key);
    const weft::partial_shape expected = partial_shape_at(json_at(member, map, member.key)), found = o.from->output_shape(o.index);
    const auto both = merge_shapes(expected, found);
    if (!both || *both != found) return "'" + member.key + "' has the static shape " + found.text() + ", expected " + expected.text();
  }
  return "";
}

// The op that a program is about: what its name says before the '/'.
std::string subject(const std::string& name) { return "program " + name.substr(0, name.find('/')); }

}  // namespace

lack find_lack(const json_at& graph_def, bool kernels) {
  lack later;
  const json_at nodes(*find_field(graph_def, "node"), graph_def, "node");
  for (std::size_t i = 0; i < elements_at(nodes).size(); ++i) {
    lack l{text_at(json_at(nodes.value.items[i], nodes, i), "op"), nullptr};
    if (weft::standard_ops().find(l.op) == nullptr) l.what = "definition";
    else if (kernels && weft::standard_catalogue().kernels_of(l.op).empty()) l.what = "kernel";
    if (l.what == nullptr) continue;
    if (!is_later(l.op)) return l;
    later = l;
  }
  return later;
}

void run_program(const json_at& record, const options& asked, report& into) {
  const std::string name = text_at(record, "name"), op = subject(name);
  if (!asked.wants(op)) return;
  const json_at def(*find_field(record, "graph_def"), record, "graph_def");
  if (const lack l = find_lack(def, true); l.what != nullptr) return into.missing(op, name, l.op, l.what);
  const json_value* refused = find_field(record, "build_error");
  try {
    const weft::graph g = graph_at(def, {});
    if (refused != nullptr) return into.failed(op, name, "expected that the graph is refused (" + text_at(json_at(*refused, record, "build_error"), "message") + ")");
    std::string why = check_static_shapes(record, g);
    weft::session_options options;
    options.kernel_threads = 1;
    weft::local_session session(options, g);
    const json_at runs(*find_field(record, "runs"), record, "runs");
    for (std::size_t i = 0; why.empty() && i < elements_at(runs).size(); ++i) {
      why = check_run(json_at(runs.value.items[i], runs, i), session, tolerance_at(record));
      if (!why.empty()) why = "run " + std::to_string(i) + ": " + why;
    }
    if (why.empty()) into.passed(op, name);
    else into.failed(op, name, why);
  } catch (const weft::error& e) {
    if (refused == nullptr) into.failed(op, name, std::string("found ") + e.what());
    else if (text_at(json_at(*refused, record, "build_error"), "code") == to_text(e.code())) into.passed(op, name);
    else into.failed(op, name, "expected " + text_at(json_at(*refused, record, "build_error"), "code") + ", found " + e.what());
  }
}

}  // namespace conformance
