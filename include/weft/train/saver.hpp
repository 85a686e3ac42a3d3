#ifndef WEFT_TRAIN_SAVER_HPP
#define WEFT_TRAIN_SAVER_HPP
// Saves variables to checkpoints and restores them, by operations of the graph on the tasks where the variables live or through the client.

#include <weft/core/config.hpp>
#include <weft/format/checkpoint.hpp>
#include <weft/session/session_interface.hpp>
#include <weft/train/checkpoint_state.hpp>
#include <weft/train/collections.hpp>

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace weft {

/// A variable and the name it has in checkpoints; its own unless another is given: `{"old/w", w}`. A piece of a partitioned variable is a part of a tensor that has the name of the whole, so that any number of pieces
/// can be saved and restored.
struct saved_variable {
  std::string name;
  any_variable variable;
  /// The part that the variable is of a larger tensor of this name, as `784 10 0,392:-`; empty for all of it.
  std::string slice;

  saved_variable(const any_variable& v) : name(v.name()), variable(v) {}
  template <class T, int N> saved_variable(const weft::variable<T, N>& v) : saved_variable(any_variable(v)) {}
  saved_variable(const std::pair<const std::string, any_variable>& named) : name(named.first), variable(named.second) {}
  saved_variable(std::string in_file, const any_variable& v, std::string part = {}) : name(std::move(in_file)), variable(v), slice(std::move(part)) {}
};

/// Who writes the files of a checkpoint.
enum class saver_files {
  /// The client fetches all values and writes one file. No task needs a folder.
  gathered,
  /// Each task writes the variables that live there into one folder that all tasks see, with the kernels of `file_kernels()`.
  sharded
};

/// How a saver works.
struct saver_options {
  checkpoint_format format = checkpoint_format::safetensors;
  saver_files files = saver_files::gathered;
  /// The folder that paths are relative to. When sharded: where this process sees the folder that the tasks' `file_kernels()` were given.
  std::string directory;
  /// How many checkpoints stay; 0 means all.
  int max_to_keep = 5;
  /// One checkpoint in this time stays for good; 0 means none.
  std::chrono::seconds keep_every{0};
};

/// Saves and restores some variables of a graph, to which its constructor adds the nodes for that. One thread uses it at a time, and one saver saves under one path.
class saver {
 public:
  /// The graph's variables but local ones.
  explicit saver(const saver_options& options = {}, const graph& g = default_graph());
  /// These variables, under these names: `saver({w, {"old/b", b}})`. Throws INVALID_ARGUMENT when there is none, when two have one name, or when they are of two graphs.
  explicit saver(std::vector<saved_variable> variables, const saver_options& options = {});
  /// The same, as `exponential_moving_average::variables_to_restore()` gives them.
  template <class M, std::enable_if_t<std::is_same_v<M, std::map<std::string, any_variable>>, int> = 0>
  explicit saver(const M& variables, const saver_options& options = {}) : saver(std::vector<saved_variable>(variables.begin(), variables.end()), options) {}
  saver(saver&&) noexcept;
  saver& operator=(saver&&) noexcept;
  ~saver();

  /// Writes the checkpoint `path`, or `path-step`, and notes it as the newest in the file `checkpoint` of its folder; older ones than the last `max_to_keep` are removed. Whatever happens on the way,
  /// the checkpoints before it stay whole. Returns its name, as `restore` takes it. Blocks. Throws what the session throws; RESOURCE_EXHAUSTED when the disk is full; FAILED_PRECONDITION when the tasks
  /// of a sharded one do not see one folder.
  std::string save(session_interface& session, const std::string& path, std::optional<std::int64_t> step = std::nullopt);
  /// Gives the variables the values they have in a checkpoint, named as `save` or `latest_checkpoint` did, which any number of tasks in any format may have written. Throws NOT_FOUND naming what it lacks, INVALID_ARGUMENT naming the variable, both
  /// dtypes or shapes, and the file, before any variable is changed when gathered.
  void restore(session_interface& session, const std::string& checkpoint);
  /// The checkpoints that were saved and not removed, oldest first.
  std::vector<std::string> checkpoints() const;
  const saver_options& options() const noexcept;

 private:
  struct state;
  std::unique_ptr<state> state_;
};

}  // namespace weft

#if WEFT_HAS_TRAIN_BODIES
#include <weft/graph/scope.hpp>
#include <weft/ops/file.hpp>

#include <algorithm>
#include <cstdio>
#include <random>

