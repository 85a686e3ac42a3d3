// The secured transport, which stands in no other implementation file.
#define WEFT_IMPLEMENTATION_CLUSTER
#include <weft/tls.hpp>
