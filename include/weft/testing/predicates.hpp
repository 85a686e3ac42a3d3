#ifndef WEFT_TESTING_PREDICATES_HPP
#define WEFT_TESTING_PREDICATES_HPP
// What one wants to hold about a placed and partitioned graph.

#include <weft/core/config.hpp>
#include <weft/core/cluster_spec.hpp>
#include <weft/core/device_name.hpp>
#include <weft/graph/tensor.hpp>
#include <weft/partition/partitioned_graph.hpp>
#include <weft/testing/verdict.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#if WEFT_HAS_BODIES
#include <algorithm>
#include <map>
#include <vector>
#endif

namespace weft::testing {

/// A node of a partitioned graph, by its name or by a handle of the graph that was partitioned.
class node_named {
 public:
  node_named(const char* name) : name_(name) {}
  node_named(std::string name) : name_(std::move(name)) {}
  node_named(const operation& made) : name_(made.name()) {}
  template <class T, int N> node_named(const operand<T, N>& made) : name_(made.raw().from == nullptr ? std::string() : made.raw().from->name()) {}
  const std::string& name() const noexcept { return name_; }

 private:
  std::string name_;
};

/// No value, and no control edge, crosses to the same task twice in a step.
verdict sends_once(const partitioned_graph& parts);

/// Every `_Send` has exactly one `_Recv` of the same edge, value and devices, on the devices that they name, and the other way round.
verdict sends_meet_receives(const partitioned_graph& parts);

/// Every node of the part is on the part's task and reads nodes of the same part only.
verdict local(const part& p);

/// Every part is local.
verdict local(const partitioned_graph& parts);

/// Both nodes run on the same device.
verdict colocated(const partitioned_graph& parts, const node_named& a, const node_named& b);

/// The node runs on a device that this name, complete or in part, means.
verdict on_device(const partitioned_graph& parts, const node_named& what, std::string_view device, call_site where = call_site::here());

/// At most `count` values cross between tasks in a step, of at most `bytes` together. A value whose size is not known makes it false.
verdict transfers_at_most(const partitioned_graph& parts, std::size_t count, std::int64_t bytes);

/// Nothing that is computed on tasks named by `from` reaches a node of tasks named by `to`, by whatever other tasks.
verdict no_path(const partitioned_graph& parts, std::string_view from, std::string_view to, call_site where = call_site::here());

}  // namespace weft::testing

#if WEFT_HAS_BODIES
namespace weft::testing::detail {

WEFT_DECL bool is_crossing(const node& n) noexcept { return n.op() == "_Send" || n.op() == "_Recv"; }

WEFT_DECL const node* find_in_parts(const partitioned_graph& parts, const std::string& name) {
  for (const part& p : parts.parts())
    if (const node* found = p.graph.find(name)) return found;
  return nullptr;
}

// `/job:ps/task:0` of a complete device name.
WEFT_DECL std::string task_name(const std::string& device) { return to_text(*task_of(parse_device_name(device))); }

// Whether a task named in full or in part is meant by `wanted`.
WEFT_DECL bool is_task(const device_name& wanted, const std::string& device) { return matches(wanted, parse_device_name(device)); }

// A walk along data, control and transfer edges of all parts, from the nodes of one task to one of another.
class task_walk {
 public:
  explicit task_walk(const partitioned_graph& parts) {
    std::map<std::int64_t, std::size_t> sends;
    for (const part& p : parts.parts())
      for (const node* n : p.graph.nodes()) {
        index_[n] = nodes_.size();
        nodes_.push_back(n);
        if (n->op() == "_Send") sends[n->attr<std::int64_t>("_edge")] = nodes_.size() - 1;
      }
    readers_.resize(nodes_.size());
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      for (const output& in : nodes_[i]->inputs()) readers_[index_.at(in.from)].push_back(i);
      for (const node* before : nodes_[i]->control_inputs()) readers_[index_.at(before)].push_back(i);
      if (nodes_[i]->op() != "_Recv") continue;
      const auto send = sends.find(nodes_[i]->attr<std::int64_t>("_edge"));
      if (send != sends.end()) readers_[send->second].push_back(i);
    }
  }
  // The names on the way, `x -> y`; empty when there is none.
  std::string path(const device_name& from, const device_name& to) const {
    constexpr std::size_t none = static_cast<std::size_t>(-1);
    std::vector<std::size_t> before(nodes_.size(), none), queue;
    for (std::size_t i = 0; i < nodes_.size(); ++i)
      if (!is_crossing(*nodes_[i]) && is_task(from, nodes_[i]->device())) {
        before[i] = i;
        queue.push_back(i);
      }
    for (std::size_t head = 0; head < queue.size(); ++head) {
      const std::size_t at = queue[head];
      if (!is_crossing(*nodes_[at]) && is_task(to, nodes_[at]->device())) return text(before, at);
      for (const std::size_t next : readers_[at])
        if (before[next] == none) {
          before[next] = at;
          queue.push_back(next);
        }
    }
    return "";
  }

 private:
  std::string text(const std::vector<std::size_t>& before, std::size_t at) const {
    std::string out;
    for (;; at = before[at]) {
      const node& n = *nodes_[at];
      if (n.op() != "_Recv") {
        const std::string step = n.op() == "_Send" ? "(" + task_name(n.attr<std::string>("recv_device")) + ")" : n.name();
        out = out.empty() ? step : step + " -> " + out;
      }
      if (before[at] == at) return out;
    }
  }

  std::map<const node*, std::size_t> index_;
  std::vector<const node*> nodes_;
  std::vector<std::vector<std::size_t>> readers_;
};

}  // namespace weft::testing::detail

