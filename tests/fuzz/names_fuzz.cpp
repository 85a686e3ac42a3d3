// Text that people write: device names, addresses, clusters. What was read is written, and read as the same again.
#include <weft/core/cluster_spec.hpp>
#include <weft/core/device_name.hpp>

#include <cstdint>
#include <cstdlib>
#include <string_view>

namespace {

template <class F> void attempt(F&& call) {
  try {
    call();
  } catch (const weft::error&) {
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data + 1), size - 1);
  if (data[0] % 3 == 0)
    attempt([&] {
      const auto bar = text.find('|');
      const weft::device_name one = weft::parse_device_name(text.substr(0, bar));
      if (to_text(weft::parse_device_name(to_text(one))) != to_text(one)) std::abort();
      if (to_full_text(weft::parse_device_name(to_full_text(one))) != to_full_text(one)) std::abort();
      if (bar == std::string_view::npos) return;
      const weft::device_name other = weft::parse_device_name(text.substr(bar + 1));
      (void)merge_override(one, other);
      (void)matches(one, other);
      (void)canonical(one, other);
      (void)merge_names(one, other);
    });
  if (data[0] % 3 == 1)
    attempt([&] {
      const weft::host_port one = weft::parse_host_port(text);
      if (!(weft::parse_host_port(to_text(one)) == one)) std::abort();
    });
  if (data[0] % 3 == 2)
    attempt([&] {
      const weft::cluster_spec one = weft::parse_cluster_spec(text);
      (void)to_text(one);
      (void)one.hash();
    });
  return 0;
}
