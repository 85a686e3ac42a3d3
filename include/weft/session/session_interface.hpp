#ifndef WEFT_SESSION_SESSION_INTERFACE_HPP
#define WEFT_SESSION_SESSION_INTERFACE_HPP
// What every session offers: typed `run` and `make_callable` over a few virtual functions without types.

#include <weft/core/config.hpp>
#include <weft/fwd.hpp>
#include <weft/session/feed.hpp>
#include <weft/session/options.hpp>
#include <weft/session/signature.hpp>
#include <weft/tensor/host_value.hpp>
#if WEFT_HAS_BODIES
#include <weft/partition/partitioned_graph.hpp>
#endif

#include <cstddef>
#include <initializer_list>
#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>
#if WEFT_HAS_BODIES
#include <algorithm>
#include <string>
#endif

namespace weft {

class partitioned_graph;
class session_interface;
struct device;

/// A step whose signature was looked up once. Thread-safe; keeps its session's connection or state alive.
class prepared_step {
 public:
  virtual ~prepared_step() = default;
  /// Runs the step. `feeds` are the values by position in the signature, which it may take; `fetches` has as many places as the signature, and
  /// gets the results. Throws.
  virtual void run(tensor_value* feeds, tensor_value* fetches, const run_options& options) = 0;
};

namespace detail {

// The body of a callable: a prepared step, what may be fed to it, and which of its values answer which fetch of the user.
class prepared_call {
 public:
  struct state;
  explicit prepared_call(std::shared_ptr<const state> s) noexcept : state_(std::move(s)) {}
  // Takes the values fed; `answers` has a place for each fetch of the user.
  void run(tensor_value* fed, tensor_value* answers) const;

 private:
  std::shared_ptr<const state> state_;
};

// A request as a session serves it: variables' feeds spread to their reads, fetches that are fed answered at once.
class request {
 public:
  explicit request(const weft::graph& g);
  request(const request&) = delete;
  request& operator=(const request&) = delete;
  ~request();

  void add_feeds(const feed* feeds, std::size_t count);
  void add_placeholder(const output& to);
  void add_fetch(const output& what);
  void add_target(const operation& what);
  // The values in the order of the fetches; they live as long as the request.
  tensor_value* run(session_interface& session, const run_options& options);
  prepared_call prepare(session_interface& session);

 private:
  struct state;
  std::unique_ptr<state> state_;
};

template <class F, class = void> struct fetch_traits { static constexpr bool ok = false; };
template <> struct fetch_traits<operation> {
  static constexpr bool ok = true;
  using value = void;
};
template <class F> struct fetch_traits<F, std::enable_if_t<is_operand<F>::value>> {
  static constexpr bool ok = true;
  using value = host_value<typename F::dtype, F::rank>;
};

// The host values of those fetches that have one.
template <class... V> struct host_values {
  using type = std::tuple<typename V::type...>;
  static type take(tensor_value* values) { return take(values, std::index_sequence_for<V...>()); }
  template <std::size_t... I> static type take(tensor_value* values, std::index_sequence<I...>) { return type(V::take(values[I])...); }
};
template <> struct host_values<> {
  using type = void;
  static void take(tensor_value*) {}
};
template <class V> struct host_values<V> {
  using type = typename V::type;
  static type take(tensor_value* value) { return V::take(*value); }
};
template <class Found, class... F> struct pick_values;
template <class... V> struct pick_values<host_values<V...>> { using type = host_values<V...>; };
template <class... V, class F, class... Rest> struct pick_values<host_values<V...>, F, Rest...> {
  using value = typename fetch_traits<F>::value;
  using type = typename std::conditional_t<std::is_void_v<value>, pick_values<host_values<V...>, Rest...>, pick_values<host_values<V..., value>, Rest...>>::type;
};
template <class... F> using values_of = typename pick_values<host_values<>, F...>::type;
template <bool Ok, class... F> struct result_of { using type = void; };
template <class... F> struct result_of<true, F...> { using type = typename values_of<F...>::type; };
template <class... F> using run_result = typename result_of<(true && ... && fetch_traits<F>::ok), F...>::type;

// How many values a result has.
template <class Result> inline constexpr std::size_t value_count = std::is_void_v<Result> ? 0 : 1;
template <class... T> inline constexpr std::size_t value_count<std::tuple<T...>> = sizeof...(T);

template <class F> void add_wanted(request& r, const F& f) {
  if constexpr (std::is_same_v<F, operation>) r.add_target(f);
  else r.add_fetch(f.fetched());
}

}  // namespace detail

/// A prepared step: call it with one value per placeholder. Copies share the preparation; thread-safe.
template <class Result, class... P> class callable {
 public:
  callable(detail::prepared_call call, Result (*take)(tensor_value*)) : call_(std::move(call)), take_(take) {}

  /// Runs the step. Throws as `run` does.
  Result operator()(feed_value<typename P::dtype, P::rank>... values) const {
    tensor_value fed[sizeof...(P) + 1] = {std::move(values.value)...}, answers[detail::value_count<Result> + 1];
    call_.run(fed, answers);
    return take_(answers);
  }

 private:
  detail::prepared_call call_;
  Result (*take_)(tensor_value*);
};

/// How many tasks answer, of those that a session may use.
struct task_count {
  std::size_t alive = 0, all = 0;
};

/// Runs steps of one graph. Thread-safe; nodes added to the graph later are seen. `run` returns the fetched values (a plain value for
/// one fetch, a tuple for several, void for operations alone) and throws `weft::error`.
class session_interface {
 public:
  virtual ~session_interface() = default;