namespace weft {

namespace detail {

// The variables that one task writes and reads.
struct saver_shard {
  std::string device;
  std::vector<std::size_t> variables;
  output prefix;
  operation save;
};

// `/job:ps/task:1` of the device that a variable asks for; empty when it asks for no task.
WEFT_DECL std::string task_part(const std::string& device) {
  device_name d = parse_device_name(device);
  d.type.reset();
  d.id.reset();
  return to_text(d);
}

}  // namespace detail

struct saver::state {
  std::vector<saved_variable> variables;
  saver_options options;
  // Gathered: what is fetched, what is fed, what assigns that.
  std::vector<output> reads, values;
  std::vector<operation> assigns;
  // Sharded: one for each task; where a restore reads; what makes one checkpoint of the shards.
  std::vector<detail::saver_shard> shards;
  output restore_from, merge_from, merge_to;
  operation merge;
  // The file that `noted` was read from.
  std::string state_file;
  detail::checkpoint_state noted;

  void build();
  void name_pieces();
  void build_gathered();
  void build_sharded();
  // A path without the folder, which `latest_checkpoint` puts before the name.
  std::string inside(const std::string& path) const {
    const std::string folder = options.directory + "/";
    return folder.size() > 1 && path.compare(0, folder.size(), folder) == 0 ? path.substr(folder.size()) : path;
  }
  std::string seen(const std::string& path) const { return options.directory.empty() ? path : options.directory + "/" + path; }
  void write_gathered(session_interface& session, const std::string& path) const;
  void write_sharded(session_interface& session, const std::string& path) const;
  void restore_gathered(session_interface& session, const std::string& path) const;
  void restore_sharded(session_interface& session, const std::string& path) const;
  void check(const tensor_file& file) const;
  void note(const std::string& path);
};

WEFT_DECL saver::saver(const saver_options& options, const graph& g)
    : saver([&g] {
        std::vector<saved_variable> all;
        for (const any_variable& v : global_variables(g)) all.emplace_back(v);
        return all;
      }(), options) {}

WEFT_DECL saver::saver(std::vector<saved_variable> variables, const saver_options& options) : state_(std::make_unique<state>()) {
  state_->variables = std::move(variables);
  state_->options = options;
  state_->build();
}
WEFT_DECL saver::saver(saver&&) noexcept = default;
WEFT_DECL saver& saver::operator=(saver&&) noexcept = default;
WEFT_DECL saver::~saver() = default;
WEFT_DECL const saver_options& saver::options() const noexcept { return state_->options; }

// The pieces of a partitioned variable are parts of one tensor, unless they were given names.
WEFT_DECL void saver::state::name_pieces() {
  static constexpr std::string_view mark = "saved_slice:";
  std::map<const node*, std::string> pieces;
  for (const auto& [key, nodes] : variables[0].variable.get().owner().collections())
    if (key.compare(0, mark.size(), mark) == 0)
      for (const node* n : nodes) pieces.emplace(n, key.substr(mark.size()));
  for (saved_variable& v : variables) {
    const auto piece = pieces.find(&v.variable.get());
    if (piece == pieces.end() || v.name != v.variable.name() || !v.slice.empty()) continue;
    const auto space = piece->second.find(' ');
    v.name = piece->second.substr(0, space);
    v.slice = piece->second.substr(space + 1);
  }
}

WEFT_DECL void saver::state::build() {
  if (variables.empty()) fail(error_code::invalid_argument, "there is no variable to save");
  name_pieces();
  std::vector<std::string> names;
  for (const saved_variable& v : variables) {
    if (v.variable.get().owner().shared_from_this() != variables[0].variable.get().owner().shared_from_this())
      fail(error_code::invalid_argument, "'" + v.variable.name() + "' is a variable of another graph than '" + variables[0].variable.name() + "'");
    if (v.name.empty()) fail(error_code::invalid_argument, "variable '" + v.variable.name() + "' is given no name in the checkpoint");
    names.push_back(piece_name(v.name, v.slice));
    if (v.slice.empty()) continue;
    const shape part(parse_slice(v.slice).size);
    if (!v.variable.shape().accepts(part)) fail(error_code::invalid_argument, "the slice '" + v.slice + "' has shape " + part.text() + ", variable '" + v.variable.name() + "' has " + v.variable.shape().text());
  }
  std::sort(names.begin(), names.end());
  for (std::size_t i = 1; i < names.size(); ++i)
    if (names[i] == names[i - 1]) fail(error_code::invalid_argument, "two variables are saved as '" + names[i] + "'");
  if (options.files == saver_files::sharded && options.directory.empty())
    fail(error_code::invalid_argument, "a sharded saver needs saver_options::directory, where this process sees the folder of the tasks' file_kernels()");
  const weft::graph g = variables[0].variable.graph();
  const auto scope = g.as_default();
  const auto name = name_scope("save");
  if (options.files == saver_files::gathered) build_gathered();
  else build_sharded();
}

WEFT_DECL void saver::state::build_gathered() {
  for (const saved_variable& v : variables) {
    reads.push_back(v.variable.read("read"));
    values.push_back({&detail::add_node("Placeholder", {}, "value", {{"dtype", v.variable.dtype()}, {"shape", v.variable.shape()}}), 0});
    assigns.push_back(v.variable.assign(values.back(), "restore"));
  }
}

WEFT_DECL void saver::state::build_sharded() {
  for (std::size_t i = 0; i < variables.size(); ++i) {
    const std::string task = detail::task_part(variables[i].variable.device());
    auto at = std::find_if(shards.begin(), shards.end(), [&task](const detail::saver_shard& s) { return s.device == task; });
    if (at == shards.end()) {
      at = shards.insert(at, detail::saver_shard());
      at->device = task;
    }
    at->variables.push_back(i);
  }
  const auto text = [] { return output{&detail::add_node("Placeholder", {}, "path", {{"dtype", dtype::string}, {"shape", partial_shape({})}}), 0}; };
  restore_from = text();
  for (detail::saver_shard& s : shards) {
    std::vector<std::string> names, slices;
    std::vector<output> tensors;
    std::vector<dtype> types;
    for (const std::size_t i : s.variables) {
      names.push_back(variables[i].name);
      slices.push_back(variables[i].slice);
      types.push_back(variables[i].variable.dtype());
      tensors.push_back(variables[i].variable.read("read"));
    }
    s.prefix = text();
    const auto device = with_device(s.device + "/device:CPU:0");
    s.save = save_tensors(tensor<std::string, 0>(s.prefix), names, tensors, slices, "save");
    const auto restored = restore_tensors(tensor<std::string, 0>(restore_from), names, types, slices, "restore");
    for (std::size_t k = 0; k < s.variables.size(); ++k) assigns.push_back(variables[s.variables[k]].variable.assign(restored[k], "assign"));
  }
  merge_from = {&detail::add_node("Placeholder", {}, "paths", {{"dtype", dtype::string}, {"shape", partial_shape({-1})}}), 0};
  merge_to = text();
  const auto device = with_device(shards[0].device + "/device:CPU:0");
  merge = merge_checkpoints(tensor<std::string, 1>(merge_from), tensor<std::string, 0>(merge_to), "merge");
}

WEFT_DECL void saver::state::write_gathered(session_interface& session, const std::string& path) const {
  const std::vector<tensor_value> got = session.run(run_options(), std::vector<feed>(), reads);
  std::vector<named_tensor> tensors;
  for (std::size_t i = 0; i < variables.size(); ++i) tensors.push_back({piece_name(variables[i].name, variables[i].slice), got[i]});
  detail::make_folders(seen(path));
  write_tensor_file(seen(path) + extension_of(options.format), options.format, tensors);
}

// The shards of one save have names of their own, so that those of the checkpoint before it, of whatever name, stay as they are until the index is there.
WEFT_DECL void saver::state::write_sharded(session_interface& session, const std::string& path) const {
  static constexpr char digits[] = "0123456789abcdef";
  std::string tag;
  std::random_device random;
  for (int i = 0; i < 8; ++i) tag += digits[random() & 15U];
  std::vector<feed> feeds;
  std::vector<operation> saves;
  std::vector<std::string> paths;
  for (const detail::saver_shard& s : shards) {
    char end[40];
    std::snprintf(end, sizeof end, "-%05zu-of-%05zu", paths.size(), shards.size());
    paths.push_back(path + "." + tag + end + extension_of(options.format));
    feeds.emplace_back(s.prefix, tensor_value::scalar(paths.back()));
    saves.push_back(s.save);
  }
  session.run(run_options(), feeds, {}, saves);
  const std::string whole = path + extension_of(options.format);
  session.run(run_options(), {{merge_from, tensor_value::from(shape{static_cast<std::int64_t>(paths.size())}, paths)}, {merge_to, tensor_value::scalar(whole)}}, {}, {merge});
  if (!detail::file_exists(seen(whole) + ".index.json"))
    fail(error_code::failed_precondition, "the tasks wrote '" + whole + "' to their folder, but it is not in '" + options.directory + "', where saver_options::directory says that this process sees that folder");
}

WEFT_DECL std::string saver::save(session_interface& session, const std::string& path, std::optional<std::int64_t> step) {
  state& s = *state_;
  const std::string base = detail::base_name(path);
  if (base.empty() || base == "." || base == ".." || base == "checkpoint") fail(error_code::invalid_argument, "'" + path + "' cannot be the name of a checkpoint");
  if (step && *step < 0) fail(error_code::invalid_argument, "a checkpoint cannot be of step " + std::to_string(*step));
  const std::string whole = step ? path + "-" + std::to_string(*step) : path, name = s.inside(whole);
  if (s.options.files == saver_files::gathered) s.write_gathered(session, name);
  else s.write_sharded(session, name);
  s.note(name);
  if (step) detail::remove_leftovers(s.seen(s.inside(path)));
  return whole;
}

// Notes the newest checkpoint, then removes the files of those that are too many: a kill between the two leaves files, never a note of what is gone.
WEFT_DECL void saver::state::note(const std::string& path) {
  const std::string full = seen(path), folder = detail::folder_of(full), file = folder + "/checkpoint", name = detail::base_name(full);
  const double now = std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
  if (file != state_file) {
    noted = detail::file_exists(file) ? detail::read_checkpoint_state(file) : detail::checkpoint_state();
    state_file = file;
    if (noted.last_preserved == 0) noted.last_preserved = now;
  }
  const auto same = std::find(noted.names.begin(), noted.names.end(), name);
  if (same != noted.names.end()) {
    noted.times.erase(noted.times.begin() + (same - noted.names.begin()));
    noted.names.erase(same);
  }
  noted.names.push_back(name);
  noted.times.push_back(now);
  std::vector<std::string> gone;
  while (options.max_to_keep > 0 && noted.names.size() > static_cast<std::size_t>(options.max_to_keep)) {
    const double period = static_cast<double>(options.keep_every.count());
    if (period > 0 && noted.times[0] - noted.last_preserved >= period) noted.last_preserved = noted.times[0];
    else gone.push_back(noted.names[0]);
    noted.names.erase(noted.names.begin());
    noted.times.erase(noted.times.begin());
  }
  write_whole_file(file, detail::to_text(noted));
  for (const std::string& old : gone)
    if (old.find('/') == std::string::npos) detail::remove_checkpoint(folder + "/" + old);
}

WEFT_DECL std::vector<std::string> saver::checkpoints() const { return state_->noted.names; }

// Everything that does not fit is named at once.
WEFT_DECL void saver::state::check(const tensor_file& file) const {
  std::string missing, wrong;
  for (const saved_variable& v : variables) {
    const tensor_entry found = find_tensor(file, v.name);
    const std::string name = "variable '" + v.variable.name() + "'" + (v.name == v.variable.name() ? "" : " (as '" + v.name + "')");
    if (found.dtype == dtype::invalid) {
      missing += (missing.empty() ? "" : ", ") + name;
      continue;
    }
    const partial_shape expected = v.slice.empty() ? v.variable.shape() : partial_shape(parse_slice(v.slice).full);
    if (found.dtype != v.variable.dtype() || !expected.accepts(found.shape))
      wrong += (wrong.empty() ? "" : "; ") + name + " is " + to_text(v.variable.dtype()) + expected.text() + ", the checkpoint has " + to_text(found.dtype) + found.shape.text();
  }
  if (!missing.empty()) fail(error_code::not_found, "checkpoint '" + file.path() + "' lacks " + missing);
  if (!wrong.empty()) fail(error_code::invalid_argument, "checkpoint '" + file.path() + "' does not fit: " + wrong);
}

WEFT_DECL void saver::state::restore_gathered(session_interface& session, const std::string& path) const {
  const auto file = open_checkpoint(seen(path));
  check(*file);
  // So many bytes of values are held at one time, or one value.
  constexpr std::size_t bound = std::size_t(64) << 20;
  std::vector<feed> feeds;
  std::vector<operation> targets;
  std::size_t bytes = 0;
  for (std::size_t i = 0; i < variables.size(); ++i) {
    tensor_value v = read_tensor(*file, variables[i].name, variables[i].slice);
    bytes += v.bytes();
    feeds.emplace_back(values[i], std::move(v));
    targets.push_back(assigns[i]);
    if (bytes < bound && i + 1 < variables.size()) continue;
    session.run(run_options(), feeds, {}, targets);
    feeds.clear();
    targets.clear();
    bytes = 0;
  }
}

WEFT_DECL void saver::state::restore_sharded(session_interface& session, const std::string& path) const {
  // What this process sees it can check with better words than the tasks.
  if (detail::checkpoint_exists(seen(path))) check(*open_checkpoint(seen(path)));
  try {
    session.run(run_options(), {{restore_from, tensor_value::scalar(path)}}, {}, assigns);
  } catch (const error& e) {
    if (e.code() != error_code::invalid_argument) throw;
    status why = e.status();
    why.message = "restoring '" + path + "': " + why.message;
    throw error(why);
  }
}

WEFT_DECL void saver::restore(session_interface& session, const std::string& checkpoint) {
  if (checkpoint.empty()) fail(error_code::invalid_argument, "no checkpoint is named to restore");
  const std::string path = state_->inside(checkpoint);
  if (state_->options.files == saver_files::gathered) state_->restore_gathered(session, path);
  else state_->restore_sharded(session, path);
}

}  // namespace weft
#endif

#endif
