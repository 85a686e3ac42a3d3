#ifndef WEFT_CLUSTER_MESSAGES_HPP
#define WEFT_CLUSTER_MESSAGES_HPP
// What clients, masters and workers say to each other. Each message is a struct with `encode` and a `decode` that trusts nothing.

#include <weft/cluster/frame.hpp>
#include <weft/cluster/graph_codec.hpp>
#include <weft/cluster/remote_rendezvous.hpp>
#include <weft/cluster/wire.hpp>
#include <weft/core/cluster_spec.hpp>
#include <weft/graph/kernel_catalogue.hpp>
#include <weft/placement/device_set.hpp>
#include <weft/placement/placement.hpp>
#include <weft/session/options.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace weft {

/// What a message is; the number stands in the frame.
enum class message_type : std::uint8_t {
  // Everybody.
  hello = 1, welcome = 2, refused = 3, heartbeat = 4,
  // A client to its master, and the answer to each of them.
  open_session = 10, close_session = 11, prepare = 12, run = 13, list_devices = 14, describe = 15, report = 16, reset = 17, wait_for_tasks = 18, update_cluster = 19, reply = 20,
  count_tasks = 21,
  // A master to a worker, and back.
  register_part = 30, unregister_part = 31, forget_session = 32, run_part = 33, part_feeds = 34, abort_part = 35, part_registered = 36, part_done = 37, reset_containers = 38, containers_reset = 39,
  // Between workers.
  tensor = 40, ready = 41
};

inline message_type type_of(const message& m) noexcept { return static_cast<message_type>(m.type); }

/// How much longer than a small message so many bytes may take: their time on a slow link, 8 MiB a second.
inline std::chrono::milliseconds time_to_carry(std::size_t bytes) noexcept { return std::chrono::milliseconds(bytes / ((std::size_t{8} << 20) / 1000)); }
/// The same for what a message holds.
inline std::chrono::milliseconds time_to_carry(const message& m) noexcept {
  std::size_t bytes = m.head.size();
  for (const tensor_value& v : m.tensors) bytes += v.bytes();
  return time_to_carry(bytes);
}

namespace detail {
inline message make_message(message_type type, wire_writer& head, std::vector<tensor_value> tensors = {}) {
  message m;
  m.type = static_cast<std::uint8_t>(type);
  m.head = head.take();
  m.tensors = std::move(tensors);
  return m;
}

inline void encode_task(wire_writer& to, const task_id& task) { to.string(task.job).i32(task.index); }
inline task_id decode_task(wire_reader& from) {
  task_id out;
  out.job = from.string();
  out.index = from.i32();
  return out;
}

inline void encode_cluster(wire_writer& to, const cluster_spec& cluster) {
  to.count(cluster.entries().size());
  for (const auto& [job, tasks] : cluster.entries()) {
    to.string(job).count(tasks.size());
    for (const auto& [index, address] : tasks) to.i32(index).string(address);
  }
}
inline cluster_spec decode_cluster(wire_reader& from) {
  std::map<std::string, std::map<int, std::string>> jobs;
  for (std::size_t n = from.count(8); n > 0; --n) {
    auto& tasks = jobs[from.string()];
    for (std::size_t i = from.count(8); i > 0; --i) {
      const int index = from.i32();
      tasks[index] = from.string();
    }
  }
  return cluster_spec(std::move(jobs));
}

inline void encode_devices(wire_writer& to, const std::vector<device>& devices) {
  to.count(devices.size());
  for (const device& d : devices) to.string(d.name).string(d.type).string(d.memory).u64(d.incarnation);
}
inline std::vector<device> decode_devices(wire_reader& from) {
  std::vector<device> out(from.count(20));
  for (device& d : out) {
    d.name = from.string();
    d.type = from.string();
    d.memory = from.string();
    d.incarnation = from.u64();
  }
  return out;
}

inline void encode_catalogue(wire_writer& to, const kernel_catalogue& kernels) {
  std::size_t size = 0;
  for (const auto& op : kernels.entries()) size += op.second.size();
  to.count(size);
  for (const auto& op : kernels.entries())
    for (const kernel_entry& entry : op.second) {
      to.string(entry.op).string(entry.device_type).i32(entry.priority).count(entry.constraints.size());
      for (const auto& [attr, types] : entry.constraints) {
        to.string(attr).count(types.size());
        for (const dtype type : types) to.enumerator(type);
      }
    }
}
inline kernel_catalogue decode_catalogue(wire_reader& from) {
  kernel_catalogue out;
  for (std::size_t n = from.count(16); n > 0; --n) {
    kernel_entry entry;
    entry.op = from.string();
    entry.device_type = from.string();
    entry.priority = from.i32();
    for (std::size_t c = from.count(8); c > 0; --c) {
      auto& types = entry.constraints[from.string()];
      for (std::size_t t = from.count(1); t > 0; --t) types.push_back(from.enumerator(dtype::uint64));
    }
    out.add(std::move(entry));
  }
  return out;
}
}  // namespace detail

