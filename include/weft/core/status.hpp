#ifndef WEFT_CORE_STATUS_HPP
#define WEFT_CORE_STATUS_HPP
// What went wrong, as a value (`status`, for threads and the wire) and as the one exception that weft throws (`error`).

#include <weft/core/call_site.hpp>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

namespace weft {

/// The canonical codes of gRPC and TensorFlow, with their numbers.
enum class error_code : std::uint8_t {
  ok = 0, cancelled = 1, unknown = 2, invalid_argument = 3, deadline_exceeded = 4, not_found = 5, already_exists = 6,
  permission_denied = 7, resource_exhausted = 8, failed_precondition = 9, aborted = 10, out_of_range = 11,
  unimplemented = 12, internal = 13, unavailable = 14, data_loss = 15, unauthenticated = 16
};

/// The code's canonical name, for example `INVALID_ARGUMENT`.
constexpr const char* to_text(error_code code) noexcept {
  constexpr const char* names[] = {"OK", "CANCELLED", "UNKNOWN", "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND",
                                   "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
                                   "ABORTED", "OUT_OF_RANGE", "UNIMPLEMENTED", "INTERNAL", "UNAVAILABLE", "DATA_LOSS",
                                   "UNAUTHENTICATED"};
  const auto i = static_cast<unsigned>(code);
  return i < sizeof(names) / sizeof(names[0]) ? names[i] : "UNKNOWN";
}

/// The outcome of something: `ok`, or a code, a message and where it happened. Fields that do not apply are empty.
struct status {
  error_code code = error_code::ok;
  /// What was expected, what was found, what to do; without the fields below.
  std::string message;
  /// Name and op of the node that failed.
  std::string node, op;
  /// The device on which the node was placed, short form.
  std::string device;
  /// The task on which it happened, with its address where known: `/job:ps/task:0 (127.0.0.1:33331)`.
  std::string task;
  /// The user's line that made the node.
  std::string site;
  /// True when this only follows from another failure of the same step; never reported in its place.
  bool derived = false;
  /// True when a step that failed so may have run, wholly or in part.
  bool may_have_run = false;

  status() = default;
  status(error_code c, std::string text) : code(c), message(std::move(text)) {}

  bool ok() const noexcept { return code == error_code::ok; }

  /// `INVALID_ARGUMENT: MatMul 'mul' (train.cpp:42) on /job:work/task:1/device:CPU:0: inner dimensions ...`.
  std::string text() const {
    if (ok()) return "OK";
    std::string out = to_text(code);
    out += ": ";
    if (!node.empty()) {
      if (!op.empty()) out += op + " ";
      out += "'" + node + "'";
      if (!site.empty()) out += " (" + site + ")";
      if (!device.empty()) out += " on " + device + address();
      else if (!task.empty()) out += " on " + task;
      out += ": ";
    } else if (!site.empty()) {
      out += site + ": ";
    }
    return out + message;
  }

  /// ` (127.0.0.1:33331)` when the task's address is known, else empty.
  std::string address() const {
    const auto open = task.find(" (");
    return open == std::string::npos ? std::string() : task.substr(open);
  }

  friend bool operator==(const status& a, const status& b) {
    return a.code == b.code && a.message == b.message && a.node == b.node && a.op == b.op && a.device == b.device &&
           a.task == b.task && a.site == b.site && a.derived == b.derived && a.may_have_run == b.may_have_run;
  }
  friend bool operator!=(const status& a, const status& b) { return !(a == b); }
};

/// The one exception that weft throws. `what()` is `status().text()`.
class error : public std::runtime_error {
 public:
  explicit error(weft::status s) : std::runtime_error(s.text()), status_(std::move(s)) {}
  error(error_code code, std::string message) : error(weft::status(code, std::move(message))) {}
  /// An error found while a line of the user's program is executed: the text begins with that line.
  error(error_code code, std::string message, call_site where) : error(located(code, std::move(message), where)) {}

  error_code code() const noexcept { return status_.code; }
  const weft::status& status() const noexcept { return status_; }
  const std::string& message() const noexcept { return status_.message; }
  const std::string& node() const noexcept { return status_.node; }
  const std::string& op() const noexcept { return status_.op; }
  const std::string& device() const noexcept { return status_.device; }
  const std::string& task() const noexcept { return status_.task; }
  const std::string& site() const noexcept { return status_.site; }
  /// False only when no task was sent the failed step, so that running it again cannot run it twice.
  bool may_have_run() const noexcept { return status_.may_have_run; }

 private:
  static weft::status located(error_code code, std::string message, call_site where) {
    weft::status s(code, std::move(message));
    s.site = where.text();
    return s;
  }
  weft::status status_;
};

/// Throws an error with this code and text.
[[noreturn]] inline void fail(error_code code, std::string message) { throw error(code, std::move(message)); }

}  // namespace weft

#endif
