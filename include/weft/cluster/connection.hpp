#ifndef WEFT_CLUSTER_CONNECTION_HPP
#define WEFT_CLUSTER_CONNECTION_HPP
// A TCP connection between tasks that belongs to an event loop: messages in, messages out, in order.

#include <weft/cluster/asio.hpp>
#include <weft/cluster/connection_deadlines.hpp>
#include <weft/cluster/frame.hpp>
#include <weft/cluster/frame_reader.hpp>
#include <weft/cluster/frame_writer.hpp>
#include <weft/cluster/opening.hpp>
#include <weft/cluster/send_gauge.hpp>
#include <weft/cluster/socket.hpp>
#include <weft/cluster/transport.hpp>
#include <weft/core/cluster_spec.hpp>
#include <weft/core/config.hpp>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <system_error>
#include <utility>

namespace weft {

/// A connection whose messages are received on the io thread, the one that runs its io_context (one thread at a time; the
/// io_context must outlive a connection that is not closed). All members may be called from any thread, and none blocks. Once
/// started it lives until it is closed or lost, whoever holds it.
class connection : public std::enable_shared_from_this<connection> {
 public:
  using clock = std::chrono::steady_clock;
  using open_handler = std::function<void(const status&, std::shared_ptr<connection>)>;
  using message_handler = std::function<void(message)>;
  using close_handler = std::function<void(const status&)>;
  /// What a message is refused for: for what it is (a limit, or no frame at all), or for what `on_message` makes of it.
  enum class refused_by : std::uint8_t { frame, handler };
  using refusal_maker = std::function<message(const status&, refused_by)>;

  /// Connects within `deadline`. `done` is called once on the io thread: with ok and the connection, which waits for `start`, or with
  /// UNAVAILABLE, DEADLINE_EXCEEDED, or the reason of `close`, and none. The connection returned is only there to be closed.
  static std::shared_ptr<connection> open(asio::io_context& io, const host_port& to, std::chrono::milliseconds deadline,
                                          const connection_options& options, open_handler done);
  /// Takes over a connected socket. `slot`, if any, is dropped when the connection closes.
  static std::shared_ptr<connection> adopt(asio::ip::tcp::socket socket, const connection_options& options, std::shared_ptr<void> slot = nullptr);

  connection(const connection&) = delete;
  connection& operator=(const connection&) = delete;
  ~connection() = default;

  /// Begins to receive; to be called once. Both handlers run on the io thread: `on_message` for each message in order, then `on_closed`
  /// once with the reason, also after a local `close`; afterwards both are destroyed. An exception from `on_message` closes the connection.
  void start(message_handler on_message, close_handler on_closed);
  /// Sends a message after those sent before, from the calling thread if the socket is free, else from the io thread. The tensors
  /// are held, not copied, until they are written. Does nothing on a closed connection. Throws INVALID_ARGUMENT for a message that no receiver
  /// accepts (an empty value, more than `max_rank` dimensions) and for one past the limits of this side's options.
  void send(message m);
  /// Bytes that `send` took and the socket has not.
  std::size_t queued_bytes() const noexcept { return gauge_.bytes(); }
  /// The same with what their messages take in memory beside them.
  std::size_t queued_memory() const noexcept { return gauge_.pending(); }
  /// From now on takes no message while more than so many bytes are queued, until half of them are gone. To be called by `on_message`.
  void read_only_below(std::size_t bytes) noexcept { gauge_.limit(bytes); }
  /// What is sent to the other end before the connection closes for a message that breaks the limits, is none, or at which `on_message` threw an
  /// `error`. To be called by `on_message`.
  void refuse_with(refusal_maker refusal) { refusal_ = std::move(refusal); }
  /// Closes at once; what is queued is dropped. The first reason stays. `on_closed` gets it.
  void close(status why);
  /// Closes when what is queued is sent, or after `frame_timeout` without progress.
  void close_when_sent(status why);
  /// Closes with DEADLINE_EXCEEDED unless a whole message is received within this time from now; zero takes that back.
  void expect_message_within(std::chrono::milliseconds time);
  /// Whether `close` was called, or the connection lost.
  bool closed() const noexcept { return closed_.load(std::memory_order_acquire); }
  /// The other end, `127.0.0.1:33331`, or `localhost:33331 (127.0.0.1)`.
  const std::string& remote_address() const noexcept { return remote_; }
  /// When the last byte was received; the start at first.
  clock::time_point last_received() const noexcept { return clock::time_point(clock::duration(last_received_.load(std::memory_order_relaxed))); }
  /// Bytes received and sent so far.
  std::uint64_t bytes_received() const noexcept { return bytes_received_.load(std::memory_order_relaxed); }
  std::uint64_t bytes_sent() const noexcept { return bytes_sent_.load(std::memory_order_relaxed); }

