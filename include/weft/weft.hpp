#ifndef WEFT_WEFT_HPP
#define WEFT_WEFT_HPP
// All of weft.

#include <weft/cluster/resolvers.hpp>
#include <weft/format/chrome_trace.hpp>
#include <weft/format/csv.hpp>
#include <weft/format/file_kernels.hpp>
#include <weft/format/graphdef.hpp>
#include <weft/format/idx.hpp>
#include <weft/format/partition_json.hpp>
#include <weft/session.hpp>
#include <weft/simulate.hpp>
#include <weft/tensor/xtensor_io.hpp>
#include <weft/train.hpp>
#if WEFT_HAS_BODIES
#include <weft/testing.hpp>
#endif

#endif
