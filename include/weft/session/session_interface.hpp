#ifndef WEFT_SESSION_SESSION_INTERFACE_HPP
#define WEFT_SESSION_SESSION_INTERFACE_HPP
// What every session offers: typed `run` and `make_callable` over a few virtual functions without types.

#include <weft/partition/partitioned_graph.hpp>
#include <weft/placement/device_set.hpp>
#include <weft/session/feed.hpp>
#include <weft/session/options.hpp>
#include <weft/session/signature.hpp>
#include <weft/tensor/host_value.hpp>

#include <cstddef>
#include <initializer_list>
#include <memory>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

namespace weft {

/// A step whose signature was looked up once. Thread-safe; keeps its session's connection or state alive.
class prepared_step {
 public:
  virtual ~prepared_step() = default;
  /// Runs the step: `feeds` are the values by position in the signature, `fetches` receives the results. Throws.
  virtual void run(std::vector<tensor_value> feeds, std::vector<tensor_value>& fetches, const run_options& options) = 0;
};

namespace detail {

// Checks a value against the tensor it is fed to; throws INVALID_ARGUMENT at the line of the feed.
inline void check_feed(const output& to, const tensor_value& v, call_site where) {
  const node& n = *to.from;
  const auto bad = [&](const std::string& message) {
    status s = n.status_about(error_code::invalid_argument, message + (where.known() ? " (fed at " + where.text() + ")" : std::string()));
    throw error(std::move(s));
  };
  if (v.dtype() != n.output_dtype(to.index)) bad(std::string("is ") + to_text(n.output_dtype(to.index)) + ", the value fed is " + to_text(v.dtype()));
  if (!n.output_shape(to.index).accepts(v.shape())) bad("has shape " + n.output_shape(to.index).text() + ", the value fed has shape " + v.shape().text());
}

// The request as a session serves it: variables' feeds spread to their reads, fetches that are fed answered at once.
struct request {
  step_signature signature;
  std::vector<tensor_value> values;
  // For each fetch of the user: its position in signature.fetches, or -1 - position of the feed that answers it.
  std::vector<int> answers;
};

inline void add_feed(request& r, const graph& g, const output& to, const tensor_value& value, call_site where) {
  if (to.from == nullptr) throw error(error_code::invalid_argument, "a value is fed to an empty tensor, not made by any op", where);
  if (&to.from->owner() != g.state().get())
    throw error(error_code::invalid_argument, "the value fed to '" + to.from->name() + "' belongs to another graph than this session's", where);
  if (to.from->output_dtype(to.index) == dtype::resource && value.dtype() != dtype::resource) {
    for (const node* n : g.nodes())
      if (n->op() == "ReadVariableOp" && n->inputs()[0] == to) add_feed(r, g, {n, 0}, value, where);
    return;
  }
  if (std::find(r.signature.feeds.begin(), r.signature.feeds.end(), to) != r.signature.feeds.end())
    throw error(error_code::invalid_argument, "'" + to_text(to) + "' is fed twice", where);
  check_feed(to, value, where);
  r.signature.feeds.push_back(to);
  r.values.push_back(value);
}

inline void add_fetch(request& r, const graph& g, const output& what) {
  if (what.from == nullptr) fail(error_code::invalid_argument, "a fetch is an empty tensor, not made by any op");
  if (&what.from->owner() != g.state().get())
    what.from->fail_about(error_code::invalid_argument, "is fetched from a session of another graph; make the session while that graph is the default, or pass it to the session");
  const auto fed = std::find(r.signature.feeds.begin(), r.signature.feeds.end(), what);
  if (fed != r.signature.feeds.end()) {
    r.answers.push_back(-1 - static_cast<int>(fed - r.signature.feeds.begin()));
    return;
  }
  const auto have = std::find(r.signature.fetches.begin(), r.signature.fetches.end(), what);
  r.answers.push_back(static_cast<int>(have - r.signature.fetches.begin()));
  if (have == r.signature.fetches.end()) r.signature.fetches.push_back(what);
}

inline void add_target(request& r, const graph& g, const operation& what) {
  if (what.get() == nullptr) fail(error_code::invalid_argument, "a target is an empty operation");
  if (&what.get()->owner() != g.state().get())
    what.get()->fail_about(error_code::invalid_argument, "is a target of a session of another graph; make the session while that graph is the default, or pass it to the session");
  r.signature.targets.push_back(what.get());
}

// The values in the order of the user's fetches.
inline std::vector<tensor_value> answer(const std::vector<int>& answers, const std::vector<tensor_value>& fed, std::vector<tensor_value> fetched) {
  std::vector<tensor_value> out;
  out.reserve(answers.size());
  for (const int a : answers) out.push_back(a < 0 ? fed[static_cast<std::size_t>(-1 - a)] : fetched[static_cast<std::size_t>(a)]);
  return out;
}

template <class F, class = void> struct fetch_traits {
  static constexpr bool ok = false;
  using tuple = std::tuple<>;
};
template <> struct fetch_traits<operation> {
  static constexpr bool ok = true;
  using tuple = std::tuple<>;
  static tuple take(const tensor_value*&) { return {}; }
};
template <class F> struct fetch_traits<F, std::enable_if_t<is_operand<F>::value>> {
  static constexpr bool ok = true;
  using value = host_value<typename F::dtype, F::rank>;
  using tuple = std::tuple<typename value::type>;
  static tuple take(const tensor_value*& v) { return tuple(value::take(*v++)); }
};
template <class Tuple> struct unwrap { using type = Tuple; };
template <> struct unwrap<std::tuple<>> { using type = void; };
template <class T> struct unwrap<std::tuple<T>> { using type = T; };
template <class... F> using run_tuple = decltype(std::tuple_cat(std::declval<typename fetch_traits<F>::tuple>()...));
template <class... F> using run_result = typename unwrap<run_tuple<F...>>::type;

template <class F> void add_wanted(request& r, const graph& g, const F& f) {
  if constexpr (std::is_same_v<F, operation>) add_target(r, g, f);
  else add_fetch(r, g, f.fetched());
}
template <class... F> run_result<F...> unpack(const std::vector<tensor_value>& values) {
  [[maybe_unused]] const tensor_value* next = values.data();
  std::tuple<typename fetch_traits<F>::tuple...> each{fetch_traits<F>::take(next)...};  // braces: left to right
  run_tuple<F...> all = std::apply([](auto&... x) { return std::tuple_cat(std::move(x)...); }, each);
  if constexpr (std::tuple_size_v<run_tuple<F...>> == 1) return std::get<0>(std::move(all));
  else if constexpr (std::tuple_size_v<run_tuple<F...>> > 1) return all;
}

}  // namespace detail

/// A prepared step: call it with one value per placeholder. Copies share the preparation; thread-safe.
template <class Result, class... P> class callable {
 public:
  callable(std::shared_ptr<prepared_step> step, std::vector<int> answers, std::vector<output> placeholders, Result (*unpack)(const std::vector<tensor_value>&))
      : step_(std::move(step)), answers_(std::move(answers)), placeholders_(std::move(placeholders)), unpack_(unpack) {}

  /// Runs the step. Throws as `run` does.
  Result operator()(feed_value<typename P::dtype, P::rank>... values) const {
    std::vector<tensor_value> fed;
    fed.reserve(sizeof...(P));
    (fed.push_back(std::move(values.value)), ...);
    for (std::size_t i = 0; i < fed.size(); ++i) detail::check_feed(placeholders_[i], fed[i], call_site());
    std::vector<tensor_value> fetched;
    step_->run(fed, fetched, run_options());
    return unpack_(detail::answer(answers_, fed, std::move(fetched)));
  }

 private:
  std::shared_ptr<prepared_step> step_;
  std::vector<int> answers_;
  std::vector<output> placeholders_;
  Result (*unpack_)(const std::vector<tensor_value>&);
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
    detail::request r;
    std::apply([&r](const auto&... p) { (r.signature.feeds.push_back(p.raw()), ...); }, placeholders.placeholders);
    (detail::add_wanted(r, graph(), fetches), ...);
    auto placeholders_of_step = r.signature.feeds;
    return {prepare_checked(r.signature), std::move(r.answers), std::move(placeholders_of_step), &detail::unpack<F...>};
  }
  template <class... F, std::enable_if_t<(sizeof...(F) > 0) && (detail::fetch_traits<F>::ok && ...), int> = 0>
  callable<detail::run_result<F...>> make_callable(const F&... fetches) {
    return make_callable(feeds_t<>(), fetches...);
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
      detail::request r;
      for (std::size_t i = 0; i < count; ++i) detail::add_feed(r, graph(), feeds[i].to(), feeds[i].value(), feeds[i].site());
      (detail::add_wanted(r, graph(), fetches), ...);
      return detail::unpack<F...>(run_request(r, options));
    }
  }
  std::shared_ptr<prepared_step> prepare_checked(const step_signature& signature);
  std::vector<tensor_value> run_request(detail::request& r, const run_options& options);
};

