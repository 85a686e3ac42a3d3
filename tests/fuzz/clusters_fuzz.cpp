// What batch systems say of a cluster: TF_CONFIG, and Slurm's lists of hosts. A cluster that was read is written, and read as the same again.
#include <weft/cluster/resolvers.hpp>

#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string text(reinterpret_cast<const char*>(data + 1), size - 1);
  try {
    if (data[0] % 2 == 0) {
      const auto found = weft::resolve_tf_config({{"TF_CONFIG", text}});
      if (found.cluster.hash() != weft::cluster_spec(found.cluster.entries()).hash()) std::abort();
    } else {
      (void)weft::expand_host_list(text);
    }
  } catch (const weft::error&) {
  }
  return 0;
}
