#include "runner.hpp"

#include <weft/format/graphdef.hpp>

#include <algorithm>
#include <filesystem>

namespace conformance {

using namespace weft::detail;

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
  return nullptr;
}

}  // namespace

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
  bool unknown = json.kind != json_kind::array;
  for (std::size_t i = 0; !unknown && i < json.items.size(); ++i) {
    const json_at record(json.items[i], top, i);
    if (const run_one run = format_of(record)) run(record, asked, into);
    else unknown = true;
  }
  if (unknown && asked.only.empty()) into.skipped("(file)", path, "a format that the runner does not know");
}

}  // namespace conformance
