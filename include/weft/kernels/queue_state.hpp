#ifndef WEFT_KERNELS_QUEUE_STATE_HPP
#define WEFT_KERNELS_QUEUE_STATE_HPP
// A queue in its task: elements, and the lines of those who wait to put some in or take some out. Who comes first is served first; nobody who waits holds a thread.

#include <weft/core/config.hpp>
#include <weft/kernels/philox.hpp>
#include <weft/runtime/cancellation.hpp>
#include <weft/runtime/resource_manager.hpp>
#include <weft/tensor/shape.hpp>
#include <weft/tensor/tensor_value.hpp>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <limits>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace weft::detail {

/// Which element of a queue is taken next, and what elements may look like.
enum class queue_order : unsigned char { first, first_padded, random, priority };

/// What a queue is made from; two nodes that share one must say the same.
struct queue_spec {
  queue_order order = queue_order::first;
  std::string name;
  /// Elements it holds at most; as many as its size, an int32, can say when this is negative or larger.
  std::int64_t capacity = 0;
  std::int64_t min_after_dequeue = 0, seed = 0, seed2 = 0;
  std::vector<dtype> types;
  /// One shape for each component, or none: then elements may have any shape.
  std::vector<partial_shape> shapes;

  /// TensorFlow's name of the kind.
  const char* kind() const noexcept {
    constexpr const char* names[] = {"FIFOQueue", "PaddingFIFOQueue", "RandomShuffleQueue", "PriorityQueue"};
    return names[static_cast<unsigned>(order)];
  }
};

/// An element: all of some values, one for each component, or a row of each of them. Elements that came in one batch share it.
struct queue_element {
  std::shared_ptr<const std::vector<tensor_value>> values;
  /// -1 for all.
  std::int64_t row = -1;
};

/// A queue. Thread-safe.
class queue_resource final : public resource, public std::enable_shared_from_this<queue_resource> {
 public:
  /// Says that an operation on the queue has ended, and gives what was taken. Called once, never while the queue is locked.
  using done_function = std::function<void(const status&, std::vector<queue_element>)>;

  explicit queue_resource(queue_spec spec);
  std::string describe() const override { return std::string(spec_.kind()) + " '" + spec_.name + "'"; }
  const queue_spec& spec() const noexcept { return spec_; }

  /// Puts the values in as one element (`rows` is -1), or their rows one after the other; waits while the queue is full.
  void enqueue(std::shared_ptr<const std::vector<tensor_value>> values, std::int64_t rows, const cancellation_token& token, done_function done);
  /// Takes `count` elements, or with `at_most` fewer if the queue is closed; waits until they are there. Cancelled or in vain, it gives back what it took, in order.
  void dequeue(std::int64_t count, bool at_most, const cancellation_token& token, done_function done);
  /// Closes the queue behind those who wait to put something in. When its step is cancelled it still does, only nobody waits for it.
  void close_in_turn(const cancellation_token& token, done_function done);
  /// Closes the queue at once and sends those away who wait to put something in.
  void close_at_once();
  /// Puts elements back where they came from.
  void give_back(std::vector<queue_element> elements);
  std::int64_t size() const;
  bool is_closed() const;
  /// Sends everybody away.
  WEFT_INLINE void close(const status& why) override;

 private:
  enum class operation : unsigned char { enqueue, dequeue, close };
  struct waiter {
    operation what = operation::enqueue;
    bool at_most = false;
    // Rows to put in or elements to take, and how far that has come.
    std::int64_t count = 0, next = 0;
    std::shared_ptr<const std::vector<tensor_value>> values;
    std::vector<queue_element> taken;
    cancellation_token token;
    std::uint64_t registration = 0;
    status result;
    done_function done;
  };
  using waiter_ptr = std::shared_ptr<waiter>;
  enum class progress : unsigned char { none, some, complete };

  void begin(waiter_ptr w);
  void cancel(const waiter_ptr& w, const status& why);
  progress attempt(waiter& w);
  progress attempt_enqueue(waiter& w);
  progress attempt_dequeue(waiter& w);
  bool serve(std::deque<waiter_ptr>& line, std::vector<waiter_ptr>& ended);
  std::vector<waiter_ptr> serve_all();
  static void finish(std::vector<waiter_ptr>& ended);
  std::deque<waiter_ptr>& line_of(const waiter& w) noexcept { return w.what == operation::dequeue ? takers_ : givers_; }
  void put(queue_element e);
  queue_element take();
  void restore(std::vector<queue_element>& taken);
  std::uint32_t random_word();
  std::string quoted() const { return "'" + spec_.name + "'"; }

