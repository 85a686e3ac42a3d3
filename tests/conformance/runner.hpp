#ifndef WEFT_TESTS_CONFORMANCE_RUNNER_HPP
#define WEFT_TESTS_CONFORMANCE_RUNNER_HPP
// Runs TensorFlow's answers, as the files of the conformance data record them, against weft. A file's format is known by the fields of
// its records, not by its name.

#include "report.hpp"
#include "values.hpp"

#include <weft/core/cluster_spec.hpp>
#include <weft/format/graphdef.hpp>
#include <weft/graph/graph.hpp>
#include <weft/session/session_interface.hpp>
#include <weft/train/optimizer.hpp>

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace conformance {

struct options {
  /// Only cases of these ops; all when empty.
  std::set<std::string> only;
  /// The folder of the file whose records run.
  std::string folder{};
  bool wants(const std::string& op) const { return only.empty() || only.count(op) != 0; }
};

/// The passes of the sessions that run cases: all of them, unless the program switches them off.
weft::optimizer_options& passes();

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
void run_sync_record(const weft::detail::json_at& record, const options& asked, report& into);
void run_thread_program(const weft::detail::json_at& record, const options& asked, report& into);
void run_op_def(const weft::detail::json_at& record, const options& asked, report& into);

void run_tensor_proto(const weft::detail::json_at& record, const options& asked, report& into);
void run_graphdef_steps(const weft::detail::json_at& record, const options& asked, report& into);
void run_gradients_graph(const weft::detail::json_at& record, const options& asked, report& into);
void run_device_name(const weft::detail::json_at& record, const options& asked, report& into);
void run_placement(const weft::detail::json_at& record, const options& asked, report& into);
void run_partition(const weft::detail::json_at& record, const options& asked, report& into);
void run_scopes(const weft::detail::json_at& record, const options& asked, report& into);

// Training data: files whose cases stand in `cases`.
void run_initializer_record(const weft::detail::json_at& record, const options& asked, report& into);
void run_loss_record(const weft::detail::json_at& record, const options& asked, report& into);
void run_optimizer_record(const weft::detail::json_at& record, const options& asked, report& into);
void run_curve_record(const weft::detail::json_at& record, const options& asked, report& into);
void run_session_record(const weft::detail::json_at& record, const options& asked, report& into);

/// Loads, prints and writes a file that is a GraphDef itself.
void run_graphdef_file(const weft::detail::json_at& graph_def, const std::string& name, const options& asked, report& into);

/// The optimizer in the fields `optimizer` and `arguments`.
std::unique_ptr<weft::optimizer> optimizer_at(const weft::detail::json_at& record);

/// The string in a field that must be there.
std::string text_field_of(const weft::detail::json_at& record, std::string_view field);
/// The strings of a list field that may be left out.
std::vector<std::string> names_field_of(const weft::detail::json_at& record, std::string_view field);
/// How graphs of the data are read: with definitions of some more ops, which are only placed or have no gradient.
const weft::import_options& import_of_data();

/// What a run expects, as several formats write it.
struct expected_run {
  /// The field with the expected values: `expect`, `values`.
  const char* values;
  string_form strings;
  /// Replaces `DIR` in strings that are fed.
  std::string folder{};
};
/// The values of the fetches, each as often as it is asked for. A step may take 20 seconds.
std::vector<weft::tensor_value> run_step(weft::session_interface& session, const weft::step_signature& what, const std::vector<weft::tensor_value>& fed);
/// Runs `feeds`, `fetches`, `targets`; "" when it gives what it should.
std::string check_run(const weft::detail::json_at& run, weft::session_interface& session, const expected_run& form, const std::optional<tolerance>& tol);

/// The tasks of `{"jobs": {"ps": 2, "worker": [2, 10]}, "cpus_per_task": 1}`; no jobs is a session without servers.
struct cluster_of_data {
  weft::cluster_spec spec;
  int cpus = 1;
};
cluster_of_data cluster_at(const weft::detail::json_at& record);

/// The first op of the graph that cannot run, with what it lacks; false when there is none. Ops of loops, queues and their like come last.
struct lack {
  std::string op;
  const char* what = nullptr;
};
lack find_lack(const weft::detail::json_at& graph_def, bool kernels);

}  // namespace conformance

#endif
