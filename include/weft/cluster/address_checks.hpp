#ifndef WEFT_CLUSTER_ADDRESS_CHECKS_HPP
#define WEFT_CLUSTER_ADDRESS_CHECKS_HPP
// What can be said of the address of a task before others try it: who may reach it, and whether they can.

#include <weft/cluster/asio.hpp>
#include <weft/core/cluster_spec.hpp>
#include <weft/core/config.hpp>
#include <weft/core/status.hpp>

#include <algorithm>
#include <map>
#include <optional>
#include <string>
#include <system_error>
#include <vector>

namespace weft::detail {

/// What hosts mean on this machine. Each is looked up once, when it is asked for.
class host_lookups {
 public:
  /// Nothing if the host means nothing.
  const std::vector<asio::ip::address>& of(const std::string& host);

 private:
  std::map<std::string, std::vector<asio::ip::address>> known_;
};

/// Throws FAILED_PRECONDITION for an address that other machines can reach, where whoever does may run graphs.
void check_not_reachable(const task_id& self, const host_port& listening, host_lookups& hosts);

/// Why other tasks may fail to reach a task at the address that the cluster gives it; nothing if there is no reason to think so.
std::optional<std::string> doubt_about_address(const cluster_spec& cluster, const task_id& self, bool listens_elsewhere, host_lookups& hosts);

#if WEFT_HAS_CLUSTER_BODIES

WEFT_DECL const std::vector<asio::ip::address>& host_lookups::of(const std::string& host) {
  const auto [known, is_new] = known_.try_emplace(host);
  std::vector<asio::ip::address>& out = known->second;
  if (!is_new) return out;
  std::error_code problem;
  out.push_back(asio::ip::make_address(host, problem));
  if (!problem) return out;
  out.clear();
  asio::io_context io;
  for (const auto& entry : asio::ip::tcp::resolver(io).resolve(host, "0", problem)) out.push_back(entry.endpoint().address());
  return out;
}

WEFT_DECL void check_not_reachable(const task_id& self, const host_port& listening, host_lookups& hosts) {
  const auto& found = hosts.of(listening.host);
  if (std::all_of(found.begin(), found.end(), [](const asio::ip::address& each) { return each.is_loopback(); })) return;
  fail(error_code::failed_precondition, to_text(self) + " is to listen at " + to_text(listening) + ", where other machines may reach it, and every one that does may run graphs; " +
                                            "secure it (server_options::transport, made by <weft/tls.hpp>), use a loopback address, or set server_options::allow_unauthenticated in a network that you trust");
}

WEFT_DECL std::optional<std::string> doubt_about_address(const cluster_spec& cluster, const task_id& self, bool listens_elsewhere, host_lookups& hosts) {
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
  const auto& found = hosts.of(own.host);
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