  static constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();
  const queue_spec spec_;
  const std::int64_t capacity_;
  mutable std::mutex mutex_;
  std::deque<queue_element> elements_;
  // Who waits to put in, closes included, and who waits to take.
  std::deque<waiter_ptr> givers_, takers_;
  bool closed_ = false;
  philox_random generator_;
  std::uint32_t words_[philox_random::block_words] = {};
  std::size_t words_used_ = philox_random::block_words;
};

}  // namespace weft::detail

#if WEFT_HAS_KERNEL_BODIES
#include <algorithm>
#include <random>

namespace weft::detail {

inline philox_random queue_generator(const queue_spec& spec) {
  if (spec.seed != 0 || spec.seed2 != 0) return philox_random(static_cast<std::uint64_t>(spec.seed), static_cast<std::uint64_t>(spec.seed2));
  std::random_device device;
  return philox_random(std::uint64_t{device()} << 32 | device(), std::uint64_t{device()} << 32 | device());
}

// Whether the priority of `a` comes after that of `b`.
inline bool comes_after(const queue_element& a, const queue_element& b) {
  const auto priority = [](const queue_element& e) { return (*e.values)[0].data<std::int64_t>()[std::max<std::int64_t>(e.row, 0)]; };
  return priority(a) > priority(b);
}

WEFT_DECL queue_resource::queue_resource(queue_spec spec) : spec_(std::move(spec)), capacity_(spec_.capacity < 0 || spec_.capacity > most ? most : spec_.capacity), generator_(queue_generator(spec_)) {}

WEFT_DECL void queue_resource::enqueue(std::shared_ptr<const std::vector<tensor_value>> values, std::int64_t rows, const cancellation_token& token, done_function done) {
  if (rows == 0) return done(status(), {});
  auto w = std::make_shared<waiter>();
  w->next = rows < 0 ? -1 : 0;
  w->count = rows < 0 ? 0 : rows;
  w->values = std::move(values);
  w->token = token;
  w->done = std::move(done);
  begin(std::move(w));
}

WEFT_DECL void queue_resource::dequeue(std::int64_t count, bool at_most, const cancellation_token& token, done_function done) {
  if (count == 0) return done(status(), {});
  auto w = std::make_shared<waiter>();
  w->what = operation::dequeue;
  w->at_most = at_most;
  w->count = count;
  w->token = token;
  w->done = std::move(done);
  begin(std::move(w));
}

WEFT_DECL void queue_resource::close_in_turn(const cancellation_token& token, done_function done) {
  auto w = std::make_shared<waiter>();
  w->what = operation::close;
  w->token = token;
  w->done = std::move(done);
  begin(std::move(w));
}

WEFT_DECL void queue_resource::close_at_once() {
  std::vector<waiter_ptr> ended, others;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    closed_ = true;
    ended.assign(givers_.begin(), givers_.end());
    givers_.clear();
    for (const waiter_ptr& w : ended) w->result = status(error_code::cancelled, "the enqueue was cancelled: " + describe() + " was closed");
    others = serve_all();
  }
  finish(ended);
  finish(others);
}

WEFT_DECL void queue_resource::give_back(std::vector<queue_element> elements) {
  std::vector<waiter_ptr> ended;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    restore(elements);
    ended = serve_all();
  }
  finish(ended);
}

WEFT_DECL std::int64_t queue_resource::size() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return static_cast<std::int64_t>(elements_.size());
}

WEFT_DECL bool queue_resource::is_closed() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  return closed_;
}

WEFT_DECL void queue_resource::close(const status& why) {
  std::vector<waiter_ptr> ended;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    closed_ = true;
    ended.assign(givers_.begin(), givers_.end());
    ended.insert(ended.end(), takers_.begin(), takers_.end());
    givers_.clear();
    takers_.clear();
    for (const waiter_ptr& w : ended) {
      restore(w->taken);
      w->result = why;
    }
  }
  finish(ended);
}

// It stands in its line before it can be cancelled, so that a cancellation finds it; one that comes to an end meanwhile takes its registration back itself.
WEFT_DECL void queue_resource::begin(waiter_ptr w) {
  std::vector<waiter_ptr> ended;
  bool waits = false;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::deque<waiter_ptr>& line = line_of(*w);
    line.push_back(w);
    ended = serve_all();
    waits = std::find(line.rbegin(), line.rend(), w) != line.rend();
  }
  finish(ended);
  if (!waits) return;
  const cancellation_token token = w->token;
  const std::uint64_t registration = token.on_cancel([self = shared_from_this(), w](const status& why) { self->cancel(w, why); });
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    const std::deque<waiter_ptr>& line = line_of(*w);
    waits = std::find(line.begin(), line.end(), w) != line.end();
    if (waits) w->registration = registration;
  }
  if (!waits) token.forget(registration);
}

