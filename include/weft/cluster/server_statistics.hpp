#ifndef WEFT_CLUSTER_SERVER_STATISTICS_HPP
#define WEFT_CLUSTER_SERVER_STATISTICS_HPP
// What a task server has done since its start and holds now, as numbers.

#include <weft/core/config.hpp>
#include <weft/core/status.hpp>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <iosfwd>
#include <string>
#include <utility>
#include <vector>

namespace weft {

/// One look at a server. What has ended is counted separately from what has begun, so that no number ever falls below zero.
struct server_statistics {
  /// Connections that are open, that were ever accepted, and those of them that were sent away.
  std::uint64_t connections = 0, connections_accepted = 0, connections_refused = 0;
  /// Sessions of clients that are open, and that were ever opened.
  std::uint64_t sessions = 0, sessions_opened = 0;
  /// Steps that this task led for its clients.
  std::uint64_t steps_begun = 0, steps_ended = 0, steps_failed = 0;
  /// Parts of steps that ran here, for this task and others.
  std::uint64_t parts_begun = 0, parts_ended = 0, parts_failed = 0;
  /// Graphs that are registered here, and that ever were.
  std::uint64_t registrations = 0, registered = 0;
  /// Bytes that came in and went out, everything included.
  std::uint64_t bytes_in = 0, bytes_out = 0;
  /// Bytes received and not used yet; those of them that came before their step; bytes that wait to be sent.
  std::uint64_t received_bytes = 0, parked_bytes = 0, queued_bytes = 0;
  /// Messages whose tensors were thrown away because they did not fit.
  std::uint64_t messages_refused = 0;
  /// Answers that were errors, and connections that ended by an error, by the number of their code.
  std::array<std::uint64_t, 17> errors{};

  /// The numbers with their names, in the order above; errors without those that did not occur, `errors/NOT_FOUND`.
  std::vector<std::pair<std::string, std::uint64_t>> entries() const;
};

/// One line for each number: `steps_begun 12`.
std::string to_text(const server_statistics& s);
std::ostream& operator<<(std::ostream& out, const server_statistics& s);

namespace detail {

/// The numbers that only rise.
struct server_counters {
  using number = std::atomic<std::uint64_t>;
  number connections_accepted{0}, connections_refused{0}, sessions_opened{0}, steps_begun{0}, steps_ended{0}, steps_failed{0}, parts_begun{0}, parts_ended{0}, parts_failed{0}, registered{0};
  std::array<number, 17> errors{};

  static void add(number& to) noexcept { to.fetch_add(1, std::memory_order_relaxed); }
  /// Counts how something ended, unless it ended well.
  void ended(const status& result) noexcept {
    if (!result.ok()) add(errors[static_cast<std::size_t>(result.code) % errors.size()]);
  }
  void copy_to(server_statistics& out) const noexcept;
};

}  // namespace detail

}  // namespace weft

#if WEFT_HAS_CLUSTER_BODIES

#include <ostream>

namespace weft {

WEFT_DECL std::vector<std::pair<std::string, std::uint64_t>> server_statistics::entries() const {
  std::vector<std::pair<std::string, std::uint64_t>> out{
      {"connections", connections}, {"connections_accepted", connections_accepted}, {"connections_refused", connections_refused}, {"sessions", sessions}, {"sessions_opened", sessions_opened},
      {"steps_begun", steps_begun}, {"steps_ended", steps_ended}, {"steps_failed", steps_failed}, {"parts_begun", parts_begun}, {"parts_ended", parts_ended}, {"parts_failed", parts_failed},
      {"registrations", registrations}, {"registered", registered}, {"bytes_in", bytes_in}, {"bytes_out", bytes_out}, {"received_bytes", received_bytes}, {"parked_bytes", parked_bytes},
      {"queued_bytes", queued_bytes}, {"messages_refused", messages_refused}};
  for (std::size_t i = 0; i < errors.size(); ++i)
    if (errors[i] != 0) out.emplace_back(std::string("errors/") + to_text(static_cast<error_code>(i)), errors[i]);
  return out;
}

WEFT_DECL std::string to_text(const server_statistics& s) {
  std::string out;
  for (const auto& [name, value] : s.entries()) out += name + " " + std::to_string(value) + "\n";
  return out;
}

WEFT_DECL std::ostream& operator<<(std::ostream& out, const server_statistics& s) { return out << to_text(s); }

namespace detail {

WEFT_DECL void server_counters::copy_to(server_statistics& out) const noexcept {
  // What has ended is read first, so that it never exceeds what has begun.
  out.steps_failed = steps_failed.load();
  out.steps_ended = steps_ended.load();
  out.steps_begun = steps_begun.load();
  out.parts_failed = parts_failed.load();
  out.parts_ended = parts_ended.load();
  out.parts_begun = parts_begun.load();
  out.connections_refused = connections_refused.load();
  out.connections_accepted = connections_accepted.load();
  out.sessions_opened = sessions_opened.load();
  out.registered = registered.load();
  for (std::size_t i = 0; i < errors.size(); ++i) out.errors[i] = errors[i].load();
}

}  // namespace detail

}  // namespace weft

#endif
#endif
