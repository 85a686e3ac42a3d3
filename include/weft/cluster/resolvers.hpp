#ifndef WEFT_CLUSTER_RESOLVERS_HPP
#define WEFT_CLUSTER_RESOLVERS_HPP
// The cluster and the own task as the environment of a process says them: TensorFlow's TF_CONFIG, Slurm, MPI.

#include <weft/core/cluster_spec.hpp>
#include <weft/core/config.hpp>
#include <weft/core/status.hpp>

#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weft {

/// Variables of an environment by name.
using environment_variables = std::map<std::string, std::string>;

/// The environment of this process.
environment_variables process_environment();

/// What a resolver found.
struct resolved_cluster {
  /// Empty if the environment says nothing of a cluster: then the program runs by itself.
  cluster_spec cluster;
  /// The own task; nothing for a program that only opens sessions. An `evaluator` is no task of the cluster.
  std::optional<task_id> task;
  /// Where sessions are opened if TF_CONFIG says so (`session_master`), else the own task's `weft://host:port`, else empty.
  std::string target;

  /// Whether this task is the one that initialises and saves: of job `chief` or `master`, or worker 0 where there is no such job, or alone.
  bool is_chief() const;
};

/// Reads TF_CONFIG, `{"cluster": {"ps": ["10.0.0.1:2222"], "worker": [...]}, "task": {"type": "worker", "index": 0}}`, by the rules of TensorFlow's
/// TFConfigClusterResolver and RunConfig: an unset or empty variable is an empty cluster; without a cluster the type is `worker`; a `chief` or `master` is
/// one task; an `evaluator` stands outside of the cluster. Other members are passed over. Throws INVALID_ARGUMENT with the member that is wrong.
resolved_cluster resolve_tf_config(const environment_variables& variables = process_environment());

/// How the tasks of a batch system become those of a cluster: ranks are dealt out to the jobs in this order, `{{"ps", 2}, {"worker", 6}}`.
struct batch_jobs {
  std::vector<std::pair<std::string, int>> jobs;
  /// Port of the first task on each machine; the next one there takes the next.
  int first_port = 8888;
  /// For MPI, whose environment does not name them: the machines in the order of their ranks (`expand_host_list` reads a list in brackets); empty
  /// for this machine alone.
  std::vector<std::string> hosts{};
};

/// Reads what Slurm's `srun` tells a task: the nodes (`SLURM_STEP_NODELIST`, else `SLURM_JOB_NODELIST`, else `SLURM_NODELIST`), the tasks on each
/// (`SLURM_STEP_TASKS_PER_NODE`, else `SLURM_TASKS_PER_NODE`), the rank (`SLURM_PROCID`), and `SLURM_DISTRIBUTION` (block or cyclic). Throws INVALID_ARGUMENT
/// with the variable and the character that is wrong, or when the jobs do not have as many tasks as there are ranks.
resolved_cluster resolve_slurm(const batch_jobs& how, const environment_variables& variables = process_environment());

/// Reads what `mpirun` tells a process: rank and size of Open MPI (`OMPI_COMM_WORLD_RANK`, `_SIZE`, `_LOCAL_RANK`, `_LOCAL_SIZE`) or of MPICH and its kin (`PMI_RANK`,
/// `PMI_SIZE`, `MPI_LOCALRANKID`, `MPI_LOCALNRANKS`). Ranks fill one
/// machine after the other; each but the last has equally many. Throws as `resolve_slurm`.
resolved_cluster resolve_mpi(const batch_jobs& how, const environment_variables& variables = process_environment());

/// Slurm's list of hosts, one by one: `node[01-03,07],gpu-a[1-2]b` is node01, node02, node03, node07, gpu-a1b, gpu-a2b. Throws INVALID_ARGUMENT with the
/// character that is wrong; so does a list of more than 65536 hosts.
std::vector<std::string> expand_host_list(std::string_view text);

}  // namespace weft

#if WEFT_HAS_CLUSTER_BODIES
#include <weft/format/json_value.hpp>

#include <algorithm>
#include <cstdint>

extern "C" char** environ;

namespace weft {

WEFT_DECL environment_variables process_environment() {
  environment_variables out;
  for (char** each = environ; each != nullptr && *each != nullptr; ++each) {
    const std::string_view entry(*each);
    const std::size_t equals = entry.find('=');
    if (equals != std::string_view::npos) out.emplace(std::string(entry.substr(0, equals)), std::string(entry.substr(equals + 1)));
  }
  return out;
}

WEFT_DECL bool resolved_cluster::is_chief() const {
  if (!task || cluster.empty()) return !task || task->job != "evaluator";
  if (task->job == "chief" || task->job == "master") return true;
  return task->job == "worker" && task->index == 0 && !cluster.has_job("chief") && !cluster.has_job("master");
}

}  // namespace weft

