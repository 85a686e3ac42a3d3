#ifndef WEFT_RUNTIME_LOCAL_RENDEZVOUS_HPP
#define WEFT_RUNTIME_LOCAL_RENDEZVOUS_HPP
// The rendezvous of a step whose values stay in one task. It can serve one step after another, and then allocates nothing.

#include <weft/core/config.hpp>
#include <weft/runtime/rendezvous.hpp>

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace weft {

/// Keeps each value until its one receiver asks, or each receiver until its value comes. Receivers are called without the lock, on the thread
/// that brings the second of the two.
class local_rendezvous final : public rendezvous {
 public:
  WEFT_INLINE status send(const rendezvous_key& key, tensor_value value, bool is_dead) override;
  WEFT_INLINE void receive(const rendezvous_key& key, receiver done) override;
  WEFT_INLINE void abort(const status& why) override;
  /// Makes it ready for another step: forgets the reason of an abort and values that nobody took. No receiver may be waiting.
  void reset();

 private:
  enum class held : std::uint8_t { none, value, receiver };
  // An entry stays when what it held is gone: the next step uses the same keys.
  struct entry {
    rendezvous_key key;
    held state = held::none;
    bool used = false, is_dead = false;
    tensor_value value;
    receiver waiting;
  };
  static std::size_t hash(const rendezvous_key& key) noexcept {
    auto mixed = static_cast<std::uint64_t>(key.edge) * 0x9e3779b97f4a7c15U + static_cast<std::uint64_t>(key.iteration);
    mixed = (mixed ^ (mixed >> 32)) * 0xd6e8feb86659fd93U;
    return static_cast<std::size_t>(mixed ^ (mixed >> 32));
  }
  entry& probe(std::vector<entry>& table, const rendezvous_key& key) const noexcept;
  entry& find(const rendezvous_key& key);
  void grow();

  std::mutex mutex_;
  // Open addressing; the size is a power of two and at most half of it is used.
  std::vector<entry> table_;
  std::size_t used_ = 0, held_ = 0;
  status why_;
};

#if WEFT_HAS_BODIES

WEFT_DECL local_rendezvous::entry& local_rendezvous::probe(std::vector<entry>& table, const rendezvous_key& key) const noexcept {
  const std::size_t mask = table.size() - 1;
  std::size_t i = hash(key) & mask;
  while (table[i].used && !(table[i].key == key)) i = (i + 1) & mask;
  return table[i];
}

WEFT_DECL local_rendezvous::entry& local_rendezvous::find(const rendezvous_key& key) {
  if (2 * (used_ + 1) > table_.size()) grow();
  entry& e = probe(table_, key);
  if (!e.used) {
    e.used = true;
    e.key = key;
    ++used_;
  }
  return e;
}

// Entries that hold nothing are dropped here, so that the iterations of a long loop do not pile up.
WEFT_DECL void local_rendezvous::grow() {
  std::size_t size = table_.empty() ? 16 : 2 * table_.size();
  while (size > 4096 && size > 8 * (held_ + 1)) size /= 2;
  std::vector<entry> next(size);
  used_ = held_;
  for (entry& e : table_)
    if (e.state != held::none) probe(next, e.key) = std::move(e);
  table_ = std::move(next);
}

WEFT_DECL status local_rendezvous::send(const rendezvous_key& key, tensor_value value, bool is_dead) {
  receiver waiting;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!why_.ok()) return why_;
    entry& e = find(key);
    if (e.state == held::value) return status(error_code::internal, "edge " + std::to_string(key.edge) + " was sent twice in one step");
    if (e.state == held::none) {
      ++held_;
      e.state = held::value;
      e.value = std::move(value);
      e.is_dead = is_dead;
      return status();
    }
    --held_;
    e.state = held::none;
    waiting = std::exchange(e.waiting, nullptr);
  }
  waiting(status(), std::move(value), is_dead);
  return status();
}

WEFT_DECL void local_rendezvous::receive(const rendezvous_key& key, receiver done) {
  tensor_value value;
  bool is_dead = false;
  status answer;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    answer = why_;
    if (answer.ok()) {
      entry& e = find(key);
      if (e.state == held::none) {
        ++held_;
        e.state = held::receiver;
        e.waiting = std::move(done);
        return;
      }
      if (e.state == held::value) {
        --held_;
        e.state = held::none;
        value = std::move(e.value);
        is_dead = e.is_dead;
      } else {
        answer = status(error_code::internal, "edge " + std::to_string(key.edge) + " is received twice in one step");
      }
    }
  }
  done(answer, std::move(value), is_dead);
}

WEFT_DECL void local_rendezvous::abort(const status& why) {
  std::vector<receiver> waiting;
  std::vector<tensor_value> dropped;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!why_.ok()) return;
    why_ = why;
    for (entry& e : table_) {
      if (e.state == held::receiver) waiting.push_back(std::exchange(e.waiting, nullptr));
      if (e.state == held::value) dropped.push_back(std::move(e.value));
      e.state = held::none;
    }
    held_ = 0;
  }
  for (const receiver& r : waiting) r(why, tensor_value(), false);
}

WEFT_DECL void local_rendezvous::reset() {
  const std::lock_guard<std::mutex> lock(mutex_);
  why_ = status();
  if (held_ == 0) return;
  held_ = 0;
  for (entry& e : table_) {
    e.state = held::none;
    e.value = tensor_value();
    e.waiting = nullptr;
  }
}

#endif

}  // namespace weft

#endif
