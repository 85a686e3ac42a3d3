#ifndef WEFT_CLUSTER_SERVER_CORE_HPP
#define WEFT_CLUSTER_SERVER_CORE_HPP
// What stands behind `server`: the event loop and its thread, the listener, and who is connected.

#include <weft/cluster/accepted_peers.hpp>
#include <weft/cluster/address_checks.hpp>
#include <weft/cluster/cluster_reset.hpp>
#include <weft/cluster/cluster_update.hpp>
#include <weft/cluster/connection.hpp>
#include <weft/cluster/listener.hpp>
#include <weft/cluster/master_report.hpp>
#include <weft/cluster/peers.hpp>
#include <weft/cluster/registration_reader.hpp>
#include <weft/cluster/resource_report.hpp>
#include <weft/cluster/spin_wait.hpp>
#include <weft/cluster/task_context.hpp>
#include <weft/cluster/worker.hpp>
#include <weft/core/config.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace weft::detail {

/// See the head of this file. Made in two steps, because a cluster on free ports is known only when all of its tasks listen.
class server_core {
 public:
  /// Takes the port. Throws as `server`'s constructor.
  server_core(cluster_spec cluster, task_id self, server_options options);
  server_core(const server_core&) = delete;
  server_core& operator=(const server_core&) = delete;
  ~server_core() { stop(); }

  /// The address that it listens at.
  const host_port& address() const noexcept { return listener_->address(); }
  /// The cluster with this task's real port, where the cluster does not say one.
  cluster_spec cluster_with_port() const;
  /// Begins to serve, with all addresses of the cluster.
  void start(cluster_spec cluster);
  /// `why` is what running steps, clients and whoever joins are told.
  void stop(status why);
  void stop() { stop(status(error_code::cancelled, "task " + own_.describe(own_.self) + " was stopped")); }
  status join();
  /// Stops and destroys a server, also from one of its own threads, which cannot wait for itself: then another one does it.
  static void discard(std::unique_ptr<server_core> core);

  const std::string& target() const noexcept { return target_; }
  const task_id& task() const noexcept { return own_.self; }
  cluster_spec cluster() const {
    const std::lock_guard<std::mutex> lock(cluster_mutex_);
    return own_.cluster;
  }
  void update_cluster(const cluster_spec& next);
  server_statistics statistics();
  server_report report();

 private:
  enum class phase { made, serving, stopping, stopped };
  // Bytes of a greeting, which holds the names of kernels; connections beyond the limit that are told so, each until it has greeted.
  static constexpr std::uint32_t most_of_greeting = 4U << 20;
  static constexpr std::size_t refusals_at_once = 16;
  // Whoever connected, and what it turned out to be.
  struct visitor {
    std::shared_ptr<connection> road;
    std::optional<hello_message> hello;
    client_ptr client;
    // It came when there were enough already.
    bool one_too_many = false;
    // Whether something waited to be sent at the last look, how much had gone by then, and when a look found that more had.
    bool waiting = false;
    std::uint64_t sent = 0;
    connection::clock::time_point took{};
  };
  using visitor_ptr = std::shared_ptr<visitor>;

  bool is_own_thread() const;
  void listen();
  void work();
  void accept(std::shared_ptr<connection> road);
  void take(const visitor_ptr& from, message m);
  void greet(const visitor_ptr& from, const message& m);
  void look(const std::function<void()>& at);
  server_statistics look_at_numbers() const;
  server_report look_at_all() const;
  bool is_of_other_cluster(const hello_message& hello) const { return hello.as != hello_message::role::client && hello.cluster != own_.cluster.hash(); }
  std::optional<status> reason_to_refuse(const hello_message& hello) const;
  std::optional<status> too_many() const;
  void take_from_master(const visitor_ptr& from, message m);
  part_answer answer_to(const visitor_ptr& from);
  void left(const visitor_ptr& who, const status& why);
  void take_from_link(peer_link& link, message m);
  bool is_silent(visitor& who, connection::clock::time_point now) const;
  void beat();
  void reset(const client_ptr& client, const message& m);
  void end_service(const status& why);

