#ifndef WEFT_FORMAT_EVENT_FILE_HPP
#define WEFT_FORMAT_EVENT_FILE_HPP
// Event files, which TensorBoard reads: scalars by tag and step.

#include <weft/core/config.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weft {

namespace detail {
// A record of the file around some bytes: their length and two checksums.
std::string event_record(std::string_view data);
// An Event: the version with which a file begins, and scalars. Times are seconds since 1970.
std::string version_event(double time);
std::string scalars_event(double time, std::int64_t step, const std::vector<std::pair<std::string, double>>& scalars);
}  // namespace detail

/// Appends to a new event file in a folder: `events.out.tfevents.1500000000.host`. What was added is in the file when `add` returns.
class event_writer {
 public:
  /// Makes the folder where it is missing. Throws PERMISSION_DENIED, UNAVAILABLE.
  explicit event_writer(const std::string& directory);
  event_writer(const event_writer&) = delete;
  event_writer& operator=(const event_writer&) = delete;
  ~event_writer();

  const std::string& path() const noexcept { return path_; }
  /// Adds scalars of one step: `add(step, {{"loss", 0.25}})`. They are kept as floats. Throws RESOURCE_EXHAUSTED when there is no room, UNAVAILABLE.
  void add(std::int64_t step, const std::vector<std::pair<std::string, double>>& scalars);

 private:
  void append(const std::string& event);
  std::string path_;
  int file_ = -1;
};

}  // namespace weft

#if WEFT_HAS_FORMAT_BODIES
#include <weft/format/tensorflow_checkpoint.hpp>

#include <chrono>
#include <cstdio>
#include <cstring>

namespace weft {

namespace detail {

inline void put_varint(std::string& out, std::uint64_t v) {
  for (; v >= 0x80; v >>= 7) out += static_cast<char>(v | 0x80U);
  out += static_cast<char>(v);
}
inline void put_bytes(std::string& out, char tag, std::string_view bytes) {
  out += tag;
  put_varint(out, bytes.size());
  out += bytes;
}

WEFT_DECL std::string event_record(std::string_view data) {
  std::string out;
  put_little(out, data.size(), 8);
  put_little(out, masked(crc32c(0, out.data(), 8)), 4);
  out += data;
  put_little(out, masked(crc32c(0, data.data(), data.size())), 4);
  return out;
}

// Field 1, a double.
inline std::string begun_event(double time) {
  std::string out(1, '\x09');
  std::uint64_t bits;
  std::memcpy(&bits, &time, sizeof bits);
  put_little(out, bits, 8);
  return out;
}

WEFT_DECL std::string version_event(double time) {
  std::string out = begun_event(time);
  put_bytes(out, '\x1a', "brain.Event:2");
  return out;
}

WEFT_DECL std::string scalars_event(double time, std::int64_t step, const std::vector<std::pair<std::string, double>>& scalars) {
  std::string out = begun_event(time), summary;
  out += '\x10';
  put_varint(out, static_cast<std::uint64_t>(step));
  for (const auto& [tag, v] : scalars) {
    std::string value;
    put_bytes(value, '\x0a', tag);
    const auto narrow = static_cast<float>(v);
    std::uint32_t bits;
    std::memcpy(&bits, &narrow, sizeof bits);
    value += '\x15';
    put_little(value, bits, 4);
    put_bytes(summary, '\x0a', value);
  }
  put_bytes(out, '\x2a', summary);
  return out;
}

inline double seconds_now() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

}  // namespace detail

WEFT_DECL event_writer::event_writer(const std::string& directory) {
  char host[256] = "host";
  if (::gethostname(host, sizeof host - 1) != 0 || host[0] == '\0') std::strcpy(host, "host");
  const double now = detail::seconds_now();
  detail::make_folders(directory + "/");
  // Two writers of one second get files of their own.
  for (int number = 0; file_ < 0; ++number) {
    char name[320];
    std::snprintf(name, sizeof name, "/events.out.tfevents.%010lld.%s", static_cast<long long>(now), host);
    path_ = directory + name + (number == 0 ? "" : "." + std::to_string(number));
    file_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
    if (file_ < 0 && errno != EEXIST) detail::fail_file("write", path_, errno);
  }
  append(detail::version_event(now));
}
WEFT_DECL event_writer::~event_writer() {
  if (file_ >= 0) ::close(file_);
}

WEFT_DECL void event_writer::append(const std::string& event) {
  const std::string record = detail::event_record(event);
  for (std::size_t done = 0; done < record.size();) {
    const ssize_t put = ::write(file_, record.data() + done, record.size() - done);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) detail::fail_file("write", path_, errno);
    done += static_cast<std::size_t>(put);
  }
}

WEFT_DECL void event_writer::add(std::int64_t step, const std::vector<std::pair<std::string, double>>& scalars) { append(detail::scalars_event(detail::seconds_now(), step, scalars)); }

}  // namespace weft
#endif

#endif