 private:
  using tcp = asio::ip::tcp;
  // Who writes to the socket: nobody, a thread inside `send`, or the io thread.
  enum class writer : std::uint8_t { none, caller, loop };

  connection(tcp::socket socket, const connection_options& options, std::shared_ptr<void> slot);
  void opened(const status& s, detail::opening& made);
  void connected();
  void note_received() noexcept { last_received_.store(clock::now().time_since_epoch().count(), std::memory_order_relaxed); }
  void read();
  void read_stream();
  void secure();
  void on_read(const std::error_code& error, std::size_t bytes);
  bool take(std::size_t bytes);
  bool deliver();
  void refuse(const status& why, refused_by whom, const status& end);
  bool go_on();
  void resume();
  void write_queue();
  void after_direct_write(frame_writer& frame, detail::io_result result, int number);
  void lost_writing(int number);
  void sent(std::uint64_t bytes);
  void watch();
  void arm(clock::time_point at);
  void finish();
  template <class Function> void post(Function function) {
    asio::post(executor_, [self = shared_from_this(), function = std::move(function)] { function(*self); });
  }

  const connection_options options_;
  std::string remote_;
  detail::send_gauge gauge_;
  std::atomic<bool> closed_{false};
  std::atomic<clock::rep> last_received_{0};
  std::atomic<std::uint64_t> bytes_received_{0}, bytes_sent_{0};

  const asio::any_io_executor executor_;
  // Between this and the socket, from before anything is sent; null where the connection is plain.
  std::unique_ptr<secured_stream> stream_;
  bool handshaking_ = false;
  // Touched on the io thread only. Others use the descriptor itself, which stays open while `writer_` is `caller`. A closed connection has
  // neither socket nor timer, and may be held when its io_context is gone.
  std::optional<tcp::socket> socket_;
  std::optional<asio::steady_timer> timer_;
  std::weak_ptr<detail::opening> opening_;
  open_handler on_open_;
  frame_reader reader_;
  std::array<asio::mutable_buffer, frame_reader::max_parts> parts_;
  message_handler on_message_;
  close_handler on_closed_;
  refusal_maker refusal_;
  detail::connection_deadlines deadlines_;
  static constexpr clock::time_point never = clock::time_point::max();
  clock::time_point armed_at_ = never;

