#ifndef WEFT_FORMAT_CHECKPOINT_HPP
#define WEFT_FORMAT_CHECKPOINT_HPP
// Checkpoints: the tensors of one file, or of several that an index names, under one prefix; and slices of tensors that were saved in pieces.

#include <weft/core/config.hpp>
#include <weft/format/npz.hpp>
#include <weft/format/safetensors.hpp>
#include <weft/format/tensor_file.hpp>
#include <weft/format/tensorflow_checkpoint.hpp>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

/// The formats in which checkpoints are written.
enum class checkpoint_format { safetensors, npz };

/// What the names of its files end with: `.safetensors`, `.npz`.
constexpr const char* extension_of(checkpoint_format format) noexcept { return format == checkpoint_format::npz ? ".npz" : ".safetensors"; }

/// Opens one file of tensors, its format found out from its content.
std::unique_ptr<tensor_file> open_tensor_file(const std::string& path);

/// Opens a checkpoint by its prefix: the file of that name, or `prefix.safetensors`, `prefix.npz`, the files that `prefix.safetensors.index.json` or `prefix.npz.index.json` names, or TensorFlow's
/// `prefix.index`. Throws NOT_FOUND when there is none of them, or a file that the index names is missing; DATA_LOSS for damaged ones.
std::unique_ptr<tensor_file> open_checkpoint(const std::string& prefix);

/// Writes tensors in a format; `path` is the whole name of the file.
void write_tensor_file(const std::string& path, checkpoint_format format, const std::vector<named_tensor>& tensors);

/// The text of an index: which of these files, by their names without folders, holds which tensors.
std::string checkpoint_index(const std::vector<std::pair<std::string, const tensor_file*>>& files);

/// Which part of a tensor a value is, in TensorFlow's words: `784 10 0,392:-` are the first 392 rows of a tensor of shape [784,10].
struct tensor_slice {
  shape full;
  std::vector<std::int64_t> begin, size;
};
/// Throws INVALID_ARGUMENT for what is no slice, or lies outside its tensor.
tensor_slice parse_slice(const std::string& spec);

/// The name under which a file holds a piece of a tensor; the tensor's own when the slice is empty.
inline std::string piece_name(const std::string& name, const std::string& slice) { return slice.empty() ? name : name + " " + slice; }

/// What a checkpoint says about a whole tensor, also when it is there in pieces: its dtype and shape. An empty dtype when it is not there.
tensor_entry find_tensor(const tensor_file& file, const std::string& name);
/// The tensor, or this slice of it, put together from the pieces that the checkpoint has. Throws NOT_FOUND, INVALID_ARGUMENT when the tensor has another shape than the slice says, DATA_LOSS when
/// pieces are missing.
tensor_value read_tensor(const tensor_file& file, const std::string& name, const std::string& slice = "");

}  // namespace weft

#if WEFT_HAS_FORMAT_BODIES
#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

namespace weft {

namespace detail {

// The files that an index names, as one.
class sharded_file final : public tensor_file {
 public:
  explicit sharded_file(const std::string& index_path) : tensor_file(index_path) {
    const file_reader index_file(index_path);
    if (index_file.size() > max_safetensors_header) index_file.damaged("the index has " + std::to_string(index_file.size()) + " bytes, at most " + std::to_string(max_safetensors_header) + " are allowed");
    try {
      read_map(index_file);
    } catch (const error& e) {
      if (e.code() != error_code::invalid_argument) throw;
      index_file.damaged(e.message());
    }
    index();
  }
  tensor_value read(const tensor_entry& entry) const override {
    const tensor_file& from = *files_[static_cast<std::size_t>(entry.file)];
    return from.read(*from.find(entry.name));
  }
  using tensor_file::read;