  task_context own_;
  std::string target_;
  peers roads_;
  accepted_peers accepted_;
  worker worker_;
  registration_reader registrations_;
  master master_;
  cluster_reset reset_;
  std::set<visitor_ptr> visitors_;
  std::unique_ptr<listener> listener_;
  asio::steady_timer beat_timer_;
  std::optional<asio::executor_work_guard<asio::io_context::executor_type>> busy_;
  std::thread io_thread_;
  // Names of its threads, which stay when they are gone.
  std::thread::id io_thread_id_;
  const thread_pool *pool_ = nullptr, *builder_ = nullptr;
  std::mutex mutex_;
  std::condition_variable changed_;
  // Held to change the cluster, and to read it elsewhere than on the io thread.
  mutable std::mutex cluster_mutex_;
  phase phase_ = phase::made;
  bool loop_ended_ = false;
  // Why it ends; ok until it begins to.
  status ending_;
};

#if WEFT_HAS_CLUSTER_BODIES

WEFT_DECL server_core::server_core(cluster_spec cluster, task_id self, server_options options)
    : own_(std::move(cluster), std::move(self), std::move(options)),
      roads_(own_, [this](peer_link& link, message m) { take_from_link(link, std::move(m)); },
             [this](peer_link& link, const status& why) {
               worker_.lost(link.task(), why);
               master_.lost(link.task(), why);
               reset_.lost(link.task(), why);
             }),
      worker_(own_, roads_, accepted_), registrations_(own_, worker_), master_(own_, roads_, worker_), reset_(own_, roads_), beat_timer_(own_.io) {
  listen();
}

WEFT_DECL void server_core::listen() {
  if (own_.self.job.empty()) fail(error_code::invalid_argument, "the job name is empty; it must be one of the cluster's jobs");
  const std::string& text = own_.cluster.task_address(own_.self);
  if (text.empty()) fail(error_code::invalid_argument, "the cluster does not say the address of " + to_text(own_.self) + "; give it one, with port 0 for any free port");
  const host_port given = parse_host_port(text);
  const host_port address = own_.options.listen_address.empty() ? given : parse_host_port(own_.options.listen_address);
  host_lookups hosts;
  if (own_.options.transport == nullptr && !own_.options.allow_unauthenticated) check_not_reachable(own_.self, address, hosts);
  if (const auto doubt = doubt_about_address(own_.cluster, own_.self, !own_.options.listen_address.empty(), hosts)) own_.log("warning", *doubt);
  listener_options how;
  how.connection = own_.connections;
  how.connection.first_message_timeout = own_.options.handshake_timeout;
  how.connection.max_first_head = most_of_greeting;
  how.max_connections = own_.options.max_connections + refusals_at_once + 2 * own_.cluster.tasks().size();
  try {
    listener_ = std::make_unique<listener>(own_.io, address, how, [this](std::shared_ptr<connection> road) { accept(std::move(road)); });
  } catch (const error& e) {
    fail(e.code(), to_text(own_.self) + " cannot listen at " + to_text(address) + ": " + e.message());
  }
  target_ = "weft://" + cluster_with_port().task_address(own_.self);
}

WEFT_DECL cluster_spec server_core::cluster_with_port() const {
  host_port own = parse_host_port(own_.cluster.task_address(own_.self));
  if (own.port == 0) own.port = address().port;
  return own_.cluster.with_address(own_.self.job, own_.self.index, to_text(own));
}

WEFT_DECL void server_core::start(cluster_spec cluster) {
  own_.cluster = std::move(cluster);
  own_.own_address = own_.cluster.task_address(own_.self);
  own_.pool = own_.options.kernel_threads == 0 ? std::make_unique<thread_pool>() : std::make_unique<thread_pool>(own_.options.kernel_threads);
  own_.builder = std::make_unique<thread_pool>(1);
  busy_.emplace(asio::make_work_guard(own_.io));
  pool_ = own_.pool.get();
  builder_ = own_.builder.get();
  {
    const std::lock_guard<std::mutex> lock(mutex_);  // it serves when there is a thread that does
    io_thread_ = std::thread([this] { work(); });
    io_thread_id_ = io_thread_.get_id();
    phase_ = phase::serving;
  }
  asio::post(own_.io, [this] { beat(); });
  const std::string& said = own_.cluster.task_address(own_.self);
  own_.log("info", to_text(own_.self) + " serves at " + to_text(address()) + (said == to_text(address()) ? "" : ", for others at " + said));
}

WEFT_DECL void server_core::work() {
  spin_wait waits(own_.options.spin_time);
  while (!own_.io.stopped()) {
    try {
      if (own_.io.poll() > 0) waits.found();
      else if (!own_.io.stopped() && !waits.again()) own_.io.run_one();
    } catch (const std::exception& e) {
      own_.log("error", to_text(own_.self) + ": " + e.what());
    }
  }
  const std::lock_guard<std::mutex> lock(mutex_);
  loop_ended_ = true;
  changed_.notify_all();
}