  std::mutex mutex_;
  // Under the mutex.
  int descriptor_ = -1;
  writer writer_ = writer::none;
  std::deque<frame_writer> queue_;
  bool closing_when_sent_ = false, peer_is_gone_ = false;
  status reason_;
  std::shared_ptr<void> slot_;
};

#if WEFT_HAS_CLUSTER_BODIES

WEFT_DECL connection::connection(tcp::socket socket, const connection_options& options, std::shared_ptr<void> slot)
    : options_(options), executor_(socket.get_executor()), socket_(std::move(socket)), timer_(executor_), reader_(options), deadlines_(options.frame_timeout, options.frame_pace), slot_(std::move(slot)) {}

inline std::shared_ptr<connection> connection::adopt(tcp::socket socket, const connection_options& options, std::shared_ptr<void> slot) {
  std::error_code none;
  const tcp::endpoint remote = socket.remote_endpoint(none);
  std::shared_ptr<connection> out(new connection(std::move(socket), options, std::move(slot)));
  out->remote_ = to_text(host_port{remote.address().to_string(), remote.port()});
  out->connected();
  return out;
}

WEFT_DECL std::shared_ptr<connection> connection::open(asio::io_context& io, const host_port& to, std::chrono::milliseconds deadline,
                                                    const connection_options& options, open_handler done) {
  std::shared_ptr<connection> out(new connection(tcp::socket(io), options, nullptr));
  out->remote_ = to_text(to);
  out->on_open_ = std::move(done);
  const auto made = std::make_shared<detail::opening>(out->executor_, to, deadline, options.transport, [out](const status& s, detail::opening& by) { out->opened(s, by); });
  out->opening_ = made;
  asio::post(out->executor_, [made] { made->start(); });
  return out;
}

WEFT_DECL void connection::opened(const status& s, detail::opening& made) {
  if (closed()) return;  // finish calls back
  const open_handler done = std::exchange(on_open_, nullptr);
  if (!s.ok()) {
    close(s);
    return done(s, nullptr);
  }
  socket_.emplace(std::move(made.socket()));
  stream_ = std::move(made.stream());
  remote_ = made.remote();
  connected();
  done(s, shared_from_this());
}

WEFT_DECL void connection::connected() {
  const std::lock_guard<std::mutex> lock(mutex_);
  descriptor_ = socket_->native_handle();
  detail::set_up(descriptor_);
  if (options_.transport != nullptr && stream_ == nullptr) {
    stream_ = options_.transport->secure(descriptor_, transport_security::side::server, {});
    handshaking_ = true;
    writer_ = writer::loop;  // until the handshake is over
  }
  note_received();
}

WEFT_DECL void connection::start(message_handler on_message, close_handler on_closed) {
  asio::dispatch(executor_, [self = shared_from_this(), on_message = std::move(on_message), on_closed = std::move(on_closed)]() mutable {
    self->on_message_ = std::move(on_message);
    self->on_closed_ = std::move(on_closed);
    if (self->closed()) return self->post([](connection& ended) { ended.finish(); });
    self->note_received();
    if (self->options_.first_message_timeout.count() > 0) self->expect_message_within(self->options_.first_message_timeout);
    if (self->handshaking_) return self->secure();
    self->read();
  });
}

// The handshake of whoever connected.
WEFT_DECL void connection::secure() {
  detail::run_handshake(*socket_, *stream_, [self = shared_from_this()](const status& result) {
    if (self->closed()) return;
    self->handshaking_ = false;
    if (!result.ok()) return self->close(detail::about_handshake(self->remote_, result));
    self->write_queue();
    self->read();
  });
}

WEFT_DECL void connection::read() {
  if (stream_ != nullptr) return read_stream();
  iovec pieces[frame_reader::max_parts];
  const std::size_t count = reader_.space(pieces);
  for (std::size_t i = 0; i < count; ++i) parts_[i] = asio::mutable_buffer(pieces[i].iov_base, pieces[i].iov_len);
  auto done = [self = shared_from_this()](const std::error_code& error, std::size_t bytes) { self->on_read(error, bytes); };
  if (count == 1) socket_->async_read_some(parts_[0], std::move(done));  // cheaper than a list of one
  else socket_->async_read_some(detail::read_range{parts_.data(), parts_.data() + count}, std::move(done));
}

WEFT_DECL void connection::on_read(const std::error_code& error, std::size_t bytes) {
  if (closed()) return;
  if (error) return close(detail::lost_connection(remote_, error == asio::error::eof ? 0 : error.value(), reader_.inside_frame()));
  if (take(bytes)) read();
}

// Takes what the stream has, and lets others have a turn after some of it.
WEFT_DECL void connection::read_stream() {
  std::size_t budget = std::size_t{2} << 20;
  while (!closed()) {
    iovec pieces[frame_reader::max_parts];
    const ssize_t n = stream_->read(pieces, reader_.space(pieces));
    if (n < 0 && errno == EAGAIN)
      return socket_->async_wait(tcp::socket::wait_read, [self = shared_from_this()](const std::error_code& error) { error ? void() : self->read_stream(); });
    if (n <= 0) return close(detail::lost_connection(remote_, n == 0 ? 0 : errno, reader_.inside_frame(), stream_.get()));
    if (!take(static_cast<std::size_t>(n))) return;
    if (static_cast<std::size_t>(n) >= budget) return post([](connection& self) { self.read_stream(); });
    budget -= static_cast<std::size_t>(n);
  }
}

// Bytes have come. False when the connection is closed.
WEFT_DECL bool connection::take(std::size_t bytes) {
  bytes_received_.fetch_add(bytes, std::memory_order_relaxed);
  if (options_.traffic != nullptr) options_.traffic->received.fetch_add(bytes, std::memory_order_relaxed);
  note_received();
  reader_.filled(bytes);
  return go_on();
}

WEFT_DECL bool connection::go_on() {
  if (!deliver()) return false;
  if (reader_.inside_frame()) watch();
  return true;
}

WEFT_DECL void connection::resume() {
  if (closed() || !gauge_.release()) return;
  note_received();
  deadlines_.read_again();
  if (go_on()) read();
}

// Hands out the messages that are whole. False when the connection is closed, or takes no more for now.
WEFT_DECL bool connection::deliver() {
  try {
    for (message m;;) {
      if (gauge_.hold()) return false;
      try {
        if (!reader_.next(m)) return true;
      } catch (const error& e) {
        refuse(e.status(), refused_by::frame, detail::bad_frame(remote_, e.status()));
        return false;
      }
      deadlines_.message_came();
      if (!deadlines_.ending()) on_message_(std::move(m));
      if (closed()) return false;
    }
  } catch (const error& e) {
    refusal_ ? refuse(e.status(), refused_by::handler, e.status()) : close(e.status());
  } catch (const std::exception& e) {
    close(status(error_code::internal, "handling a message from " + remote_ + " failed: " + e.what()));
  }
  return false;
}

// Nothing more is read. What the other end still sends resets the connection once it is closed; the refusal is there before that.
WEFT_DECL void connection::refuse(const status& why, refused_by whom, const status& end) {
  if (refusal_) send(refusal_(why, whom));
  close_when_sent(end);
}

WEFT_DECL void connection::send(message m) {
  frame_writer frame(std::move(m), options_.limits);
  int descriptor = -1;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (closed() || closing_when_sent_ || peer_is_gone_ || descriptor_ < 0) return;
    gauge_.add(frame.remaining());
    if (writer_ != writer::none) return gauge_.set_messages((queue_.push_back(std::move(frame)), queue_.size()));
    writer_ = writer::caller;
    descriptor = descriptor_;
  }
  std::uint64_t bytes = 0;
  const detail::io_result result = detail::send_frame(descriptor, stream_.get(), frame, detail::most_per_send, bytes);
  const int number = errno;
  sent(bytes);
  after_direct_write(frame, result, number);
}

