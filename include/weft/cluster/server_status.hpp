#ifndef WEFT_CLUSTER_SERVER_STATUS_HPP
#define WEFT_CLUSTER_SERVER_STATUS_HPP
// What a task server says of itself to whoever asks, for people and their tools.

#include <weft/core/cluster_spec.hpp>
#include <weft/core/config.hpp>
#include <weft/fwd.hpp>
#include <weft/placement/device_set.hpp>

#include <chrono>
#include <cstdint>
#include <iosfwd>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace weft {

/// A session that a client has open.
struct session_report {
  std::uint64_t id = 0;
  /// The client's end of the connection.
  std::string client;
  /// Nodes of its graph, steps that are prepared, steps that run.
  std::uint64_t nodes = 0, prepared = 0, steps = 0;
};

/// A part of a graph that a master registered.
struct registration_report {
  /// The incarnation of the master, and its number for the part.
  std::uint64_t master = 0, number = 0;
  /// Its nodes, its edges to and from other devices, steps that run.
  std::uint64_t nodes = 0, edges = 0, steps = 0;
};

/// Something that outlives steps: a variable, a queue.
struct resource_report {
  std::string container, name;
  /// In words: `variable 'w' of float[2,3]`, `FIFOQueue 'examples'`; and what is in it: `3 elements, at most 32`.
  std::string what, contents;
  /// Of a variable's value; empty and 0 when it has none, or is no variable.
  std::string dtype, shape;
  std::uint64_t bytes = 0;
};

/// See the head of this file.
struct server_report {
  task_id task;
  std::string address, version;
  std::chrono::milliseconds uptime{0};
  /// The random number of this start.
  std::uint64_t incarnation = 0;
  std::vector<device> devices;
  std::vector<session_report> sessions;
  std::vector<registration_report> registrations;
  std::vector<resource_report> resources;
  /// The numbers of `server_statistics` with their names.
  std::vector<std::pair<std::string, std::uint64_t>> statistics;
};

/// Several lines for a person.
std::string to_text(const server_report& r);
std::ostream& operator<<(std::ostream& out, const server_report& r);

/// Asks the server at `target`, `weft://127.0.0.1:33331` or without `weft://`. Throws INVALID_ARGUMENT (no address), UNAVAILABLE (nobody listens there, or the
/// server is of another kind) or DEADLINE_EXCEEDED.
server_report ask_server(const std::string& target, std::chrono::milliseconds deadline = std::chrono::seconds(10), std::shared_ptr<const transport_security> transport = nullptr);

}  // namespace weft

#if WEFT_HAS_CLUSTER_BODIES

#include <weft/cluster/client_channel.hpp>

#include <ostream>

