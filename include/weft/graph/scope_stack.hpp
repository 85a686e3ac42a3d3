#ifndef WEFT_GRAPH_SCOPE_STACK_HPP
#define WEFT_GRAPH_SCOPE_STACK_HPP
// The thread's stack of scopes, the only ambient state: default graph, devices, name scope, container, control dependencies, colocation.

#include <weft/core/config.hpp>
#include <weft/core/device_name.hpp>
#include <weft/graph/node.hpp>

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace weft {

/// Chooses the device of a node in the making from what is known of it (`node.device()` holds what inner scopes said);
/// its answer replaces that device.
using device_function = std::function<std::string(const node&)>;

namespace detail {

// One with_device scope: a name, a function, or what forgets every scope outside it.
struct device_entry {
  enum class kind { name, function, reset } what = kind::reset;
  device_name name;
  device_function choose;

  device_entry() = default;
  device_entry(device_name n) : what(kind::name), name(std::move(n)) {}
  device_entry(device_function f) : what(kind::function), choose(std::move(f)) {}
};

// One control_dependencies scope: what to wait for, and which nodes were made inside, in the order of their making.
struct control_frame {
  std::vector<const node*> inputs, made_inside;

  bool made(const node* n) const {
    const auto at = std::lower_bound(made_inside.begin(), made_inside.end(), n, [](const node* a, const node* b) { return a->id() < b->id(); });
    return at != made_inside.end() && *at == n;
  }
};

struct scope_context {
  std::shared_ptr<graph_state> graph;
  std::vector<device_entry> devices;
  std::string name_scope;
  // Where state made now lives on its task; empty for the task's own container.
  std::string container;
  std::vector<std::shared_ptr<control_frame>> control;
  std::vector<const node*> colocation;
  // The colocation group of nodes that no such scope tells where to go: `loc:@v` while the first value of v is made, which is before v.
  std::string group;
  // The variable scope, which belongs to train/.
  std::shared_ptr<const void> variables;
};

struct scope_stack {
  std::vector<scope_context> contexts{1};
  scope_context& top() noexcept { return contexts.back(); }
  // How many functions are being built that the graph itself will keep.
  int kept_functions = 0;
};

scope_stack& thread_scopes();

// While this lives, handles that the thread makes do not hold their graph: a function that the graph keeps, and that keeps handles in turn, would hold it for ever.
class kept_function_scope {
 public:
  kept_function_scope() { ++thread_scopes().kept_functions; }
  kept_function_scope(const kept_function_scope&) = delete;
  kept_function_scope& operator=(const kept_function_scope&) = delete;
  ~kept_function_scope() { --thread_scopes().kept_functions; }
};

// What a new handle holds of its graph.
std::shared_ptr<graph_state> hold_for_handle(graph_state& of);

}  // namespace detail
}  // namespace weft

#if WEFT_HAS_BODIES
namespace weft::detail {

// An inline variable is one for all files, however they are compiled; one inside of a function is not.
inline thread_local scope_stack the_thread_scopes;

WEFT_DECL scope_stack& thread_scopes() { return the_thread_scopes; }

}  // namespace weft::detail
#endif

#endif
