#ifndef WEFT_CLUSTER_SERVER_CORE_REPORT_HPP
#define WEFT_CLUSTER_SERVER_CORE_REPORT_HPP
// What a server says of itself: the members of `server_core` that count and list.

#include <weft/cluster/server_core.hpp>
#include <weft/core/config.hpp>

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

namespace weft::detail {

#if WEFT_HAS_CLUSTER_BODIES

// Looks while nothing changes: on the event loop, or when that has ended. The answer to somebody who waits never depends on a server that stops meanwhile.
WEFT_DECL void server_core::look(const std::function<void()>& at) {
  if (std::this_thread::get_id() == io_thread_id_) return at();
  const auto looked = std::make_shared<bool>(false);
  std::unique_lock<std::mutex> lock(mutex_);
  const auto runs = [this] { return !loop_ended_ && (phase_ == phase::serving || phase_ == phase::stopping); };
  if (runs()) {
    asio::post(own_.io, [this, at, looked] {
      const std::lock_guard<std::mutex> here(mutex_);
      if (*looked) return;
      at();
      *looked = true;
      changed_.notify_all();
    });
    changed_.wait(lock, [&] { return *looked || !runs(); });
  }
  if (!*looked) at();
  *looked = true;
}

WEFT_DECL server_statistics server_core::statistics() {
  server_statistics out;
  look([this, &out] { out = look_at_numbers(); });
  return out;
}

WEFT_DECL server_report server_core::report() {
  server_report out;
  look([this, &out] { out = look_at_all(); });
  return out;
}

WEFT_DECL server_statistics server_core::look_at_numbers() const {
  server_statistics out;
  own_.counters->copy_to(out);
  out.connections = visitors_.size();
  out.sessions = master_.sessions();
  out.registrations = worker_.registrations();
  out.bytes_in = own_.traffic->received.load();
  out.bytes_out = own_.traffic->sent.load();
  out.received_bytes = own_.received->used();
  out.parked_bytes = worker_.parked_bytes();
  out.messages_refused = own_.traffic->refused.load();
  out.queued_bytes = roads_.queued_bytes();
  for (const visitor_ptr& each : visitors_) out.queued_bytes += each->road->queued_bytes();
  return out;
}

WEFT_DECL server_report server_core::look_at_all() const {
  server_report out;
  out.task = own_.self;
  out.address = to_text(address());
  out.version = std::to_string(WEFT_VERSION_MAJOR) + "." + std::to_string(WEFT_VERSION_MINOR) + "." + std::to_string(WEFT_VERSION_PATCH);
  out.uptime = std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - own_.started);
  out.incarnation = own_.incarnation;
  out.devices = own_.devices;
  for (const visitor_ptr& each : visitors_)
    if (each->client)
      for (session_report& s : master_.report(each->client)) out.sessions.push_back(std::move(s));
  std::sort(out.sessions.begin(), out.sessions.end(), [](const session_report& a, const session_report& b) { return a.id < b.id; });
  out.registrations = worker_.report();
  out.resources = report_resources(own_.resources);
  out.statistics = look_at_numbers().entries();
  return out;
}

#endif

}  // namespace weft::detail

#endif