  /// The graph whose steps it runs.
  virtual const weft::graph& graph() const = 0;
  /// The step with this signature, prepared once and kept while it is used often. Throws what is wrong with the graph.
  virtual std::shared_ptr<prepared_step> prepare(const step_signature& signature) = 0;
  /// What really runs: the graph pruned, placed and partitioned for these feeds, fetches and targets.
  virtual partitioned_graph partitions(const step_signature& signature) = 0;
  /// The devices that nodes can be placed on.
  virtual std::vector<device> list_devices() = 0;
  /// Waits until all tasks answer that the session may use (`session_options::device_filters`), also those that start only now. Throws UNAVAILABLE when this time is over, with the tasks
  /// that are missing, their addresses and the reasons. The tasks of a local session are always there.
  virtual void wait_for_tasks(std::chrono::milliseconds time) { (void)time; }
  /// Asks each task that the session may use once, and counts those that answer within this time. A local session has no tasks to ask: none of none.
  virtual task_count count_tasks(std::chrono::milliseconds within) {
    (void)within;
    return {};
  }
  /// Tells all tasks of a cluster that this is the cluster now: tasks may have been replaced by others at new addresses, or have been added or taken away. Steps that use a task that
  /// was elsewhere end with UNAVAILABLE or ABORTED, and the next one uses the new task, whose variables are to be restored. Throws UNAVAILABLE with the tasks that could not be
  /// told, after all others were; the same call may be made again. The tasks of a local session do not move: UNIMPLEMENTED.
  virtual void update_cluster(const cluster_spec& next) {
    (void)next;
    fail(error_code::unimplemented, "the tasks of a local session do not move");
  }
  /// Ends running steps with CANCELLED; later runs fail with FAILED_PRECONDITION. Idempotent.
  virtual void close() = 0;

  template <class... F, std::enable_if_t<(sizeof...(F) > 0) && (detail::fetch_traits<F>::ok && ...), int> = 0> detail::run_result<F...> run(const F&... fetches) {
    return run_all({}, nullptr, 0, fetches...);
  }
  template <class... F> detail::run_result<F...> run(std::initializer_list<feed> feeds, const F&... fetches) {
    return run_all({}, feeds.begin(), feeds.size(), fetches...);
  }
  template <class... F> detail::run_result<F...> run(const feed& one, const F&... fetches) { return run_all({}, &one, 1, fetches...); }
  template <class... F> detail::run_result<F...> run(const std::vector<feed>& feeds, const F&... fetches) { return run_all({}, feeds.data(), feeds.size(), fetches...); }
  template <class... F> detail::run_result<F...> run(const run_options& options, std::initializer_list<feed> feeds, const F&... fetches) {
    return run_all(options, feeds.begin(), feeds.size(), fetches...);
  }
  template <class... F, std::enable_if_t<(sizeof...(F) > 0) && (detail::fetch_traits<F>::ok && ...), int> = 0>
  detail::run_result<F...> run(const run_options& options, const F&... fetches) {
    return run_all(options, nullptr, 0, fetches...);
  }
  /// Runs outputs by name or handle, without types: values in the order of `fetches`.
  std::vector<tensor_value> run(const run_options& options, const std::vector<feed>& feeds, const std::vector<output>& fetches, const std::vector<operation>& targets = {});

