#ifndef WEFT_SESSION_HPP
#define WEFT_SESSION_HPP
// Graphs, and sessions that run them in this process or on a cluster, with xtensor values. Printing and random numbers of xtensor are left
// to <weft/weft.hpp>.

#include <weft/cluster/local_cluster.hpp>
#include <weft/cluster/server.hpp>
#include <weft/cluster/session.hpp>
#include <weft/core/step_trace.hpp>
#include <weft/gradients.hpp>
#include <weft/graph.hpp>
#include <weft/session/local_session.hpp>
#include <weft/tensor/xtensor.hpp>

#endif
