#ifndef WEFT_CORE_DEVICE_NAME_HPP
#define WEFT_CORE_DEVICE_NAME_HPP
// Names of devices, whole or partial: `/job:ps/replica:0/task:0/device:CPU:0`, in any order, with `*` for "any".
// One strict grammar for scopes, nodes and imported graphs. weft has no replicas: a name that has a job and a task and
// says no replica means replica 0, and `/replica:1` can be written but names no device of any cluster.

#include <weft/core/config.hpp>
#include <weft/core/call_site.hpp>
#include <weft/core/status.hpp>

#include <cstddef>
#include <limits>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>

namespace weft {

/// A device, or a constraint on devices: a part that is unset stands for any.
struct device_name {
  /// The job, for example `ps`.
  std::optional<std::string> job;
  /// The replica (always 0 in weft) and the task's index in its job.
  std::optional<int> replica, task;
  /// The device type; `CPU` and `GPU` in capitals, other types as written.
  std::optional<std::string> type;
  /// The number of the device among those of its type on its task.
  std::optional<int> id;

  /// Whether nothing is set, so that every device matches.
  bool empty() const noexcept { return !job && !replica && !task && !type && !id; }
  /// Whether a task is named: job and task are set.
  bool has_task() const noexcept { return job && task; }
  /// Whether one device is named: job, task, type and id are set. The replica may be left out.
  bool is_complete() const noexcept { return has_task() && type && id; }

  /// The replica, which is 0 for a name that has a task and says none.
  std::optional<int> effective_replica() const noexcept { return !replica && has_task() ? std::optional<int>(0) : replica; }

  friend bool operator==(const device_name& a, const device_name& b) {
    return a.job == b.job && a.effective_replica() == b.effective_replica() && a.task == b.task && a.type == b.type && a.id == b.id;
  }
  friend bool operator!=(const device_name& a, const device_name& b) { return !(a == b); }
};

/// Whether a job may have this name: `[A-Za-z][A-Za-z0-9_]*`. Device types follow the same rule.
bool is_job_name(std::string_view text) noexcept;

namespace detail {

std::string quoted(std::string_view text);

std::string upper(std::string_view text);

// Reads a device string one component after the other; `problem` says what is wrong with the first bad one.
struct device_reader {
  device_name name;
  std::string problem;
  bool seen_job = false, seen_replica = false, seen_task = false, seen_device = false;

  bool read(std::string_view text);

