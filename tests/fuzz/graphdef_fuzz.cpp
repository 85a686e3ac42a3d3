// Text as it comes from a file: JSON, and graphs in it. A graph that was read is written, and what was written is read and written the same again.
#include <weft/format/graphdef.hpp>
#include <weft/ops/standard.hpp>

#include <cstdint>
#include <cstdlib>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    weft::import_options options;
    options.max_repeated_bytes = std::uint64_t{1} << 20;
    const weft::graph g = weft::from_graphdef_json(text, options);
    const std::string written = weft::to_graphdef_json(g);
    if (weft::to_graphdef_json(weft::from_graphdef_json(written)) != written) std::abort();
  } catch (const weft::error&) {
  }
  return 0;
}