namespace weft::detail {

// The largest cluster that a resolver makes.
inline constexpr std::size_t most_tasks = 65536;

inline int index_of_key(const json_at& at) {
  const std::string& key = at.value.key;
  const bool digits = !key.empty() && key.size() <= 6 && key.find_first_not_of("0123456789") == std::string::npos;
  if (!digits) bad_json(at, "expected the index of a task, found \"" + key.substr(0, 80) + "\"");
  return std::stoi(key);
}

// The addresses of a job: a list, or an object by index.
inline std::map<int, std::string> tasks_of_job(const json_at& job) {
  std::map<int, std::string> out;
  const auto add = [&](int index, const json_at& at) {
    try {
      if (parse_host_port(string_at(at)).port == 0) fail(error_code::invalid_argument, "address " + detail::quoted(string_at(at)) + ": port 0 is no port that others can connect to");
    } catch (const error& e) {
      if (at.value.kind != json_kind::string) throw;
      bad_json(at, e.message());
    }
    if (!out.emplace(index, at.value.text).second) bad_json(at, "task " + std::to_string(index) + " is given twice");
  };
  if (job.value.kind == json_kind::object) {
    for (const json_value& each : job.value.items) {
      const json_at at(each, job, each.key);
      add(index_of_key(at), at);
    }
    return out;
  }
  if (job.value.kind != json_kind::array) bad_json(job, "expected an array of addresses");
  for (std::size_t i = 0; i < job.value.items.size(); ++i) add(static_cast<int>(i), json_at(job.value.items[i], job, i));
  return out;
}

inline cluster_spec cluster_of_json(const json_at& at) {
  if (at.value.kind != json_kind::object) bad_json(at, "expected an object of jobs");
  std::map<std::string, std::map<int, std::string>> jobs;
  for (const json_value& each : at.value.items) {
    const json_at job(each, at, each.key);
    auto tasks = tasks_of_job(job);
    if (each.key == "evaluator" && !tasks.empty()) bad_json(job, "an evaluator is no part of the cluster; name it in \"task\" only");
    if ((each.key == "chief" || each.key == "master") && tasks.size() != 1) bad_json(job, "expected one address, found " + std::to_string(tasks.size()));
    jobs.emplace(each.key, std::move(tasks));
  }
  if (jobs.count("chief") != 0 && jobs.count("master") != 0) bad_json(at, "there is a \"chief\" and a \"master\"; expected one of them");
  try {
    return cluster_spec(std::move(jobs));
  } catch (const error& e) {
    bad_json(at, e.message());
  }
}

inline task_id task_of_json(const json_at& at, const cluster_spec& cluster) {
  const json_value* type = find_field(at, "type");
  const json_value* index = find_field(at, "index");
  if (type == nullptr) bad_json(at, "there is no \"type\"");
  const json_at type_at(*type, at, "type");
  task_id out{string_at(type_at), 0};
  if (index != nullptr) {
    const json_at index_at(*index, at, "index");
    if (index->kind == json_kind::string) bad_json(index_at, "expected a number, found \"" + index->text.substr(0, 80) + "\" in quotes");
    out.index = static_cast<int>(integer_at(index_at, 0, INT32_MAX));
  } else if (!cluster.empty()) {
    bad_json(at, "there is no \"index\"");
  }
  if (out.job == "evaluator") return out;
  if (cluster.empty() && out.job != "worker") bad_json(type_at, "expected \"worker\" where there is no \"cluster\", found " + detail::quoted(out.job));
  if (cluster.empty()) return out;
  if (!cluster.has_job(out.job)) {
    std::string known;
    for (const std::string& name : cluster.jobs()) known += (known.empty() ? "'" : ", '") + name + "'";
    bad_json(type_at, detail::quoted(out.job) + " is no job of \"cluster\", whose jobs are " + known);
  }
  try {
    (void)cluster.task_address(out);
  } catch (const error& e) {
    bad_json(json_at(*index, at, "index"), e.message());
  }
  return out;
}

}  // namespace weft::detail

