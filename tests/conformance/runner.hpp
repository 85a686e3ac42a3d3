#ifndef WEFT_TESTS_CONFORMANCE_RUNNER_HPP
#define WEFT_TESTS_CONFORMANCE_RUNNER_HPP
// Runs TensorFlow's answers, as the files of the conformance data record them, against weft. A file's format is known by the fields of
// its records, not by its name.

#include "report.hpp"

#include <weft/format/json_value.hpp>
#include <weft/graph/graph.hpp>

#include <set>
#include <string>
#include <vector>

namespace conformance {

struct options {
  /// Only cases of these ops; all when empty.
  std::set<std::string> only;
  bool wants(const std::string& op) const { return only.empty() || only.count(op) != 0; }
};

/// Runs every case of one file. Files of unknown formats count as one skipped case.
void run_file(const std::string& path, const options& asked, report& into);

/// The JSON files below a folder, or the file itself, in the order of their names.
std::vector<std::string> files_below(const std::string& path);

// One function per format; `record` is one case, which has a `name`.
void run_op_record(const weft::detail::json_at& record, const options& asked, report& into);
void run_random_record(const weft::detail::json_at& record, const options& asked, report& into);
void run_shape_record(const weft::detail::json_at& record, const options& asked, report& into);
void run_seed_record(const weft::detail::json_at& record, const options& asked, report& into);
void run_program(const weft::detail::json_at& record, const options& asked, report& into);
void run_op_def(const weft::detail::json_at& record, const options& asked, report& into);

/// The first op of the graph that cannot run, with what it lacks; false when there is none. Ops of loops, queues and their like come last.
struct lack {
  std::string op;
  const char* what = nullptr;
};
lack find_lack(const weft::detail::json_at& graph_def, bool kernels);

}  // namespace conformance

#endif
