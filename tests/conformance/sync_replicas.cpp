// Synchronous and asynchronous training on servers: stories of workers, one event after the other.
#include "runner.hpp"

#include <weft/cluster/local_cluster.hpp>
#include <weft/cluster/session.hpp>
#include <weft/ops/standard.hpp>
#include <weft/train/optimizers.hpp>
#include <weft/train/sync_replica.hpp>

#include <atomic>
#include <chrono>
#include <future>
#include <map>
#include <memory>
#include <thread>

namespace conformance {

using namespace weft::detail;
using namespace std::chrono_literals;

namespace {

// How long a step that should wait is watched, and how long what should come may take.
constexpr auto watched = 80ms;
constexpr auto patience = 60s;

std::int64_t integer_or(const json_at& at, std::string_view name, std::int64_t otherwise) {
  const json_value* v = find_field(at, name);
  return v == nullptr || v->kind == json_kind::null ? otherwise : integer_at(json_at(*v, at, name));
}

// Numbers, nested in lists, as they come.
void flatten_into(const json_at& at, std::vector<float>& out) {
  if (at.value.kind != json_kind::array) return out.push_back(static_cast<float>(real_at(at)));
  for (std::size_t i = 0; i < at.value.items.size(); ++i) flatten_into(json_at(at.value.items[i], at, i), out);
}
weft::tensor_value float_value(const json_at& at) {
  std::vector<std::int64_t> sizes;
  for (const json_value* v = &at.value; v->kind == json_kind::array; v = &v->items[0]) sizes.push_back(static_cast<std::int64_t>(v->items.size()));
  std::vector<float> all;
  flatten_into(at, all);
  return weft::tensor_value::from(weft::shape(sizes), all);
}

// The graph of one worker, and its session.
class worker {
 public:
  worker(const json_at& record, weft::local_cluster& cluster, int task, weft::sync_order order) : scope_(graph_.as_default()), cluster_(cluster), task_(task) {
    inner_ = find_field(record, "optimizer") == nullptr ? std::make_unique<weft::gradient_descent_optimizer>(1.f) : optimizer_at(record);
    std::vector<weft::grad_and_variable> gradients;
    {
      const auto device = weft::with_device("/job:ps/task:0");
      step = weft::get_or_create_global_step();
      const json_at initial = field(record, "variables");
      for (const json_value& v : initial.value.items) {
        const weft::output handle = add_variable(weft::dtype::float32, float_value(json_at(v, initial, v.key)), weft::variable_kind::automatic, v.key).handle;
        variables.emplace(v.key, weft::any_variable(handle));
      }
    }
    const auto device = weft::with_device("/job:worker/task:" + std::to_string(task));
    const json_at kinds = field(record, "gradient");
    for (const json_value& g : kinds.value.items) {
      const weft::any_variable& v = variables.at(g.key);
      if (g.kind == json_kind::object) {
        const json_at targets = field(json_at(g, kinds, g.key), "target_of_worker");
        const auto target = static_cast<float>(real_at(json_at(targets.value.items.at(static_cast<std::size_t>(task)), targets, g.key)));
        gradients.emplace_back(weft::gradient_output(v.as<float, 0>() - target), v);
        continue;
      }
      const auto placeholder = [&](weft::dtype type, const weft::partial_shape& s) {
        return weft::output{&add_node("Placeholder", {}, weft::op_name(), {{"dtype", type}, {"shape", s}}), 0};
      };
      if (string_at(json_at(g, kinds, g.key)) == "fed") {
        fed[g.key] = {placeholder(weft::dtype::float32, v.shape())};
        gradients.emplace_back(weft::gradient_output(fed[g.key][0]), v);
      } else {
        fed[g.key] = {placeholder(weft::dtype::int64, weft::partial_shape({-1})), placeholder(weft::dtype::float32, weft::partial_shape({-1, v.shape()[1]}))};
        gradients.emplace_back(weft::gradient_output(weft::indexed_slices{fed[g.key][1], fed[g.key][0], {}}), v);
      }
    }
    weft::sync_replicas_options options;
    options.order = order;
    options.total_num_replicas = integer_or(record, "total_num_replicas", 0);
    if (const json_value* decay = find_field(record, "moving_average")) {
      averages_ = std::make_unique<weft::exponential_moving_average>(real_at(json_at(*decay, record, "moving_average")));
      options.variable_averages = averages_.get();
      for (const auto& [name, v] : variables) options.variables_to_average.emplace_back(v);
    }
    sync = std::make_unique<weft::sync_replicas_optimizer>(*inner_, integer_or(record, "replicas_to_aggregate", 1), options);
    pass = sync->apply_gradients(gradients, step);
    init = weft::global_variables_initializer(graph_);
    if (order == weft::sync_order::tensorflow) tokens = sync->token_queue().size().raw();
    for (const weft::accumulator_base& a : sync->accumulators()) counts.push_back(a.num_accumulated().raw());
    open();
  }
  void open() { session = std::make_unique<weft::session>(cluster_.target("worker", task_), weft::session_options(), graph_); }
  // A value read now; empty when it cannot be.
  weft::tensor_value read(const weft::output& what) const {
    try {
      weft::run_options limit;
      limit.timeout = 5s;
      return session->run(limit, {}, {what})[0];
    } catch (const weft::error&) {
      return {};
    }
  }
  weft::output value_of(const weft::any_variable& v) {
    auto& made = reads_[v.name()];
    if (made.from == nullptr) made = v.read();
    return made;
  }
  weft::output average_of(const weft::any_variable& v) { return value_of(averages_->average(weft::averaged(v))); }