 private:
  void read_map(const file_reader& index_file) {
    const json_value top = parse_json(index_file.text(0, static_cast<std::size_t>(index_file.size())));
    const json_at at(top);
    expect_fields(at, {"metadata", "weight_map"});
    const json_value* map = find_field(at, "weight_map");
    if (map == nullptr || map->kind != json_kind::object) bad_json(at, "there is no 'weight_map'");
    const json_at map_at(*map, at, "weight_map");
    std::vector<std::string> names;
    for (const json_value& member : map->items) {
      const std::string& name = string_at(json_at(member, map_at, member.key));
      if (name.empty() || name.find('/') != std::string::npos || name == "." || name == "..") bad_json(json_at(member, map_at, member.key), "'" + name.substr(0, 200) + "' is not the name of a file beside the index");
      auto which = std::find(names.begin(), names.end(), name);
      if (which == names.end()) {
        files_.push_back(open_shard(folder_of(path_) + "/" + name));
        which = names.insert(names.end(), name);
      }
      const auto number = static_cast<std::size_t>(which - names.begin());
      const tensor_entry* found = files_[number]->find(member.key);
      if (found == nullptr) index_file.damaged("'" + files_[number]->path() + "' has no tensor '" + member.key.substr(0, 200) + "'");
      entries_.push_back(*found);
      entries_.back().file = static_cast<int>(number);
    }
  }
  std::unique_ptr<tensor_file> open_shard(const std::string& shard) const {
    if (!file_exists(shard)) fail(error_code::not_found, "'" + shard + "' is missing, one of the files that '" + path_ + "' names; it was written where this task cannot see it, or it was removed");
    return open_tensor_file(shard);
  }
  std::vector<std::unique_ptr<tensor_file>> files_;
};

// A box of a tensor, its elements in C order.
struct tensor_box {
  const std::vector<std::int64_t>&begin, &size;
};

inline bool boxes_meet(const tensor_box& a, const tensor_box& b) {
  for (std::size_t d = 0; d < a.begin.size(); ++d)
    if (a.begin[d] >= b.begin[d] + b.size[d] || b.begin[d] >= a.begin[d] + a.size[d]) return false;
  return true;
}

// Copies what two boxes that meet share; returns how many elements those are.
inline std::int64_t copy_shared(const tensor_box& from_box, const std::byte* from, const tensor_box& to_box, std::byte* to, std::size_t element) {
  const std::size_t rank = from_box.begin.size();
  std::vector<std::int64_t> low(rank), high(rank), at;
  std::int64_t shared = 1;
  for (std::size_t d = 0; d < rank; ++d) {
    low[d] = std::max(from_box.begin[d], to_box.begin[d]);
    high[d] = std::min(from_box.begin[d] + from_box.size[d], to_box.begin[d] + to_box.size[d]);
    shared *= high[d] - low[d];
  }
  const std::size_t run = rank == 0 ? 1 : static_cast<std::size_t>(high[rank - 1] - low[rank - 1]);
  const auto place = [rank](const tensor_box& box, const std::vector<std::int64_t>& where) {
    std::int64_t out = 0;
    for (std::size_t d = 0; d < rank; ++d) out = out * box.size[d] + where[d] - box.begin[d];
    return static_cast<std::size_t>(out);
  };
  for (at = low;;) {
    std::memcpy(to + place(to_box, at) * element, from + place(from_box, at) * element, run * element);
    std::size_t d = rank == 0 ? 0 : rank - 1;
    for (; d > 0; --d) {
      if (++at[d - 1] < high[d - 1]) break;
      at[d - 1] = low[d - 1];
    }
    if (d == 0) return shared;
  }
}

inline constexpr std::size_t max_pieces = 10'000;

struct tensor_piece {
  const tensor_entry* entry;
  tensor_slice slice;
};

// The pieces of a tensor that a file has.
inline std::vector<tensor_piece> pieces_of(const tensor_file& file, const std::string& name) {
  std::vector<tensor_piece> out;
  const std::string begin = name + " ";
  auto at = std::lower_bound(file.entries().begin(), file.entries().end(), begin, [](const tensor_entry& e, const std::string& n) { return e.name < n; });
  for (; at != file.entries().end() && at->name.compare(0, begin.size(), begin) == 0; ++at) {
    tensor_piece piece{&*at, {}};
    try {
      piece.slice = parse_slice(at->name.substr(begin.size()));
    } catch (const error&) {
      continue;
    }
    if (at->shape == weft::shape(piece.slice.size)) out.push_back(std::move(piece));
  }
  return out;
}

}  // namespace detail

WEFT_DECL std::unique_ptr<tensor_file> open_tensor_file(const std::string& path) {
  const file_reader file(path);
  if (file.size() >= 2 && file.text(0, 2) == "PK") return std::make_unique<npz_file>(path);
  if (is_tensorflow_index(file)) return std::make_unique<tensorflow_checkpoint>(path);
  return std::make_unique<safetensors_file>(path);
}

WEFT_DECL std::unique_ptr<tensor_file> open_checkpoint(const std::string& prefix) {
  if (detail::ends_with(prefix, ".index.json") && detail::file_exists(prefix)) return std::make_unique<detail::sharded_file>(prefix);
  for (const char* end : {"", ".safetensors", ".npz", ".index"})
    if (!prefix.empty() && detail::file_exists(prefix + end) && (*end != '\0' || detail::ends_with(prefix, ".safetensors") || detail::ends_with(prefix, ".npz") || detail::ends_with(prefix, ".index")))
      return open_tensor_file(prefix + end);
  for (const char* end : {".index.json", ".safetensors.index.json", ".npz.index.json"})
    if (detail::file_exists(prefix + end)) return std::make_unique<detail::sharded_file>(prefix + end);
  fail(error_code::not_found, "there is no checkpoint '" + prefix + "': no file of that name with .safetensors, .npz, .safetensors.index.json, .npz.index.json or .index");
}

WEFT_DECL void write_tensor_file(const std::string& path, checkpoint_format format, const std::vector<named_tensor>& tensors) {
  if (format == checkpoint_format::npz) write_npz(path, tensors);
  else write_safetensors(path, tensors);
}

WEFT_DECL std::string checkpoint_index(const std::vector<std::pair<std::string, const tensor_file*>>& files) {
  std::uint64_t total = 0;
  std::vector<std::pair<const std::string*, const std::string*>> all;
  for (const auto& [name, file] : files)
    for (const tensor_entry& e : file->entries()) {
      total += e.bytes;
      all.emplace_back(&e.name, &name);
    }
  std::sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return *a.first < *b.first; });
  for (std::size_t i = 1; i < all.size(); ++i)
    if (*all[i].first == *all[i - 1].first) fail(error_code::invalid_argument, "tensor '" + *all[i].first + "' is in '" + *all[i - 1].second + "' and in '" + *all[i].second + "'");
  detail::json_writer out(2, true);
  out.begin('{').key("metadata").begin('{').key("total_size").small(static_cast<std::int64_t>(total)).end('}').key("weight_map").begin('{');
  for (const auto& [name, file] : all) out.key(*name).string(*file);
  return out.end('}').end('}').take();
}

