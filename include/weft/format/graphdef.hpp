#ifndef WEFT_FORMAT_GRAPHDEF_HPP
#define WEFT_FORMAT_GRAPHDEF_HPP
// TensorFlow's GraphDef as protobuf-JSON: what `google.protobuf.json_format` writes and reads.

#include <weft/core/config.hpp>
#include <weft/format/graphdef_reader.hpp>
#include <weft/format/graphdef_writer.hpp>

#endif
