// Sessions: graphs with steps, and stories of clients on servers of their own.
#include "runner.hpp"

#include <weft/cluster/local_cluster.hpp>
#include <weft/cluster/session.hpp>
#include <weft/ops/standard.hpp>
#include <weft/placement/device_set.hpp>
#include <weft/session/local_session.hpp>

#include <algorithm>
#include <chrono>
#include <functional>
#include <map>
#include <memory>

namespace conformance {

using namespace weft::detail;
using namespace std::chrono_literals;
using weft::tensor_value;

namespace {

constexpr auto patience = 60000ms;

// What a row came to: values, of which some may be none, or an error.
struct row_outcome {
  std::vector<tensor_value> values;
  std::string code, text;
};

row_outcome outcome_of(const std::function<std::vector<tensor_value>()>& act) {
  row_outcome out;
  try {
    out.values = act();
  } catch (const weft::error& e) {
    out.code = to_text(e.code());
    out.text = e.what();
  }
  return out;
}

// "" when a row came to what its `result` says. An exception of TensorFlow's front end has no code: any error will do.
std::string check(const json_at& row, const row_outcome& found) {
  const json_at result = field(row, "result");
  if (const json_value* error = find_field(result, "error")) {
    const json_at at(*error, result, "error");
    const json_value* code = find_field(at, "code");
    const std::string expected = code == nullptr ? "an error" : code->text;
    if (found.code.empty()) return "expected " + expected + " (" + text_field_of(at, "message") + "), found none";
    return code == nullptr || code->text == found.code ? "" : "expected " + expected + " (" + text_field_of(at, "message") + "), found " + found.text;
  }
  if (!found.code.empty()) return "found " + found.text;
  const json_value* ok = find_field(result, "ok");
  if (ok == nullptr || ok->kind == json_kind::null) return "";
  const json_at expected(*ok, result, "ok");
  const bool one = ok->kind == json_kind::object;
  const std::size_t count = one ? 1 : ok->items.size();
  if (count > found.values.size()) return "expected " + std::to_string(count) + " values, found " + std::to_string(found.values.size());
  for (std::size_t i = 0; i < count; ++i) {
    const json_at each = one ? expected : json_at(ok->items[i], expected, i);
    if (each.value.kind == json_kind::null) continue;
    if (std::string why = compare(value_at(each, string_form::text), found.values[i], std::nullopt); !why.empty()) return why;
  }
  return "";
}

std::int64_t number_or(const json_at& at, std::string_view name, std::int64_t otherwise) {
  const json_value* v = find_field(at, name);
  return v == nullptr ? otherwise : integer_at(json_at(*v, at, name));
}
std::string text_or(const json_at& at, std::string_view name) {
  const json_value* v = find_field(at, name);
  return v == nullptr ? "" : string_at(json_at(*v, at, name));
}

// A graph and its steps, in this process or on a server.
class step_player {
 public:
  step_player(const json_at& record, std::string target) : record_(record), target_(std::move(target)), graph_(graph_at(field(record, "graph"), import_of_data())) { open("", target_, 0); }
  std::string play() {
    const json_at steps = field(record_, "steps");
    for (std::size_t i = 0; i < elements_at(steps).size(); ++i) {
      const json_at step(steps.value.items[i], steps, i);
      const std::string why = check(step, outcome_of([&] { return act(step); }));
      if (!why.empty()) return "step " + std::to_string(i) + (target_.empty() ? "" : " on a server") + ": " + why;
    }
    return "";
  }