namespace weft {

WEFT_DECL resolved_cluster resolve_tf_config(const environment_variables& variables) {
  resolved_cluster out;
  const auto text = variables.find("TF_CONFIG");
  if (text == variables.end() || text->second.find_first_not_of(" \t\n") == std::string::npos) return out;
  try {
    const detail::json_value top = detail::parse_json(text->second);
    const detail::json_at at(top);
    if (top.kind != detail::json_kind::object) detail::bad_json(at, "expected an object");
    if (const detail::json_value* cluster = detail::find_field(at, "cluster")) out.cluster = detail::cluster_of_json(detail::json_at(*cluster, at, "cluster"));
    if (const detail::json_value* task = detail::find_field(at, "task"); task != nullptr) {
      const detail::json_at task_at(*task, at, "task");
      if (task->kind != detail::json_kind::object) detail::bad_json(task_at, "expected an object");
      if (!task->items.empty()) out.task = detail::task_of_json(task_at, out.cluster);
    }
    if (const detail::json_value* target = detail::find_field(at, "session_master")) out.target = detail::string_at(detail::json_at(*target, at, "session_master"));
  } catch (const error& e) {
    fail(e.code(), "TF_CONFIG: " + e.message());
  }
  if (out.target.empty() && out.task && out.cluster.has(*out.task)) out.target = "weft://" + out.cluster.task_address(*out.task);
  return out;
}

}  // namespace weft