 private:
  bool bad(std::string what) {
    problem = std::move(what);
    return false;
  }
  bool component(std::string_view part);
  bool number(std::string_view what, std::string_view text, std::optional<int>& out);
  bool job(std::string_view value);
  bool device(std::string_view value);
};

}  // namespace detail

/// Reads a device string; nothing, with the reason in `why`, if it is malformed.
std::optional<device_name> try_parse_device_name(std::string_view text, std::string* why = nullptr);

/// Reads a device string: components `/job:NAME /replica:N /task:N /device:TYPE:N` in any order, each at most once, `*` for
/// any; `/cpu:N` and `/gpu:N` stand for `/device:CPU:N` and `/device:GPU:N`; "" and "/" are the empty name.
/// Throws INVALID_ARGUMENT that says which part is wrong, with the user's line `where`. Follows TensorFlow's
/// DeviceNameUtils::ParseFullName, but refuses repeated components and numbers that do not fit.
device_name parse_device_name(std::string_view text, call_site where = {});

namespace detail {

std::string device_text(const device_name& name, std::optional<int> replica);

}  // namespace detail

/// The short form that messages and weft's own texts use: `/job:ps/task:0/device:CPU:0`. Replica 0 is not printed.
std::string to_text(const device_name& name);

/// TensorFlow's form: `/job:ps/replica:0/task:0/device:CPU:0`. The replica is printed where it is set or a task is named.
inline std::string to_full_text(const device_name& name) { return detail::device_text(name, name.effective_replica()); }

/// The task of a device: `/job:ps/task:0`.
std::string task_text(const device_name& name);

/// TensorFlow's order of devices: by the text of the full name, so `task:10` comes before `task:2`.
inline bool operator<(const device_name& a, const device_name& b) { return to_full_text(a) < to_full_text(b); }

inline std::ostream& operator<<(std::ostream& out, const device_name& name) { return out << to_text(name); }

/// The rule of nested device scopes: each part that `inner` sets wins, the others come from `outer`. Type and id are
/// separate parts, so `/device:GPU:1` around `/cpu:*` is `/device:CPU:1`, as in tf.device.
device_name merge_override(const device_name& outer, const device_name& inner);

/// The devices that meet both constraints. Throws INVALID_ARGUMENT where they contradict each other (MergeDevNames).
device_name merge_names(const device_name& a, const device_name& b);

/// As merge_names, but a conflict of types drops type and id, and one of ids drops the id. Conflicts of job, replica or
/// task throw (MergeDevNames with soft placement).
device_name merge_names_soft(const device_name& a, const device_name& b);

/// As merge_names, but type and id of `b` replace those of `a` (MergeOverrideDevNames).
device_name merge_override_names(const device_name& a, const device_name& b);

namespace detail {

bool covers(const device_name& pattern, const device_name& name, std::optional<int> replica);

}  // namespace detail

/// Whether each part that `less_specific` sets is set to the same in `more_specific`. Compares two constraints as they are
/// written: an unset replica is not covered by replica 0 (IsSpecification).
bool is_specification(const device_name& less_specific, const device_name& more_specific);

/// Whether a device or task satisfies a constraint. A name with a task and no replica counts as replica 0.
bool matches(const device_name& pattern, const device_name& name);

/// Whether `complete` names one device and satisfies `pattern`; false for a partial name (IsCompleteSpecification).
bool is_complete_specification(const device_name& pattern, const device_name& complete);

/// Whether both names have a task and it is the same one (IsSameAddressSpace).
bool same_task(const device_name& a, const device_name& b);

/// The complete name that takes the missing parts from `base`. Throws INVALID_ARGUMENT if `base` is not complete
/// (CanonicalizeDeviceName).
device_name canonical(const device_name& name, const device_name& base);

}  // namespace weft

