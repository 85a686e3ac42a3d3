#ifndef WEFT_FWD_HPP
#define WEFT_FWD_HPP
// Forward declarations; any header may include this.

namespace weft {

class graph;
class node;
class op_registry;
class operation;
struct step_trace;
class kernel_registry;
class kernel_catalogue;
class transport_security;
template <class T, int N> class operand;
template <class T, int N> class tensor;
template <class T, int N> class variable;

namespace detail {
class graph_state;
}

}  // namespace weft

#endif