/// The first message of each connection, and its answer (`welcome`): who speaks, and what it knows of the cluster.
struct hello_message {
  enum class role : std::uint8_t { client, control, bulk };
  role as = role::client;
  /// Random number of this start of the speaker.
  std::uint64_t incarnation = 0;
  /// The speaker's task; empty for a client.
  task_id task;
  /// The task that is spoken to, as its address says; empty for a client.
  task_id to;
  /// Hash of the cluster that the speaker was started with; 0 for a client.
  std::uint64_t cluster = 0;
  std::vector<device> devices;
  std::shared_ptr<const kernel_catalogue> kernels;

  message encode(message_type type = message_type::hello) const {
    wire_writer head;
    head.enumerator(as).u64(incarnation);
    detail::encode_task(head, task);
    detail::encode_task(head, to);
    head.u64(cluster);
    detail::encode_devices(head, devices);
    detail::encode_catalogue(head, kernels ? *kernels : kernel_catalogue());
    return detail::make_message(type, head);
  }
  static hello_message decode(const message& m) {
    wire_reader from(m.head, "greeting");
    hello_message out;
    out.as = from.enumerator(role::bulk);
    out.incarnation = from.u64();
    out.task = detail::decode_task(from);
    out.to = detail::decode_task(from);
    out.cluster = from.u64();
    out.devices = detail::decode_devices(from);
    out.kernels = std::make_shared<const kernel_catalogue>(detail::decode_catalogue(from));
    from.finish();
    return out;
  }
};

/// Why a greeting, or a client's message, was refused; the connection closes after it. Whoever was started with another cluster gets the refuser's, so that it can tell what differs.
inline message encode_refusal(const status& why, const cluster_spec& cluster = {}) {
  wire_writer head;
  encode_status(head, why);
  detail::encode_cluster(head, cluster);
  return detail::make_message(message_type::refused, head);
}
inline status decode_refusal(const message& m, cluster_spec* cluster = nullptr) {
  wire_reader from(m.head, "refusal");
  status why = decode_status(from);
  cluster_spec sent = detail::decode_cluster(from);
  from.finish();
  if (cluster != nullptr) *cluster = std::move(sent);
  return why;
}

/// Answer to a client's request.
struct reply_message {
  /// What the client should do before it asks again.
  enum class advice : std::uint8_t { none, prepare_again, open_again };
  std::uint32_t request = 0;
  status result;
  advice then = advice::none;
  /// What the request asked for, in the request's own encoding.
  std::string body;
  std::vector<tensor_value> tensors;

  message encode() && {
    wire_writer head;
    head.u32(request).enumerator(then).boolean(result.ok());
    if (!result.ok()) encode_status(head, result);
    head.raw(body);
    return detail::make_message(message_type::reply, head, std::move(tensors));
  }
  static reply_message decode(message&& m) {
    wire_reader from(m.head, "reply");
    reply_message out;
    out.request = from.u32();
    out.then = from.enumerator(advice::open_again);
    if (!from.boolean()) out.result = decode_status(from);
    out.body = std::string(from.raw(from.remaining()));
    out.tensors = std::move(m.tensors);
    return out;
  }
};

namespace detail {
inline void encode_passes(wire_writer& to, const optimizer_options& passes) {
  to.boolean(passes.merge_equal_nodes).boolean(passes.skip_identities).boolean(passes.fold_constants).boolean(passes.fuse_elementwise).boolean(passes.schedule_recvs);
}
inline optimizer_options decode_passes(wire_reader& from) {
  optimizer_options out;
  out.merge_equal_nodes = from.boolean();
  out.skip_identities = from.boolean();
  out.fold_constants = from.boolean();
  out.fuse_elementwise = from.boolean();
  out.schedule_recvs = from.boolean();
  return out;
}
}  // namespace detail

/// Opens a session; the reply's body is its number.
struct open_session_message {
  std::uint32_t request = 0;
  bool allow_soft_placement = false;
  placement_order order = placement_order::session_task;
  optimizer_options passes{};
  std::vector<std::string> device_filters{};

  message encode() const {
    wire_writer head;
    head.u32(request).boolean(allow_soft_placement).enumerator(order);
    detail::encode_passes(head, passes);
    head.count(device_filters.size());
    for (const std::string& each : device_filters) head.string(each);
    return detail::make_message(message_type::open_session, head);
  }
  static open_session_message decode(const message& m) {
    wire_reader from(m.head, "open session");
    open_session_message out;
    out.request = from.u32();
    out.allow_soft_placement = from.boolean();
    out.order = from.enumerator(placement_order::tensorflow);
    out.passes = detail::decode_passes(from);
    out.device_filters.resize(from.count(4));
    for (std::string& each : out.device_filters) each = from.string();
    from.finish();
    return out;
  }
};

/// Closes a session (`close_session`), asks for the devices of the cluster (`list_devices`), what the server says of itself (`report`), or for the parts of a prepared step (`describe`,
/// which names the step's handle too).
struct session_request {
  std::uint32_t request = 0;
  std::uint64_t session = 0, handle = 0;

