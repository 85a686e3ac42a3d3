#ifndef WEFT_CLUSTER_TASK_CONTEXT_HPP
#define WEFT_CLUSTER_TASK_CONTEXT_HPP
// What all parts of one server share: who it is, what it can run, its event loop and its threads.

#include <weft/cluster/asio.hpp>
#include <weft/cluster/frame.hpp>
#include <weft/cluster/messages.hpp>
#include <weft/cluster/server_options.hpp>
#include <weft/cluster/server_statistics.hpp>
#include <weft/core/bounded_wait.hpp>
#include <weft/core/cluster_spec.hpp>
#include <weft/graph/op_registry.hpp>
#include <weft/kernels/standard.hpp>
#include <weft/ops/standard.hpp>
#include <weft/runtime/buffer_pool.hpp>
#include <weft/runtime/resource_manager.hpp>
#include <weft/runtime/thread_pool.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iostream>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

namespace weft::detail {

/// A random number that names one start of a server.
inline std::uint64_t new_incarnation() {
  std::random_device source;
  const std::uint64_t number = (static_cast<std::uint64_t>(source()) << 32) | source();
  return number == 0 ? 1 : number;
}

/// See the head of this file. Everything but the event loop, the pool and the resources is constant once the server runs.
struct task_context {
  task_context(cluster_spec spec, task_id own, server_options how)
      : cluster(std::move(spec)), self(std::move(own)), options(std::move(how)), ops(options.ops ? *options.ops : standard_ops()),
        kernels(options.kernels ? *options.kernels : standard_kernels()), catalogue(std::make_shared<const kernel_catalogue>(kernels.catalogue())),
        received(std::make_shared<receive_budget>(options.received_bytes)), resources(self.job, options.max_name_bytes) {
    for (std::chrono::milliseconds* time : {&options.connect_timeout, &options.handshake_timeout, &options.frame_timeout, &options.abort_grace, &options.heartbeat, &options.registration_lease}) *time = bounded(*time);
    connections.budget = received;
    connections.budget_share = options.received_bytes_per_peer;
    connections.memory = buffers;
    connections.limits = options.frames;
    connections.frame_timeout = options.frame_timeout;
    connections.frame_pace = options.frame_pace;
    connections.traffic = traffic;
    connections.transport = options.transport;
    for (const auto& [type, count] : options.devices)
      for (int i = 0; i < count; ++i) devices.push_back({to_text(self) + "/device:" + type + ":" + std::to_string(i), type, "host", incarnation});
  }