#if WEFT_HAS_BODIES
namespace weft {

WEFT_DECL bool is_job_name(std::string_view text) noexcept {
  const auto letter = [](char c) { return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z'); };
  if (text.empty() || !letter(text[0])) return false;
  for (char c : text)
    if (!letter(c) && !(c >= '0' && c <= '9') && c != '_') return false;
  return true;
}

}  // namespace weft

namespace weft::detail {

// Text from outside in a message: in quotes, not longer than a line or two, without control characters.
WEFT_DECL std::string quoted(std::string_view text) {
  constexpr std::size_t limit = 200;
  std::string out = "'";
  for (char c : text.substr(0, limit)) out += static_cast<unsigned char>(c) < 0x20 || c == 0x7f ? '?' : c;
  return out + (text.size() > limit ? "...'" : "'");
}

WEFT_DECL std::string upper(std::string_view text) {
  std::string out(text);
  for (char& c : out)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  return out;
}

WEFT_DECL bool device_reader::read(std::string_view text) {
  if (text.empty() || text == "/") return true;
  if (text[0] != '/') return bad("it must begin with '/'");
  while (!text.empty()) {
    text.remove_prefix(1);
    const std::string_view part = text.substr(0, text.find('/'));
    text.remove_prefix(part.size());
    if (part.empty()) return bad(text.empty() ? "it ends in '/'" : "a component is empty ('//')");
    if (!component(part)) return false;
  }
  return true;
}

WEFT_DECL bool device_reader::component(std::string_view part) {
  const std::size_t colon = part.find(':');
  const std::string_view key = part.substr(0, colon);
  const std::string legacy = upper(key);
  const bool is_legacy = legacy == "CPU" || legacy == "GPU";
  bool* seen = key == "job" ? &seen_job : key == "replica" ? &seen_replica : key == "task" ? &seen_task
               : key == "device" || is_legacy ? &seen_device : nullptr;
  if (seen == nullptr) return bad(quoted(part) + " is none of job, replica, task, device, cpu, gpu");
  if (colon == std::string_view::npos) return bad(quoted(part) + " has no ':' and value");
  if (*seen) return bad(std::string(seen == &seen_device ? "a device" : std::string("a ") + std::string(key)) + " is given twice");
  *seen = true;
  const std::string_view value = part.substr(colon + 1);
  if (seen == &seen_job) return job(value);
  if (seen == &seen_replica) return number("replica", value, name.replica);
  if (seen == &seen_task) return number("task", value, name.task);
  if (!is_legacy) return device(value);
  name.type = legacy;
  return number("device number", value, name.id);
}

WEFT_DECL bool device_reader::number(std::string_view what, std::string_view text, std::optional<int>& out) {
  if (text == "*") return true;
  int n = 0;
  for (char c : text) {
    if (c < '0' || c > '9') return bad("the " + std::string(what) + " " + quoted(text) + " is not a decimal number or '*'");
    const int digit = c - '0';
    if (n > (std::numeric_limits<int>::max() - digit) / 10)
      return bad("the " + std::string(what) + " " + quoted(text) + " is larger than 2147483647");
    n = n * 10 + digit;
  }
  if (text.empty()) return bad("the " + std::string(what) + " is empty");
  out = n;
  return true;
}

WEFT_DECL bool device_reader::job(std::string_view value) {
  if (value == "*") return true;
  if (value.empty()) return bad("the job name is empty");
  if (!is_job_name(value)) return bad("the job name " + quoted(value) + " does not match [A-Za-z][A-Za-z0-9_]*");
  name.job = std::string(value);
  return true;
}

WEFT_DECL bool device_reader::device(std::string_view value) {
  const std::size_t colon = value.find(':');
  const std::string_view type = value.substr(0, colon);
  if (type.empty()) return bad("the device type is empty");
  if (type != "*") {
    if (!is_job_name(type)) return bad("the device type " + quoted(type) + " does not match [A-Za-z][A-Za-z0-9_]*");
    const std::string capitals = upper(type);
    name.type = capitals == "CPU" || capitals == "GPU" ? capitals : std::string(type);
  }
  return colon == std::string_view::npos || number("device number", value.substr(colon + 1), name.id);
}

}  // namespace weft::detail

namespace weft {

WEFT_DECL std::optional<device_name> try_parse_device_name(std::string_view text, std::string* why) {
  detail::device_reader reader;
  if (reader.read(text)) return std::move(reader.name);
  if (why != nullptr)
    *why = "device string " + detail::quoted(text) + " is malformed: " + reader.problem +
           "; expected something like '/job:ps/task:0/device:CPU:0'";
  return std::nullopt;
}

WEFT_DECL device_name parse_device_name(std::string_view text, call_site where) {
  std::string why;
  if (auto name = try_parse_device_name(text, &why)) return *std::move(name);
  throw error(error_code::invalid_argument, std::move(why), where);
}

}  // namespace weft

namespace weft::detail {

WEFT_DECL std::string device_text(const device_name& name, std::optional<int> replica) {
  std::string out;
  if (name.job) out += "/job:" + *name.job;
  if (replica) out += "/replica:" + std::to_string(*replica);
  if (name.task) out += "/task:" + std::to_string(*name.task);
  if (name.type || name.id) out += "/device:" + name.type.value_or("*") + ":" + (name.id ? std::to_string(*name.id) : "*");
  return out;
}

}  // namespace weft::detail

namespace weft {

WEFT_DECL std::string to_text(const device_name& name) {
  // An open replica is not copied: g++ takes that for the use of something that was never set.
  std::optional<int> shown;
  if (name.replica && *name.replica != 0) shown = *name.replica;
  return detail::device_text(name, shown);
}

WEFT_DECL std::string task_text(const device_name& name) {
  device_name task = name;
  task.type.reset();
  task.id.reset();
  return to_text(task);
}

WEFT_DECL device_name merge_override(const device_name& outer, const device_name& inner) {
  device_name out = outer;
  if (inner.job) out.job = inner.job;
  if (inner.replica) out.replica = inner.replica;
  if (inner.task) out.task = inner.task;
  if (inner.type) out.type = inner.type;
  if (inner.id) out.id = inner.id;
  return out;
}

}  // namespace weft

namespace weft::detail {

// The part in which two names contradict each other, in the plural; nullptr if there is none.
WEFT_DECL const char* task_conflict(const device_name& a, const device_name& b) {
  const auto differ = [](const auto& x, const auto& y) { return x && y && *x != *y; };
  return differ(a.job, b.job) ? "jobs" : differ(a.replica, b.replica) ? "replicas" : differ(a.task, b.task) ? "tasks" : nullptr;
}

WEFT_DECL const char* device_conflict(const device_name& a, const device_name& b) {
  const auto differ = [](const auto& x, const auto& y) { return x && y && *x != *y; };
  return differ(a.type, b.type) ? "types" : differ(a.id, b.id) ? "ids" : nullptr;
}

// Throws if there is a conflict. The names are printed with the replica as it is set, for that may be the conflict.
WEFT_DECL void refuse_merge(const char* part, const device_name& a, const device_name& b) {
  if (part != nullptr)
    fail(error_code::invalid_argument, std::string("Cannot merge devices with incompatible ") + part + ": '" +
                                           device_text(a, a.replica) + "' and '" + device_text(b, b.replica) + "'");
}

}  // namespace weft::detail

namespace weft {

WEFT_DECL device_name merge_names(const device_name& a, const device_name& b) {
  detail::refuse_merge(detail::task_conflict(a, b), a, b);
  detail::refuse_merge(detail::device_conflict(a, b), a, b);
  return merge_override(a, b);
}

WEFT_DECL device_name merge_names_soft(const device_name& a, const device_name& b) {
  detail::refuse_merge(detail::task_conflict(a, b), a, b);
  device_name out = merge_override(a, b);
  if (a.type && b.type && *a.type != *b.type) {
    out.type.reset();
    out.id.reset();
  } else if (a.id && b.id && *a.id != *b.id) {
    out.id.reset();
  }
  return out;
}

WEFT_DECL device_name merge_override_names(const device_name& a, const device_name& b) {
  detail::refuse_merge(detail::task_conflict(a, b), a, b);
  return merge_override(a, b);
}

}  // namespace weft

namespace weft::detail {

WEFT_DECL bool covers(const device_name& pattern, const device_name& name, std::optional<int> replica) {
  const auto covered = [](const auto& wanted, const auto& found) { return !wanted || wanted == found; };
  return covered(pattern.job, name.job) && covered(pattern.replica, replica) && covered(pattern.task, name.task) &&
         covered(pattern.type, name.type) && covered(pattern.id, name.id);
}

}  // namespace weft::detail

namespace weft {

WEFT_DECL bool is_specification(const device_name& less_specific, const device_name& more_specific) {
  return detail::covers(less_specific, more_specific, more_specific.replica);
}

WEFT_DECL bool matches(const device_name& pattern, const device_name& name) {
  return detail::covers(pattern, name, name.effective_replica());
}

WEFT_DECL bool is_complete_specification(const device_name& pattern, const device_name& complete) {
  return complete.is_complete() && matches(pattern, complete);
}

WEFT_DECL bool same_task(const device_name& a, const device_name& b) {
  return a.has_task() && b.has_task() && a.job == b.job && a.task == b.task && a.effective_replica() == b.effective_replica();
}

WEFT_DECL device_name canonical(const device_name& name, const device_name& base) {
  if (!base.is_complete())
    fail(error_code::invalid_argument, "the base '" + to_text(base) + "' of device '" + to_text(name) +
                                           "' is not complete; expected something like '/job:ps/task:0/device:CPU:0'");
  return merge_override(base, name);
}

}  // namespace weft
#endif

#endif