WEFT_DECL void connection::sent(std::uint64_t bytes) {
  const bool reader_waits = gauge_.take(bytes);
  bytes_sent_.fetch_add(bytes, std::memory_order_relaxed);
  if (options_.traffic != nullptr) options_.traffic->sent.fetch_add(bytes, std::memory_order_relaxed);
  if (!reader_waits) return;
  if (bytes > 0) note_received();  // while nothing is read, what the other end takes shows that it is there
  post([](connection& self) { self.resume(); });
}

// The thread inside `send` gives up writing: to nobody if all is out, else to the io thread.
WEFT_DECL void connection::after_direct_write(frame_writer& frame, detail::io_result result, int number) {
  bool drained = false;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    writer_ = writer::none;
    if (result == detail::io_result::lost) peer_is_gone_ = true;
    if (!closed() && !peer_is_gone_) {
      if (frame.remaining() > 0) queue_.push_front(std::move(frame));
      if (!queue_.empty()) writer_ = writer::loop;
      else if (!closing_when_sent_) return;
      drained = queue_.empty();
    }
  }
  if (closed()) return post([](connection& self) { self.finish(); });
  if (result == detail::io_result::lost) return lost_writing(number);
  if (drained) return close(status());
  post([](connection& self) { self.write_queue(); });
}

// What the other end sent before it went may still be there to be read; reading finds the end of the connection then.
WEFT_DECL void connection::lost_writing(int number) {
  std::deque<frame_writer> dropped;
  bool closing = false;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    writer_ = writer::none;
    peer_is_gone_ = true;
    queue_.swap(dropped);
    gauge_.clear();
    closing = closing_when_sent_;
  }
  if (closing || (number != EPIPE && number != ECONNRESET)) close(detail::lost_connection(remote_, number, false, stream_.get()));
}

