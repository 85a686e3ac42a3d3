#ifndef WEFT_CORE_CLUSTER_SPEC_HPP
#define WEFT_CORE_CLUSTER_SPEC_HPP
// The tasks of a cluster and where each of them listens. A value: checked when it is made, compared and hashed by content.

#include <weft/core/config.hpp>
#include <weft/core/device_name.hpp>
#include <weft/core/status.hpp>

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

namespace weft {

/// A host (name, IPv4 or IPv6 address without brackets) and a port; port 0 means any free one.
struct host_port {
  std::string host;
  int port = 0;

  friend bool operator==(const host_port& a, const host_port& b) { return a.host == b.host && a.port == b.port; }
  friend bool operator!=(const host_port& a, const host_port& b) { return !(a == b); }
  friend bool operator<(const host_port& a, const host_port& b) { return std::tie(a.host, a.port) < std::tie(b.host, b.port); }
};

/// `host:port`, with brackets around an IPv6 address.
std::string to_text(const host_port& address);

namespace detail {

[[noreturn]] void bad_address(std::string_view text, const char* problem);

}  // namespace detail

/// Reads `host:port` or `[ipv6]:port`. Throws INVALID_ARGUMENT that says what is wrong.
host_port parse_host_port(std::string_view text);

/// One task of a cluster.
struct task_id {
  std::string job;
  int index = 0;

  friend bool operator==(const task_id& a, const task_id& b) { return a.job == b.job && a.index == b.index; }
  friend bool operator!=(const task_id& a, const task_id& b) { return !(a == b); }
  friend bool operator<(const task_id& a, const task_id& b) { return std::tie(a.job, a.index) < std::tie(b.job, b.index); }
};

/// `/job:ps/task:0`.
inline std::string to_text(const task_id& task) { return "/job:" + task.job + "/task:" + std::to_string(task.index); }

inline std::ostream& operator<<(std::ostream& out, const task_id& task) { return out << to_text(task); }

/// The task that a device name names; nothing if job or task is unset, or the replica is not 0.
std::optional<task_id> task_of(const device_name& name);

/// Jobs, their tasks, and the address of each task. Jobs are ordered by name and tasks by index, in whatever order they
/// were given; two specs are equal if they say the same. An address is `host:port`, or empty while it is not known.
/// Every way of making one throws INVALID_ARGUMENT for a bad job name or address, a job given twice, a negative task
/// index, or two tasks with one address (port 0 excepted).
class cluster_spec {
 public:
  /// One line of the constructor's list: a job with the addresses of tasks 0, 1, ..., or with a number of tasks.
  struct job {
    std::string name;
    std::map<int, std::string> tasks;

    job(std::string job_name, const std::vector<std::string>& addresses);
    job(std::string job_name, int count);
    job(const job&);
    job(job&&) noexcept;
    job& operator=(const job&);
    job& operator=(job&&) noexcept;
    ~job();
  };

  /// A cluster without jobs.
  cluster_spec();
  cluster_spec(const cluster_spec&);
  cluster_spec(cluster_spec&&) noexcept;
  cluster_spec& operator=(const cluster_spec&);
  cluster_spec& operator=(cluster_spec&&) noexcept;
  ~cluster_spec();
  /// `{{"ps", {"10.0.0.1:2222"}}, {"work", {"10.0.0.2:2222", "10.0.0.3:2222"}}}`, or `{{"ps", 1}, {"work", 2}}` for tasks
  /// whose addresses are not known.
  cluster_spec(std::initializer_list<job> jobs);
  /// Any task numbers: `{"work", {{3, "10.0.0.2:2222"}}}` is a job that has only task 3. An empty address is an unknown one.
  cluster_spec(std::map<std::string, std::map<int, std::string>> jobs);

  /// Whether there is no job.
  bool empty() const noexcept { return jobs_.empty(); }
  /// Names of the jobs, sorted.
  std::vector<std::string> jobs() const;
  /// Number of tasks of a job. Throws INVALID_ARGUMENT for an unknown job, with the known ones; so do the next two.
  int num_tasks(std::string_view job_name) const { return static_cast<int>(find(job_name).size()); }
  /// Indices of the tasks of a job, rising, with gaps where the job has gaps.
  std::vector<int> task_indices(std::string_view job_name) const;
  /// The address of a task, empty if not known. Throws INVALID_ARGUMENT for an unknown task, with the known ones.
  const std::string& task_address(std::string_view job_name, int index) const;
  /// The address of a task, empty if not known. Throws INVALID_ARGUMENT for an unknown task, with the known ones.
  const std::string& task_address(const task_id& task) const { return task_address(task.job, task.index); }
  /// Whether there is such a job.
  bool has_job(std::string_view job_name) const;
  /// Whether there is such a task.
  bool has(std::string_view job_name, int index) const;
  /// Whether there is such a task.
  bool has(const task_id& task) const { return has(task.job, task.index); }
  /// All tasks, by job name and index.
  std::vector<task_id> tasks() const;
  /// A copy in which a task has another address; an empty one makes it unknown. Throws as the constructors do.
  cluster_spec with_address(std::string_view job_name, int index, std::string address) const;
  /// 64-bit FNV-1a over `to_text`: the same on every machine and in every build.
  std::uint64_t hash() const;
  /// Job name to task index to address.
  const std::map<std::string, std::map<int, std::string>>& entries() const noexcept { return jobs_; }

