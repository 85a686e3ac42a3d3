#ifndef WEFT_CLUSTER_ADDRESS_CHECKS_HPP
#define WEFT_CLUSTER_ADDRESS_CHECKS_HPP
// What can be said of the address of a task before others try it: who may reach it, and whether they can.

#include <weft/cluster/asio.hpp>
#include <weft/core/cluster_spec.hpp>
#include <weft/core/config.hpp>
#include <weft/core/status.hpp>

#include <algorithm>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

namespace weft::detail {

/// What a host means on this machine; nothing if it means nothing.
std::vector<asio::ip::address> addresses_of(const std::string& host);

/// Throws FAILED_PRECONDITION for an address that other machines can reach, where whoever does may run graphs.
void check_not_reachable(const task_id& self, const host_port& listening);

/// Why other tasks may fail to reach a task at the address that the cluster gives it; nothing if there is no reason to think so.
std::optional<std::string> doubt_about_address(const cluster_spec& cluster, const task_id& self, bool listens_elsewhere);

#if WEFT_HAS_CLUSTER_BODIES

WEFT_DECL std::vector<asio::ip::address> addresses_of(const std::string& host) {
  std::error_code problem;
  const asio::ip::address numeric = asio::ip::make_address(host, problem);
  if (!problem) return {numeric};
  std::vector<asio::ip::address> out;
  asio::io_context io;
  for (const auto& entry : asio::ip::tcp::resolver(io).resolve(host, "0", problem)) out.push_back(entry.endpoint().address());
  return out;
}

WEFT_DECL void check_not_reachable(const task_id& self, const host_port& listening) {
  const auto found = addresses_of(listening.host);
  if (std::all_of(found.begin(), found.end(), [](const asio::ip::address& each) { return each.is_loopback(); })) return;
  fail(error_code::failed_precondition, to_text(self) + " is to listen at " + to_text(listening) + ", where other machines may reach it, and every one that does may run graphs; " +
                                            "secure it (server_options::transport, made by <weft/tls.hpp>), use a loopback address, or set server_options::allow_unauthenticated in a network that you trust");
}

WEFT_DECL std::optional<std::string> doubt_about_address(const cluster_spec& cluster, const task_id& self, bool listens_elsewhere) {
  const host_port own = parse_host_port(cluster.task_address(self));
  bool has_far_task = false;
  for (const task_id& task : cluster.tasks()) {
    const std::string& text = cluster.task_address(task);
    const std::string host = text.empty() ? own.host : parse_host_port(text).host;
    std::error_code problem;
    const bool is_local = host == own.host || host == "localhost" || asio::ip::make_address(host, problem).is_loopback();
    has_far_task = has_far_task || !is_local;
  }
  if (!has_far_task) return std::nullopt;
  const auto found = addresses_of(own.host);
  if (found.empty()) return std::nullopt;
  const std::string subject = to_text(self) + " has the address " + to_text(own) + " in the cluster, ";
  if (found.front().is_unspecified())
    return subject + "which no other machine can reach; write the address that others use into the cluster, and listen at this one (server_options::listen_address)";
  if (listens_elsewhere || !found.front().is_loopback()) return std::nullopt;
  if (found.front().to_string() == own.host) return subject + "which the tasks on other machines cannot reach; write the address that they use";
  return subject + "and '" + own.host + "' is " + found.front().to_string() + " on this machine, where tasks on other machines cannot reach it; correct the machine's host table, " +
         "write the numeric address into the cluster, or listen at that one (server_options::listen_address)";
}

#endif

}  // namespace weft::detail

#endif
