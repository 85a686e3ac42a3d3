#ifndef WEFT_TRAIN_CHECKPOINT_STATE_HPP
#define WEFT_TRAIN_CHECKPOINT_STATE_HPP
// Which checkpoints a folder has: the file `checkpoint`, TensorFlow's CheckpointState as text, and the files that belong to each.

#include <weft/core/config.hpp>
#include <weft/core/status.hpp>

#include <optional>
#include <string>
#include <vector>

namespace weft {

/// The newest checkpoint that the file `checkpoint` of a folder notes and that is there; nullopt when there is none.
std::optional<std::string> latest_checkpoint(const std::string& directory);

namespace detail {
// The file `checkpoint`: TensorFlow's CheckpointState as text. Names are relative to its folder.
struct checkpoint_state {
  std::vector<std::string> names;
  std::vector<double> times;
  double last_preserved = 0;
};
std::string to_text(const checkpoint_state& state);
// Throws DATA_LOSS naming the file.
checkpoint_state read_checkpoint_state(const std::string& path);
// Whether the files that make a checkpoint are there.
bool checkpoint_exists(const std::string& prefix);
// Removes the files of a checkpoint.
void remove_checkpoint(const std::string& prefix);
// Removes what killed savers left of checkpoints `path-*`: files in the making, and files that no index names.
void remove_leftovers(const std::string& path);
}  // namespace detail

}  // namespace weft

#if WEFT_HAS_TRAIN_BODIES
#include <weft/format/file_access.hpp>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstdlib>

namespace weft {

namespace detail {

// A string as protocol buffers write it as text.
WEFT_DECL std::string quoted_text(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') out += '\\';
    if (byte >= 0x20 && byte < 0x7f) {
      out += c;
      continue;
    }
    out += '\\';
    for (const int shift : {6, 3, 0}) out += static_cast<char>('0' + (byte >> shift & 7U));
  }
  return out + "\"";
}

// The text behind a key; false where it is no string.
WEFT_DECL bool unquote_text(std::string_view text, std::string& out) {
  if (text.size() < 2 || text.front() != '"' || text.back() != '"') return false;
  text = text.substr(1, text.size() - 2);
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '\\') {
      out += text[i];
      continue;
    }
    if (++i == text.size()) return false;
    if (text[i] < '0' || text[i] > '7') {
      out += text[i] == 'n' ? '\n' : text[i] == 't' ? '\t' : text[i] == 'r' ? '\r' : text[i];
      continue;
    }
    unsigned byte = 0;
    std::size_t digits = 0;
    for (; digits < 3 && i < text.size() && text[i] >= '0' && text[i] <= '7'; ++digits) byte = byte * 8 + static_cast<unsigned>(text[i++] - '0');
    --i;
    out += static_cast<char>(byte & 0xffU);
  }
  return true;
}

WEFT_DECL std::string to_text(const checkpoint_state& state) {
  std::string out;
  if (!state.names.empty()) out += "model_checkpoint_path: " + quoted_text(state.names.back()) + "\n";
  for (const std::string& name : state.names) out += "all_model_checkpoint_paths: " + quoted_text(name) + "\n";
  char number[64];
  for (const double time : state.times) {
    std::snprintf(number, sizeof number, "%.6f", time);
    out += std::string("all_model_checkpoint_timestamps: ") + number + "\n";
  }
  std::snprintf(number, sizeof number, "%.6f", state.last_preserved);
  return out + "last_preserved_timestamp: " + number + "\n";
}

