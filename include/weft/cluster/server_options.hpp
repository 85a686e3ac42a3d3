#ifndef WEFT_CLUSTER_SERVER_OPTIONS_HPP
#define WEFT_CLUSTER_SERVER_OPTIONS_HPP
// What a task server can be told: its devices, kernels and threads, how long the protocol waits, and what it may hold.

#include <weft/core/config.hpp>
#include <weft/core/frame_limits.hpp>
#include <weft/fwd.hpp>

#include <chrono>
#include <cstddef>
#include <functional>
#include <map>
#include <memory>
#include <string>

namespace weft {

/// Receives one line of a server's log: level (`info`, `warning`, `error`) and text. Called from any of the server's threads. A line that it throws at goes to standard error.
using log_function = std::function<void(const char* level, const std::string& text)>;

/// Options of a server; the defaults fit a task on a trusted machine.
struct server_options {
  server_options();
  server_options(const server_options&);
  server_options(server_options&&) noexcept;
  server_options& operator=(const server_options&);
  server_options& operator=(server_options&&) noexcept;
  ~server_options();

  /// Devices of the task by type: `{"CPU", 4}` makes CPU:0 to CPU:3.
  std::map<std::string, int> devices{{"CPU", 1}};
  /// Threads for kernels that take long; 0 means one per processor.
  std::size_t kernel_threads = 0;
  /// The ops that graphs may use; TensorFlow's that weft knows when empty.
  std::shared_ptr<const op_registry> ops;
  /// The kernels that run them; weft's own when empty.
  std::shared_ptr<const kernel_registry> kernels;
  /// Where to listen, `host:port`, if that is not the address that the cluster gives the task: every address of the machine (`0.0.0.0:2222`, or
  /// `[::]:2222` with IPv6), or one behind a proxy. Port 0 takes any free port. Others reach the task at the address that the cluster gives.
  std::string listen_address;
  /// What secures the connections with clients and other tasks, which must use the same: `weft::tls::with_key_file("/etc/weft/key")`, see <weft/tls.hpp>.
  std::shared_ptr<const transport_security> transport;
  /// Without a secured transport: listen at an address that is not the machine's own loopback, although anyone who can reach it may run graphs.
  bool allow_unauthenticated = false;

  /// Longest wait for a connection to a task, with its greeting and the registration of a graph.
  std::chrono::milliseconds connect_timeout{10000};
  /// Longest wait for the greeting of whoever connects.
  std::chrono::milliseconds handshake_timeout{5000};
  /// The longest pause inside a message that has begun to arrive; past it the connection ends. Zero: none.
  std::chrono::milliseconds frame_timeout{30000};
  /// Bytes of a message that have to come within each `frame_timeout`, unless its end comes; with fewer the connection ends. Who sends a byte now and then does not
  /// hold what has come before for ever. Zero: a byte is enough.
  std::size_t frame_pace = std::size_t{256} << 10;
  /// How long a failed step waits for tasks to confirm that nothing of it is running.
  std::chrono::milliseconds abort_grace{2000};
  /// A task of which nothing was heard for this long is lost.
  std::chrono::milliseconds heartbeat{10000};
  /// How long a task keeps the graphs that a lost master registered.
  std::chrono::milliseconds registration_lease{60000};

  /// How long the thread that serves the sockets looks for the next message before it sleeps, which saves the time to wake it; where messages take
  /// longer to come, or the processors have other work, it soon gives that up. Zero: it sleeps at once.
  std::chrono::microseconds spin_time{100};

  /// Tensors up to this many bytes are pushed without asking.
  std::size_t small_tensor_bytes = std::size_t{64} << 10;
  /// Bytes that one task may leave here for steps that are not known yet; past it such a step fails with RESOURCE_EXHAUSTED.
  std::size_t parked_bytes_per_peer = std::size_t{256} << 20;
  /// Steps that are not known yet and for which one task may leave something here; past it that task's connection ends.
  std::size_t parked_steps_per_peer = 65536;
  /// Bytes received for running steps and not used yet, counted as they come; past it the step fails with RESOURCE_EXHAUSTED.
  std::size_t received_bytes = std::size_t{8} << 30;
  /// The most of them that one connection may have.
  std::size_t received_bytes_per_peer = std::size_t{4} << 30;
  /// Bytes of answers that may wait for a client that does not read them; past it nothing more is taken from that client until half of them are gone. The same holds for
  /// what another task is answered, but for large values.
  std::size_t queued_bytes_per_client = std::size_t{64} << 20;
  /// Bytes of tensors and other messages that may wait to be sent to one task; past it a step that sends more to it fails with RESOURCE_EXHAUSTED. Large tensors that wait until the task has begun
  /// their step count, too, and of them each master has a share.
  std::size_t queued_bytes_per_task = std::size_t{4} << 30;
  /// What is accepted of a single message.
  frame_limits frames;
  /// Connections of clients and tasks at one time; a further one is refused with RESOURCE_EXHAUSTED.
  std::size_t max_connections = 4096;
  /// Sessions that clients may have open here at one time; a further one is refused with RESOURCE_EXHAUSTED.
  std::size_t max_sessions = 1024;
  /// Prepared step signatures that a master keeps for all its sessions; the least recently used is dropped.
  std::size_t max_signatures = 256;
  /// Graphs that masters may register with this task at one time.
  std::size_t max_registrations = 4096;
  /// Nodes of one session's graph.
  std::size_t max_graph_nodes = 4000000;
  /// Inputs of one node, and its control inputs.
  std::size_t max_node_inputs = 100000;
  /// Bytes of a name in a graph: of a node, an op, a device, an attribute. No node has a longer one than 1024. The same holds for the names of variables, queues and other resources, of
  /// containers, and for device filters.
  std::size_t max_name_bytes = 1024;
  /// Requests of one client that are not answered yet, steps before all; a further one fails with RESOURCE_EXHAUSTED.
  std::size_t max_client_requests = 4096;
  /// Steps that run here at one time, for all clients and masters; a further one fails with RESOURCE_EXHAUSTED.
  std::size_t max_steps = 65536;

  /// Where log lines go; empty means standard error, for levels above info and the line that says where the server listens.
  log_function log;
};

#if WEFT_HAS_CLUSTER_BODIES
WEFT_DECL server_options::server_options() = default;
WEFT_DECL server_options::server_options(const server_options&) = default;
WEFT_DECL server_options::server_options(server_options&&) noexcept = default;
WEFT_DECL server_options& server_options::operator=(const server_options&) = default;
WEFT_DECL server_options& server_options::operator=(server_options&&) noexcept = default;
WEFT_DECL server_options::~server_options() = default;
#endif

}  // namespace weft

#endif
