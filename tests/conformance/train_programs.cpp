// Programs on queues and accumulators: threads with steps, and the order in which their steps run.
#include "runner.hpp"

#include <weft/ops/standard.hpp>
#include <weft/session/local_session.hpp>

#include <chrono>
#include <future>
#include <map>
#include <memory>

namespace conformance {

using namespace weft::detail;
using namespace std::chrono_literals;

namespace {

// How long a step that should wait is watched, and how long one that should end may take.
constexpr auto watched = 80ms;
constexpr auto patience = 60s;

std::string text_or(const json_at& at, std::string_view name, const std::string& otherwise) {
  const json_value* v = find_field(at, name);
  return v == nullptr || v->kind == json_kind::null ? otherwise : string_at(json_at(*v, at, name));
}
std::int64_t integer_or(const json_at& at, std::string_view name, std::int64_t otherwise) {
  const json_value* v = find_field(at, name);
  return v == nullptr || v->kind == json_kind::null ? otherwise : integer_at(json_at(*v, at, name));
}
bool is_true(const json_at& at, std::string_view name, bool otherwise = false) {
  const json_value* v = find_field(at, name);
  return v == nullptr ? otherwise : bool_at(json_at(*v, at, name));
}

// What a step came to: values or an error.
struct step_outcome {
  std::vector<weft::tensor_value> values;
  std::string code, text;
  void fail(const weft::error& e) {
    code = to_text(e.code());
    text = e.what();
  }
};

// A step that can run: its node is in the graph, unless that failed already.
struct ready_step {
  std::vector<weft::feed> feeds;
  std::vector<weft::output> fetches;
  std::vector<weft::operation> targets;
  weft::run_options limit;
  bool closes = false;
  step_outcome refused;
};

class player {
 public:
  explicit player(const json_at& record) : record_(record), scope_(graph_.as_default()) {
    weft::session_options options;
    options.optimizer = passes();
    session_ = std::make_unique<weft::local_session>(options, graph_);
    if (const json_value* queues = find_field(record, "queues")) {
      const json_at map(*queues, record, "queues");
      for (const json_value& q : queues->items) makers_[q.key] = [this, name = q.key, q = &q, map] { return make_queue(name, json_at(*q, map, name)); };
    } else {
      makers_["q"] = [this] { return make_accumulator(field(record_, "accumulator")); };
    }
  }
  // "" when all steps came to what they should.
  std::string play();

 private:
  struct pending {
    std::future<step_outcome> outcome;
    const json_value* step;
  };
  weft::output make_queue(const std::string& name, const json_at& spec);
  weft::output make_accumulator(const json_at& spec);
  weft::output handle(const std::string& name) {
    auto& made = handles_[name];
    if (made.from == nullptr) made = makers_.at(name)();
    return made;
  }
  weft::output constant(weft::tensor_value v) { return {&weft::detail::add_const(std::move(v), weft::op_name()), 0}; }
  ready_step prepare(const json_at& step);
  void build(const json_at& step, ready_step& out);
  void build_accumulator_step(const std::string& op, const json_at& step, std::vector<weft::output>& inputs, std::string& name, weft::attr_map& attrs, ready_step& out);
  step_outcome run(ready_step step);
  std::string check(const json_at& step, const step_outcome& found) const;
  std::string play_construction();

