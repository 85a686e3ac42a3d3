#ifndef WEFT_CLUSTER_ASIO_HPP
#define WEFT_CLUSTER_ASIO_HPP
// The one door to Asio. Other headers of this layer include this one, never Asio itself.

#include <weft/core/config.hpp>

#include <cstdlib>
#include <utility>

#if WEFT_HAS_BODIES
#include <asio.hpp>
#endif

#endif