WEFT_DECL status server_core::join() {
  status why;
  {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return !ending_.ok() || phase_ == phase::stopped; });
    why = ending_;
  }
  stop(why);
  return why;
}

WEFT_DECL bool server_core::is_own_thread() const {
  const thread_pool* const pool = thread_pool::of_this_thread();
  return std::this_thread::get_id() == io_thread_id_ || (pool != nullptr && (pool == pool_ || pool == builder_));
}

WEFT_DECL void server_core::discard(std::unique_ptr<server_core> core) {
  if (core == nullptr || !core->is_own_thread()) return;
  core->stop();
  std::thread([last = std::move(core)]() mutable { last.reset(); }).detach();
}

WEFT_DECL void server_core::stop(status why) {
  if (why.ok()) why = status(error_code::cancelled, "task " + own_.describe(own_.self) + " was stopped");
  why = own_.located(std::move(why));
  const bool inside = is_own_thread();
  {
    std::unique_lock<std::mutex> lock(mutex_);
    if (phase_ == phase::stopping && !inside) changed_.wait(lock, [this] { return phase_ == phase::stopped; });
    if (phase_ != phase::serving) return;
    if (ending_.ok()) ending_ = why;
    why = ending_;
    changed_.notify_all();
    // A thread of the server cannot wait for itself; whoever joins or destroys the server does the rest.
    if (inside) return asio::post(own_.io, [this, why] { end_service(why); });
    phase_ = phase::stopping;
  }

  // 1. No more connections; running steps end and their clients hear of it.
  std::promise<void> ended;
  asio::post(own_.io, [&] {
    end_service(why);
    ended.set_value();
  });
  ended.get_future().wait();

  // 2. Kernels end; what they still tell the loop is heard. Then the loop runs dry, unless somebody does not take their last message.
  own_.pool.reset();
  own_.builder.reset();
  busy_.reset();
  {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait_for(lock, std::chrono::milliseconds(500), [this] { return loop_ended_; });
  }
  own_.io.stop();
  io_thread_.join();
  const std::lock_guard<std::mutex> lock(mutex_);
  phase_ = phase::stopped;
  changed_.notify_all();
}

WEFT_DECL void server_core::update_cluster(const cluster_spec& next) {
  if (std::this_thread::get_id() == io_thread_id_) fail(error_code::failed_precondition, "the cluster of a server cannot be updated by its own event loop");
  const auto answer = std::make_shared<std::promise<status>>();
  auto result = answer->get_future();
  asio::post(own_.io, [this, next, answer] { answer->set_value(take_cluster(own_, cluster_mutex_, roads_, accepted_, next)); });
  // A server that stops meanwhile never comes to it.
  while (result.wait_for(std::chrono::milliseconds(50)) != std::future_status::ready) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (phase_ != phase::serving) fail(error_code::failed_precondition, to_text(own_.self) + " is stopped");
  }
  if (const status s = result.get(); !s.ok()) throw error(s);
}

WEFT_DECL void server_core::end_service(const status& why) {
  listener_->close();
  beat_timer_.cancel();
  master_.stop(why);
  reset_.stop(why);
  worker_.stop(why);
  roads_.close(why);
  accepted_.close(why);
  const auto all = std::exchange(visitors_, {});
  for (const visitor_ptr& each : all) each->road->close_when_sent(why);
}

WEFT_DECL void server_core::accept(std::shared_ptr<connection> road) {
  const auto who = std::make_shared<visitor>();
  who->road = road;
  who->one_too_many = visitors_.size() >= own_.options.max_connections;
  server_counters::add(own_.counters->connections_accepted);
  visitors_.insert(who);
  road->start([this, who](message m) { take(who, std::move(m)); }, [this, who](const status& why) { left(who, why); });
}

WEFT_DECL void server_core::take(const visitor_ptr& from, message m) {
  if (!from->hello) return greet(from, m);
  if (type_of(m) == message_type::heartbeat) return;
  if (from->client && type_of(m) == message_type::report) {
    reply_message reply;
    reply.body = encode_report(look_at_all());
    return from->client->answer(session_request::decode(m).request, std::move(reply));
  }
  if (from->client && type_of(m) == message_type::reset) return reset(from->client, m);
  if (from->client && type_of(m) == message_type::update_cluster) {
    const update_cluster_message what = update_cluster_message::decode(m);
    return from->client->answer(what.request, take_cluster(own_, cluster_mutex_, roads_, accepted_, what.cluster));
  }
  if (from->client) return master_.take(from->client, std::move(m));
  take_from_master(from, std::move(m));
}

