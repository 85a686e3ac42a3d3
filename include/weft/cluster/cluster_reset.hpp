#ifndef WEFT_CLUSTER_CLUSTER_RESET_HPP
#define WEFT_CLUSTER_CLUSTER_RESET_HPP
// Clears containers on every task of the cluster, on behalf of a client. Lives on the io thread of the master.

#include <weft/cluster/messages.hpp>
#include <weft/cluster/peers.hpp>
#include <weft/cluster/task_context.hpp>
#include <weft/core/config.hpp>

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

namespace weft::detail {

/// A client's wish (`reset`, with the number of its request) or a master's order (`reset_containers`, with a number of its own).
struct reset_message {
  std::uint64_t number = 0;
  /// The default container of each task when empty.
  std::vector<std::string> containers;

  message encode(message_type type) const {
    wire_writer head;
    head.u64(number).count(containers.size());
    for (const std::string& each : containers) head.string(each);
    return make_message(type, head);
  }
  static reset_message decode(const message& m) {
    wire_reader from(m.head, "reset");
    reset_message out;
    out.number = from.u64();
    out.containers.resize(from.count(4));
    for (std::string& each : out.containers) each = from.string();
    from.finish();
    return out;
  }
};

/// Clears containers of one task; what waits for a resource in them ends with ABORTED.
inline void clear_containers(task_context& own, const std::vector<std::string>& containers) {
  const std::vector<std::string> fallback{std::string(own.resources.default_container())};
  own.resources.clear(containers.empty() ? fallback : containers, status(error_code::aborted, "its container was reset on " + own.describe(own.self)));
}

/// See the head of this file.
class cluster_reset {
 public:
  cluster_reset(task_context& own, peers& roads) : own_(own), roads_(roads) {}

  /// Calls `done` when every task has done it, or with the first reason why one has not; the others are cleared all the same.
  void ask(const std::vector<std::string>& containers, std::function<void(const status&)> done);
  void take_answer(const task_id& from, std::uint64_t number) { answered(number, from, status()); }
  void lost(const task_id& task, const status& why);
  void stop(const status& why);

 private:
  struct order {
    std::set<task_id> missing;
    std::optional<status> problem;
    std::function<void(const status&)> done;
    std::unique_ptr<asio::steady_timer> deadline;
  };
  void answered(std::uint64_t number, const task_id& task, const status& result);

  task_context& own_;
  peers& roads_;
  std::uint64_t last_ = 0;
  std::map<std::uint64_t, order> orders_;
};

#if WEFT_HAS_CLUSTER_BODIES

WEFT_DECL void cluster_reset::ask(const std::vector<std::string>& containers, std::function<void(const status&)> done) {
  const std::uint64_t number = ++last_;
  const auto tasks = own_.cluster.tasks();
  order& here = orders_[number];
  here.missing.insert(tasks.begin(), tasks.end());
  here.done = std::move(done);
  here.deadline = std::make_unique<asio::steady_timer>(own_.io, 2 * own_.options.connect_timeout);
  here.deadline->async_wait([this, number](const std::error_code& stopped) {
    const auto late = orders_.find(number);
    if (stopped || late == orders_.end()) return;
    const auto missing = late->second.missing;
    for (const task_id& task : missing) answered(number, task, status(error_code::deadline_exceeded, "task " + own_.describe(task) + " did not confirm the reset in time"));
  });
  const message encoded = reset_message{number, containers}.encode(message_type::reset_containers);
  for (const task_id& task : tasks) {
    if (task == own_.self) continue;
    roads_.open(task, [this, number, task, encoded](const status& result, const std::shared_ptr<peer_link>& link) {
      if (result.ok()) link->send(encoded);
      else answered(number, task, result);
    });
  }
  clear_containers(own_, containers);
  answered(number, own_.self, status());
}

WEFT_DECL void cluster_reset::answered(std::uint64_t number, const task_id& task, const status& result) {
  const auto it = orders_.find(number);
  if (it == orders_.end() || it->second.missing.erase(task) == 0) return;
  if (!result.ok() && !it->second.problem) it->second.problem = result;
  if (!it->second.missing.empty()) return;
  const order over = std::move(it->second);
  orders_.erase(it);
  over.done(over.problem ? *over.problem : status());
}

WEFT_DECL void cluster_reset::lost(const task_id& task, const status& why) {
  std::vector<std::uint64_t> all;
  for (const auto& entry : orders_) all.push_back(entry.first);
  for (const std::uint64_t number : all) answered(number, task, why);
}

WEFT_DECL void cluster_reset::stop(const status& why) {
  for (const task_id& task : own_.cluster.tasks()) lost(task, why);
}

#endif

}  // namespace weft::detail

#endif
