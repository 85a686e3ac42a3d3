// Files: GraphDef.
#define WEFT_IMPLEMENTATION_FORMAT
#include <weft/format/graphdef.hpp>