  message encode(message_type type) const {
    wire_writer head;
    head.u32(request).u64(session).u64(handle);
    return detail::make_message(type, head);
  }
  static session_request decode(const message& m) {
    wire_reader from(m.head, "session request");
    session_request out;
    out.request = from.u32();
    out.session = from.u64();
    out.handle = from.u64();
    from.finish();
    return out;
  }
};

/// Tells a server the present addresses of its cluster's tasks.
struct update_cluster_message {
  std::uint32_t request = 0;
  cluster_spec cluster;

  message encode() const {
    wire_writer head;
    head.u32(request);
    detail::encode_cluster(head, cluster);
    return detail::make_message(message_type::update_cluster, head);
  }
  static update_cluster_message decode(const message& m) {
    wire_reader from(m.head, "update of the cluster");
    update_cluster_message out;
    out.request = from.u32();
    out.cluster = detail::decode_cluster(from);
    from.finish();
    return out;
  }
};

/// An output of a node, by numbers.
struct output_number {
  std::uint32_t node = 0, index = 0;
  friend bool operator<(const output_number& a, const output_number& b) noexcept { return std::tie(a.node, a.index) < std::tie(b.node, b.index); }
};

/// What a step feeds, fetches and runs: the key of a prepared step.
struct numbered_signature {
  std::vector<output_number> feeds, fetches;
  std::vector<std::uint32_t> targets;

  friend bool operator<(const numbered_signature& a, const numbered_signature& b) noexcept {
    return std::tie(a.feeds, a.fetches, a.targets) < std::tie(b.feeds, b.fetches, b.targets);
  }
  void encode(wire_writer& to) const {
    for (const auto* list : {&feeds, &fetches}) {
      to.count(list->size());
      for (const output_number& each : *list) to.u32(each.node).u32(each.index);
    }
    to.count(targets.size());
    for (const std::uint32_t each : targets) to.u32(each);
  }
  static numbered_signature decode(wire_reader& from) {
    numbered_signature out;
    for (auto* list : {&out.feeds, &out.fetches}) {
      list->resize(from.count(8));
      for (output_number& each : *list) {
        each.node = from.u32();
        each.index = from.u32();
      }
    }
    out.targets.resize(from.count(4));
    for (std::uint32_t& each : out.targets) each = from.u32();
    return out;
  }
};

/// Prepares a step: the nodes that the session's graph does not have yet, then the signature.
struct prepare_message {
  std::uint32_t request = 0;
  std::uint64_t session = 0;
  numbered_signature signature;
  /// Whether the reply is to say where nodes were placed.
  bool wants_placement = false;

  message encode(const std::vector<const node*>& nodes, std::size_t first, const placement* where = nullptr) const {
    wire_writer head;
    head.u32(request).u64(session).boolean(wants_placement);
    signature.encode(head);
    std::vector<tensor_value> tensors;
    encode_nodes(head, tensors, nodes, first, where);
    return detail::make_message(message_type::prepare, head, std::move(tensors));
  }
  /// Leaves the reader in front of the nodes.
  static prepare_message decode(wire_reader& from) {
    prepare_message out;
    out.request = from.u32();
    out.session = from.u64();
    out.wants_placement = from.boolean();
    out.signature = numbered_signature::decode(from);
    return out;
  }
};

/// Where a node was placed, for the client's log.
struct placement_line {
  std::uint32_t node = 0;
  std::string device, reason;
};

/// The body of the reply to `prepare`.
struct prepared_body {
  std::uint64_t handle = 0;
  std::vector<placement_line> placed;

  std::string encode() const {
    wire_writer to;
    to.u64(handle).count(placed.size());
    for (const placement_line& line : placed) to.u32(line.node).string(line.device).string(line.reason);
    return to.take();
  }
  static prepared_body decode(const std::string& bytes) {
    wire_reader from(bytes, "prepared step");
    prepared_body out;
    out.handle = from.u64();
    out.placed.resize(from.count(12));
    for (placement_line& line : out.placed) {
      line.node = from.u32();
      line.device = from.string();
      line.reason = from.string();
    }
    from.finish();
    return out;
  }
};

/// Runs a prepared step once; the message's tensors are the feeds, the reply's the fetches.
struct run_message {
  std::uint32_t request = 0;
  std::uint64_t session = 0, handle = 0;
  /// Milliseconds that the step may take; 0 means for ever.
  std::int64_t timeout = 0;
  /// Whether the reply is to say what ran and when (step_trace_codec.hpp).
  bool trace = false;

  message encode(std::vector<tensor_value> feeds) const {
    wire_writer head;
    head.u32(request).u64(session).u64(handle).i64(timeout).boolean(trace);
    return detail::make_message(message_type::run, head, std::move(feeds));
  }
  static run_message decode(const message& m) {
    wire_reader from(m.head, "run");
    run_message out;
    out.request = from.u32();
    out.session = from.u64();
    out.handle = from.u64();
    out.timeout = from.i64();
    if (out.timeout < 0) from.bad("a step may not take " + std::to_string(out.timeout) + " ms");
    out.trace = from.boolean();
    from.finish();
    return out;
  }
};

}  // namespace weft

#endif
