#ifndef WEFT_SESSION_OPTIONS_HPP
#define WEFT_SESSION_OPTIONS_HPP
// What a user may ask of a session, and of one run.

#include <weft/core/cluster_spec.hpp>
#include <weft/core/config.hpp>
#include <weft/core/frame_limits.hpp>
#include <weft/fwd.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

class placer;

/// Passes over the graph of a step, none of which changes a result. Each can be switched off, to see a graph run as it was written or to measure.
struct optimizer_options {
  /// Runs one of several equal nodes of a device for all.
  bool merge_equal_nodes = true;
  /// Reads the input of an Identity instead of its output.
  bool skip_identities = true;
  /// Computes once, when a step is prepared, what is computed from constants alone.
  bool fold_constants = true;
  /// Runs elementwise nodes that only feed one another in one pass over their arrays.
  bool fuse_elementwise = true;
  /// Lets receives wait until shortly before their value is needed; see `partition_options::schedule_recvs`. TensorFlow's `enable_recv_scheduling`, and off as there.
  bool schedule_recvs = false;

  /// Every pass off.
  static optimizer_options none() noexcept { return {false, false, false, false, false}; }
};

/// Options of a session. Plain members with safe defaults.
struct session_options {
  session_options();
  session_options(const session_options&);
  session_options(session_options&&) noexcept;
  session_options& operator=(const session_options&);
  session_options& operator=(session_options&&) noexcept;
  ~session_options();

  /// A device that does not exist, or that cannot run the op, falls back to another device of the same task.
  bool allow_soft_placement = false;
  /// What chooses among the devices that requests, colocation, resources and kernels leave open to a node; TensorFlow's rules when empty. It is asked in this process, also when the graph runs on
  /// servers, and must not use the session.
  std::shared_ptr<const weft::placer> placer;
  /// One line per node with its device and the reason, through `log`, when a graph is placed.
  bool log_device_placement = false;
  /// Devices of the task per type, for a local session: `{{"CPU", 4}}`. A server has its own option.
  std::map<std::string, int> devices = {{"CPU", 1}};
  /// The tasks and devices that a session on a cluster may use, as names of which each part may be left out: `{"/job:ps", "/job:worker/task:1"}`. Other tasks are never contacted, and
  /// nothing is placed on them; the task that leads is always there. Empty: all.
  std::vector<std::string> device_filters;
  /// For a local session: run every task of this cluster in this process, through memory.
  cluster_spec cluster;
  /// The kernels of a local session; weft's own when empty. A server has its own option.
  std::shared_ptr<const kernel_registry> kernels;
  /// Threads that run expensive kernels of a local session; 0 means one per processor.
  std::size_t kernel_threads = 0;
  /// For a local session: runs every step on the calling thread, one step at a time, and lets the seed choose the next among all nodes that are ready on any task. The same program with the same seed runs in
  /// the same order, so that a fault that depends on the order can be found by trying seeds and seen again. A step that waits for what only other nodes could do, when none is left to run, fails with
  /// FAILED_PRECONDITION that names the waiting nodes.
  std::optional<std::uint64_t> schedule_seed;
  /// What secures the connection to a server; it must be the server's: `weft::tls::with_key_file("/etc/weft/key")`, see <weft/tls.hpp>.
  std::shared_ptr<const transport_security> transport;
  /// The passes over the graphs of its steps.
  optimizer_options optimizer;
  /// Deadline for reaching the target and for its answers to the protocol.
  std::chrono::milliseconds connect_timeout = std::chrono::seconds(10);
  /// Silence after which a peer counts as lost.
  std::chrono::milliseconds heartbeat = std::chrono::seconds(10);
  /// How long a failed step waits for tasks to confirm that its kernels have ended.
  std::chrono::milliseconds abort_grace = std::chrono::seconds(2);
  /// How long a thread that waits for a server's answer looks for it before it sleeps; where that is in vain it soon gives it up. Zero: it sleeps
  /// at once.
  std::chrono::microseconds spin_time{100};
  /// How many run signatures are kept prepared; the least recently used one is dropped.
  std::size_t prepared_signatures = 256;
  /// What is accepted of a single message of a server.
  frame_limits frames;
  /// Bytes of fetched values that may be on their way from a server at one time; a step that would need more fails with RESOURCE_EXHAUSTED.
  std::size_t received_bytes = std::size_t{8} << 30;
  /// Where placement lines and notices go, one line a call without its end; standard error when empty.
  std::function<void(std::string_view line)> log;
};

/// Options of one run.
struct run_options {
  /// The step fails with DEADLINE_EXCEEDED after this time; 0 means no limit.
  std::chrono::milliseconds timeout{0};
  /// Filled, when the step succeeds, with what ran on each task and when; see `core/step_trace.hpp`. It must live until the run returns.
  step_trace* trace = nullptr;
};

#if WEFT_HAS_BODIES
WEFT_DECL session_options::session_options() = default;
WEFT_DECL session_options::session_options(const session_options&) = default;
WEFT_DECL session_options::session_options(session_options&&) noexcept = default;
WEFT_DECL session_options& session_options::operator=(const session_options&) = default;
WEFT_DECL session_options& session_options::operator=(session_options&&) noexcept = default;
WEFT_DECL session_options::~session_options() = default;
#endif

}  // namespace weft

#endif