  /// Looks the step up once: `auto step = session.make_callable(feeds(x, y), loss); float l = step(batch, labels);`.
  template <class... P, class... F> callable<detail::run_result<F...>, P...> make_callable(const feeds_t<P...>& placeholders, const F&... fetches) {
    check_fetches<F...>();
    detail::request r(graph());
    std::apply([&r](const auto&... p) { (r.add_placeholder(p.raw()), ...); }, placeholders.placeholders);
    (detail::add_wanted(r, fetches), ...);
    return {r.prepare(*this), [](tensor_value* values) { return detail::values_of<F...>::take(values); }};
  }
  template <class... F, std::enable_if_t<(sizeof...(F) > 0) && (detail::fetch_traits<F>::ok && ...), int> = 0>
  callable<detail::run_result<F...>> make_callable(const F&... fetches) {
    check_fetches<F...>();
    detail::request r(graph());
    (detail::add_wanted(r, fetches), ...);
    return {r.prepare(*this), [](tensor_value* values) { return detail::values_of<F...>::take(values); }};
  }

 protected:
  session_interface() = default;
  session_interface(const session_interface&) = delete;
  session_interface& operator=(const session_interface&) = delete;

 private:
  template <class... F> static constexpr void check_fetches() {
    static_assert((true && ... && detail::fetch_traits<F>::ok), "weft: only tensors, variables and operations can be fetched");
  }
  template <class... F> detail::run_result<F...> run_all(const run_options& options, const feed* feeds, std::size_t count, const F&... fetches) {
    check_fetches<F...>();
    if constexpr ((true && ... && detail::fetch_traits<F>::ok)) {
      detail::request r(graph());
      r.add_feeds(feeds, count);
      (detail::add_wanted(r, fetches), ...);
      return detail::values_of<F...>::take(r.run(*this, options));
    }
  }
};

#if WEFT_HAS_BODIES

namespace detail {

// Checks a value against the tensor it is fed to; throws INVALID_ARGUMENT at the line of the feed.
WEFT_DECL void check_feed(const output& to, const tensor_value& v, call_site where) {
  const node& n = *to.from;
  const output_type& expected = n.outputs()[static_cast<std::size_t>(to.index)];
  if (v.dtype() == expected.dtype && expected.shape.accepts(v.shape())) return;
  std::string message = v.dtype() != expected.dtype ? std::string("is ") + to_text(expected.dtype) + ", the value fed is " + to_text(v.dtype())
                                                    : "has shape " + expected.shape.text() + ", the value fed has shape " + v.shape().text();
  if (where.known()) message += " (fed at " + where.text() + ")";
  throw error(n.status_about(error_code::invalid_argument, std::move(message)));
}

struct prepared_call::state {
  std::shared_ptr<prepared_step> step;  // none when the feeds answer everything
  std::vector<output> feeds;
  std::size_t fetches;
  // For each fetch of the user: its position among the step's fetches, or -1 - position of the feed that answers it.
  std::vector<int> answers;
  // Whether the answers are the step's fetches as they come.
  bool in_order;
};

WEFT_DECL void prepared_call::run(tensor_value* fed, tensor_value* answers) const {
  const state& s = *state_;
  for (std::size_t i = 0; i < s.feeds.size(); ++i) check_feed(s.feeds[i], fed[i], call_site());
  if (s.in_order) return s.step->run(fed, answers, run_options());
  std::vector<tensor_value> fetched(s.fetches);
  for (std::size_t i = 0; i < s.answers.size(); ++i)
    if (s.answers[i] < 0) answers[i] = fed[static_cast<std::size_t>(-1 - s.answers[i])];
  if (s.step == nullptr) return;
  s.step->run(fed, fetched.data(), run_options());
  for (std::size_t i = 0; i < s.answers.size(); ++i)
    if (s.answers[i] >= 0) answers[i] = fetched[static_cast<std::size_t>(s.answers[i])];
}

struct request::state {
  const weft::graph& g;
  step_signature signature;
  std::vector<tensor_value> values, answered;
  std::vector<int> answers;