WEFT_DECL tensor_slice parse_slice(const std::string& spec) {
  const auto bad = [&spec](const std::string& why) { fail(error_code::invalid_argument, "'" + spec.substr(0, 200) + "' is not a slice of a tensor, as in '784 10 0,392:-': " + why); };
  const auto number = [&bad](std::string_view digits) {
    std::int64_t out = 0;
    if (digits.empty() || digits.size() > 18) bad("expected a number");
    for (const char c : digits) {
      if (c < '0' || c > '9') bad("expected a number");
      out = out * 10 + (c - '0');
    }
    return out;
  };
  tensor_slice out;
  std::vector<std::int64_t> sizes;
  std::string_view rest = spec;
  for (auto space = rest.find(' '); space != std::string_view::npos; space = rest.find(' ')) {
    sizes.push_back(number(rest.substr(0, space)));
    rest.remove_prefix(space + 1);
  }
  if (sizes.size() > static_cast<std::size_t>(max_rank) || !checked_elements(sizes.data(), sizes.size())) bad("the shape is too large");
  for (std::size_t d = 0; d < sizes.size(); ++d) {
    const auto colon = rest.find(':');
    if ((colon == std::string_view::npos) != (d + 1 == sizes.size())) bad("it needs one part for each dimension");
    const std::string_view part = rest.substr(0, colon);
    const auto comma = part.find(',');
    if (part == "-") {
      out.begin.push_back(0);
      out.size.push_back(sizes[d]);
    } else {
      if (comma == std::string_view::npos) bad("a part is '-' or 'begin,length'");
      out.begin.push_back(number(part.substr(0, comma)));
      out.size.push_back(number(part.substr(comma + 1)));
    }
    if (out.begin[d] > sizes[d] || out.size[d] > sizes[d] - out.begin[d]) bad("it is not within the tensor");
    if (colon != std::string_view::npos) rest.remove_prefix(colon + 1);
  }
  if (sizes.empty()) bad("a scalar has no slices");
  out.full = shape(sizes);
  return out;
}

