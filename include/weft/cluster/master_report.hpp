#ifndef WEFT_CLUSTER_MASTER_REPORT_HPP
#define WEFT_CLUSTER_MASTER_REPORT_HPP
// What a master says of its cluster, its sessions and their steps: the members of `master` that ask and list.

#include <weft/cluster/master.hpp>
#include <weft/cluster/partition_codec.hpp>
#include <weft/core/config.hpp>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <utility>
#include <vector>

namespace weft::detail {

#if WEFT_HAS_CLUSTER_BODIES

WEFT_DECL void master::wait_for_tasks(const client_ptr& client, const message& m) {
  const session_request what = session_request::decode(m);
  if (!admit(client, what.request)) return;
  const std::chrono::milliseconds time(static_cast<std::int64_t>(std::min<std::uint64_t>(what.handle, std::uint64_t{1} << 40)));
  const auto kind = type_of(m) == message_type::count_tasks ? task_wait::kind::count : task_wait::kind::wait;
  waits_.start(tasks_seen(own_, *client, what.session), time, kind, [client, request = what.request](reply_message reply) { client->answer(request, std::move(reply)); });
}

WEFT_DECL void master::list_devices(const client_ptr& client, const message& m) {
  const session_request what = session_request::decode(m);
  if (!admit(client, what.request)) return;
  ask_for_devices(own_, roads_, tasks_seen(own_, *client, what.session), [client, request = what.request](const status& result, const std::vector<device>& all) {
    if (!result.ok()) return client->answer(request, result);
    wire_writer body;
    encode_devices(body, all);
    reply_message reply;
    reply.body = body.take();
    client->answer(request, std::move(reply));
  });
}

WEFT_DECL void master::describe(const client_ptr& client, const message& m) {
  const session_request what = session_request::decode(m);
  const auto found = plans_.find(what.handle);
  if (found == plans_.end() || client->sessions.count(what.session) == 0)
    return client->answer(what.request, status(error_code::not_found, "step " + std::to_string(what.handle) + " is not prepared any more"), reply_message::advice::prepare_again);
  reply_message reply;
  try {
    wire_writer body;
    encode_partitions(body, reply.tensors, planner_.partitions(*found->second));
    reply.body = body.take();
  } catch (const error& e) {
    reply.result = e.status();
    reply.tensors.clear();
  }
  client->answer(what.request, std::move(reply));
}

WEFT_DECL std::vector<session_report> master::report(const client_ptr& client) const {
  std::vector<session_report> out;
  for (const auto& [id, session] : client->sessions) {
    session_report r{id, client->road->remote_address(), session->graph.size(), session->plans.size(), 0};
    for (const auto& step : steps_) r.steps += step.second->plan->session.lock() == session ? 1 : 0;
    out.push_back(std::move(r));
  }
  return out;
}

#endif

}  // namespace weft::detail

#endif
