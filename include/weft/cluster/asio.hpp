#ifndef WEFT_CLUSTER_ASIO_HPP
#define WEFT_CLUSTER_ASIO_HPP
// The one door to Asio. Other headers of this layer include this one, never Asio itself.

#include <cstdlib>
#include <utility>

#if defined(__SANITIZE_THREAD__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wtsan"
#endif
#include <asio/dispatch.hpp>
#include <asio/executor_work_guard.hpp>
#include <asio/io_context.hpp>
#include <asio/ip/tcp.hpp>
#include <asio/ip/v6_only.hpp>
#include <asio/post.hpp>
#include <asio/steady_timer.hpp>
#if defined(__SANITIZE_THREAD__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif

namespace weft::detail {

// The pieces of memory for one read, in the form that Asio takes without copying them.
struct read_range {
  const asio::mutable_buffer *first, *last;
  const asio::mutable_buffer* begin() const noexcept { return first; }
  const asio::mutable_buffer* end() const noexcept { return last; }
};

}  // namespace weft::detail

#endif