  weft::graph graph_;
  decltype(graph_.as_default()) scope_;
  weft::variable<std::int64_t, 0> step;
  std::map<std::string, weft::any_variable> variables;
  std::map<std::string, std::vector<weft::output>> fed;
  std::unique_ptr<weft::sync_replicas_optimizer> sync;
  std::unique_ptr<weft::session> session;
  weft::operation pass, init;
  weft::output tokens;
  std::vector<weft::output> counts;

 private:
  weft::local_cluster& cluster_;
  int task_;
  std::unique_ptr<weft::optimizer> inner_;
  std::unique_ptr<weft::exponential_moving_average> averages_;
  std::map<std::string, weft::output> reads_;
};

weft::local_cluster cluster_of(std::int64_t workers) { return weft::local_cluster({{"ps", 1}, {"worker", static_cast<int>(workers)}}); }

// A story: rows of event, status and state.
class story {
 public:
  explicit story(const json_at& record) : record_(record), cluster_(cluster_of(integer_at(field(record, "workers")))), killed_(text_field_of(record, "kind") == "killed") {
    for (std::int64_t i = 0; i < integer_at(field(record, "workers")); ++i) workers_.push_back(std::make_unique<worker>(record, cluster_, static_cast<int>(i), weft::sync_order::tensorflow));
  }
  ~story() {
    stop_ = true;
    for (auto& w : workers_) w->session->close();
  }
  std::string play() {
    const json_at rows = field(record_, "rows");
    for (std::size_t i = 0; i < elements_at(rows).size(); ++i)
      if (const std::string why = row(json_at(rows.value.items[i], rows, i)); !why.empty()) return "row " + std::to_string(i) + ": " + why;
    return "";
  }

 private:
  using outcome = std::future<std::string>;
  // The code of the error that a call ends with, on a thread of its own.
  template <class F> outcome begin(F f) {
    return std::async(std::launch::async, [f = std::move(f)]() -> std::string {
      try {
        f();
        return "";
      } catch (const weft::error& e) {
        return to_text(e.code());
      }
    });
  }
  outcome start(const json_at& event);
  std::string row(const json_at& r);
  std::string state(const json_at& expected);
  std::string settle(const json_at& expected);

