// Files: GraphDef, tensors.
#define WEFT_IMPLEMENTATION_FORMAT
#include <weft/format/graphdef.hpp>
#include <weft/format/npz.hpp>
#include <weft/format/safetensors.hpp>
