// Files: GraphDef, tensors, checkpoints.
#define WEFT_IMPLEMENTATION_FORMAT
#include <weft/format/file_kernels.hpp>
#include <weft/format/graphdef.hpp>