  friend bool operator==(const cluster_spec& a, const cluster_spec& b);
  friend bool operator!=(const cluster_spec& a, const cluster_spec& b) { return !(a == b); }

 private:
  void check() const;
  const std::map<int, std::string>& find(std::string_view job_name) const;

  std::map<std::string, std::map<int, std::string>> jobs_;
};

namespace detail {

inline std::string address_or_unknown(const std::string& address) { return address.empty() ? "unknown" : "'" + address + "'"; }

}  // namespace detail

/// `cluster_spec{ps: [10.0.0.1:2222, 10.0.0.1:2223], work: {3: 10.0.0.2:2222}}`: a list for tasks 0, 1, ..., else by index;
/// `?` for an address that is not known. Equal specs have equal texts.
std::string to_text(const cluster_spec& cluster);

inline std::ostream& operator<<(std::ostream& out, const cluster_spec& cluster) { return out << to_text(cluster); }

/// The first entry in which two specs differ, `here` and `there`, as a sentence for a message; empty if they are equal.
std::string difference(const cluster_spec& here, const cluster_spec& there);

namespace detail {

std::vector<std::string_view> split(std::string_view text, char separator);

}  // namespace detail

/// Reads a cluster from one line, as for a command line: `ps=10.0.0.1:2222;work=10.0.0.2:2222,10.0.0.3:2222`.
cluster_spec parse_cluster_spec(std::string_view text);

}  // namespace weft

#if WEFT_HAS_BODIES
namespace weft {

WEFT_DECL std::string to_text(const host_port& address) {
  const bool v6 = address.host.find(':') != std::string::npos;
  return (v6 ? "[" + address.host + "]" : address.host) + ":" + std::to_string(address.port);
}

}  // namespace weft

namespace weft::detail {

// What is wrong with the host of an address; nullptr if nothing is.
WEFT_DECL const char* host_problem(std::string_view host, bool v6) {
  if (host.empty()) return "the host is empty";
  if (!v6 && host.find(':') != std::string_view::npos) return "an IPv6 address needs brackets, as in '[::1]:2222'";
  if (v6 && host.find(':') == std::string_view::npos) return "brackets are for IPv6 addresses, as in '[::1]:2222'";
  for (char c : host) {
    const bool alnum = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z');
    const bool mark = c == '.' || c == '-' || c == '_' || (v6 && (c == ':' || c == '%'));
    if (!alnum && !mark) return "the host has a character that hosts cannot have";
  }
  return nullptr;
}

// What is wrong with the port of an address; nullptr, and the number in `port`, if nothing is.
WEFT_DECL const char* port_problem(std::string_view text, int& port) {
  if (text.empty()) return "the port is empty";
  port = 0;
  for (char c : text) {
    if (c < '0' || c > '9') return "the port is not a decimal number";
    port = port * 10 + (c - '0');
    if (port > 65535) return "the port is larger than 65535";
  }
  return nullptr;
}

[[noreturn]] WEFT_DECL void bad_address(std::string_view text, const char* problem) {
  fail(error_code::invalid_argument,
       "address " + quoted(text) + ": " + problem + "; expected host:port, for example '127.0.0.1:2222'");
}

}  // namespace weft::detail

namespace weft {

WEFT_DECL host_port parse_host_port(std::string_view text) {
  const bool v6 = !text.empty() && text[0] == '[';
  const std::size_t colon = v6 ? text.find("]:") : text.rfind(':');
  if (colon == std::string_view::npos) detail::bad_address(text, "there is no port");
  const std::string_view host = v6 ? text.substr(1, colon - 1) : text.substr(0, colon);
  host_port out{std::string(host), 0};
  const char* problem = detail::host_problem(host, v6);
  if (problem == nullptr) problem = detail::port_problem(text.substr(colon + (v6 ? 2 : 1)), out.port);
  if (problem != nullptr) detail::bad_address(text, problem);
  return out;
}

WEFT_DECL std::optional<task_id> task_of(const device_name& name) {
  if (!name.has_task() || name.effective_replica() != 0) return std::nullopt;
  return task_id{*name.job, *name.task};
}

}  // namespace weft

