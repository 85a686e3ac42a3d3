#ifndef WEFT_CLUSTER_ASIO_HPP
#define WEFT_CLUSTER_ASIO_HPP
// The one door to Asio. Other headers of this layer include this one, never Asio itself.

#include <weft/core/config.hpp>

#include <cstdlib>
#include <utility>

#if WEFT_HAS_CLUSTER_BODIES
#if defined(__SANITIZE_THREAD__) && !defined(__clang__)
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wtsan"
#endif
#include <asio.hpp>
#if defined(__SANITIZE_THREAD__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
#endif

#endif
