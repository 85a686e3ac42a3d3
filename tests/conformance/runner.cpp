#include "runner.hpp"

#include <weft/graph/op_registry.hpp>

#include <algorithm>
#include <filesystem>

namespace conformance {

using namespace weft::detail;

weft::optimizer_options& passes() {
  static weft::optimizer_options all;
  return all;
}

namespace {

using run_one = void (*)(const json_at&, const options&, report&);

// The format of a record, by its fields; nullptr when it is none of these.
run_one format_of(const json_at& record) {
  if (record.value.kind != json_kind::object || find_field(record, "name") == nullptr) return nullptr;
  const auto has = [&record](std::string_view field) {
    return std::any_of(record.value.items.begin(), record.value.items.end(), [field](const json_value& member) { return member.key == field; });
  };
  if (has("op_def")) return &run_op_def;
  if (has("seedless_before") || (has("graph_seed") && has("nodes"))) return &run_seed_record;
  if (has("op") && has("input_shapes")) return &run_shape_record;
  if (has("op") && has("runs")) return &run_random_record;
  if (has("op") && has("inputs")) return &run_op_record;
  if (has("graph_def") && has("output_shapes")) return &run_shape_record;
  if (has("graph_def") && (has("runs") || has("build_error"))) return &run_program;
  if (has("proto")) return &run_tensor_proto;
  if (has("steps") && has("nodes")) return &run_graphdef_steps;
  if (has("graph_def") && has("xs")) return &run_gradients_graph;
  if (has("kind") && has("in")) return &run_device_name;
  if (has("program")) return &run_scopes;
  if (has("graph_def") && has("expect") && has("fetches")) return &run_partition;
  if (has("graph_def") && has("expect")) return &run_placement;
  return nullptr;
}

// The player of the cases of a file of training data, by the name that the file gives itself; nullptr for a file that is not played.
run_one player_of(const std::string& file) {
  static const std::map<std::string, run_one> players = {
      {"initializers", &run_initializer_record}, {"losses", &run_loss_record},
      {"accumulators", &run_thread_program},
      {"optimizers", &run_optimizer_record}, {"training_curves", &run_curve_record},
      {"queues", &run_thread_program},
      {"sync_replicas", &run_sync_record},
      {"sessions", &run_session_record},
  };
  const auto it = players.find(file);
  return it == players.end() ? nullptr : it->second;
}

// Ops that graphs of the data use without running them.
constexpr weft::op_row other_ops[] = {
    {"Conj(input: T) -> output: T", "T: {complex64, complex128, variant} = complex64"},
    {"Real(input: T) -> output: Tout", "T: {complex64, complex128} = complex64; Tout: {float, double} = float"},
    {"MatrixDeterminant(input: T) -> output: T", "T: {half, float, double, complex64, complex128}"},
    {"MatrixInverse(input: T) -> output: T", "adjoint: bool = false; T: {double, float, half, complex64, complex128}"},
    {"Cholesky(input: T) -> output: T", "T: {double, float, half, complex64, complex128}"},
    {"Lu(input: T) -> lu: T, p: output_idx_type", "T: {double, float, half, complex64, complex128}; output_idx_type: {int32, int64} = int32"},
    {"NcclAllReduce(input: T) -> data: T", "reduction: string; T: {half, float, double, int32, int64}; num_devices: int; shared_name: string", nullptr, weft::op_flags::stateful},
    {"HashTableV2() -> table_handle: resource", "container: string = ''; shared_name: string = ''; use_node_name_sharing: bool = false; key_dtype: type; value_dtype: type", nullptr, weft::op_flags::stateful},
    {"LookupTableSizeV2(table_handle: resource) -> size: int64", "", nullptr, weft::op_flags::stateful},
    {"PreventGradient(input: T) -> output: T", "T: type; message: string = ''"},
};

}  // namespace

const weft::import_options& import_of_data() {
  static const weft::import_options options = [] {
    weft::import_options out;
    weft::op_registry others;
    others.add(other_ops);
    for (const auto& def : others.all())
      if (out.ops.find(def->name) == nullptr) out.ops.add(*def);
    return out;
  }();
  return options;
}

std::string text_field_of(const json_at& record, std::string_view name) { return string_at(field(record, name)); }

std::vector<std::string> names_field_of(const json_at& record, std::string_view name) {
  std::vector<std::string> out;
  const json_value* v = find_field(record, name);
  if (v == nullptr) return out;
  const json_at list(*v, record, name);
  for (std::size_t i = 0; i < elements_at(list).size(); ++i) out.push_back(string_at(json_at(v->items[i], list, i)));
  return out;
}

cluster_of_data cluster_at(const json_at& record) {
  const json_at at = field(record, "cluster");
  cluster_of_data out;
  if (const json_value* cpus = find_field(at, "cpus_per_task")) out.cpus = static_cast<int>(integer_at(json_at(*cpus, at, "cpus_per_task"), 1, 64));
  const json_value* jobs = find_field(at, "jobs");
  if (jobs == nullptr) return out;
  const json_at map(*jobs, at, "jobs");
  std::map<std::string, std::map<int, std::string>> tasks;
  int port = 1;
  for (const json_value& job : jobs->items) {
    const json_at one(job, map, job.key);
    std::vector<int> numbers;
    if (job.kind == json_kind::array)
      for (std::size_t i = 0; i < job.items.size(); ++i) numbers.push_back(static_cast<int>(integer_at(json_at(job.items[i], one, i), 0, INT32_MAX)));
    else
      for (int i = 0; i < integer_at(one, 1, 1000); ++i) numbers.push_back(i);
    for (const int number : numbers) tasks[job.key][number] = "127.0.0.1:" + std::to_string(port++);
  }
  out.spec = weft::cluster_spec(std::move(tasks));
  return out;
}

std::vector<std::string> files_below(const std::string& path) {
  std::vector<std::string> out;
  if (std::filesystem::is_directory(path)) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(path))
      if (entry.is_regular_file() && entry.path().extension() == ".json") out.push_back(entry.path().string());
  } else if (std::filesystem::exists(path)) {
    out.push_back(path);
  }
  std::sort(out.begin(), out.end());
  return out;
}

void run_file(const std::string& path, const options& asked, report& into) {
  const json_value json = parse_json(read_whole_file(path));
  into.begin_file(std::filesystem::path(path).filename().string());
  const json_at top(json);
  options here = asked;
  here.folder = std::filesystem::path(path).parent_path().string();
  if (json.kind == json_kind::object && find_field(top, "node") != nullptr) return run_graphdef_file(top, std::filesystem::path(path).stem().string(), here, into);
  // The records themselves, or `{"file": ..., "cases": [...]}`.
  const json_value* cases = json.kind == json_kind::object ? find_field(top, "cases") : nullptr;
  const run_one player = cases == nullptr ? nullptr : player_of(text_field_of(top, "file"));
  const json_value& records = cases == nullptr ? json : *cases;
  bool unknown = records.kind != json_kind::array || (cases != nullptr && player == nullptr);
  for (std::size_t i = 0; !unknown && i < records.items.size(); ++i) {
    const json_at record(records.items[i], top, i);
    const run_one run = player != nullptr ? player : format_of(record);
    if (run == nullptr) {
      unknown = true;
      continue;
    }
    try {
      run(record, here, into);
    } catch (const weft::error& e) {
      into.failed("(file)", text_field_of(record, "name"), std::string("cannot be read: ") + e.what());
    }
  }
  if (unknown && asked.only.empty()) into.skipped("(file)", path, "a format that the runner does not know");
}

}  // namespace conformance