WEFT_DECL void queue_resource::cancel(const waiter_ptr& w, const status& why) {
  std::vector<waiter_ptr> ended;
  done_function done;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    std::deque<waiter_ptr>& line = line_of(*w);
    const auto at = std::find(line.begin(), line.end(), w);
    if (at == line.end()) return;
    done = std::move(w->done);
    // A close keeps its place, without anybody to tell.
    if (w->what == operation::close) {
      w->done = nullptr;
    } else {
      line.erase(at);
      restore(w->taken);
      ended = serve_all();
    }
  }
  finish(ended);
  if (done) done(why, {});
}

WEFT_DECL queue_resource::progress queue_resource::attempt(waiter& w) {
  if (w.what == operation::enqueue) return attempt_enqueue(w);
  if (w.what == operation::dequeue) return attempt_dequeue(w);
  if (closed_) w.result = status(error_code::cancelled, "queue " + quoted() + " is already closed");
  closed_ = true;
  return progress::complete;
}

WEFT_DECL queue_resource::progress queue_resource::attempt_enqueue(waiter& w) {
  if (closed_) {
    w.result = status(error_code::cancelled, describe() + " is closed");
    return progress::complete;
  }
  const std::int64_t first = w.next;
  const auto full = [this] { return static_cast<std::int64_t>(elements_.size()) >= capacity_; };
  while (w.next < w.count && !full()) {
    put({w.values, w.next});
    ++w.next;
  }
  return w.next == w.count ? progress::complete : w.next != first ? progress::some : progress::none;
}

WEFT_DECL queue_resource::progress queue_resource::attempt_dequeue(waiter& w) {
  const auto size = [this] { return static_cast<std::int64_t>(elements_.size()); };
  const auto missing = [&w] { return w.count - static_cast<std::int64_t>(w.taken.size()); };
  if (closed_ && size() < missing()) {
    restore(w.taken);
    if (!w.at_most || size() == 0) {
      w.result = status(error_code::out_of_range, describe() + " is closed and has insufficient elements (requested " + std::to_string(w.count) + ", current size " + std::to_string(size()) + ")");
      return progress::complete;
    }
    w.count = size();
  }
  const std::int64_t kept = closed_ ? 0 : spec_.min_after_dequeue, before = missing();
  while (missing() > 0 && size() > kept) w.taken.push_back(take());
  return missing() == 0 ? progress::complete : missing() != before ? progress::some : progress::none;
}

// Serves the line until its first cannot be; whether anything moved.
WEFT_DECL bool queue_resource::serve(std::deque<waiter_ptr>& line, std::vector<waiter_ptr>& ended) {
  bool moved = false;
  while (!line.empty()) {
    const progress came = attempt(*line.front());
    moved = moved || came != progress::none;
    if (came != progress::complete) break;
    ended.push_back(std::move(line.front()));
    line.pop_front();
  }
  return moved;
}

WEFT_DECL std::vector<queue_resource::waiter_ptr> queue_resource::serve_all() {
  std::vector<waiter_ptr> ended;
  bool moved = true;
  while (moved) {
    moved = serve(givers_, ended);
    moved = serve(takers_, ended) || moved;
  }
  return ended;
}

WEFT_DECL void queue_resource::finish(std::vector<waiter_ptr>& ended) {
  for (const waiter_ptr& w : ended) {
    w->token.forget(w->registration);
    const done_function done = std::move(w->done);
    if (done) done(w->result, std::move(w->taken));
  }
}

WEFT_DECL void queue_resource::put(queue_element e) {
  elements_.push_back(std::move(e));
  if (spec_.order == queue_order::priority) std::push_heap(elements_.begin(), elements_.end(), comes_after);
}

WEFT_DECL queue_element queue_resource::take() {
  queue_element out;
  if (spec_.order == queue_order::first || spec_.order == queue_order::first_padded) {
    out = std::move(elements_.front());
    elements_.pop_front();
    return out;
  }
  if (spec_.order == queue_order::priority) std::pop_heap(elements_.begin(), elements_.end(), comes_after);
  else std::swap(elements_[random_word() % elements_.size()], elements_.back());
  out = std::move(elements_.back());
  elements_.pop_back();
  return out;
}

WEFT_DECL void queue_resource::restore(std::vector<queue_element>& taken) {
  const bool to_front = spec_.order == queue_order::first || spec_.order == queue_order::first_padded;
  for (auto e = taken.rbegin(); e != taken.rend(); ++e) {
    if (to_front) elements_.push_front(std::move(*e));
    else put(std::move(*e));
  }
  taken.clear();
}

WEFT_DECL std::uint32_t queue_resource::random_word() {
  if (words_used_ == philox_random::block_words) {
    philox_block(generator_, words_);
    words_used_ = 0;
  }
  return words_[words_used_++];
}

}  // namespace weft::detail
#endif

#endif