inline std::shared_ptr<prepared_step> session_interface::prepare_checked(const step_signature& signature) {
  for (const output& o : signature.feeds) {
    if (o.from == nullptr) fail(error_code::invalid_argument, "a placeholder of the prepared step is an empty tensor, not made by any op");
    if (std::count(signature.feeds.begin(), signature.feeds.end(), o) > 1) fail(error_code::invalid_argument, "'" + to_text(o) + "' is fed twice");
  }
  return prepare(signature);
}

inline std::vector<tensor_value> session_interface::run_request(detail::request& r, const run_options& options) {
  if (r.answers.empty() && r.signature.targets.empty()) fail(error_code::invalid_argument, "nothing to run: name at least one tensor to fetch or operation to run");
  std::vector<tensor_value> fetched;
  if (!r.signature.fetches.empty() || !r.signature.targets.empty()) prepare(r.signature)->run(r.values, fetched, options);
  return detail::answer(r.answers, r.values, std::move(fetched));
}

inline std::vector<tensor_value> session_interface::run(const run_options& options, const std::vector<feed>& feeds, const std::vector<output>& fetches, const std::vector<operation>& targets) {
  detail::request r;
  for (const feed& f : feeds) detail::add_feed(r, graph(), f.to(), f.value(), f.site());
  for (const output& o : fetches) detail::add_fetch(r, graph(), o);
  for (const operation& t : targets) detail::add_target(r, graph(), t);
  return run_request(r, options);
}

}  // namespace weft

#endif
