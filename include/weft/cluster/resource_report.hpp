#ifndef WEFT_CLUSTER_RESOURCE_REPORT_HPP
#define WEFT_CLUSTER_RESOURCE_REPORT_HPP
// What a task keeps between steps, for those who ask.

#include <weft/cluster/server_status.hpp>
#include <weft/core/config.hpp>
#include <weft/kernels/queue_state.hpp>
#include <weft/runtime/resource_manager.hpp>
#include <weft/runtime/variable.hpp>

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace weft::detail {

/// Each resource with its value's dtype, shape and bytes, if it is a variable that has one, or its elements, if it is a queue.
std::vector<resource_report> report_resources(const resource_manager& resources);

#if WEFT_HAS_CLUSTER_BODIES

WEFT_DECL std::vector<resource_report> report_resources(const resource_manager& resources) {
  std::vector<resource_report> out;
  for (const auto& [key, what] : resources.list()) {
    resource_report r{key.first, key.second, what->describe(), {}, {}, {}, 0};
    if (const auto queue = std::dynamic_pointer_cast<queue_resource>(what)) {
      const std::int64_t n = queue->size(), most = queue->spec().capacity;
      r.contents = std::to_string(n) + (n == 1 ? " element" : " elements") + (most >= 0 ? ", at most " + std::to_string(most) : "") + (queue->is_closed() ? ", closed" : "");
    }
    if (const auto variable = std::dynamic_pointer_cast<variable_resource>(what); variable && variable->initialized()) {
      try {
        variable->inspect([&r](const tensor_value& value) {
          r.dtype = to_text(value.dtype());
          r.shape = value.shape().text();
          r.bytes = value.bytes();
        });
      } catch (const error&) {
        // Its value was taken away at this moment.
      }
    }
    out.push_back(std::move(r));
  }
  return out;
}

#endif

}  // namespace weft::detail

#endif
