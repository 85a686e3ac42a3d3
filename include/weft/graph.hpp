#ifndef WEFT_GRAPH_HPP
#define WEFT_GRAPH_HPP
// Everything to build, place and partition graphs; needs nothing but the standard library.

#include <weft/core/cluster_spec.hpp>
#include <weft/core/device_name.hpp>
#include <weft/core/status.hpp>
#include <weft/graph/graph.hpp>
#include <weft/graph/scope.hpp>
#include <weft/graph/tensor.hpp>
#include <weft/ops/standard.hpp>
#include <weft/partition/growing_partition.hpp>
#include <weft/partition/partition.hpp>
#include <weft/placement/balance.hpp>
#include <weft/placement/placer.hpp>

#endif