  void check() const {
    if (answers.empty() && signature.targets.empty()) fail(error_code::invalid_argument, "nothing to run: name at least one tensor to fetch or operation to run");
  }
  // Whether anything is asked for besides what is fed.
  bool runs() const noexcept { return !signature.fetches.empty() || !signature.targets.empty(); }
  bool in_order() const {
    for (std::size_t i = 0; i < answers.size(); ++i)
      if (answers[i] != static_cast<int>(i)) return false;
    return answers.size() == signature.fetches.size();
  }
  void add_feed(const output& to, const tensor_value& value, call_site where);
};

WEFT_DECL request::request(const weft::graph& g) : state_(new state{g, {}, {}, {}, {}}) {}
WEFT_DECL request::~request() = default;

WEFT_DECL void request::state::add_feed(const output& to, const tensor_value& value, call_site where) {
  if (to.from == nullptr) throw error(error_code::invalid_argument, "a value is fed to an empty tensor, not made by any op", where);
  if (&to.from->owner() != g.state().get())
    throw error(error_code::invalid_argument, "the value fed to '" + to.from->name() + "' belongs to another graph than this session's", where);
  if (to.from->output_dtype(to.index) == dtype::resource && value.dtype() != dtype::resource) {
    for (const node* n : g.nodes())
      if (n->op() == "ReadVariableOp" && n->inputs()[0] == to) add_feed({n, 0}, value, where);
    return;
  }
  if (std::find(signature.feeds.begin(), signature.feeds.end(), to) != signature.feeds.end())
    throw error(error_code::invalid_argument, "'" + to_text(to) + "' is fed twice", where);
  check_feed(to, value, where);
  signature.feeds.push_back(to);
  values.push_back(value);
}

WEFT_DECL void request::add_feeds(const feed* feeds, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) state_->add_feed(feeds[i].to(), feeds[i].value(), feeds[i].site());
}

WEFT_DECL void request::add_placeholder(const output& to) {
  auto& feeds = state_->signature.feeds;
  if (to.from == nullptr) fail(error_code::invalid_argument, "a placeholder of the prepared step is an empty tensor, not made by any op");
  if (&to.from->owner() != state_->g.state().get()) to.from->fail_about(error_code::invalid_argument, "is a placeholder of another graph than this session's");
  if (std::find(feeds.begin(), feeds.end(), to) != feeds.end()) fail(error_code::invalid_argument, "'" + to_text(to) + "' is fed twice");
  feeds.push_back(to);
}

WEFT_DECL void request::add_fetch(const output& what) {
  if (what.from == nullptr) fail(error_code::invalid_argument, "a fetch is an empty tensor, not made by any op");
  if (&what.from->owner() != state_->g.state().get())
    what.from->fail_about(error_code::invalid_argument, "is fetched from a session of another graph; make the session while that graph is the default, or pass it to the session");
  step_signature& signature = state_->signature;
  const auto fed = std::find(signature.feeds.begin(), signature.feeds.end(), what);
  if (fed != signature.feeds.end()) return state_->answers.push_back(-1 - static_cast<int>(fed - signature.feeds.begin()));
  const auto have = std::find(signature.fetches.begin(), signature.fetches.end(), what);
  state_->answers.push_back(static_cast<int>(have - signature.fetches.begin()));
  if (have == signature.fetches.end()) signature.fetches.push_back(what);
}

WEFT_DECL void request::add_target(const operation& what) {
  if (what.get() == nullptr) fail(error_code::invalid_argument, "a target is an empty operation");
  if (&what.get()->owner() != state_->g.state().get())
    what.get()->fail_about(error_code::invalid_argument, "is a target of a session of another graph; make the session while that graph is the default, or pass it to the session");
  state_->signature.targets.push_back(what.get());
}

WEFT_DECL tensor_value* request::run(session_interface& session, const run_options& options) {
  state& s = *state_;
  const step_signature& signature = s.signature;
  s.check();
  for (const int a : s.answers) s.answered.push_back(a < 0 ? s.values[static_cast<std::size_t>(-1 - a)] : tensor_value());
  if (!s.runs()) return s.answered.data();
  const auto step = session.prepare(signature);
  if (s.in_order()) {
    step->run(s.values.data(), s.answered.data(), options);
    return s.answered.data();
  }
  std::vector<tensor_value> fetched(signature.fetches.size());
  step->run(s.values.data(), fetched.data(), options);
  for (std::size_t i = 0; i < s.answers.size(); ++i)
    if (s.answers[i] >= 0) s.answered[i] = fetched[static_cast<std::size_t>(s.answers[i])];
  return s.answered.data();
}

WEFT_DECL prepared_call request::prepare(session_interface& session) {
  state& s = *state_;
  s.check();
  auto step = s.runs() ? session.prepare(s.signature) : nullptr;
  const bool in_order = s.in_order();
  return prepared_call(std::make_shared<const prepared_call::state>(
      prepared_call::state{std::move(step), std::move(s.signature.feeds), s.signature.fetches.size(), std::move(s.answers), in_order}));
}

}  // namespace detail

WEFT_DECL std::vector<tensor_value> session_interface::run(const run_options& options, const std::vector<feed>& feeds, const std::vector<output>& fetches, const std::vector<operation>& targets) {
  detail::request r(graph());
  r.add_feeds(feeds.data(), feeds.size());
  for (const output& o : fetches) r.add_fetch(o);
  for (const operation& t : targets) r.add_target(t);
  tensor_value* values = r.run(*this, options);
  return std::vector<tensor_value>(std::make_move_iterator(values), std::make_move_iterator(values + fetches.size()));
}

#endif

}  // namespace weft

#endif
