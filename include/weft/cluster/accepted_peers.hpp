#ifndef WEFT_CLUSTER_ACCEPTED_PEERS_HPP
#define WEFT_CLUSTER_ACCEPTED_PEERS_HPP
// The tasks that opened a road to this one: who they are and how to answer them. Lives on the io thread.

#include <weft/cluster/connection.hpp>
#include <weft/cluster/messages.hpp>
#include <weft/cluster/peers.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace weft::detail {

/// The other end of a road that another task opened.
struct accepted_peer {
  std::uint64_t incarnation = 0;
  std::shared_ptr<connection> control, bulk;
  /// Starts of the task whose roads this one's replaced, the last ones.
  std::vector<std::uint64_t> before{};

  /// Bytes that wait to be sent there, and their messages.
  std::size_t queued_memory() const noexcept { return queued_memory_of(control, bulk); }
  /// Answers on the control connection, or on the other one if `large`.
  void send(message m, bool large = false) const {
    const auto& road = large && bulk ? bulk : control;
    if (road) road->send(std::move(m));
  }
};

/// Accepted roads by task. A task that starts anew replaces its predecessor, which is not heard of again: if it is, two servers say that they are the task.
class accepted_peers {
 public:
  /// The road from a task; nullptr when there is none.
  const accepted_peer* find(const task_id& from) const {
    const auto it = peers_.find(from);
    return it == peers_.end() ? nullptr : &it->second;
  }
  /// Why a task that greets cannot be the one that it says: a later start of it is connected.
  std::optional<status> reason_to_refuse(const hello_message& hello) const {
    const accepted_peer* now = find(hello.task);
    if (now == nullptr || now->control == nullptr || std::find(now->before.begin(), now->before.end(), hello.incarnation) == now->before.end()) return std::nullopt;
    return status(error_code::failed_precondition, "two servers say that they are " + to_text(hello.task) + ": this one (incarnation " + hex(hello.incarnation) + ") was replaced by one that is connected from " +
                                                       now->control->remote_address() + " (incarnation " + hex(now->incarnation) + "); stop one of them");
  }
  /// Takes a connection that has greeted. Closes connections of the same task that this one replaces.
  void add(const hello_message& hello, const std::shared_ptr<connection>& road) {
    accepted_peer& here = peers_[hello.task];
    const bool control = hello.as == hello_message::role::control;
    const status replaced(error_code::aborted, "task " + to_text(hello.task) + " connected again");
    if (control || here.incarnation != hello.incarnation) {
      const accepted_peer old = std::exchange(here, accepted_peer{hello.incarnation, nullptr, nullptr});
      here.before = old.before;
      if (old.incarnation != 0 && old.incarnation != hello.incarnation) here.before.push_back(old.incarnation);
      if (here.before.size() > most_before) here.before.erase(here.before.begin());
      for (const auto& each : {old.control, old.bulk})
        if (each) each->close(replaced);
    }
    const auto before = std::exchange(control ? here.control : here.bulk, road);
    if (before) before->close(replaced);
  }
  /// Whether the connection was in use; then the whole road is gone and the other connection is closed too.
  bool remove(const task_id& from, const connection& road, const status& why) {
    const auto it = peers_.find(from);
    if (it == peers_.end() || (it->second.control.get() != &road && it->second.bulk.get() != &road)) return false;
    const accepted_peer gone = it->second;
    peers_.erase(it);
    for (const auto& each : {gone.control, gone.bulk})
      if (each && each.get() != &road) each->close(why);
    return true;
  }
  /// Closes what a task opened, if it did.
  void drop(const task_id& from, const status& why) {
    const auto it = peers_.find(from);
    if (it == peers_.end()) return;
    const accepted_peer gone = it->second;
    for (const auto& each : {gone.control, gone.bulk})
      if (each) each->close(why);
  }
  void beat(connection::clock::time_point now, std::chrono::milliseconds limit) {
    const auto all = peers_;
    for (const auto& entry : all)
      for (const auto& road : {entry.second.control, entry.second.bulk})
        if (road) beat_connection(*road, now, limit);
  }
  void close(const status& why) {
    const auto all = std::exchange(peers_, {});
    for (const auto& entry : all)
      for (const auto& road : {entry.second.control, entry.second.bulk})
        if (road) road->close_when_sent(why);
  }

 private:
  static constexpr std::size_t most_before = 16;

  std::map<task_id, accepted_peer> peers_;
};

}  // namespace weft::detail

#endif