  const json_at& record_;
  weft::graph graph_;
  decltype(graph_.as_default()) scope_;
  std::unique_ptr<weft::local_session> session_;
  std::map<std::string, std::function<weft::output()>> makers_;
  std::map<std::string, weft::output> handles_;
  std::string kind_, accumulator_type_;
  weft::dtype dtype_ = weft::dtype::float32;
};

weft::output player::make_queue(const std::string& name, const json_at& spec) {
  const std::map<std::string, const char*> ops = {{"fifo", "FIFOQueueV2"}, {"padding", "PaddingFIFOQueueV2"}, {"shuffle", "RandomShuffleQueueV2"}, {"priority", "PriorityQueueV2"}};
  const std::string kind = text_field_of(spec, "kind");
  std::vector<weft::dtype> types;
  const json_at list = field(spec, "dtypes");
  for (std::size_t i = 0; i < elements_at(list).size(); ++i) types.push_back(type_at(json_at(list.value.items[i], list, i)));
  std::vector<weft::partial_shape> shapes;
  if (const json_value* s = find_field(spec, "shapes"); s != nullptr && s->kind == json_kind::array)
    for (std::size_t i = 0; i < s->items.size(); ++i) shapes.push_back(partial_shape_at(json_at(s->items[i], spec, i)));
  weft::attr_map attrs{{"component_types", types}, {"shapes", shapes}, {"capacity", integer_or(spec, "capacity", -1)}};
  if (is_true(spec, "shared", true)) attrs.emplace("shared_name", name);
  if (kind == "shuffle") {
    attrs.emplace("min_after_dequeue", integer_or(spec, "min_after_dequeue", 0));
    if (const json_value* seeds = find_field(record_, "seeds")) {
      const json_at own = field(json_at(*seeds, record_, "seeds"), name);
      attrs.emplace("seed", integer_or(own, "seed", 0));
      attrs.emplace("seed2", integer_or(own, "seed2", 0));
    }
  }
  return {&add_node(ops.at(kind), {}, weft::op_name(name), std::move(attrs)), 0};
}

weft::output player::make_accumulator(const json_at& spec) {
  kind_ = text_field_of(spec, "kind");
  dtype_ = type_at(field(spec, "dtype"));
  const json_value* s = find_field(spec, "shape");
  weft::attr_map attrs{{"dtype", dtype_}, {"shape", s == nullptr ? weft::partial_shape() : partial_shape_at(json_at(*s, spec, "shape"))},
                       {"reduction_type", text_or(spec, "reduction", "MEAN")}, {"shared_name", std::string("acc")}};
  return {&add_node(kind_ == "dense" ? "ResourceConditionalAccumulator" : "SparseConditionalAccumulator", {}, weft::op_name("acc"), std::move(attrs)), 0};
}

// The node of a step, and what is fetched of it.
void player::build(const json_at& step, ready_step& out) {
  const std::string op = text_field_of(step, "op");
  const weft::output to = handle(text_or(step, "queue", makers_.begin()->first));
  std::vector<weft::output> inputs{to};
  weft::attr_map attrs;
  std::string name;
  if (find_field(record_, "queues") == nullptr) {
    build_accumulator_step(op, step, inputs, name, attrs, out);
  } else if (op == "enqueue" || op == "enqueue_many") {
    name = op == "enqueue" ? "QueueEnqueueV2" : "QueueEnqueueManyV2";
    const json_at values = field(step, "values");
    for (std::size_t i = 0; i < elements_at(values).size(); ++i) inputs.push_back(constant(value_at(json_at(values.value.items[i], values, i), string_form::text)));
  } else if (op == "dequeue" || op == "dequeue_many" || op == "dequeue_up_to") {
    name = op == "dequeue" ? "QueueDequeueV2" : op == "dequeue_many" ? "QueueDequeueManyV2" : "QueueDequeueUpToV2";
    if (op != "dequeue") inputs.push_back(constant(weft::tensor_value::scalar(static_cast<std::int32_t>(integer_at(field(step, "n"))))));
    auto types = to.from->attr<std::vector<weft::dtype>>("component_types");
    if (to.from->op() == "PriorityQueueV2") types.insert(types.begin(), weft::dtype::int64);
    attrs.emplace("component_types", types);
  } else if (op == "close") {
    name = "QueueCloseV2";
    attrs.emplace("cancel_pending_enqueues", is_true(step, "cancel_pending_enqueues"));
  } else {
    name = op == "size" ? "QueueSizeV2" : "QueueIsClosedV2";
  }
  const weft::node& n = add_node(name.c_str(), inputs, weft::op_name(), std::move(attrs));
  for (int i = 0; i < n.output_count(); ++i) out.fetches.push_back({&n, i});
  if (n.output_count() == 0) out.targets.emplace_back(n);
}

void player::build_accumulator_step(const std::string& op, const json_at& step, std::vector<weft::output>& inputs, std::string& name, weft::attr_map& attrs,
                                    ready_step& out) {
  const bool dense = kind_ == "dense";
  const std::string prefix = dense ? "ResourceAccumulator" : op == "apply" || op == "take" ? "SparseAccumulator" : "Accumulator";
  if (op == "num_accumulated") {
    name = prefix + "NumAccumulated";
  } else if (op == "set_global_step") {
    name = prefix + "SetGlobalStep";
    inputs.push_back(constant(weft::tensor_value::scalar(integer_at(field(step, "step")))));
  } else if (op == "take") {
    name = prefix + "TakeGradient";
    inputs.push_back(constant(weft::tensor_value::scalar(static_cast<std::int32_t>(integer_at(field(step, "n"))))));
    attrs.emplace("dtype", dtype_);
  } else {
    name = prefix + "ApplyGradient";
    inputs.push_back(constant(weft::tensor_value::scalar(integer_or(step, "local_step", 0))));
    attrs.emplace("dtype", dtype_);
    const json_at gradient = field(step, "gradient");
    if (dense) {
      const weft::tensor_value v = value_at(gradient, string_form::text);
      if (!is_true(step, "unknown_shape")) return inputs.push_back(constant(v));
      inputs.push_back({&add_node("Placeholder", {}, weft::op_name(), {{"dtype", v.dtype()}, {"shape", weft::partial_shape()}}), 0});
      out.feeds.emplace_back(inputs.back(), v);
      return;
    }
    const auto vector = [&](std::string_view what) {
      std::vector<std::int64_t> all;
      if (const json_value* list = find_field(gradient, what); list != nullptr && list->kind == json_kind::array)
        for (std::size_t i = 0; i < list->items.size(); ++i) all.push_back(integer_at(json_at(list->items[i], gradient, i)));
      return constant(weft::tensor_value::from(weft::shape{static_cast<std::int64_t>(all.size())}, all));
    };
    inputs.push_back(vector("indices"));
    inputs.push_back(constant(value_at(field(gradient, "values"), string_form::text)));
    inputs.push_back(vector("dense_shape"));
    const json_value* known = find_field(gradient, "dense_shape");
    attrs.emplace("has_known_shape", known != nullptr && known->kind == json_kind::array);
  }
}

ready_step player::prepare(const json_at& step) {
  ready_step out;
  const std::int64_t given = integer_or(step, "timeout_in_ms", 0);
  out.limit.timeout = std::chrono::milliseconds(given != 0 ? given : is_true(step, "may_block") ? 20000 : 300);
  out.closes = text_field_of(step, "op") == "session_close";
  try {
    if (!out.closes) build(step, out);
  } catch (const weft::error& e) {
    out.refused.fail(e);
  }
  return out;
}

step_outcome player::run(ready_step step) {
  if (!step.refused.code.empty()) return step.refused;
  step_outcome out;
  try {
    if (step.closes) session_->close();
    else out.values = session_->run(step.limit, step.feeds, step.fetches, step.targets);
  } catch (const weft::error& e) {
    out.fail(e);
  }
  return out;
}

std::string player::check(const json_at& step, const step_outcome& found) const {
  const json_at result = field(step, "result");
  const std::string said = found.code.empty() ? "found values" : "found " + found.text;
  if (find_field(result, "blocks") != nullptr) return found.code == "DEADLINE_EXCEEDED" ? "" : "expected that it waits, " + said;
  if (const json_value* e = find_field(result, "error")) {
    // What TensorFlow's front end refuses may be refused at any time.
    const std::string wanted = text_or(json_at(*e, result, "error"), "code", "INVALID_ARGUMENT");
    const bool no_kernel = text_or(json_at(*e, result, "error"), "message", "").find("No OpKernel") == 0 && found.code == "UNIMPLEMENTED";
    return found.code == wanted || no_kernel ? "" : "expected " + wanted + " (" + text_or(json_at(*e, result, "error"), "message", "") + "), " + said;
  }
  if (!found.code.empty()) return "expected values, " + said;
  const json_at ok = field(result, "ok");
  std::vector<weft::tensor_value> expected;
  if (ok.value.kind == json_kind::object) {
    for (const char* part : {"indices", "values", "dense_shape"}) expected.push_back(value_at(field(ok, part), string_form::text));
  } else {
    for (std::size_t i = 0; i < elements_at(ok).size(); ++i) expected.push_back(value_at(json_at(ok.value.items[i], ok, i), string_form::text));
  }
  if (expected.size() != found.values.size()) return "expected " + std::to_string(expected.size()) + " values, found " + std::to_string(found.values.size());
  for (std::size_t i = 0; i < expected.size(); ++i)
    if (const std::string why = compare(expected[i], found.values[i], std::nullopt); !why.empty()) return "value " + std::to_string(i) + " " + why;
  return "";
}

// A queue that cannot be made says so when it is made, or when it is first used.
std::string player::play_construction() {
  try {
    const weft::output made = handle(makers_.begin()->first);
    session_->run(weft::run_options(), {}, {made});
  } catch (const weft::error& e) {
    return e.code() == weft::error_code::invalid_argument ? "" : std::string("expected INVALID_ARGUMENT, found ") + e.what();
  }
  return "expected that it cannot be made";
}

std::string player::play() {
  if (const json_value* c = find_field(record_, "construction"); c != nullptr && find_field(json_at(*c, record_, "construction"), "error") != nullptr) return play_construction();
  const json_at threads = field(record_, "threads"), order = field(record_, "order");
  std::map<std::string, const json_value*> steps;
  std::map<std::string, std::size_t> next;
  std::map<std::string, pending> running;
  for (const json_value& t : threads.value.items) steps[text_field_of(json_at(t), "id")] = find_field(json_at(t), "steps");
  std::string why;
  for (std::size_t i = 0; i < elements_at(order).size() && why.empty(); ++i) {
    const std::string event = string_at(json_at(order.value.items[i], order, i));
    const auto colon = event.find(':');
    const std::string thread = colon == std::string::npos ? event : event.substr(colon + 1);
    if (colon == std::string::npos) {
      const json_value* step = &steps.at(thread)->items.at(next[thread]++);
      if (!is_true(json_at(*step), "may_block")) {
        why = check(json_at(*step), run(prepare(json_at(*step))));
      } else {
        // The next step runs when this one has had time to take its place in the line.
        running[thread] = {std::async(std::launch::async, [this, ready = prepare(json_at(*step))] { return run(ready); }), step};
        running[thread].outcome.wait_for(watched);
      }
    } else if (event.substr(0, colon) == "blocked") {
      if (running.at(thread).outcome.wait_for(watched) == std::future_status::ready) why = "the step of thread " + thread + " should still wait";
    } else {
      pending& p = running.at(thread);
      if (p.outcome.wait_for(patience) != std::future_status::ready) why = "the step of thread " + thread + " should have ended";
      else why = check(json_at(*p.step), p.outcome.get());
      running.erase(thread);
    }
    if (!why.empty()) why = "event " + std::to_string(i) + " (" + event + "): " + why;
  }
  session_->close();
  return why;
}

}  // namespace

void run_thread_program(const json_at& record, const options& asked, report& into) {
  const std::string name = text_field_of(record, "name"), op = find_field(record, "queues") != nullptr ? "queue program" : "accumulator program";
  if (!asked.wants(op)) return;
  std::string why;
  try {
    why = player(record).play();
  } catch (const weft::error& e) {
    why = std::string("found ") + e.what();
  }
  if (why.empty()) into.passed(op, name);
  else into.failed(op, name, why);
}

}  // namespace conformance