namespace weft::testing {

WEFT_DECL verdict sends_once(const partitioned_graph& parts) {
  std::map<std::pair<std::string, std::string>, std::size_t> seen;
  std::size_t crossing = 0;
  for (std::size_t row = 0; row < parts.transfers().size(); ++row) {
    const transfer t = parts.transfers()[row];
    if (!t.between_tasks) continue;
    ++crossing;
    const auto [first, fresh] = seen.emplace(std::make_pair(t.source, detail::task_name(t.to)), row);
    if (!fresh) return verdict::no("'" + t.source + "' is sent to " + detail::task_name(t.to) + " twice:\n  " + to_text(parts.transfers()[first->second]) + "\n  " + to_text(t));
  }
  return verdict::yes("each of the " + std::to_string(crossing) + " transfers between tasks is another value or goes to another task");
}

WEFT_DECL verdict sends_meet_receives(const partitioned_graph& parts) {
  std::map<std::string, std::pair<int, int>> ends;
  for (const part& p : parts.parts())
    for (const node* n : p.graph.nodes()) {
      if (!detail::is_crossing(*n)) continue;
      const bool sends = n->op() == "_Send";
      const std::string own = n->attr<std::string>(sends ? "send_device" : "recv_device");
      if (n->device() != own) return verdict::no("'" + n->name() + "' is on " + n->device() + " and says " + own);
      const std::string key = "edge " + std::to_string(n->attr<std::int64_t>("_edge")) + " '" + n->attr<std::string>("tensor_name") + "' from " + n->attr<std::string>("send_device") + " to " +
                              n->attr<std::string>("recv_device");
      ++(sends ? ends[key].first : ends[key].second);
    }
  for (const auto& [key, counts] : ends)
    if (counts != std::make_pair(1, 1)) return verdict::no(key + " has " + std::to_string(counts.first) + " Send and " + std::to_string(counts.second) + " Recv");
  return verdict::yes(std::to_string(ends.size()) + " pairs of Send and Recv");
}

WEFT_DECL verdict local(const part& p) {
  const device_name task = parse_device_name(p.task);
  for (const node* n : p.graph.nodes()) {
    if (!detail::is_task(task, n->device())) return verdict::no("'" + n->name() + "' is on " + n->device() + ", in the part of " + p.task);
    std::vector<const node*> read = n->control_inputs();
    for (const output& in : n->inputs()) read.push_back(in.from);
    for (const node* in : read)
      if (p.graph.find(in->name()) != in) return verdict::no("'" + n->name() + "' in the part of " + p.task + " reads '" + in->name() + "', which is not in it");
  }
  return verdict::yes("the " + std::to_string(p.graph.size()) + " nodes of " + p.task + " read one another only");
}

WEFT_DECL verdict local(const partitioned_graph& parts) {
  for (const part& p : parts.parts())
    if (verdict one = local(p); !static_cast<bool>(one)) return one;
  return verdict::yes("each of the " + std::to_string(parts.parts().size()) + " parts reads its own nodes only");
}

WEFT_DECL verdict colocated(const partitioned_graph& parts, const node_named& a, const node_named& b) {
  const node *first = detail::find_in_parts(parts, a.name()), *second = detail::find_in_parts(parts, b.name());
  for (const auto& [found, name] : {std::make_pair(first, a.name()), std::make_pair(second, b.name())})
    if (found == nullptr) return verdict::no("'" + name + "' is in no part; the step does not need it, or another node stands for it");
  const std::string where = "'" + a.name() + "' is on " + first->device() + ", '" + b.name() + "' on " + second->device();
  return first->device() == second->device() ? verdict::yes(where) : verdict::no(where);
}

WEFT_DECL verdict on_device(const partitioned_graph& parts, const node_named& what, std::string_view device, call_site where) {
  const device_name wanted = parse_device_name(device, where);
  const node* found = detail::find_in_parts(parts, what.name());
  if (found == nullptr) return verdict::no("'" + what.name() + "' is in no part; the step does not need it, or another node stands for it");
  const std::string text = "'" + what.name() + "' is on " + found->device();
  return matches(wanted, parse_device_name(found->device())) ? verdict::yes(text) : verdict::no(text);
}

WEFT_DECL verdict transfers_at_most(const partitioned_graph& parts, std::size_t count, std::int64_t bytes) {
  std::size_t found = 0;
  std::int64_t sum = 0;
  std::string unknown, rows;
  for (const transfer& t : parts.transfers()) {
    if (!t.between_tasks || t.kind != transfer_kind::data) continue;
    ++found;
    rows += "\n  " + to_text(t);
    if (t.bytes) sum += *t.bytes;
    else unknown += (unknown.empty() ? "'" : ", '") + t.source + "'";
  }
  std::string text = std::to_string(found) + " transfers of " + std::to_string(sum) + " bytes between tasks";
  if (!unknown.empty()) text += ", and the size of " + unknown + " is not known";
  return found <= count && sum <= bytes && unknown.empty() ? verdict::yes(text) : verdict::no(text + "; at most " + std::to_string(count) + " of " + std::to_string(bytes) + " bytes were expected" + rows);
}

WEFT_DECL verdict no_path(const partitioned_graph& parts, std::string_view from, std::string_view to, call_site where) {
  const std::string path = detail::task_walk(parts).path(parse_device_name(from, where), parse_device_name(to, where));
  const std::string ends = std::string(from) + " to " + std::string(to);
  return path.empty() ? verdict::yes("nothing goes from " + ends) : verdict::no("from " + ends + ": " + path);
}

}  // namespace weft::testing
#endif

#endif