namespace weft::detail {

// `0-2, 5` of the indices of a job; `none` if there are none.
WEFT_DECL std::string index_ranges(const std::map<int, std::string>& tasks) {
  std::string out;
  for (auto it = tasks.begin(); it != tasks.end();) {
    const int first = it->first;
    int last = first;
    for (++it; it != tasks.end() && it->first == last + 1; ++it) last = it->first;
    out += (out.empty() ? "" : ", ") + std::to_string(first);
    if (last > first) out += "-" + std::to_string(last);
  }
  return out.empty() ? "none" : out;
}

}  // namespace weft::detail

namespace weft {

WEFT_DECL std::string to_text(const cluster_spec& cluster) {
  std::string out = "cluster_spec{";
  const char* before_job = "";
  for (const auto& [name, tasks] : cluster.entries()) {
    const bool dense = tasks.empty() || tasks.rbegin()->first == static_cast<int>(tasks.size()) - 1;
    out += before_job + name + (dense ? ": [" : ": {");
    before_job = ", ";
    const char* before_task = "";
    for (const auto& [index, address] : tasks) {
      out += before_task + (dense ? std::string() : std::to_string(index) + ": ") + (address.empty() ? "?" : address);
      before_task = ", ";
    }
    out += dense ? "]" : "}";
  }
  return out + "}";
}

WEFT_DECL cluster_spec::job::job(std::string job_name, const std::vector<std::string>& addresses) : name(std::move(job_name)) {
  for (const std::string& address : addresses) {
    const int index = static_cast<int>(tasks.size());
    if (address.empty())
      fail(error_code::invalid_argument, "task " + std::to_string(index) + " of job " + detail::quoted(name) + " has an empty address");
    tasks.emplace_hint(tasks.end(), index, address);
  }
}

WEFT_DECL cluster_spec::job::job(std::string job_name, int count) : name(std::move(job_name)) {
  if (count < 0)
    fail(error_code::invalid_argument, "job " + detail::quoted(name) + " has " + std::to_string(count) + " tasks; expected 0 or more");
  for (int index = 0; index < count; ++index) tasks.emplace_hint(tasks.end(), index, std::string());
}

// The special members are bodies, so that a file that names a cluster compiles no map.
WEFT_DECL cluster_spec::job::job(const job&) = default;
WEFT_DECL cluster_spec::job::job(job&&) noexcept = default;
WEFT_DECL cluster_spec::job& cluster_spec::job::operator=(const job&) = default;
WEFT_DECL cluster_spec::job& cluster_spec::job::operator=(job&&) noexcept = default;
WEFT_DECL cluster_spec::job::~job() = default;
WEFT_DECL cluster_spec::cluster_spec() = default;
WEFT_DECL cluster_spec::cluster_spec(const cluster_spec&) = default;
WEFT_DECL cluster_spec::cluster_spec(cluster_spec&&) noexcept = default;
WEFT_DECL cluster_spec& cluster_spec::operator=(const cluster_spec&) = default;
WEFT_DECL cluster_spec& cluster_spec::operator=(cluster_spec&&) noexcept = default;
WEFT_DECL cluster_spec::~cluster_spec() = default;

WEFT_DECL cluster_spec::cluster_spec(std::map<std::string, std::map<int, std::string>> jobs) : jobs_(std::move(jobs)) { check(); }

WEFT_DECL bool cluster_spec::has_job(std::string_view job_name) const { return jobs_.find(std::string(job_name)) != jobs_.end(); }

WEFT_DECL bool operator==(const cluster_spec& a, const cluster_spec& b) { return a.jobs_ == b.jobs_; }

WEFT_DECL cluster_spec::cluster_spec(std::initializer_list<job> jobs) {
  for (const job& entry : jobs)
    if (!jobs_.emplace(entry.name, entry.tasks).second) fail(error_code::invalid_argument, "job '" + entry.name + "' is given twice");
  check();
}

WEFT_DECL void cluster_spec::check() const {
  std::map<host_port, task_id> owners;
  for (const auto& [name, tasks] : jobs_) {
    if (!is_job_name(name))
      fail(error_code::invalid_argument, name.empty() ? "a job name is empty; job names match [A-Za-z][A-Za-z0-9_]*"
                                                      : "job name " + detail::quoted(name) + " does not match [A-Za-z][A-Za-z0-9_]*");
    for (const auto& [index, address] : tasks) {
      if (index < 0) fail(error_code::invalid_argument, "job '" + name + "' has a task " + std::to_string(index) + "; expected 0 or more");
      if (address.empty()) continue;
      host_port where;
      try {
        where = parse_host_port(address);
      } catch (const error& e) {
        fail(e.code(), to_text(task_id{name, index}) + ": " + e.message());
      }
      if (where.port == 0) continue;
      const auto [owner, is_new] = owners.emplace(where, task_id{name, index});
      if (!is_new)
        fail(error_code::invalid_argument, to_text(owner->second) + " and " + to_text(task_id{name, index}) + " have the same address '" +
                                               address + "'; each task needs its own");
    }
  }
}

WEFT_DECL const std::map<int, std::string>& cluster_spec::find(std::string_view job_name) const {
  const auto it = jobs_.find(std::string(job_name));
  if (it != jobs_.end()) return it->second;
  std::string known;
  for (const auto& entry : jobs_) known += (known.empty() ? "'" : ", '") + entry.first + "'";
  fail(error_code::invalid_argument, "no job " + detail::quoted(job_name) + " in the cluster; " +
                                         (known.empty() ? "it has no jobs" : "its jobs are " + known));
}

WEFT_DECL std::vector<std::string> cluster_spec::jobs() const {
  std::vector<std::string> out;
  for (const auto& entry : jobs_) out.push_back(entry.first);
  return out;
}

WEFT_DECL std::vector<int> cluster_spec::task_indices(std::string_view job_name) const {
  std::vector<int> out;
  for (const auto& task : find(job_name)) out.push_back(task.first);
  return out;
}

WEFT_DECL const std::string& cluster_spec::task_address(std::string_view job_name, int index) const {
  const auto& tasks = find(job_name);
  const auto it = tasks.find(index);
  if (it != tasks.end()) return it->second;
  fail(error_code::invalid_argument, "no task " + std::to_string(index) + " in job '" + std::string(job_name) + "'; its tasks are " +
                                         detail::index_ranges(tasks));
}

WEFT_DECL bool cluster_spec::has(std::string_view job_name, int index) const {
  const auto it = jobs_.find(std::string(job_name));
  return it != jobs_.end() && it->second.count(index) != 0;
}

WEFT_DECL std::vector<task_id> cluster_spec::tasks() const {
  std::vector<task_id> out;
  for (const auto& [name, tasks] : jobs_)
    for (const auto& task : tasks) out.push_back({name, task.first});
  return out;
}

WEFT_DECL cluster_spec cluster_spec::with_address(std::string_view job_name, int index, std::string address) const {
  task_address(job_name, index);  // throws if there is no such task
  cluster_spec out = *this;
  out.jobs_[std::string(job_name)][index] = std::move(address);
  out.check();
  return out;
}

WEFT_DECL std::uint64_t cluster_spec::hash() const {
  std::uint64_t h = 14695981039346656037u;
  for (char c : to_text(*this)) h = (h ^ static_cast<unsigned char>(c)) * 1099511628211u;
  return h;
}

WEFT_DECL std::string difference(const cluster_spec& here, const cluster_spec& there) {
  std::map<task_id, std::pair<const std::string*, const std::string*>> both;
  for (const task_id& task : here.tasks()) both[task].first = &here.task_address(task);
  for (const task_id& task : there.tasks()) both[task].second = &there.task_address(task);
  const auto said = [](const std::string* address) { return address ? detail::address_or_unknown(*address) : std::string("absent"); };
  for (const auto& [task, address] : both)
    if (!address.first || !address.second || *address.first != *address.second)
      return to_text(task) + " is " + said(address.first) + " here and " + said(address.second) + " there";
  for (const std::string& name : here.jobs())
    if (!there.has_job(name)) return "job '" + name + "' (without tasks) is here and not there";
  for (const std::string& name : there.jobs())
    if (!here.has_job(name)) return "job '" + name + "' (without tasks) is there and not here";
  return {};
}

}  // namespace weft