  const json_at& record_;
  weft::local_cluster cluster_;
  bool killed_;
  std::vector<std::unique_ptr<worker>> workers_;
  std::atomic<bool> stop_{false};
  // Declared last: its threads use the rest.
  std::map<std::string, outcome> running_;
};

story::outcome story::start(const json_at& event) {
  const std::string what = text_field_of(event, "do");
  worker& w = *workers_.at(static_cast<std::size_t>(integer_or(event, "worker", 0)));
  weft::session* const s = w.session.get();
  const auto run = [this, s](weft::operation op) { return begin([s, op] { s->run(op); }); };
  if (what == "init") return run(w.init);
  if (what == "init_chief") return run(w.sync->chief_init());
  if (what == "init_local") return run(w.sync->local_init());
  if (what == "init_tokens") return run(w.sync->init_tokens(integer_at(field(event, "num_tokens"))));
  if (what == "set_global_step") return run(w.step.assign(integer_at(field(event, "value"))));
  if (what == "chief_step") return run(w.sync->chief_step());
  if (what == "start_chief_runner") {
    running_["(chief)"] = begin([this, s, op = w.sync->chief_step()] {
      while (!stop_) s->run(op);
    });
    return begin([] {});
  }
  if (what == "worker_step") {
    std::vector<weft::feed> feeds;
    if (const json_value* all = find_field(event, "gradients")) {
      const json_at map(*all, event, "gradients");
      for (const json_value& g : all->items) {
        const json_at at(g, map, g.key);
        if (g.kind != json_kind::object) {
          feeds.emplace_back(w.fed.at(g.key).at(0), float_value(at));
          continue;
        }
        const json_at list = field(at, "indices");
        std::vector<std::int64_t> indices;
        for (std::size_t i = 0; i < elements_at(list).size(); ++i) indices.push_back(integer_at(json_at(list.value.items[i], list, i)));
        feeds.emplace_back(w.fed.at(g.key).at(0), weft::tensor_value::from(weft::shape{static_cast<std::int64_t>(indices.size())}, indices));
        feeds.emplace_back(w.fed.at(g.key).at(1), float_value(field(at, "values")));
      }
    }
    return begin([s, feeds, pass = w.pass] { s->run(weft::run_options(), feeds, std::vector<weft::output>(), {pass}); });
  }
  if (what == "kill" || what == "restart") {
    const json_at task = field(event, "task");
    const auto index = static_cast<int>(integer_at(json_at(task.value.items.at(1), task, 1)));
    return begin([this, what, job = string_at(json_at(task.value.items.at(0), task, 0)), index] {
      if (what == "kill") cluster_.stop(job, index);
      else cluster_.start(job, index);
    });
  }
  if (what == "new_session") {
    w.open();
    return begin([] {});
  }
  weft::fail(weft::error_code::unimplemented, "there is no event '" + what + "'");
}

std::string story::row(const json_at& r) {
  const json_at event = field(r, "event");
  const std::string status = text_field_of(r, "status"), id = find_field(event, "id") == nullptr ? "(event)" : text_field_of(event, "id");
  running_[id] = start(event);
  outcome& o = running_[id];
  if (status == "blocked") {
    // A step of a task that is gone ends at once.
    if (o.wait_for(watched) == std::future_status::ready && !(killed_ && !o.get().empty())) return "expected that '" + id + "' waits";
  } else {
    if (o.wait_for(patience) != std::future_status::ready) return "expected that '" + id + "' has " + status;
    const std::string code = o.get();
    if (status == "finished" && !code.empty()) return "'" + id + "' failed with " + code;
    if (status == "failed" && code != text_field_of(field(r, "error"), "code")) return "expected that '" + id + "' fails, found '" + code + "'";
  }
  for (const std::string& also : names_field_of(r, "also_finished"))
    if (running_.at(also).wait_for(patience) != std::future_status::ready || !running_.at(also).get().empty()) return "expected that '" + also + "' has finished";
  return settle(field(r, "state"));
}

std::string story::settle(const json_at& expected) {
  const auto until = std::chrono::steady_clock::now() + patience;
  for (;;) {
    const std::string why = state(expected);
    if (why.empty() || std::chrono::steady_clock::now() > until) return why;
    std::this_thread::yield();
  }
}

std::string story::state(const json_at& expected) {
  worker& w = *workers_[0];
  const auto differ = [](const std::string& what, double wanted, double found) { return "'" + what + "': expected " + std::to_string(wanted) + ", found " + std::to_string(found); };
  const auto integer = [&](const weft::output& o) {
    const weft::tensor_value v = w.read(o);
    return v.empty() ? std::int64_t{-1} : static_cast<std::int64_t>(element(v, 0));
  };
  if (const std::int64_t now = integer(w.step.fetched()), wanted = integer_at(field(expected, "global_step")); now != wanted) return differ("global_step", static_cast<double>(wanted), static_cast<double>(now));
  if (const std::int64_t now = integer(w.tokens), wanted = integer_at(field(expected, "tokens_in_queue")); now != wanted) return differ("tokens", static_cast<double>(wanted), static_cast<double>(now));
  std::size_t k = 0;
  const json_at gradients = field(record_, "gradient"), accumulated = field(expected, "accumulated");
  for (const json_value& g : gradients.value.items) {
    const std::int64_t now = integer(w.counts.at(k++)), wanted = integer_at(field(accumulated, g.key));
    if (now != wanted) return differ("accumulated " + g.key, static_cast<double>(wanted), static_cast<double>(now));
  }
  for (const char* group : {"variables", "averages"}) {
    const json_value* all = find_field(expected, group);
    if (all == nullptr) continue;
    const json_at map(*all, expected, group);
    for (const json_value& v : all->items) {
      std::vector<float> wanted;
      flatten_into(json_at(v, map, v.key), wanted);
      const weft::any_variable& of = w.variables.at(v.key);
      const weft::tensor_value now = w.read(std::string_view(group) == "averages" ? w.average_of(of) : w.value_of(of));
      if (now.empty()) return "'" + v.key + "' has no value";
      for (std::size_t i = 0; i < wanted.size(); ++i)
        if (const double found = element(now, static_cast<std::int64_t>(i)); std::abs(found - static_cast<double>(wanted[i])) > 1e-5 * std::max(1., std::abs(static_cast<double>(wanted[i]))))
          return differ(v.key, static_cast<double>(wanted[i]), found);
    }
  }
  const json_at steps = field(expected, "local_steps");
  for (std::size_t i = 0; i < elements_at(steps).size(); ++i) {
    const bool none = steps.value.items[i].kind == json_kind::null;
    if (none && killed_) continue;
    worker& other = *workers_[i];
    const weft::tensor_value now = other.read(other.value_of(other.sync->local_step()));
    if (none != now.empty()) return "the local step of worker " + std::to_string(i) + (none ? " should have no value" : " has no value");
    if (!none && static_cast<std::int64_t>(element(now, 0)) != integer_at(json_at(steps.value.items[i], steps, i)))
      return differ("local step " + std::to_string(i), static_cast<double>(integer_at(json_at(steps.value.items[i], steps, i))), element(now, 0));
  }
  return "";
}

// All workers loop; the chief's thread runs beside the first.
std::string run_free(const json_at& record, const json_at& final_state) {
  const auto count = static_cast<int>(integer_at(field(record, "workers")));
  const std::int64_t passes = integer_at(field(record, "steps_per_worker"));
  weft::local_cluster cluster = cluster_of(count);
  std::vector<std::unique_ptr<worker>> workers;
  for (int i = 0; i < count; ++i) workers.push_back(std::make_unique<worker>(record, cluster, i, weft::sync_order::tensorflow));
  worker& chief = *workers[0];
  chief.session->run(chief.init);
  weft::sync_replica_options options;
  options.num_tokens = integer_at(field(record, "num_tokens"));
  std::vector<std::unique_ptr<weft::sync_replica>> replicas;
  for (auto& w : workers)
    replicas.push_back(std::make_unique<weft::sync_replica>(*w->sync, *w->session, &w == &workers[0] ? weft::replica_role::chief : weft::replica_role::worker, options));
  std::vector<std::future<void>> threads;
  for (auto& w : workers)
    threads.push_back(std::async(std::launch::async, [&w = *w, passes] {
      weft::run_options limit;
      limit.timeout = 20s;
      for (std::int64_t i = 0; i < passes; ++i) w.session->run(limit, w.pass);
    }));
  for (auto& t : threads) t.get();
  const double step = element(chief.read(chief.step.fetched()), 0), v = element(chief.read(chief.value_of(chief.variables.at("v"))), 0), wanted = real_at(field(final_state, "v"));
  if (step != real_at(field(final_state, "global_step"))) return "expected the global step " + std::to_string(real_at(field(final_state, "global_step"))) + ", found " + std::to_string(step);
  return std::abs(v - wanted) < 1e-5 * std::max(1., std::abs(wanted)) ? "" : "expected v = " + std::to_string(wanted) + ", found " + std::to_string(v);
}

// Updates of several workers without waiting for each other; none may be lost.
std::string run_async(const json_at& record) {
  const std::string update = text_field_of(record, "update");
  const auto count = static_cast<int>(integer_at(field(record, "workers")));
  const std::int64_t passes = integer_at(field(record, "steps_per_worker"));
  weft::local_cluster cluster = cluster_of(count);
  const bool integer = update == "assign_add_int64", descent = update.compare(0, 3, "sgd") == 0, quadratic = update == "sgd_minimize_quadratic";
  // The variable and the counter after a client's passes.
  const auto client = [&](int task, bool init, std::int64_t times) {
    const weft::graph g;
    const auto scope = g.as_default();
    weft::variable<std::int64_t, 0> step;
    weft::any_variable v;
    {
      const auto device = weft::with_device("/job:ps/task:0");
      step = weft::get_or_create_global_step();
      const weft::tensor_value zero = integer ? weft::tensor_value::scalar(std::int64_t{0}) : weft::tensor_value::from(quadratic ? weft::shape() : weft::shape{1000}, std::vector<float>(quadratic ? 1 : 1000, 0.f));
      v = weft::any_variable(add_variable(zero.dtype(), zero, weft::variable_kind::automatic, "v").handle);
    }
    const auto one = [&](float value) { return quadratic || integer ? weft::tensor_value::scalar(value) : weft::tensor_value::from(weft::shape{1000}, std::vector<float>(1000, value)); };
    weft::gradient_descent_optimizer optimizer(quadratic ? 0.1f : 1.f);
    weft::operation op;
    {
      const auto device = weft::with_device("/job:worker/task:" + std::to_string(task));
      if (integer) op = v.as<std::int64_t, 0>().assign_add(1);
      else if (!descent) op = v.assign_add(weft::output{&add_const(one(1.f), weft::op_name()), 0});
      else if (quadratic) op = optimizer.apply_gradients({{weft::gradient_output(v.as<float, 0>() - (task == 0 ? 1.f : task == 1 ? 3.f : 8.f)), v}}, step);
      else op = optimizer.apply_gradients({{weft::gradient_output(weft::output{&add_const(one(-1.f), weft::op_name()), 0}), v}}, step);
    }
    weft::session session(cluster.target("worker", task), {}, g);
    if (init) session.run(weft::global_variables_initializer(g));
    for (std::int64_t i = 0; i < times; ++i) session.run(op);
    return std::pair<double, double>(element(session.run({}, {}, {v.read()})[0], 0), static_cast<double>(session.run(step)));
  };
  client(0, true, 0);
  std::vector<std::future<void>> threads;
  for (int i = 0; i < count; ++i) threads.push_back(std::async(std::launch::async, [&client, i, passes] { client(i, false, passes); }));
  for (auto& t : threads) t.get();
  const auto [found, steps] = client(0, false, 0);
  const json_at expect = field(record, "expect");
  const double all = static_cast<double>(passes) * count;
  if (descent && steps != all) return "expected the global step " + std::to_string(all) + ", found " + std::to_string(steps);
  if (find_field(expect, "v_between") != nullptr) {
    const json_at range = field(expect, "v_between");
    const double low = real_at(json_at(range.value.items.at(0), range, 0)), high = real_at(json_at(range.value.items.at(1), range, 1));
    return found > low && found < high ? "" : "v is " + std::to_string(found);
  }
  return found == real_at(field(expect, "total")) ? "" : "expected " + std::to_string(real_at(field(expect, "total"))) + ", found " + std::to_string(found);
}

// What is refused when the graph is built.
std::string run_misuse(const std::string& name, bool refused) {
  const weft::graph g;
  const auto scope = g.as_default();
  const weft::variable<float, 0> v(weft::constant(0.f), "v");
  const auto step = weft::get_or_create_global_step();
  weft::gradient_descent_optimizer inner(1.f);
  weft::sync_replicas_options options;
  options.order = weft::sync_order::tensorflow;
  options.total_num_replicas = name == "sync_error/few_tokens" ? 1 : 2;
  weft::sync_replicas_optimizer sync(inner, name == "sync_error/negative_tokens" ? 2 : 3, options);
  try {
    if (name == "sync_error/runner_early") sync.chief_step();
    else if (name == "sync_error/hook_early") sync.init_tokens();
    else {
      sync.apply_gradients({{weft::constant(1.f), v}}, step);
      sync.init_tokens(name == "sync_error/negative_tokens" ? -2 : 1);
    }
  } catch (const weft::error& e) {
    return refused ? "" : std::string("found ") + e.what();
  }
  return refused ? "expected an error" : "";
}

// The nodes of a graph that matter: what Python adds beside them (reads that nobody uses, queue runners) has no place here.
std::string check_graph(const json_at& record) {
  const weft::graph g;
  const auto scope = g.as_default();
  weft::variable<std::int64_t, 0> step;
  weft::any_variable v;
  {
    const auto device = weft::with_device("/job:ps/task:0");
    step = weft::get_or_create_global_step();
  }
  const bool sparse = bool_at(field(record, "sparse"));
  {
    const auto device = weft::with_device("/job:ps/task:1");
    v = weft::any_variable(add_variable(weft::dtype::float32, weft::tensor_value::from(weft::shape{1, 1}, std::vector<float>{0}), weft::variable_kind::automatic, "v").handle);
  }
  const auto device = weft::with_device("/job:worker/task:1");
  const weft::output grad{&add_const(weft::tensor_value::from(weft::shape{1, 1}, std::vector<float>{1}), weft::op_name("grad")), 0};
  weft::gradient_output gradient(grad);
  if (sparse) gradient = weft::indexed_slices{grad, {&add_const(weft::tensor_value::from(weft::shape{1}, std::vector<std::int64_t>{0}), weft::op_name()), 0}, {}};
  weft::gradient_descent_optimizer inner(1.f);
  weft::sync_replicas_options options;
  options.order = weft::sync_order::tensorflow;
  options.total_num_replicas = integer_at(field(record, "total_num_replicas"));
  weft::sync_replicas_optimizer sync(inner, integer_at(field(record, "replicas_to_aggregate")), options);
  sync.apply_gradients({{gradient, v}}, step);
  sync.init_tokens();
  const json_at nodes = field(field(record, "expect"), "nodes");
  for (std::size_t i = 0; i < elements_at(nodes).size(); ++i) {
    const json_at n(nodes.value.items[i], nodes, i);
    const std::string name = text_field_of(n, "name"), op = text_field_of(n, "op");
    if (op == "ReadVariableOp" || op == "VarIsInitializedOp" || op == "Const" || op == "QueueCloseV2") continue;
    const weft::node* found = g.find(name);
    if (found == nullptr) return "there is no node '" + name + "' (" + op + ")";
    if (found->op() != op) return "node '" + name + "' is " + found->op() + ", expected " + op;
    const json_value* attrs = find_field(n, "attrs");
    for (const char* attr : {"shared_name", "reduction_type"})
      if (attrs != nullptr && find_field(json_at(*attrs, n, "attrs"), attr) != nullptr && found->attr<std::string>(attr) != text_field_of(json_at(*attrs, n, "attrs"), attr))
        return "attribute '" + std::string(attr) + "' of '" + name + "' is '" + found->attr<std::string>(attr) + "'";
  }
  return "";
}

}  // namespace

void run_sync_record(const json_at& record, const options& asked, report& into) {
  const std::string name = text_field_of(record, "name"), kind = text_field_of(record, "kind");
  if (!asked.wants(kind)) return;
  std::string why;
  try {
    if (kind == "sync" || kind == "killed") {
      if (find_field(record, "device_filters") != nullptr) return into.skipped(kind, name, "sessions have no device filters");
      why = story(record).play();
    } else if (kind == "free") {
      const json_at expect = field(record, "expect");
      if (!bool_at(field(expect, "deterministic"))) return into.skipped(kind, name, "the outcomes are examples");
      const json_at outcomes = field(expect, "outcomes");
      why = run_free(record, json_at(outcomes.value.items.at(0), outcomes, 0));
    } else if (kind == "monitored") {
      why = run_free(record, field(field(record, "expect"), "final"));
    } else if (kind == "async") {
      const std::string update = text_field_of(record, "update");
      if (update.compare(0, 4, "ref_") == 0) return into.skipped(kind, name, "reference variables do not run");
      if (update == "read_then_assign") return into.skipped(kind, name, "how many updates are lost is left open");
      why = run_async(record);
    } else if (kind == "sync_error") {
      if (name == "sync_error/gradient_type") return into.skipped(kind, name, "a gradient of this kind does not compile");
      why = run_misuse(name, find_field(field(record, "expect"), "error") != nullptr);
    } else if (kind == "sync_graph") {
      why = check_graph(record);
    } else {
      return into.skipped(kind, name, "there is no player for this kind");
    }
  } catch (const weft::error& e) {
    why = std::string("found ") + e.what();
  }
  if (why.empty()) into.passed(kind, name);
  else into.failed(kind, name, why);
}

}  // namespace conformance