namespace weft::detail {

// Reads a text from the left; what it refuses is named with its character, counted from 1.
class text_cursor {
 public:
  explicit text_cursor(std::string_view text) : text_(text) {}
  bool at_end() const noexcept { return at_ == text_.size(); }
  char peek() const noexcept { return at_end() ? '\0' : text_[at_]; }
  std::size_t position() const noexcept { return at_; }
  bool take(char c) noexcept {
    if (at_end() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  void expect(char c) {
    if (!take(c)) refuse(std::string("expected '") + c + "'");
  }
  // Digits as they stand, at most `most` of them.
  std::string_view digits(std::size_t most = 9) {
    const std::size_t begin = at_;
    while (peek() >= '0' && peek() <= '9') ++at_;
    if (at_ == begin) refuse("expected a number");
    if (at_ - begin > most) refuse_at(begin, "a number of " + std::to_string(at_ - begin) + " digits");
    return text_.substr(begin, at_ - begin);
  }
  // Everything up to one of these characters.
  std::string_view until(std::string_view stops) noexcept {
    const std::size_t begin = at_;
    while (!at_end() && stops.find(text_[at_]) == std::string_view::npos) ++at_;
    return text_.substr(begin, at_ - begin);
  }
  [[noreturn]] void refuse(const std::string& what) const { refuse_at(at_, what + (at_end() ? ", found the end" : std::string(", found '") + text_[at_] + "'")); }
  [[noreturn]] void refuse_at(std::size_t at, const std::string& what) const {
    fail(error_code::invalid_argument, detail::quoted(text_.substr(0, 200)) + ", character " + std::to_string(at + 1) + ": " + what);
  }

 private:
  std::string_view text_;
  std::size_t at_ = 0;
};

inline int value_of_digits(std::string_view digits) {
  int out = 0;
  for (const char c : digits) out = out * 10 + (c - '0');
  return out;
}

// `[01-03,07]`, behind its bracket: what it stands for, as text.
inline std::vector<std::string> bracket_values(text_cursor& from, std::size_t most) {
  std::vector<std::string> out;
  do {
    const std::size_t begin = from.position();
    const std::string_view first = from.digits();
    const std::string_view last = from.take('-') ? from.digits() : first;
    const int low = value_of_digits(first), high = value_of_digits(last);
    if (high < low) from.refuse_at(begin, "the range ends before it begins");
    if (static_cast<std::size_t>(high - low) >= most - out.size()) from.refuse_at(begin, "more than " + std::to_string(most_tasks) + " hosts");
    for (int i = low; i <= high; ++i) {
      std::string digits = std::to_string(i);
      if (digits.size() < first.size()) digits.insert(0, first.size() - digits.size(), '0');
      out.push_back(std::move(digits));
    }
  } while (from.take(','));
  from.expect(']');
  return out;
}

// One variable as a number.
inline std::optional<int> number_in(const environment_variables& variables, const char* name) {
  const auto found = variables.find(name);
  if (found == variables.end()) return std::nullopt;
  try {
    text_cursor from(found->second);
    const int out = value_of_digits(from.digits());
    if (!from.at_end()) from.refuse("expected a number alone");
    return out;
  } catch (const error& e) {
    fail(e.code(), std::string(name) + ": " + e.message());
  }
}

// The first of these variables that is set.
inline environment_variables::const_iterator first_set(const environment_variables& variables, std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (const auto found = variables.find(name); found != variables.end()) return found;
  std::string all;
  for (const char* name : names) all += (all.empty() ? "" : " or ") + std::string(name);
  fail(error_code::invalid_argument, all + " is not set; is this process started by the batch system?");
}

// `2(x3),1`: 2, 2, 2, 1.
inline std::vector<int> tasks_per_node(std::string_view text) {
  text_cursor from(text);
  std::vector<int> out;
  do {
    const std::size_t begin = from.position();
    const int count = value_of_digits(from.digits());
    int times = 1;
    if (from.take('(')) {
      from.expect('x');
      times = value_of_digits(from.digits());
      from.expect(')');
    }
    if (static_cast<std::size_t>(times) > most_tasks - std::min(most_tasks, out.size())) from.refuse_at(begin, "more than " + std::to_string(most_tasks) + " nodes");
    out.insert(out.end(), static_cast<std::size_t>(times), count);
  } while (from.take(','));
  if (!from.at_end()) from.refuse("expected ','");
  return out;
}

// By rank: the number of its node.
inline std::vector<std::size_t> nodes_of_ranks(std::vector<int> per_node, bool cyclic) {
  std::vector<std::size_t> out;
  std::size_t total = 0;
  for (const int n : per_node) total += static_cast<std::size_t>(n);
  if (total > most_tasks) fail(error_code::invalid_argument, std::to_string(total) + " tasks, at most " + std::to_string(most_tasks));
  while (out.size() < total)
    for (std::size_t node = 0; node < per_node.size(); ++node) {
      const int taken = cyclic ? std::min(1, per_node[node]) : per_node[node];
      out.insert(out.end(), static_cast<std::size_t>(taken), node);
      per_node[node] -= taken;
    }
  return out;
}

// Deals the ranks out to the jobs.
inline resolved_cluster deal_out(const batch_jobs& how, const std::vector<std::string>& hosts, const std::vector<std::size_t>& node_of, int rank, const char* rank_variable) {
  std::map<std::string, std::map<int, std::string>> jobs;
  std::vector<int> used(hosts.size(), 0);
  std::size_t wanted = 0, next = 0;
  for (const auto& [name, count] : how.jobs) {
    if (count < 0 || jobs.count(name) != 0) fail(error_code::invalid_argument, "batch_jobs: job " + detail::quoted(name) + (count < 0 ? " has a negative number of tasks" : " is given twice"));
    jobs[name];
    wanted += static_cast<std::size_t>(count);
  }
  if (wanted != node_of.size())
    fail(error_code::invalid_argument, "the jobs have " + std::to_string(wanted) + " tasks, the batch system started " + std::to_string(node_of.size()));
  if (rank < 0 || static_cast<std::size_t>(rank) >= node_of.size())
    fail(error_code::invalid_argument, std::string(rank_variable) + " is " + std::to_string(rank) + ", but there are " + std::to_string(node_of.size()) + " tasks");
  resolved_cluster out;
  for (const auto& [name, count] : how.jobs)
    for (int i = 0; i < count; ++i, ++next) {
      const std::size_t node = node_of[next];
      jobs[name][i] = to_text(host_port{hosts[node], how.first_port + used[node]++});
      if (static_cast<int>(next) == rank) out.task = task_id{name, i};
    }
  out.cluster = cluster_spec(std::move(jobs));
  out.target = "weft://" + out.cluster.task_address(*out.task);
  return out;
}

}  // namespace weft::detail

namespace weft {

WEFT_DECL std::vector<std::string> expand_host_list(std::string_view text) {
  detail::text_cursor from(text);
  std::vector<std::string> out;
  do {
    const std::size_t begin = from.position();
    std::vector<std::string> names{std::string()};
    while (!from.at_end() && from.peek() != ',') {
      const std::string_view plain = from.until("[],");
      for (std::string& name : names) name += plain;
      if (from.peek() == ']') from.refuse_at(from.position(), "']' without a '[' before it");
      if (!from.take('[')) continue;
      const std::vector<std::string> values = detail::bracket_values(from, detail::most_tasks);
      if (values.size() * names.size() > detail::most_tasks) from.refuse_at(begin, "more than " + std::to_string(detail::most_tasks) + " hosts");
      std::vector<std::string> longer;
      for (const std::string& name : names)
        for (const std::string& value : values) longer.push_back(name + value);
      names = std::move(longer);
    }
    if (from.position() == begin) from.refuse("expected the name of a host");
    if (out.size() + names.size() > detail::most_tasks) from.refuse_at(begin, "more than " + std::to_string(detail::most_tasks) + " hosts");
    out.insert(out.end(), names.begin(), names.end());
  } while (from.take(','));
  return out;
}

WEFT_DECL resolved_cluster resolve_slurm(const batch_jobs& how, const environment_variables& variables) {
  const auto list = detail::first_set(variables, {"SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST"});
  const auto counts = detail::first_set(variables, {"SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE"});
  (void)detail::first_set(variables, {"SLURM_PROCID"});
  const int rank = *detail::number_in(variables, "SLURM_PROCID");
  std::vector<std::string> hosts;
  std::vector<int> per_node;
  const char* reading = list->first.c_str();
  try {
    hosts = expand_host_list(list->second);
    reading = counts->first.c_str();
    per_node = detail::tasks_per_node(counts->second);
  } catch (const error& e) {
    fail(e.code(), std::string(reading) + ": " + e.message());
  }
  if (hosts.size() != per_node.size())
    fail(error_code::invalid_argument, list->first + " names " + std::to_string(hosts.size()) + " nodes, " + counts->first + " " + std::to_string(per_node.size()));
  const auto distribution = variables.find("SLURM_DISTRIBUTION");
  const std::string order = distribution == variables.end() ? "block" : distribution->second.substr(0, distribution->second.find_first_of(":,"));
  if (order != "block" && order != "cyclic" && order != "*")
    fail(error_code::invalid_argument, "SLURM_DISTRIBUTION: " + detail::quoted(distribution->second) + ", character 1: expected block or cyclic");
  const std::vector<std::size_t> node_of = detail::nodes_of_ranks(per_node, order == "cyclic");
  resolved_cluster out = detail::deal_out(how, hosts, node_of, rank, "SLURM_PROCID");
  const auto said = detail::number_in(variables, "SLURM_NODEID");
  const std::size_t node = node_of[static_cast<std::size_t>(rank)];
  if (said && static_cast<std::size_t>(*said) != node)
    fail(error_code::invalid_argument, "SLURM_NODEID is " + std::to_string(*said) + ", but rank " + std::to_string(rank) + " should be on node " + std::to_string(node) +
                                           "; expected ranks in the order that SLURM_DISTRIBUTION says");
  return out;
}

WEFT_DECL resolved_cluster resolve_mpi(const batch_jobs& how, const environment_variables& variables) {
  const bool open = variables.count("OMPI_COMM_WORLD_RANK") != 0;
  const char* rank_name = open ? "OMPI_COMM_WORLD_RANK" : "PMI_RANK";
  const char* size_name = open ? "OMPI_COMM_WORLD_SIZE" : "PMI_SIZE";
  (void)detail::first_set(variables, {"OMPI_COMM_WORLD_RANK", "PMI_RANK"});
  (void)detail::first_set(variables, {size_name});
  const int rank = *detail::number_in(variables, rank_name), size = *detail::number_in(variables, size_name);
  if (size < 1 || static_cast<std::size_t>(size) > detail::most_tasks) fail(error_code::invalid_argument, std::string(size_name) + " is " + std::to_string(size) + "; expected 1 to " + std::to_string(detail::most_tasks));
  const std::vector<std::string> hosts = how.hosts.empty() ? std::vector<std::string>{"127.0.0.1"} : how.hosts;
  const int count = static_cast<int>(hosts.size());
  const auto local_rank = detail::number_in(variables, open ? "OMPI_COMM_WORLD_LOCAL_RANK" : "MPI_LOCALRANKID");
  const auto local_size = detail::number_in(variables, open ? "OMPI_COMM_WORLD_LOCAL_SIZE" : "MPI_LOCALNRANKS");
  int per_host = (size + count - 1) / count;
  const auto fits = [&](int n) {
    const bool place = !local_rank || rank % n == *local_rank, neighbours = !local_size || std::min(n, size - rank / n * n) == *local_size;
    return (size + n - 1) / n == count && place && neighbours;
  };
  while (per_host < size && !fits(per_host)) ++per_host;
  if (rank < size && !fits(per_host))
    fail(error_code::invalid_argument, std::to_string(size) + " ranks on " + std::to_string(count) + " hosts: rank " + std::to_string(rank) +
                                           (local_rank ? " is number " + std::to_string(*local_rank) : std::string(" is one")) + (local_size ? " of " + std::to_string(*local_size) : std::string()) +
                                           " on its machine, which cannot be where each machine but the last has equally many; give the hosts in batch_jobs::hosts, in the order of the ranks");
  std::vector<std::size_t> node_of;
  for (int i = 0; i < size; ++i) node_of.push_back(static_cast<std::size_t>(i / per_host));
  return detail::deal_out(how, hosts, node_of, rank, rank_name);
}

}  // namespace weft
#endif

#endif