WEFT_DECL checkpoint_state read_checkpoint_state(const std::string& path) {
  const file_reader file(path);
  if (file.size() > (std::uint64_t(1) << 26)) file.damaged("the file has " + std::to_string(file.size()) + " bytes, which is too much for a list of checkpoints");
  const std::string text = file.text(0, static_cast<std::size_t>(file.size()));
  checkpoint_state out;
  std::string newest;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string line = text.substr(begin, end - begin);
    begin = end + 1;
    if (line.empty() || line[0] == '#') continue;
    const auto colon = line.find(": ");
    const std::string key = line.substr(0, colon);
    std::string_view value = colon == std::string::npos ? std::string_view() : std::string_view(line).substr(colon + 2);
    std::string name;
    double time = 0;
    const bool number = std::from_chars(value.data(), value.data() + value.size(), time).ec == std::errc();
    if (value.empty() || (value[0] == '"' ? !unquote_text(value, name) : !number)) file.damaged("a line is not 'key: value' but '" + line.substr(0, 200) + "'");
    if (key == "model_checkpoint_path") newest = name;
    if (key == "all_model_checkpoint_paths") out.names.push_back(name);
    if (key == "all_model_checkpoint_timestamps") out.times.push_back(time);
    if (key == "last_preserved_timestamp") out.last_preserved = time;
  }
  // The newest is the last of all, whoever wrote the file.
  if (!newest.empty() && (out.names.empty() || out.names.back() != newest)) {
    out.names.erase(std::remove(out.names.begin(), out.names.end(), newest), out.names.end());
    out.names.push_back(newest);
  }
  out.times.resize(out.names.size(), out.last_preserved);
  return out;
}

WEFT_DECL bool checkpoint_exists(const std::string& prefix) {
  for (const char* end : {".safetensors", ".npz", ".safetensors.index.json", ".npz.index.json", ".index"})
    if (file_exists(prefix + end)) return true;
  return false;
}

// `name.1a2b3c4d-00000-of-00002.safetensors`: a file of several, of a checkpoint of this name.
WEFT_DECL bool is_shard_of(const std::string& file, const std::string& name) {
  if (file.compare(0, name.size() + 1, name + ".") != 0) return false;
  std::string pattern = "xxxxxxxx-ddddd-of-ddddd";
  const std::string rest = file.substr(name.size() + 1);
  if (rest.size() < pattern.size()) return false;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    const char c = rest[i];
    const bool digit = c >= '0' && c <= '9';
    if (pattern[i] == 'd' ? !digit : pattern[i] == 'x' ? !digit && (c < 'a' || c > 'f') : c != pattern[i]) return false;
  }
  const std::string end = rest.substr(pattern.size());
  return end == ".safetensors" || end == ".npz";
}

// The index goes first: without it, what is left is no checkpoint.
WEFT_DECL void remove_checkpoint(const std::string& prefix) {
  for (const char* end : {".safetensors.index.json", ".npz.index.json", ".index", ".safetensors", ".npz"}) std::remove((prefix + end).c_str());
  const std::string folder = folder_of(prefix), name = base_name(prefix);
  for (const std::string& file : names_in_folder(folder))
    if (is_shard_of(file, name) || file.compare(0, name.size() + 6, name + ".data-") == 0) std::remove((folder + "/" + file).c_str());
}

WEFT_DECL void remove_leftovers(const std::string& path) {
  const std::string folder = folder_of(path), begin = base_name(path) + "-";
  for (const std::string& file : names_in_folder(folder)) {
    std::size_t end = begin.size();
    while (end < file.size() && file[end] >= '0' && file[end] <= '9') ++end;
    if (file.compare(0, begin.size(), begin) != 0 || end == begin.size() || end == file.size() || file[end] != '.') continue;
    const std::string full = folder + "/" + file, name = file.substr(0, end);
    if (ends_with(file, ".tmp")) {
      (void)remove_unfinished(full);
      continue;
    }
    if (!is_shard_of(file, name)) continue;
    bool named = false;
    for (const char* index : {".safetensors.index.json", ".npz.index.json"}) {
      if (!file_exists(folder + "/" + name + index)) continue;
      const file_reader listing(folder + "/" + name + index);
      named = named || listing.text(0, static_cast<std::size_t>(listing.size())).find("\"" + file + "\"") != std::string::npos;
    }
    if (!named) std::remove(full.c_str());
  }
}

}  // namespace detail

WEFT_DECL std::optional<std::string> latest_checkpoint(const std::string& directory) {
  const std::string file = directory + "/checkpoint";
  if (!detail::file_exists(file)) return std::nullopt;
  const detail::checkpoint_state state = detail::read_checkpoint_state(file);
  for (auto name = state.names.rbegin(); name != state.names.rend(); ++name) {
    std::string prefix = !name->empty() && (*name)[0] == '/' ? *name : directory + "/" + *name;
    if (detail::checkpoint_exists(prefix)) return prefix;
  }
  return std::nullopt;
}

}  // namespace weft
#endif

#endif