  /// Empty for a task that the cluster does not have.
  std::string address_of(const task_id& task) const { return task == self ? own_address : cluster.has(task) ? cluster.task_address(task) : std::string(); }
  /// `/job:ps/task:0 at 127.0.0.1:33331`, for messages.
  std::string describe(const task_id& task) const {
    const std::string address = address_of(task);
    return to_text(task) + (address.empty() ? "" : " at " + address);
  }
  /// `/job:ps/task:0 (127.0.0.1:33331)`, for the task of a status.
  std::string task_field(const task_id& task) const {
    const std::string address = address_of(task);
    return to_text(task) + (address.empty() ? "" : " (" + address + ")");
  }
  std::string task_field() const { return task_field(self); }
  /// What went wrong, at this task unless it names one already.
  status located(status why, const task_id& at) const {
    if (!why.ok() && why.task.empty()) why.task = task_field(at);
    return why;
  }
  status located(status why) const { return located(std::move(why), self); }
  /// RESOURCE_EXHAUSTED: `task /job:ps/task:0 at 127.0.0.1:33331 leads 5 steps, 4 of this client, no more are accepted (server_options::max_steps)`.
  status no_more(const char* has, std::size_t all, const char* things, std::size_t theirs, const char* whose, const char* option) const {
    return status(error_code::resource_exhausted, "task " + describe(self) + " " + has + " " + std::to_string(all) + " " + things + ", " + std::to_string(theirs) + " of this " + whose +
                                                      ", no more are accepted (server_options::" + option + ")");
  }
  /// RESOURCE_EXHAUSTED when more would wait to be sent to a task than may: it does not take what it is sent.
  std::optional<status> full_queue(const task_id& to, std::size_t queued, std::size_t more) const {
    if (queued <= options.queued_bytes_per_task && more <= options.queued_bytes_per_task - queued) return std::nullopt;
    return status(error_code::resource_exhausted, "task " + describe(to) + " does not take what it is sent: " + std::to_string(queued) + " bytes wait, " + std::to_string(more) + " more do not fit (server_options::queued_bytes_per_task)");
  }
  void check_queue(const task_id& to, std::size_t queued, std::size_t more) const {
    if (const auto full = full_queue(to, queued, more)) throw error(*full);
  }
  /// What this task says when it greets another one.
  hello_message greeting(hello_message::role as, const task_id& to) const {
    hello_message out;
    out.as = as;
    out.incarnation = incarnation;
    out.task = self;
    out.to = to;
    out.cluster = cluster.hash();
    if (as == hello_message::role::bulk) return out;
    out.devices = devices;
    out.kernels = catalogue;
    return out;
  }
  graph_limits graph_limit() const { return {options.max_graph_nodes, options.max_node_inputs, options.max_name_bytes}; }
  /// What is said by the way ends nothing: a log function that throws is named, and its line written to the standard log.
  void log(const char* level, const std::string& text) const noexcept {
    const char* failure = "";
    try {
      if (options.log) return options.log(level, text);
    } catch (...) {
      failure = "server_options::log threw at: ";
    }
    try {
      std::clog << std::string("weft: ") + failure + text + "\n";
    } catch (...) {  // no memory for the line
    }
  }

  asio::io_context io{1};
  /// Changed on the event loop only, by `server::update_cluster`.
  cluster_spec cluster;
  task_id self;
  /// Where others reach this task; constant once the server runs.
  std::string own_address;
  server_options options;
  std::uint64_t incarnation = new_incarnation();
  op_registry ops;
  kernel_registry kernels;
  std::shared_ptr<const kernel_catalogue> catalogue;
  std::vector<device> devices;
  std::shared_ptr<receive_budget> received;
  std::shared_ptr<traffic_counters> traffic = std::make_shared<traffic_counters>();
  /// Shared with the clients' connections.
  std::shared_ptr<server_counters> counters = std::make_shared<server_counters>();
  const std::chrono::steady_clock::time_point started = std::chrono::steady_clock::now();
  /// Storage of large tensors: those that are received, that kernels make, and that variables keep.
  std::shared_ptr<buffer_pool> buffers = std::make_shared<buffer_pool>();
  /// Of all connections, which share the budget and the memory for what they receive.
  connection_options connections;
  /// Variables and the like; they live as long as the server.
  resource_manager resources;
  std::unique_ptr<thread_pool> pool;
  /// One thread for what takes long and must not wait for kernels: large graphs are read, placed and registered there.
  std::unique_ptr<thread_pool> builder;

  /// Does `work` on a graph of so many nodes without stopping the event loop, from which this is called: at once if they are few, else on the
  /// builder's thread, in the order of the calls. Then `done` is called on the event loop with what `work` threw.
  void build(std::size_t nodes, std::function<void()> work, std::function<void(const status&)> done);
};

#if WEFT_HAS_CLUSTER_BODIES

WEFT_DECL void task_context::build(std::size_t nodes, std::function<void()> work, std::function<void(const status&)> done) {
  constexpr std::size_t few = 5000;
  const auto outcome = [](const std::function<void()>& call) {
    try {
      call();
    } catch (const error& e) {
      return e.status();
    } catch (const std::exception& e) {
      return status(error_code::internal, e.what());
    }
    return status();
  };
  if (nodes <= few || builder == nullptr) return done(outcome(work));
  builder->schedule([this, outcome, work = std::move(work), done = std::move(done)]() mutable {
    const status result = outcome(work);
    work = nullptr;
    asio::post(io, [result, done = std::move(done)] { done(result); });
  });
}

#endif

}  // namespace weft::detail

#endif
