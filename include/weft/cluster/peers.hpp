#ifndef WEFT_CLUSTER_PEERS_HPP
#define WEFT_CLUSTER_PEERS_HPP
// The roads from a task to others, opened when something needs them and kept. Each road is a control connection, for what is small
// or urgent, and a bulk connection, for large tensors. All of it lives on the io thread; pushing a tensor may be done from any.

#include <weft/cluster/connection.hpp>
#include <weft/cluster/held_values.hpp>
#include <weft/cluster/part_messages.hpp>
#include <weft/cluster/task_context.hpp>
#include <weft/core/config.hpp>

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace weft::detail {

/// What waits on the two connections to a task, as far as they are there.
inline std::size_t queued_memory_of(const std::shared_ptr<connection>& control, const std::shared_ptr<connection>& bulk) noexcept {
  return (control ? control->queued_memory() : 0) + (bulk ? bulk->queued_memory() : 0);
}

/// A road that this task opened to another one.
class peer_link : public tensor_outlet, public std::enable_shared_from_this<peer_link> {
 public:
  using opened_handler = std::function<void(const status&)>;
  using message_handler = std::function<void(peer_link&, message)>;
  using lost_handler = std::function<void(peer_link&, const status&)>;

  peer_link(task_context& own, task_id to) : own_(own), to_(std::move(to)), timer_(own.io) {}

  /// Opens both connections. Calls `opened` once; after ok, `on_message` for what comes and `on_lost` once at the end.
  void open(opened_handler opened, message_handler on_message, lost_handler on_lost);
  void push(const step_id& step, const rendezvous_key& key, tensor_value value, bool is_dead, bool bulk) override {
    own_.check_queue(to_, queued_memory(), value.bytes());
    (bulk ? bulk_ : control_)->send(tensor_message{step, key, is_dead}.encode(std::move(value)));
  }
  WEFT_INLINE std::shared_ptr<const void> hold(const step_id& step, std::size_t bytes) override;
  void send(message m) { control_->send(std::move(m)); }
  void send_bulk(message m) { bulk_->send(std::move(m)); }
  /// Closes both connections.
  void close(const status& why);
  /// Sends a sign of life, and closes when there was none from the other end for too long.
  void beat(connection::clock::time_point now);

  const task_id& task() const noexcept { return to_; }
  /// What the other end said of itself; valid when open.
  const hello_message& peer() const noexcept { return peer_; }
  std::uint64_t incarnation() const noexcept { return peer_.incarnation; }
  bool is_open() const noexcept { return state_ == state::open; }
  /// Bytes that wait: to be sent, or for the task to begin their step.
  std::size_t queued_bytes() const noexcept { return (control_ ? control_->queued_bytes() : 0) + (bulk_ ? bulk_->queued_bytes() : 0) + held_->bytes(); }
  /// The same with what the messages take beside their bytes.
  std::size_t queued_memory() const noexcept { return sent_memory() + held_->bytes(); }

 private:
  enum class state { opening, open, lost };
  void connect(hello_message::role as);
  void greeted(hello_message::role as, const message& m);
  void on_message(hello_message::role as, message m);
  void fail(const status& why);
  status about(const status& why) const;
  std::size_t sent_memory() const noexcept { return queued_memory_of(control_, bulk_); }

  task_context& own_;
  const task_id to_;
  state state_ = state::opening;
  hello_message peer_;
  std::shared_ptr<connection> control_, bulk_;
  const std::shared_ptr<held_values> held_ = std::make_shared<held_values>();
  asio::steady_timer timer_;
  opened_handler opened_;
  message_handler on_message_;
  lost_handler on_lost_;
};

/// Sends a sign of life on a connection; closes it when the other end was silent for longer than `limit`.
inline void beat_connection(connection& road, connection::clock::time_point now, std::chrono::milliseconds limit) {
  if (now - road.last_received() > limit) return road.close(status(error_code::unavailable, "nothing was heard for " + std::to_string(limit.count()) + " ms"));
  if (road.queued_bytes() > 0) return;  // a sign of life itself
  wire_writer empty;
  road.send(make_message(message_type::heartbeat, empty));
}

/// All roads of a task: those that it opened, by task.
class peers {
 public:
  using opened_handler = std::function<void(const status&, std::shared_ptr<peer_link>)>;

  peers(task_context& own, peer_link::message_handler on_message, peer_link::lost_handler on_lost)
      : own_(own), on_message_(std::move(on_message)), on_lost_(std::move(on_lost)) {}

  /// The road to a task, opened now if there is none; `done` may be called at once.
  void open(const task_id& to, opened_handler done);
  /// The open road to a task, or nullptr.
  std::shared_ptr<peer_link> find(const task_id& to) const {
    const auto it = links_.find(to);
    return it == links_.end() || !it->second.link->is_open() ? nullptr : it->second.link;
  }
  std::size_t queued_bytes() const noexcept {
    std::size_t out = 0;
    for (const auto& entry : links_) out += entry.second.link->queued_bytes();
    return out;
  }
  /// Closes the road to a task, if there is one.
  void drop(const task_id& to, const status& why) {
    const auto it = links_.find(to);
    if (it == links_.end()) return;
    const auto link = it->second.link;
    link->close(why);
  }
  void beat(connection::clock::time_point now) {
    const auto links = links_;
    for (const auto& entry : links) entry.second.link->beat(now);
  }
  void close(const status& why) {
    const auto links = links_;
    for (const auto& entry : links) entry.second.link->close(why);
    links_.clear();
  }

 private:
  struct slot {
    std::shared_ptr<peer_link> link;
    std::vector<opened_handler> waiting;
  };
  void opened(const task_id& to, const std::shared_ptr<peer_link>& link, const status& result);

  task_context& own_;
  peer_link::message_handler on_message_;
  peer_link::lost_handler on_lost_;
  std::map<task_id, slot> links_;
};

#if WEFT_HAS_CLUSTER_BODIES

// `why`, completed with the task and its address.
WEFT_DECL status peer_link::about(const status& why) const {
  status out = why;
  if (out.message.compare(0, 5, "task ") != 0) out.message = "task " + own_.describe(to_) + ": " + out.message;
  return out;
}

WEFT_DECL std::shared_ptr<const void> peer_link::hold(const step_id& step, std::size_t bytes) {
  held_values::amounts now;
  const std::size_t queued = sent_memory();
  auto room = held_->take(step.master, bytes, queued, own_.options.queued_bytes_per_task, now);
  if (room == nullptr)
    weft::fail(error_code::resource_exhausted, "task " + own_.describe(to_) + " has not begun step " + std::to_string(step.number) + ": " + std::to_string(now.all + queued) + " bytes wait for it, " +
                                                   std::to_string(now.of_master) + " of this master's steps, " + std::to_string(bytes) + " more do not fit (server_options::queued_bytes_per_task)");
  return room;
}

WEFT_DECL void peer_link::open(opened_handler opened, message_handler on_message, lost_handler on_lost) {
  opened_ = std::move(opened);
  on_message_ = std::move(on_message);
  on_lost_ = std::move(on_lost);
  timer_.expires_after(own_.options.connect_timeout);
  timer_.async_wait([self = shared_from_this()](const std::error_code& stopped) {
    if (stopped || self->state_ != state::opening) return;
    self->fail(status(error_code::deadline_exceeded, "no greeting within " + std::to_string(self->own_.options.connect_timeout.count()) + " ms"));
  });
  connect(hello_message::role::control);
}

WEFT_DECL void peer_link::connect(hello_message::role as) {
  const std::string& address = own_.cluster.task_address(to_);
  if (address.empty()) return fail(status(error_code::failed_precondition, "its address is not known to the cluster of " + to_text(own_.self)));
  auto& road = as == hello_message::role::control ? control_ : bulk_;
  road = connection::open(own_.io, parse_host_port(address), own_.options.connect_timeout, own_.connections,
                          [self = shared_from_this(), as](const status& result, std::shared_ptr<connection> made) {
                            if (!result.ok()) return self->fail(result);
                            if (self->state_ != state::opening) return made->close(status(error_code::cancelled, "no longer needed"));
                            made->start([self, as](message m) { self->on_message(as, std::move(m)); }, [self](const status& why) { self->fail(why); });
                            made->send(self->own_.greeting(as, self->to_).encode());
                          });
}

WEFT_DECL void peer_link::on_message(hello_message::role as, message m) {
  if (state_ == state::open && type_of(m) == message_type::heartbeat) return;
  if (state_ == state::open && on_message_) return on_message_(*this, std::move(m));
  if (state_ == state::opening) greeted(as, m);
}

WEFT_DECL void peer_link::greeted(hello_message::role as, const message& m) {
  if (type_of(m) == message_type::heartbeat) return;
  if (type_of(m) == message_type::refused) {
    cluster_spec theirs;
    status why = decode_refusal(m, &theirs);
    if (const std::string differs = theirs.empty() ? std::string() : difference(theirs, own_.cluster); !differs.empty()) why.message += ": " + differs;
    if (const auto& road = as == hello_message::role::control ? control_ : bulk_; road->remote_address().back() == ')') why.message += "; reached as " + road->remote_address();
    return fail(why);
  }
  if (type_of(m) != message_type::welcome) return fail(status(error_code::internal, "answered a greeting with message type " + std::to_string(m.type)));
  if (as == hello_message::role::control) {
    peer_ = hello_message::decode(m);
    if (peer_.task != to_) return fail(status(error_code::failed_precondition, "expected " + to_text(to_) + ", found " + to_text(peer_.task) + " at " + control_->remote_address()));
    return connect(hello_message::role::bulk);
  }
  if (hello_message::decode(m).incarnation != peer_.incarnation) return fail(status(error_code::aborted, "was restarted while it was greeted"));
  state_ = state::open;
  timer_.cancel();
  if (const auto opened = std::exchange(opened_, nullptr)) opened(status());
}

WEFT_DECL void peer_link::fail(const status& why) {
  if (state_ == state::lost) return;
  const bool was_open = state_ == state::open;
  state_ = state::lost;
  timer_.cancel();
  const auto self = shared_from_this();
  for (const auto& road : {control_, bulk_})
    if (road) road->close(why);
  const status complete = about(why);
  const auto opened = std::exchange(opened_, nullptr);
  const auto lost = std::exchange(on_lost_, nullptr);
  on_message_ = nullptr;
  if (!was_open && opened) opened(complete);
  if (was_open && lost) lost(*this, complete);
}

WEFT_DECL void peer_link::close(const status& why) { fail(why); }

WEFT_DECL void peer_link::beat(connection::clock::time_point now) {
  const auto self = shared_from_this();
  for (const auto& road : {control_, bulk_})
    if (road && state_ == state::open) beat_connection(*road, now, own_.options.heartbeat);
}

WEFT_DECL void peers::open(const task_id& to, opened_handler done) {
  slot& here = links_[to];
  if (here.link != nullptr && here.link->is_open()) return done(status(), here.link);
  here.waiting.push_back(std::move(done));
  if (here.link != nullptr) return;
  here.link = std::make_shared<peer_link>(own_, to);
  const auto link = here.link;
  link->open([this, to, link](const status& result) { opened(to, link, result); }, on_message_,
             [this, to](peer_link& lost, const status& why) {
               const auto it = links_.find(to);
               if (it != links_.end() && it->second.link.get() == &lost) links_.erase(it);
               on_lost_(lost, why);
             });
}

WEFT_DECL void peers::opened(const task_id& to, const std::shared_ptr<peer_link>& link, const status& result) {
  const auto it = links_.find(to);
  if (it == links_.end() || it->second.link != link) return;
  const auto waiting = std::exchange(it->second.waiting, {});
  if (!result.ok()) links_.erase(it);
  for (const opened_handler& done : waiting) done(result, result.ok() ? link : nullptr);
}

#endif

}  // namespace weft::detail

#endif
