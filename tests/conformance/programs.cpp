// Programs: a graph and runs of it in one session, in order.
#include "runner.hpp"

#include <weft/ops/standard.hpp>
#include <weft/ops/standard_catalogue.hpp>
#include <weft/session/local_session.hpp>

namespace conformance {

using namespace weft::detail;

namespace {

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

// `DIR` in strings that are fed is a folder of the run.
static void replace_folder(weft::tensor_value& v, const std::string& folder) {
  if (v.dtype() != weft::dtype::string) return;
  for (std::int64_t i = 0; i < v.elements(); ++i)
    if (std::string& text = v.mutable_data<std::string>()[i]; text.find("DIR") != std::string::npos) text.replace(text.find("DIR"), 3, folder);
}

std::vector<weft::tensor_value> run_step(weft::session_interface& session, const weft::step_signature& what, const std::vector<weft::tensor_value>& fed) {
  request asked(session.graph());
  std::vector<weft::feed> feeds;
  for (std::size_t i = 0; i < fed.size(); ++i) feeds.emplace_back(what.feeds[i], fed[i]);
  asked.add_feeds(feeds.data(), feeds.size());
  for (const weft::output& o : what.fetches) asked.add_fetch(o);
  for (const weft::node* n : what.targets) asked.add_target(weft::operation(*n));
  weft::run_options limit;
  limit.timeout = std::chrono::seconds(20);
  const weft::tensor_value* found = asked.run(session, limit);
  return {found, found + what.fetches.size()};
}

std::string check_run(const json_at& run, weft::session_interface& session, const expected_run& form, const std::optional<tolerance>& tol) {
  const weft::graph& g = session.graph();
  weft::step_signature signature;
  std::vector<weft::tensor_value> fed, found;
  if (const json_value* feeds = find_field(run, "feeds")) {
    const json_at map(*feeds, run, "feeds");
    for (const json_value& member : feeds->items) {
      signature.feeds.push_back(g.find_output(member.key));
      fed.push_back(value_at(json_at(member, map, member.key), form.strings));
      if (!form.folder.empty()) replace_folder(fed.back(), form.folder);
    }
  }
  for (const std::string& name : names_field_of(run, "fetches")) signature.fetches.push_back(g.find_output(name));
  for (const std::string& name : names_field_of(run, "targets")) signature.targets.push_back(g.operation(name).get());
  const json_value* failure = find_field(run, "error");
  const std::string wanted = failure == nullptr ? "" : text_field_of(json_at(*failure, run, "error"), "code") + " (" + text_field_of(json_at(*failure, run, "error"), "message") + ")";
  try {
    found = run_step(session, signature, fed);
  } catch (const weft::error& e) {
    if (failure == nullptr) return std::string("found ") + e.what();
    return wanted.compare(0, wanted.find(' '), to_text(e.code())) == 0 ? "" : "expected " + wanted + ", found " + e.what();
  }
  if (failure != nullptr) return "expected " + wanted + ", found none";
  const json_value* expect = find_field(run, form.values);
  if (expect == nullptr) return "";
  const json_at list(*expect, run, form.values);
  for (std::size_t i = 0; i < elements_at(list).size(); ++i) {
    if (expect->items[i].kind == json_kind::null) continue;
    if (const std::string why = compare(value_at(json_at(expect->items[i], list, i), form.strings), found[i], tol); !why.empty())
      return "'" + to_text(signature.fetches[i]) + "' " + why;
  }
  return "";
}

lack find_lack(const json_at& graph_def, bool kernels) {
  lack later;
  std::set<std::string> functions;
  if (const json_value* library = find_field(graph_def, "library"))
    if (const json_value* list = find_field(json_at(*library, graph_def, "library"), "function"))
      for (const json_value& f : list->items)
        if (const json_value* signature = find_field(json_at(f), "signature")) functions.insert(text_field_of(json_at(*signature), "name"));
  const json_at nodes = field(graph_def, "node");
  for (std::size_t i = 0; i < elements_at(nodes).size(); ++i) {
    lack l{text_field_of(json_at(nodes.value.items[i], nodes, i), "op"), nullptr};
    if (import_of_data().ops.find(l.op) == nullptr && functions.count(l.op) == 0) l.what = "definition";
    else if (kernels && weft::standard_catalogue().kernels_of(l.op).empty()) l.what = "kernel";
    if (l.what == nullptr) continue;
    if (functions.count(l.op) != 0) l.op = "function " + l.op;
    if (!is_later(l.op)) return l;
    later = l;
  }
  return later;
}

void run_program(const json_at& record, const options& asked, report& into) {
  const std::string name = text_field_of(record, "name"), op = subject(name);
  if (!asked.wants(op)) return;
  const json_at def = field(record, "graph_def");
  if (const lack l = find_lack(def, true); l.what != nullptr) return into.missing(op, name, l.op, l.what);
  const json_value* refused = find_field(record, "build_error");
  try {
    const weft::graph g = graph_at(def, import_of_data());
    if (refused != nullptr) return into.failed(op, name, "expected that the graph is refused (" + text_field_of(json_at(*refused, record, "build_error"), "message") + ")");
    std::string why = check_static_shapes(record, g);
    weft::session_options options;
    options.kernel_threads = 1;
    options.optimizer = passes();
    weft::local_session session(options, g);
    const json_at runs = field(record, "runs");
    for (std::size_t i = 0; why.empty() && i < elements_at(runs).size(); ++i) {
      why = check_run(json_at(runs.value.items[i], runs, i), session, {"expect", string_form::text}, tolerance_at(record));
      if (!why.empty()) why = "run " + std::to_string(i) + ": " + why;
    }
    if (why.empty()) into.passed(op, name);
    else into.failed(op, name, why);
  } catch (const weft::error& e) {
    if (refused == nullptr) into.failed(op, name, std::string("found ") + e.what());
    else if (text_field_of(json_at(*refused, record, "build_error"), "code") == to_text(e.code())) into.passed(op, name);
    else into.failed(op, name, "expected " + text_field_of(json_at(*refused, record, "build_error"), "code") + ", found " + e.what());
  }
}

}  // namespace conformance