WEFT_DECL void server_core::greet(const visitor_ptr& from, const message& m) {
  if (type_of(m) != message_type::hello) fail(error_code::invalid_argument, "the first message of a connection must be a greeting, found type " + std::to_string(m.type));
  hello_message hello = hello_message::decode(m);
  // Clients, however many, do not keep out the tasks of the cluster, each of which has one road.
  if (const auto why = from->one_too_many && hello.as == hello_message::role::client ? too_many() : reason_to_refuse(hello)) {
    server_counters::add(own_.counters->connections_refused);
    from->road->send(encode_refusal(*why, is_of_other_cluster(hello) ? own_.cluster : cluster_spec()));
    return from->road->close_when_sent(*why);
  }
  from->hello = hello;
  from->road->send(own_.greeting(hello.as, hello.task).encode(message_type::welcome));
  if (hello.as == hello_message::role::client) {
    from->client = std::make_shared<client_state>(from->road, own_.counters);
    from->road->read_only_below(own_.options.queued_bytes_per_client);
    // A message that makes no sense ends its connection; a client is told why.
    from->road->refuse_with([task = own_.task_field()](status why, connection::refused_by whom) {
      if (whom == connection::refused_by::handler) return encode_refusal(why);
      why.message = "a message of this client was refused, and the connection closed (server_options::frames): " + why.message;
      why.task = task;
      return encode_refusal(why);
    });
    return;
  }
  accepted_.add(hello, from->road);
  if (hello.as != hello_message::role::control) return;
  worker_.master_came(hello.task, hello.incarnation);
  from->road->read_only_below(own_.options.queued_bytes_per_client);
}

WEFT_DECL std::optional<status> server_core::reason_to_refuse(const hello_message& hello) const {
  if (hello.as == hello_message::role::client) return std::nullopt;
  if (is_of_other_cluster(hello)) return status(error_code::failed_precondition, to_text(own_.self) + " and " + to_text(hello.task) + " were started with different clusters");
  if (hello.to != own_.self)
    return status(error_code::failed_precondition, "expected " + to_text(hello.to) + ", found " + to_text(own_.self) + "; two tasks seem to have the same address");
  if (!own_.cluster.has(hello.task)) return status(error_code::invalid_argument, to_text(hello.task) + " is not in the cluster");
  return accepted_.reason_to_refuse(hello);
}

WEFT_DECL std::optional<status> server_core::too_many() const {
  return status(error_code::resource_exhausted, "task " + own_.describe(own_.self) + " has " + std::to_string(own_.options.max_connections) +
                                                    " connections, no more are accepted (server_options::max_connections)");
}

WEFT_DECL part_answer server_core::answer_to(const visitor_ptr& from) {
  return [this, task = from->hello->task, incarnation = from->hello->incarnation](const part_done_message& what, std::vector<tensor_value> fetches) {
    const accepted_peer* master = accepted_.find(task);
    if (master == nullptr || master->incarnation != incarnation) return;
    std::size_t bytes = 0;
    for (const tensor_value& v : fetches) bytes += v.bytes();
    try {
      if (bytes > 0) own_.check_queue(task, master->queued_memory(), bytes);
      master->send(what.encode(std::move(fetches)), bytes > own_.options.small_tensor_bytes);
    } catch (const error& e) {
      // The values are more than one message may hold, or than may wait.
      master->send(part_done_message{what.step, e.status(), what.finished}.encode({}));
    }
  };
}

