// Servers and sessions over the network.
#define WEFT_IMPLEMENTATION_CLUSTER
#include <weft/weft.hpp>