// On the io thread, while `writer_` is `loop`: writes what is queued, and lets others have a turn after each mebibyte.
WEFT_DECL void connection::write_queue() {
  std::size_t budget = detail::most_per_send;
  while (!closed()) {
    frame_writer* front = nullptr;
    bool drained = false;
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      if (queue_.empty()) {
        writer_ = writer::none;
        drained = closing_when_sent_;
      } else {
        front = &queue_.front();  // stays where it is when others add to the end
      }
    }
    if (front == nullptr) return drained ? close(status()) : void();
    if (budget == 0) return post([](connection& self) { self.write_queue(); });
    std::uint64_t bytes = 0;
    const detail::io_result result = detail::send_frame(socket_->native_handle(), stream_.get(), *front, budget, bytes);
    const int number = errno;
    sent(bytes);
    budget -= static_cast<std::size_t>(bytes);
    if (result == detail::io_result::lost) return lost_writing(number);
    if (result == detail::io_result::would_block)
      return socket_->async_wait(tcp::socket::wait_write, [self = shared_from_this()](const std::error_code& error) {
        if (!error) self->write_queue();
      });
    if (front->remaining() > 0) continue;
    std::optional<frame_writer> done;  // destroyed without the lock
    const std::lock_guard<std::mutex> lock(mutex_);
    done = std::move(queue_.front());
    queue_.pop_front();
    gauge_.set_messages(queue_.size());
  }
}

WEFT_DECL void connection::close(status why) {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (closed()) return;
    closed_.store(true, std::memory_order_release);
    if (!closing_when_sent_) reason_ = std::move(why);
    if (descriptor_ >= 0) ::shutdown(descriptor_, SHUT_RDWR);
  }
  post([](connection& self) { self.finish(); });
}

WEFT_DECL void connection::close_when_sent(status why) {
  bool busy = false;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (closed() || closing_when_sent_) return;
    busy = closing_when_sent_ = writer_ != writer::none;
    if (busy) reason_ = std::move(why);
  }
  if (!busy) return close(std::move(why));
  post([](connection& self) {
    self.deadlines_.expect_end(clock::now(), self.bytes_sent());
    self.watch();
  });
}

WEFT_DECL void connection::expect_message_within(std::chrono::milliseconds time) {
  if (closed()) return;
  asio::dispatch(executor_, [self = shared_from_this(), time] {
    self->deadlines_.expect_message(time, clock::now());
    self->watch();
  });
}

// Closes the connection if a deadline has passed, else comes back at the next one.
WEFT_DECL void connection::watch() {
  if (closed()) return;
  clock::time_point next;
  if (auto why = deadlines_.look({clock::now(), reader_.inside_frame() && !gauge_.paused(), last_received(), bytes_sent(), bytes_received()}, remote_, next)) return close(std::move(*why));
  if (next != never) arm(next);
}

WEFT_DECL void connection::arm(clock::time_point at) {
  if (armed_at_ <= at) return;
  armed_at_ = at;
  timer_->expires_at(at);
  timer_->async_wait([self = shared_from_this()](const std::error_code& error) {
    if (error) return;
    self->armed_at_ = never;
    self->watch();
  });
}

// On the io thread, after `closed_` was set: frees everything and tells the owner. A thread that is writing calls this again.
WEFT_DECL void connection::finish() {
  std::deque<frame_writer> dropped;
  std::shared_ptr<void> slot;
  status reason;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (writer_ == writer::caller) return;
    socket_.reset();
    descriptor_ = -1;
    queue_.swap(dropped);
    slot_.swap(slot);
    gauge_.clear();
    reason = reason_;
  }
  dropped.clear();  // whoever hears of the end finds its tensors free
  slot.reset();
  timer_.reset();
  if (on_open_) {
    const open_handler done = std::exchange(on_open_, nullptr);
    if (const auto made = opening_.lock()) made->cancel();
    return done(reason, nullptr);
  }
  const message_handler last_holder = std::exchange(on_message_, nullptr);
  refusal_ = nullptr;
  const close_handler on_closed = std::exchange(on_closed_, nullptr);
  if (on_closed) on_closed(reason);
}

#endif

}  // namespace weft

#endif
