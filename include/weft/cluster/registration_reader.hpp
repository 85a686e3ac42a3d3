#ifndef WEFT_CLUSTER_REGISTRATION_READER_HPP
#define WEFT_CLUSTER_REGISTRATION_READER_HPP
// Decodes the parts that other tasks register here, large ones beside the event loop, and gives them to the worker. A part that is taken back, or whose connection
// is lost, while it is decoded does not get there: nobody would take it back again.

#include <weft/cluster/connection.hpp>
#include <weft/cluster/part_messages.hpp>
#include <weft/cluster/task_context.hpp>
#include <weft/cluster/worker.hpp>
#include <weft/core/config.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>

namespace weft::detail {

/// See the head of this file. Lives on the event loop.
class registration_reader {
 public:
  registration_reader(task_context& own, worker& to) : own_(own), worker_(to) {}

  /// Takes a `register_part` of a master and answers on its connection.
  void take(const std::shared_ptr<connection>& from, std::uint64_t master, message m);
  /// Forgets a part, be it decoded or not.
  void unregister(const connection& from, std::uint64_t master, std::uint64_t number);
  /// Nothing that came by this connection is wanted any more unless it is decoded already.
  void lost(const connection& from) { decoding_.erase(decoding_.lower_bound({&from, 0}), decoding_.upper_bound({&from, UINT64_MAX})); }

 private:
  task_context& own_;
  worker& worker_;
  std::set<std::pair<const connection*, std::uint64_t>> decoding_;
};

#if WEFT_HAS_CLUSTER_BODIES

WEFT_DECL void registration_reader::take(const std::shared_ptr<connection>& from, std::uint64_t master, message m) {
  wire_reader peek(m.head, "registration");
  const std::uint64_t number = peek.u64();
  const auto answer = [from, number](const status& result) { from->send(part_registered_message{number, result}.encode()); };
  if (m.refused) return answer(status(error_code::resource_exhausted, "the graph's constants do not fit into what may be received (server_options::received_bytes)"));
  if (!decoding_.insert({from.get(), number}).second) return answer(status(error_code::already_exists, "registration " + std::to_string(number) + " is being made already"));
  constexpr std::size_t node_bytes = 64;
  const std::size_t about = m.head.size() / node_bytes;
  const graph part(own_.ops);
  const auto sent = std::make_shared<message>(std::move(m));
  const auto what = std::make_shared<register_part_message>();
  own_.build(about, [this, sent, what, part = part.state()] { *what = register_part_message::decode(*sent, graph(part), own_.graph_limit()); },
             [this, from, master, number, what, answer, part = part.state()](const status& result) {
               const bool wanted = decoding_.erase({from.get(), number}) != 0;
               if (!result.ok()) return answer(result);
               if (!wanted) return answer(forgotten_registration(number));
               worker_.register_part(master, std::move(*what), graph(part), answer);
             });
}

WEFT_DECL void registration_reader::unregister(const connection& from, std::uint64_t master, std::uint64_t number) {
  decoding_.erase({&from, number});
  worker_.unregister_part(master, number);
}

#endif

}  // namespace weft::detail

#endif