 private:
  struct opened {
    std::unique_ptr<weft::session_interface> session;
    std::chrono::milliseconds limit;
  };
  void open(const std::string& name, const std::string& target, std::int64_t limit) {
    weft::session_options options;
    if (target.empty()) options.kernel_threads = 1;
    options.optimizer = passes();
    sessions_[name] = {std::make_unique<weft::session>(target, options, weft::graph(graph_.state())), limit == 0 ? patience : std::chrono::milliseconds(limit)};
  }
  std::vector<tensor_value> act(const json_at& step) {
    const std::string what = text_field_of(step, "do"), name = text_or(step, "session");
    if (what == "new_session") {
      const std::string target = text_or(step, "target");
      return open(name, target.empty() ? target_ : target, number_or(step, "operation_timeout_in_ms", 0)), std::vector<tensor_value>();
    }
    if (what == "extend") {
      const auto scope = graph_.as_default();
      return add_node("Identity", {graph_.find_output("cc:0")}, weft::op_name(text_field_of(step, "nodes"))), std::vector<tensor_value>();
    }
    if (what == "close") return sessions_.at(name).session->close(), std::vector<tensor_value>();
    if (what != "run") weft::fail(weft::error_code::unimplemented, "partial runs are not there");
    return run(step, sessions_.at(name));
  }
  std::vector<tensor_value> run(const json_at& step, const opened& in) {
    request asked(graph_);
    std::vector<weft::feed> feeds;
    if (const json_value* given = find_field(step, "feeds")) {
      const json_at map(*given, step, "feeds");
      for (const json_value& member : given->items) feeds.emplace_back(graph_.find_output(member.key), value_at(json_at(member, map, member.key), string_form::text));
    }
    asked.add_feeds(feeds.data(), feeds.size());
    const std::vector<std::string> names = names_field_of(step, "fetches");
    std::vector<std::size_t> places;
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (names[i].find(':') == std::string::npos) asked.add_target(graph_.operation(names[i]));
      else asked.add_fetch(graph_.find_output(names[i])), places.push_back(i);
    }
    weft::run_options limit;
    limit.timeout = std::chrono::milliseconds(number_or(step, "timeout_in_ms", in.limit.count()));
    const tensor_value* found = asked.run(*in.session, limit);
    std::vector<tensor_value> out(names.size());
    for (std::size_t i = 0; i < places.size(); ++i) out[places[i]] = found[i];
    return out;
  }

  const json_at& record_;
  const std::string target_;
  weft::graph graph_;
  std::map<std::string, opened> sessions_;
};

// A client with a variable of its own graph.
struct client {
  client(const std::string& target, const char* device, tensor_value initial, const std::string& container = {}, const weft::session_options& how = {}) {
    const auto scope = graph.as_default();
    const auto on = weft::with_device(device);
    const weft::dtype type = initial.dtype();
    handle = {&add_node("VarHandleOp", {}, weft::op_name("v"),
                        {{"dtype", type}, {"shape", weft::partial_shape(initial.shape())}, {"shared_name", std::string("v")}, {"container", container}}), 0};
    const weft::output start{&add_const(initial, weft::op_name("initial")), 0}, one{&add_const(type == weft::dtype::int32 ? tensor_value::scalar(std::int32_t{1}) : tensor_value::scalar(1.f), weft::op_name("one")), 0};
    init = weft::operation(add_node("AssignVariableOp", {handle, start}, weft::op_name("init"), {{"dtype", type}}));
    if (initial.shape().rank() == 0) add = weft::operation(add_node("AssignAddVariableOp", {handle, one}, weft::op_name("add"), {{"dtype", type}}));
    value = {&add_node("ReadVariableOp", {handle}, weft::op_name("read"), {{"dtype", type}}), 0};
    session = std::make_unique<weft::session>(target, how, graph);
  }
  std::vector<tensor_value> read() { return session->run({patience}, {}, {value}); }
  std::vector<tensor_value> run(const weft::operation& op) { return session->run({patience}, {}, {}, {op}); }

  weft::graph graph;
  weft::output handle, value;
  weft::operation init, add;
  std::unique_ptr<weft::session> session;
};

// A session to this target that runs a constant on this device.
std::vector<tensor_value> run_constant(const std::string& target, const char* device, bool soft = false) {
  const weft::graph g;
  const auto scope = g.as_default();
  const auto on = weft::with_device(device);
  const weft::output c{&add_const(tensor_value::scalar(1.f), weft::op_name("c")), 0};
  weft::session_options how;
  how.allow_soft_placement = soft;
  return weft::session(target, how, g).run({patience}, {}, {c});
}

// The rows of a story, one after the other.
class story {
 public:
  explicit story(const json_at& record) : rows_(field(record, "rows")) {}
  // The next row, which must be this one.
  void row(const std::string& text, const std::function<std::vector<tensor_value>()>& act) {
    if (!why_.empty()) return;
    const std::size_t i = next_++;
    if (i >= elements_at(rows_).size()) return fail_with(text, "the data has no such row");
    const json_at at(rows_.value.items[i], rows_, i);
    if (text_field_of(at, "do") != text) return fail_with(text, "the data says '" + text_field_of(at, "do") + "'");
    fail_with(text, check(at, outcome_of(act)));
  }
  // A row about something that weft has no option for.
  void skip() { ++next_; }
  std::string end() {
    if (why_.empty() && next_ != rows_.value.items.size()) why_ = "the data has more rows";
    return why_;
  }

