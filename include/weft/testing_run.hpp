#ifndef WEFT_TESTING_RUN_HPP
#define WEFT_TESTING_RUN_HPP
// Predicates that run the graphs they are about, in this process.

#include <weft/session/local_session.hpp>
#include <weft/testing.hpp>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace weft::testing {

namespace detail {

// The same graph with every device request taken off; colocation stays, since it asks for no device.
inline graph without_devices(const graph& from, std::vector<const node*>& twins) {
  graph out(from.ops());
  twins.assign(from.size(), nullptr);
  for (const node* n : from.nodes()) twins[static_cast<std::size_t>(n->id())] = &out.add_copy(*n, twins, "");
  return out;
}

template <class T> bool same_bits_or_both_nan(const tensor_value& a, const tensor_value& b) {
  const T *x = a.data<T>(), *y = b.data<T>();
  for (std::size_t i = 0; i < static_cast<std::size_t>(a.elements()); ++i)
    if (std::memcmp(x + i, y + i, sizeof(T)) != 0 && !(std::isnan(x[i]) && std::isnan(y[i]))) return false;
  return true;
}

inline bool same_value(const tensor_value& a, const tensor_value& b) {
  if (a == b) return true;
  if (a.dtype() != b.dtype() || a.shape() != b.shape()) return false;
  return a.dtype() == dtype::float32 ? same_bits_or_both_nan<float>(a, b) : a.dtype() == dtype::float64 && same_bits_or_both_nan<double>(a, b);
}

}  // namespace detail

/// Whether the graph, cut for `cluster` with so many CPU devices per task and run in this process, gives bit for bit what it gives on one device. `fetches` are outputs of the
/// graph, `feeds` values for its placeholders. Ops without state only: a variable would have to be initialised in both runs. Each of `schedule_seeds` adds a run in the order that it draws
/// (`session_options::schedule_seed`); the answer names the seed with which a value is another.
inline verdict same_values_as_unpartitioned(const graph& g, const cluster_spec& cluster, const std::vector<output>& fetches, const std::vector<feed>& feeds = {}, int devices = 1,
                                            const std::vector<std::uint64_t>& schedule_seeds = {}) {
  std::vector<const node*> twins;
  const graph plain = detail::without_devices(g, twins);
  const auto twin = [&twins](const output& o) { return output{twins[static_cast<std::size_t>(o.from->id())], o.index}; };
  std::vector<feed> plain_feeds;
  for (const feed& f : feeds) plain_feeds.push_back({twin(f.to()), f.value(), f.site()});
  std::vector<output> plain_fetches;
  for (const output& o : fetches) plain_fetches.push_back(twin(o));

  session_options parted, whole;
  parted.cluster = cluster;
  parted.devices = {{"CPU", devices}};
  parted.optimizer = whole.optimizer = optimizer_options::none();
  const std::vector<tensor_value> expected = local_session(whole, graph(plain.state())).run(run_options(), plain_feeds, plain_fetches);
  for (std::size_t run = 0; run <= schedule_seeds.size(); ++run) {
    if (run > 0) parted.schedule_seed = schedule_seeds[run - 1];
    const std::vector<tensor_value> found = local_session(parted, graph(g.state())).run(run_options(), feeds, fetches);
    for (std::size_t i = 0; i < fetches.size(); ++i)
      if (!detail::same_value(found[i], expected[i]))
        return verdict::no("'" + to_text(fetches[i]) + "' has another value when the graph is cut" + (run > 0 ? " and runs in the order of schedule seed " + std::to_string(schedule_seeds[run - 1]) : std::string()));
  }
  return verdict::yes("all " + std::to_string(fetches.size()) + " values are the same");
}

}  // namespace weft::testing

#endif