WEFT_DECL tensor_entry find_tensor(const tensor_file& file, const std::string& name) {
  if (const tensor_entry* whole = file.find(name)) return *whole;
  tensor_entry out;
  const auto pieces = detail::pieces_of(file, name);
  if (pieces.empty()) return out;
  out = *pieces[0].entry;
  out.name = name;
  out.shape = pieces[0].slice.full;
  return out;
}

WEFT_DECL tensor_value read_tensor(const tensor_file& file, const std::string& name, const std::string& spec) {
  const tensor_entry about = find_tensor(file, name);
  const std::string shown = "tensor '" + name.substr(0, 200) + "' of '" + file.path() + "'";
  if (about.dtype == dtype::invalid) fail(error_code::not_found, "'" + file.path() + "' has no tensor '" + name.substr(0, 200) + "'");
  if (const tensor_entry* exact = file.find(piece_name(name, spec))) return file.read(*exact);
  tensor_slice wanted;
  if (!spec.empty()) wanted = parse_slice(spec);
  else wanted = {about.shape, std::vector<std::int64_t>(static_cast<std::size_t>(about.shape.rank()), 0), about.shape.vector()};
  if (wanted.full != about.shape) fail(error_code::invalid_argument, shown + " has shape " + about.shape.text() + ", a slice of a tensor of shape " + wanted.full.text() + " was asked for");
  if (!is_plain(about.dtype)) fail(error_code::unimplemented, shown + " is " + to_text(about.dtype) + ", which is not read in slices");
  // The largest piece is held beside the result.
  tensor_value out(about.dtype, weft::shape(wanted.size));
  std::int64_t found = 0;
  auto pieces = detail::pieces_of(file, name);
  const std::vector<std::int64_t> origin(static_cast<std::size_t>(about.shape.rank()), 0);
  if (const tensor_entry* whole = file.find(name)) pieces = {{whole, {about.shape, origin, about.shape.vector()}}};
  if (pieces.size() > detail::max_pieces) fail(error_code::resource_exhausted, shown + " has " + std::to_string(pieces.size()) + " pieces, at most " + std::to_string(detail::max_pieces) + " are read");
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const detail::tensor_piece& p = pieces[i];
    if (p.slice.full != about.shape || p.entry->dtype != about.dtype) fail(error_code::data_loss, shown + " has pieces of different dtypes or shapes");
    for (std::size_t j = 0; j < i; ++j)
      if (detail::boxes_meet({p.slice.begin, p.slice.size}, {pieces[j].slice.begin, pieces[j].slice.size})) fail(error_code::data_loss, shown + " has pieces that overlap");
    if (!detail::boxes_meet({p.slice.begin, p.slice.size}, {wanted.begin, wanted.size})) continue;
    const tensor_value piece = file.read(*p.entry);
    found += detail::copy_shared({p.slice.begin, p.slice.size}, piece.raw_data(), {wanted.begin, wanted.size}, out.mutable_raw_data(), size_of(about.dtype));
  }
  if (found != out.elements()) fail(error_code::data_loss, shown + " lacks pieces: " + std::to_string(found) + " of " + std::to_string(out.elements()) + " elements are there");
  return out;
}

}  // namespace weft
#endif

#endif
