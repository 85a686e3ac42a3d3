#ifndef WEFT_CLUSTER_PART_MESSAGES_HPP
#define WEFT_CLUSTER_PART_MESSAGES_HPP
// What masters say to workers, and workers to each other. The master of a message is the task whose connection it came by.

#include <weft/cluster/messages.hpp>
#include <weft/graph/graph.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace weft {

/// Registers one part of a partitioned graph with its task.
struct register_part_message {
  std::uint64_t registration = 0, session = 0;
  /// Edges to and from other tasks and between the devices of this one, by rising number.
  std::vector<part_edge> edges;
  /// The passes that the task runs over its part.
  optimizer_options passes{};

  message encode(const graph& part) const {
    wire_writer head;
    head.u64(registration).u64(session).count(edges.size());
    for (const part_edge& e : edges) {
      head.i64(e.edge).enumerator(e.way).boolean(e.may_be_large).enumerator(e.dtype);
      detail::encode_task(head, e.peer);
    }
    detail::encode_passes(head, passes);
    std::vector<tensor_value> tensors;
    encode_nodes(head, tensors, part.nodes(), 0);
    return detail::make_message(message_type::register_part, head, std::move(tensors));
  }
  static register_part_message decode(const message& m, const graph& into, const graph_limits& limits) {
    wire_reader from(m.head, "registration");
    register_part_message out;
    out.registration = from.u64();
    out.session = from.u64();
    out.edges.resize(from.count(19));
    for (part_edge& e : out.edges) {
      e.edge = from.i64();
      e.way = from.enumerator(part_edge::direction::outgoing);
      e.may_be_large = from.boolean();
      e.dtype = from.enumerator(dtype::uint64);
      e.peer = detail::decode_task(from);
      if (&e != out.edges.data() && (&e)[-1].edge >= e.edge) from.bad("edges are not in rising order");
    }
    out.passes = detail::decode_passes(from);
    decode_nodes(from, m.tensors, into, limits);
    from.finish();
    return out;
  }
};

/// Answers a registration.
struct part_registered_message {
  std::uint64_t registration = 0;
  status result;

  message encode() const {
    wire_writer head;
    head.u64(registration);
    encode_status(head, result);
    return detail::make_message(message_type::part_registered, head);
  }
  static part_registered_message decode(const message& m) {
    wire_reader from(m.head, "registration's answer");
    part_registered_message out;
    out.registration = from.u64();
    out.result = decode_status(from);
    from.finish();
    return out;
  }
};

/// Forgets a part (`unregister_part`) or the state that kernels kept for a session (`forget_session`).
inline message encode_forget(message_type type, std::uint64_t number) {
  wire_writer head;
  head.u64(number);
  return detail::make_message(type, head);
}
inline std::uint64_t decode_forget(const message& m) {
  wire_reader from(m.head, "order to forget");
  const std::uint64_t number = from.u64();
  from.finish();
  return number;
}

/// Starts a step of a registered part. Its feeds are the message's tensors, or follow on the bulk connection.
struct run_part_message {
  std::int64_t step = 0;
  std::uint64_t registration = 0;
  bool feeds_follow = false;
  /// Whether the answer is to say what ran and when.
  bool trace = false;

  message encode(std::vector<tensor_value> feeds) const {
    wire_writer head;
    head.i64(step).u64(registration).boolean(feeds_follow).boolean(trace);
    return detail::make_message(message_type::run_part, head, std::move(feeds));
  }
  static run_part_message decode(const message& m) {
    wire_reader from(m.head, "run part");
    run_part_message out;
    out.step = from.i64();
    out.registration = from.u64();
    out.feeds_follow = from.boolean();
    out.trace = from.boolean();
    from.finish();
    return out;
  }
};

/// The feeds of a step that was started without them.
inline message encode_part_feeds(std::int64_t step, std::vector<tensor_value> feeds) {
  wire_writer head;
  head.i64(step);
  return detail::make_message(message_type::part_feeds, head, std::move(feeds));
}
inline std::int64_t decode_part_feeds(const message& m) {
  wire_reader from(m.head, "feeds of a part");
  const std::int64_t step = from.i64();
  from.finish();
  return step;
}

/// Ends a step: nothing new is started, whoever waits gets `why`.
struct abort_part_message {
  std::int64_t step = 0;
  status why;

  message encode() const {
    wire_writer head;
    head.i64(step);
    encode_status(head, why);
    return detail::make_message(message_type::abort_part, head);
  }
  static abort_part_message decode(const message& m) {
    wire_reader from(m.head, "abort");
    abort_part_message out;
    out.step = from.i64();
    out.why = decode_status(from);
    from.finish();
    return out;
  }
};

/// What a part says of a step: that it is over, with the fetches or an error; or, before, the first error (`finished` is false).
struct part_done_message {
  std::int64_t step = 0;
  status result;
  bool finished = true;
  /// Nanoseconds from the order to run to this answer, whose last tensor is then the trace of the part; -1 without one.
  std::int64_t took = -1;

  message encode(std::vector<tensor_value> fetches) const {
    wire_writer head;
    head.i64(step).boolean(finished).i64(took).boolean(result.ok());
    if (!result.ok()) encode_status(head, result);
    return detail::make_message(message_type::part_done, head, std::move(fetches));
  }
  static part_done_message decode(const message& m) {
    wire_reader from(m.head, "answer of a part");
    part_done_message out;
    out.step = from.i64();
    out.finished = from.boolean();
    out.took = from.i64();
    if (!from.boolean()) out.result = decode_status(from);
    from.finish();
    return out;
  }
};

/// A tensor of a step that the receiver waits for. A dead one has no value.
struct tensor_message {
  step_id step;
  rendezvous_key key;
  bool is_dead = false;

  message encode(tensor_value value) const {
    wire_writer head;
    head.u64(step.master).i64(step.number).i64(key.edge).i64(key.iteration).boolean(is_dead);
    std::vector<tensor_value> tensors;
    if (!value.empty()) tensors.push_back(std::move(value));
    return detail::make_message(message_type::tensor, head, std::move(tensors));
  }
  static tensor_message decode(const message& m) {
    wire_reader from(m.head, "tensor");
    tensor_message out;
    out.step.master = from.u64();
    out.step.number = from.i64();
    out.key.edge = from.i64();
    out.key.iteration = from.i64();
    out.is_dead = from.boolean();
    if (m.tensors.size() > 1 || (m.tensors.empty() && !out.is_dead && !m.refused)) from.bad("expected one tensor, found " + std::to_string(m.tensors.size()));
    from.finish();
    return out;
  }
};

/// The sender runs this step and takes large tensors for it.
inline message encode_ready(const step_id& step) {
  wire_writer head;
  head.u64(step.master).i64(step.number);
  return detail::make_message(message_type::ready, head);
}
inline step_id decode_ready(const message& m) {
  wire_reader from(m.head, "ready");
  step_id out;
  out.master = from.u64();
  out.number = from.i64();
  from.finish();
  return out;
}

}  // namespace weft

#endif