namespace weft {

namespace detail {

WEFT_DECL std::string encode_report(const server_report& r) {
  wire_writer to;
  encode_task(to, r.task);
  to.string(r.address).string(r.version).i64(r.uptime.count()).u64(r.incarnation);
  encode_devices(to, r.devices);
  to.count(r.sessions.size());
  for (const session_report& s : r.sessions) to.u64(s.id).string(s.client).u64(s.nodes).u64(s.prepared).u64(s.steps);
  to.count(r.registrations.size());
  for (const registration_report& g : r.registrations) to.u64(g.master).u64(g.number).u64(g.nodes).u64(g.edges).u64(g.steps);
  to.count(r.resources.size());
  for (const resource_report& e : r.resources) to.string(e.container).string(e.name).string(e.what).string(e.contents).string(e.dtype).string(e.shape).u64(e.bytes);
  to.count(r.statistics.size());
  for (const auto& [name, value] : r.statistics) to.string(name).u64(value);
  return to.take();
}

WEFT_DECL server_report decode_report(const std::string& bytes) {
  wire_reader from(bytes, "report of a server");
  server_report r;
  r.task = decode_task(from);
  r.address = from.string();
  r.version = from.string();
  r.uptime = std::chrono::milliseconds(from.i64());
  r.incarnation = from.u64();
  r.devices = decode_devices(from);
  r.sessions.resize(from.count(36));
  for (session_report& s : r.sessions) {
    s.id = from.u64();
    s.client = from.string();
    for (std::uint64_t* number : {&s.nodes, &s.prepared, &s.steps}) *number = from.u64();
  }
  r.registrations.resize(from.count(40));
  for (registration_report& g : r.registrations)
    for (std::uint64_t* number : {&g.master, &g.number, &g.nodes, &g.edges, &g.steps}) *number = from.u64();
  r.resources.resize(from.count(32));
  for (resource_report& e : r.resources) {
    for (std::string* field : {&e.container, &e.name, &e.what, &e.contents, &e.dtype, &e.shape}) *field = from.string();
    e.bytes = from.u64();
  }
  r.statistics.resize(from.count(12));
  for (auto& [name, value] : r.statistics) {
    name = from.string();
    value = from.u64();
  }
  from.finish();
  return r;
}

}  // namespace detail

WEFT_DECL server_report ask_server(const std::string& target, std::chrono::milliseconds deadline, std::shared_ptr<const transport_security> transport) {
  const std::string scheme = "weft://";
  const host_port to = parse_host_port(target.compare(0, scheme.size(), scheme) == 0 ? target.substr(scheme.size()) : target);
  const auto until = detail::client_channel::clock::now() + detail::bounded(deadline);
  connection_options how;
  how.transport = std::move(transport);
  detail::client_channel channel(to, deadline, std::max(deadline, std::chrono::milliseconds(1)), how);
  session_request what;
  what.request = channel.new_request();
  const reply_message reply = channel.call(what.request, what.encode(message_type::report), until);
  if (!reply.result.ok()) throw error(reply.result);
  return detail::decode_report(reply.body);
}

namespace detail {

WEFT_DECL std::string uptime_text(std::chrono::milliseconds time) {
  const auto seconds = time.count() / 1000;
  if (seconds < 60) return duration_text(time);
  if (seconds < 3600) return std::to_string(seconds / 60) + " min " + std::to_string(seconds % 60) + " s";
  return std::to_string(seconds / 3600) + " h " + std::to_string(seconds / 60 % 60) + " min";
}

inline std::string plural(std::uint64_t n, const char* word) { return std::to_string(n) + " " + word + (n == 1 ? "" : "s"); }

}  // namespace detail

WEFT_DECL std::string to_text(const server_report& r) {
  std::string out = to_text(r.task) + " at " + r.address + ", weft " + r.version + ", up " + detail::uptime_text(r.uptime) + ", incarnation " + detail::hex(r.incarnation) + "\n";
  out += "devices:\n";
  for (const device& d : r.devices) out += "  " + d.name + " (memory " + d.memory + ")\n";
  out += "sessions: " + std::to_string(r.sessions.size()) + "\n";
  for (const session_report& s : r.sessions)
    out += "  " + std::to_string(s.id) + " of " + s.client + ": " + detail::plural(s.nodes, "node") + ", " + detail::plural(s.prepared, "prepared step") + ", " + std::to_string(s.steps) + " running\n";
  out += "registered graphs: " + std::to_string(r.registrations.size()) + "\n";
  for (const registration_report& g : r.registrations)
    out += "  " + std::to_string(g.number) + " of " + (g.master == r.incarnation ? std::string("this task") : "master " + detail::hex(g.master)) + ": " + detail::plural(g.nodes, "node") + ", " +
           detail::plural(g.edges, "edge") + ", " + std::to_string(g.steps) + " running\n";
  out += "resources: " + std::to_string(r.resources.size()) + "\n";
  for (const resource_report& e : r.resources) {
    out += "  " + e.container + "/" + e.name + ": " + e.what;
    if (!e.dtype.empty()) out += ", now " + e.dtype + e.shape + ", " + detail::plural(e.bytes, "byte");
    if (!e.contents.empty()) out += ", " + e.contents;
    out += "\n";
  }
  out += "statistics:\n";
  for (const auto& [name, value] : r.statistics) out += "  " + name + " " + std::to_string(value) + "\n";
  return out;
}

WEFT_DECL std::ostream& operator<<(std::ostream& out, const server_report& r) { return out << to_text(r); }

}  // namespace weft

#endif
#endif
