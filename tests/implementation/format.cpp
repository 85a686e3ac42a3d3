// Files: GraphDef, tensors, checkpoints, tables.
#define WEFT_IMPLEMENTATION_FORMAT
#include <weft/format/chrome_trace.hpp>
#include <weft/format/csv.hpp>
#include <weft/format/event_file.hpp>
#include <weft/format/file_kernels.hpp>
#include <weft/format/graphdef.hpp>
#include <weft/format/idx.hpp>
#include <weft/format/partition_json.hpp>