WEFT_DECL void server_core::take_from_master(const visitor_ptr& from, message m) {
  const hello_message& hello = *from->hello;
  switch (type_of(m)) {
    case message_type::register_part: return registrations_.take(from->road, hello.incarnation, std::move(m));
    case message_type::unregister_part: return registrations_.unregister(*from->road, hello.incarnation, decode_forget(m));
    case message_type::forget_session: return worker_.forget_session(hello.incarnation, decode_forget(m));
    case message_type::run_part: {
      const run_part_message what = run_part_message::decode(m);
      return worker_.run_part(hello.incarnation, what, std::move(m.tensors), m.refused, answer_to(from));
    }
    case message_type::part_feeds: {
      const std::int64_t step = decode_part_feeds(m);
      return worker_.take_feeds(hello.incarnation, step, std::move(m.tensors), m.refused);
    }
    case message_type::reset_containers: {
      const reset_message what = reset_message::decode(m);
      clear_containers(own_, what.containers);
      return from->road->send(encode_forget(message_type::containers_reset, what.number));
    }
    case message_type::abort_part: return worker_.abort_part(hello.incarnation, abort_part_message::decode(m));
    case message_type::tensor: return worker_.take_tensor(hello.task, std::move(m));
    default: fail(error_code::unimplemented, "task " + to_text(hello.task) + " sent message type " + std::to_string(m.type) + ", which is not known");
  }
}

WEFT_DECL void server_core::left(const visitor_ptr& who, const status& why) {
  visitors_.erase(who);
  registrations_.lost(*who->road);
  if (why.code != error_code::unavailable && why.code != error_code::cancelled) {
    own_.counters->ended(why);
    const std::string whose = !who->hello ? "" : who->client ? "of a client " : "of " + to_text(who->hello->task) + " ";
    own_.log("warning", to_text(own_.self) + " closed the connection " + whose + "from " + who->road->remote_address() + ": " + why.text());
  }
  if (!who->hello) return;
  if (who->client) return master_.client_lost(who->client);
  const hello_message& hello = *who->hello;
  status complete = why;
  complete.message = "task " + own_.describe(hello.task) + ": " + why.message;
  if (!accepted_.remove(hello.task, *who->road, complete)) return;
  worker_.lost(hello.task, complete);
  worker_.master_lost(hello.incarnation, complete);
}

WEFT_DECL void server_core::take_from_link(peer_link& link, message m) {
  switch (type_of(m)) {
    case message_type::part_registered: return master_.take_registered(link.task(), part_registered_message::decode(m));
    case message_type::part_done: {
      const part_done_message what = part_done_message::decode(m);
      return master_.take_done(link.task(), what, std::move(m.tensors), m.refused);
    }
    case message_type::containers_reset: return reset_.take_answer(link.task(), decode_forget(m));
    case message_type::ready: return worker_.take_ready(link.task(), decode_ready(m));
    default: fail(error_code::unimplemented, "answered with message type " + std::to_string(m.type) + ", which is not known");
  }
}

// As in TensorFlow, all sessions that this task leads end, and those that other tasks lead do not.
WEFT_DECL void server_core::reset(const client_ptr& client, const message& m) {
  const reset_message what = reset_message::decode(m);
  const auto request = static_cast<std::uint32_t>(what.number);
  if (!master_.admit(client, request)) return;
  master_.end_sessions(status(error_code::aborted, "the session was ended by a reset of " + own_.describe(own_.self)));
  reset_.ask(what.containers, [client, request](const status& result) { client->answer(request, result); });
}

// A client that waits for an answer returns every sign of life, unless it is busy taking a large answer.
WEFT_DECL bool server_core::is_silent(visitor& who, connection::clock::time_point now) const {
  if (who.waiting && who.road->bytes_sent() != who.sent) who.took = now;
  who.sent = who.road->bytes_sent();
  who.waiting = who.road->queued_bytes() > 0;
  return now - std::max(who.road->last_received(), who.took) > own_.options.heartbeat;
}

// Signs of life, in both directions.
WEFT_DECL void server_core::beat() {
  const auto now = connection::clock::now();
  roads_.beat(now);
  accepted_.beat(now, own_.options.heartbeat);
  std::vector<std::shared_ptr<connection>> silent;
  for (const visitor_ptr& each : visitors_) {
    wire_writer empty;
    if (!each->client || each->client->open.empty()) continue;
    if (is_silent(*each, now)) silent.push_back(each->road);
    else if (each->road->queued_bytes() == 0) each->road->send(make_message(message_type::heartbeat, empty));
  }
  for (const auto& road : silent) road->close(status(error_code::unavailable, "nothing was heard for " + std::to_string(own_.options.heartbeat.count()) + " ms"));
  worker_.sweep(now);
  beat_timer_.expires_after(std::max(own_.options.heartbeat / 3, std::chrono::milliseconds(1)));
  beat_timer_.async_wait([this](const std::error_code& stopped) {
    if (!stopped) beat();
  });
}

#endif

}  // namespace weft::detail

#endif