namespace weft::detail {

WEFT_DECL std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> out;
  for (std::size_t end = 0; end != std::string_view::npos;) {
    end = text.find(separator);
    out.push_back(text.substr(0, end));
    if (end != std::string_view::npos) text.remove_prefix(end + 1);
  }
  return out;
}

}  // namespace weft::detail

namespace weft {

WEFT_DECL cluster_spec parse_cluster_spec(std::string_view text) {
  std::map<std::string, std::map<int, std::string>> jobs;
  for (std::string_view entry : detail::split(text, ';')) {
    const std::size_t equals = entry.find('=');
    if (equals == std::string_view::npos)
      fail(error_code::invalid_argument, "cluster " + detail::quoted(text) + ": " + detail::quoted(entry) +
                                             " has no '='; expected 'ps=host:port,host:port;work=host:port'");
    std::vector<std::string> addresses;
    for (std::string_view address : detail::split(entry.substr(equals + 1), ',')) addresses.emplace_back(address);
    cluster_spec::job line(std::string(entry.substr(0, equals)), addresses);
    if (!jobs.emplace(line.name, std::move(line.tasks)).second)
      fail(error_code::invalid_argument, "cluster " + detail::quoted(text) + ": job '" + line.name + "' is given twice");
  }
  return cluster_spec(std::move(jobs));
}

}  // namespace weft
#endif

#endif