 private:
  void fail_with(const std::string& text, const std::string& why) {
    if (!why.empty()) why_ = "'" + text + "': " + why;
  }
  const json_at rows_;
  std::size_t next_ = 0;
  std::string why_;
};

tensor_value number(float value) { return tensor_value::scalar(value); }
template <class T> tensor_value zeros(std::int64_t size) { return tensor_value::from(weft::shape{size}, std::vector<T>(static_cast<std::size_t>(size))); }
constexpr const char* task0 = "/job:local/task:0";
constexpr const char* task1 = "/job:local/task:1";

void share_variables(story& s, weft::local_cluster& on) {
  const std::string target = on.target("local", 0);
  client one(target, task0, number(1)), two(target, task0, number(50));
  s.row("session 1: read v", [&] { return one.read(); });
  s.row("session 1: initialise v to 1", [&] { return one.run(one.init); });
  s.row("session 2 (another graph with a variable of the same name, initial value 50): read v", [&] { return two.read(); });
  s.row("session 2: v += 1", [&] { return two.run(two.add); });
  s.row("session 1: read v", [&] { return one.read(); });
  s.row("session 1: uninitialised variables", [&] {
    const auto scope = one.graph.as_default();
    const weft::output there{&add_node("VarIsInitializedOp", {one.handle}, weft::op_name()), 0};
    const bool is = *one.session->run({patience}, {}, {there})[0].data<bool>();
    return std::vector<tensor_value>{zeros<std::string>(is ? 0 : 1)};
  });
  one.session->close();
  two.session->close();
  client three(target, task0, number(7));
  s.row("both closed, session 3: read v", [&] { return three.read(); });
}

void same_name_on_two_tasks(story& s, weft::local_cluster& on) {
  client one(on.target("local", 0), task0, number(1)), two(on.target("local", 0), task1, number(1)), three(on.target("local", 1), task0, number(1));
  s.row("session 1: initialise v on task 0", [&] { return one.run(one.init); });
  s.row("session 2: read v on task 1", [&] { return two.read(); });
  s.row("session 3, through task 1: read v on task 0", [&] { return three.read(); });
  s.row("session 3: v += 1", [&] { return three.run(three.add); });
  s.row("session 1: read v", [&] { return one.read(); });
}

void containers_and_reset(story& s, weft::local_cluster& on) {
  const std::string target = on.target("local", 0), names[] = {"default", "c1", "c2"};
  std::map<std::string, std::unique_ptr<client>> all;
  float initial = 1;
  const auto name_of = [](const std::string& name) { return name == "default" ? "" : name; };
  for (const std::string& name : names) all[name] = std::make_unique<client>(target, task0, number(initial++), name_of(name));
  const auto fresh = [&](const std::string& name) { return client(target, task0, number(0), name_of(name)).read(); };
  const auto reset = [&](const std::vector<std::string>& containers) { return weft::session::reset(target, containers), std::vector<tensor_value>(); };
  for (const std::string& name : names) s.row("initialise v in container " + name, [&] { return all[name]->run(all[name]->init); });
  for (const std::string& name : names) s.row("read v in container " + name, [&] { return all[name]->read(); });
  s.row("reset container c1", [&] { return reset({"c1"}); });
  s.row("an old session: read v in c2", [&] { return all["c2"]->read(); });
  for (const std::string& name : names) s.row("new session: read v in container " + name, [&] { return fresh(name); });
  client before(target, task0, number(0), "c2");
  outcome_of([&] { return before.read(); });
  s.row("reset container 'unknown'", [&] { return reset({"unknown"}); });
  s.row("a session from before: read v in c2", [&] { return before.read(); });
  s.row("new session: read v in c2", [&] { return fresh("c2"); });
  s.row("reset without containers", [&] { return reset({}); });
  for (const std::string& name : names) s.row("new session: read v in container " + name, [&] { return fresh(name); });
  s.row("reset container 'local' (the job's name)", [&] { return reset({"local"}); });
  s.row("new session: read v in container default", [&] { return fresh("default"); });
}

void placement_errors(story& s, weft::local_cluster& on) {
  const std::string target = on.target("local", 0);
  s.row("run c on /job:local/task:1", [&] { return run_constant(target, task1); });
  for (const bool soft : {false, true}) s.row(soft ? "the same with allow_soft_placement" : "run c on /job:local/task:7", [&] { return run_constant(target, "/job:local/task:7", soft); });
  s.row("run c on /job:nowhere", [&] { return run_constant(target, "/job:nowhere"); });
  for (const bool soft : {false, true}) s.row(soft ? "the same with allow_soft_placement" : "run c on /device:GPU:0", [&] { return run_constant(target, "/device:GPU:0", soft); });
  s.skip();  // device_filters
  s.skip();  // use_per_session_threads
}

void unequal_definitions(story& s, weft::local_cluster& on) {
  const std::string target = on.target("local", 0);
  client one(target, task0, zeros<float>(3)), two(target, task0, zeros<float>(2)), three(target, task0, zeros<std::int32_t>(3));
  s.row("session 1: initialise v as float32 [3]", [&] { return one.run(one.init); });
  s.row("session 2: read v declared as float32 [2]", [&] { return two.read(); });
  s.row("session 2: initialise v as float32 [2]", [&] { return two.run(two.init); });
  s.row("session 1: read v declared as float32 [3]", [&] { return one.read(); });
  s.row("session 3: read v declared as int32 [3]", [&] { return three.read(); });
  s.row("session 3: initialise v as int32 [3]", [&] { return three.run(three.init); });
}

void killed_master(story& s, weft::local_cluster& on) {
  client one(on.target("worker", 0), "/job:ps/task:0", number(1));
  s.row("initialise v on ps 0 through worker 0", [&] { return one.run(one.init); });
  on.stop("worker", 0);
  s.row("worker 0 (the session's master) killed: read v, operation_timeout_in_ms=4000", [&] { return one.read(); });
  on.start("worker", 0);
  s.row("worker 0 restarted: read v (old session)", [&] { return one.read(); });
  s.row("new session: read v, which lived on ps 0 all the time", [&] { return client(on.target("worker", 0), "/job:ps/task:0", number(5)).read(); });
}

void master_absent(story& s, weft::local_cluster& on) {
  on.stop("worker", 0);
  s.row("session to a dead master, operation_timeout_in_ms=2000: initialise v", [&] { return client(on.target("worker", 0), "", number(1)).read(); });
  s.row("reset at a dead master, operation_timeout_in_ms=2000", [&] { return weft::session::reset(on.target("worker", 0)), std::vector<tensor_value>(); });
}

void ps_absent(story& s, weft::local_cluster& on) {
  on.stop("ps", 0);
  const auto act = [&] { return run_constant(on.target("worker", 0), "/job:worker/task:0"); };
  s.row("ps 0 never came up; a session to worker 0 that needs worker 0 only, operation_timeout_in_ms=8000", act);
  s.row("the same with device_filters ['/job:worker']", act);
}

// `[[name, type], ...]` in the row with this number.
std::string check_devices(const json_at& record, std::size_t row, std::vector<weft::device> found) {
  const json_at rows = field(record, "rows"), at(rows.value.items[row], rows, row), result = field(at, "result"), list = field(result, "ok");
  if (list.value.items.size() != found.size()) return "row " + std::to_string(row) + ": found " + std::to_string(found.size()) + " devices";
  for (std::size_t i = 0; i < found.size(); ++i) {
    const auto expected = weft::parse_device_name(list.value.items[i].items[0].text);
    if (expected != weft::parse_device_name(found[i].name) || list.value.items[i].items[1].text != found[i].type) return "row " + std::to_string(row) + ": found " + found[i].name + " of type " + found[i].type;
  }
  return "";
}

std::string list_devices(const json_at& record, weft::local_cluster& on) {
  const weft::graph g;
  const std::string why = check_devices(record, 0, weft::session(on.target("local", 0), {}, g).list_devices());
  return why;  // device_filters, and the name of a session's own job, are not weft's
}

// The lines of a placement log, in any order: each node with its op and device.
std::string placement_log(const json_at& record) {
  const bool on_cluster = bool_at(field(record, "cluster"));
  weft::local_cluster cluster({{"local", 2}});
  const weft::graph g;
  const auto scope = g.as_default();
  weft::tensor<float, 0> a, y;
  weft::with_device(on_cluster ? task1 : "/device:CPU:0", [&] { a = weft::constant(1.f, "a"); });
  const weft::variable<float, 0> v(1.f, "v");
  {
    const auto on = weft::with_device("/device:GPU:0");
    const auto read = v.read("y/ReadVariableOp");
    y = weft::tensor<float, 0>(weft::output{&add_node("AddV2", {a.raw(), read.raw()}, weft::op_name("y")), 0});
  }
  std::vector<std::string> lines;
  weft::session_options how;
  how.allow_soft_placement = how.log_device_placement = true;
  how.log = [&lines](std::string_view line) { lines.emplace_back(line); };
  weft::session session(on_cluster ? cluster.target("local", 0) : "", how, g);
  session.run(v.initializer());
  session.run(y);
  const json_at expected = field(record, "stdout");
  std::string all;
  for (const std::string& line : lines) all += "\n  " + line;
  // `NAME: (OP): DEVICE` in TensorFlow's words, `NAME (OP): DEVICE (REASON)` in weft's, whose variables have no node that asks whether they are initialized.
  for (std::size_t i = 0; i < elements_at(expected).size(); ++i) {
    std::string line = expected.value.items[i].text;
    for (const auto& [theirs, ours] : {std::pair<std::string, std::string>{": (", " ("}, {"/replica:0", ""}, {"v/Initializer/initial_value", "v/initial_value"}})
      if (const auto at = line.find(theirs); at != std::string::npos) line.replace(at, theirs.size(), ours);
    if (line.rfind("v/IsInitialized", 0) == 0) continue;
    if (std::none_of(lines.begin(), lines.end(), [&line](const std::string& each) { return each.rfind(line + " (", 0) == 0; })) return "no line '" + line + "' among" + all;
  }
  return "";
}

std::string check_session_record(const json_at& record) {
  const std::string name = text_field_of(record, "name"), kind = text_field_of(record, "kind");
  if (kind == "log") return placement_log(record);
  if (kind == "local") {
    if (std::string why = step_player(record, "").play(); !why.empty() || name == "local/local_sessions_share_nothing") return why;
    // What a session in this process does, one on a server does too.
    weft::local_cluster server({{"localhost", 1}});
    return step_player(record, server.target()).play();
  }
  const bool lost = kind == "lost";
  weft::local_cluster cluster(lost ? weft::cluster_spec{{"ps", 1}, {"worker", 1}} : weft::cluster_spec{{"local", 2}});
  if (name == "cluster/list_devices") return list_devices(record, cluster);
  static const std::map<std::string, void (*)(story&, weft::local_cluster&)> stories = {
      {"cluster/sessions_share_variables", &share_variables}, {"cluster/same_name_on_two_tasks", &same_name_on_two_tasks},
      {"cluster/containers_and_reset", &containers_and_reset}, {"cluster/placement_errors", &placement_errors},
      {"cluster/unequal_definitions", &unequal_definitions}, {"lost/killed_master", &killed_master},
      {"lost/master_absent", &master_absent}, {"lost/ps_absent", &ps_absent},
  };
  const auto it = stories.find(name);
  if (it == stories.end()) return "a story that the runner does not know";
  story s(record);
  it->second(s, cluster);
  return s.end();
}

}  // namespace

void run_session_record(const json_at& record, const options& asked, report& into) {
  const std::string name = text_field_of(record, "name"), op = "session " + text_field_of(record, "kind");
  if (!asked.wants(op)) return;
  try {
    const std::string why = check_session_record(record);
    if (why.empty()) into.passed(op, name);
    else into.failed(op, name, why);
  } catch (const weft::error& e) {
    into.failed(op, name, std::string("found ") + e.what());
  }
}

}  // namespace conformance
