#ifndef WEFT_PARTITION_TRANSFER_HPP
#define WEFT_PARTITION_TRANSFER_HPP
// What crosses between devices in one step: one row per pair of `_Send` and `_Recv`, per feed and per fetch.

#include <weft/core/config.hpp>
#include <weft/core/device_name.hpp>
#include <weft/partition/cut_rows.hpp>
#include <weft/tensor/dtype.hpp>
#include <weft/tensor/shape.hpp>

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weft {

namespace detail {
class partitioner;
}  // namespace detail

/// What kind of edge a transfer stands for.
enum class transfer_kind { data, control, feed, fetch };

/// `data`, `control`, `feed` or `fetch`.
constexpr const char* to_text(transfer_kind kind) noexcept {
  return kind == transfer_kind::data ? "data" : kind == transfer_kind::control ? "control" : kind == transfer_kind::feed ? "feed" : "fetch";
}

/// One value that crosses from one device to another, once per step.
struct transfer {
  /// Unique in the partitioned graph; attribute `_edge` of its `_Send` and `_Recv`.
  std::int64_t edge = 0;
  transfer_kind kind = transfer_kind::data;
  /// `x`, `x:1` for a later output, `^x` for a control edge.
  std::string source;
  /// Nodes that read it where it arrives, each once; `^y` when by a control edge.
  std::vector<std::string> consumers;
  /// Devices, short complete names.
  std::string from, to;
  weft::dtype dtype = weft::dtype::invalid;
  partial_shape shape;
  /// Size of the value; nothing when dtype or shape do not say it.
  std::optional<std::int64_t> bytes;
  bool between_tasks = false;
  /// Why its first consumer is where it is.
  std::string reason;

  friend bool operator==(const transfer& a, const transfer& b);
  friend bool operator!=(const transfer& a, const transfer& b) { return !(a == b); }
};

/// `data 0: x  float[100]  400 bytes  /job:ps/task:0/device:CPU:0 -> /job:work/task:1/device:CPU:0  for y`
std::string to_text(const transfer& t);

inline std::ostream& operator<<(std::ostream& out, transfer_kind kind) { return out << to_text(kind); }
inline std::ostream& operator<<(std::ostream& out, const transfer& t) { return out << to_text(t); }

/// The transfers of a partitioned graph. Counts and iterates over data and control edges, whose rows are made when they are read; feeds and fetches stand apart.
class transfer_table {
 public:
  class iterator;
  transfer_table() = default;
  transfer_table(std::vector<transfer> edges, std::vector<transfer> feeds, std::vector<transfer> fetches)
      : edges_(std::move(edges)), feeds_(std::move(feeds)), fetches_(std::move(fetches)) {}

  std::size_t size() const noexcept { return edges_.size() + cut_.rows.size(); }
  bool empty() const noexcept { return size() == 0; }
  /// The row of this number. i < size().
  transfer operator[](std::size_t i) const;
  /// The row without its words: edge, kind, dtype, shape, bytes and whether it is between tasks. i < size().
  transfer brief(std::size_t i) const;
  iterator begin() const noexcept;
  iterator end() const noexcept;
  /// Values that a step is given, one row per device that reads one.
  const std::vector<transfer>& feeds() const& noexcept { return feeds_; }
  std::vector<transfer> feeds() && { return std::move(feeds_); }
  /// Values that a step gives back.
  const std::vector<transfer>& fetches() const& noexcept { return fetches_; }
  std::vector<transfer> fetches() && { return std::move(fetches_); }
  /// Feeds, then data and control edges, then fetches.
  std::vector<transfer> all() const;
  /// Bytes of the data edges from one device or task to another in a step, each named in full or in part (`/job:ps`); nothing when the size of one is not known. Throws INVALID_ARGUMENT for a malformed name.
  std::optional<std::int64_t> bytes_between(std::string_view from, std::string_view to, call_site where = call_site::here()) const;

  friend bool operator==(const transfer_table& a, const transfer_table& b);
  friend bool operator!=(const transfer_table& a, const transfer_table& b) { return !(a == b); }

 private:
  friend class detail::partitioner;
  // The rows of edges, of which one is empty: as they were given, or in numbers.
  std::vector<transfer> edges_;
  detail::cut_rows cut_;
  std::vector<transfer> feeds_, fetches_;
};

/// Goes over the rows of a table, which must not change meanwhile.
class transfer_table::iterator {
 public:
  using iterator_category = std::input_iterator_tag;
  using value_type = transfer;
  using difference_type = std::ptrdiff_t;
  using pointer = void;
  using reference = transfer;

  iterator(const transfer_table& of, std::size_t i) noexcept : of_(&of), i_(i) {}
  transfer operator*() const { return (*of_)[i_]; }
  iterator& operator++() noexcept {
    ++i_;
    return *this;
  }
  iterator operator++(int) noexcept { return {*of_, i_++}; }
  friend bool operator==(const iterator& a, const iterator& b) noexcept { return a.i_ == b.i_; }
  friend bool operator!=(const iterator& a, const iterator& b) noexcept { return a.i_ != b.i_; }

 private:
  const transfer_table* of_;
  std::size_t i_;
};

inline transfer_table::iterator transfer_table::begin() const noexcept { return {*this, 0}; }
inline transfer_table::iterator transfer_table::end() const noexcept { return {*this, size()}; }

/// One line per row of `all()`.
std::string to_text(const transfer_table& table);

inline std::ostream& operator<<(std::ostream& out, const transfer_table& table) { return out << to_text(table); }

}  // namespace weft

#if WEFT_HAS_BODIES
namespace weft {

WEFT_DECL std::string to_text(const transfer& t) {
  std::string out = std::string(to_text(t.kind)) + " " + std::to_string(t.edge) + ": " + t.source;
  if (t.kind != transfer_kind::control) out += std::string("  ") + to_text(t.dtype) + t.shape.text();
  if (t.kind != transfer_kind::control && t.bytes) out += "  " + std::to_string(*t.bytes) + " bytes";
  out += "  " + t.from + " -> " + t.to;
  for (std::size_t i = 0; i < t.consumers.size(); ++i) out += (i ? ", " : "  for ") + t.consumers[i];
  return out;
}

WEFT_DECL std::string to_text(const transfer_table& table) {
  std::string out;
  for (const transfer& t : table.all()) out += to_text(t) + "\n";
  return out;
}

WEFT_DECL bool operator==(const transfer& a, const transfer& b) {
  return a.edge == b.edge && a.kind == b.kind && a.source == b.source && a.consumers == b.consumers && a.from == b.from && a.to == b.to && a.dtype == b.dtype && a.shape == b.shape &&
         a.bytes == b.bytes && a.between_tasks == b.between_tasks && a.reason == b.reason;
}

WEFT_DECL bool operator==(const transfer_table& a, const transfer_table& b) {
  if (a.size() != b.size() || a.feeds_ != b.feeds_ || a.fetches_ != b.fetches_) return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (a[i] != b[i]) return false;
  return true;
}

WEFT_DECL transfer transfer_table::brief(std::size_t i) const {
  if (cut_.rows.empty()) {
    const transfer& whole = edges_[i];
    return {whole.edge, whole.kind, {}, {}, {}, {}, whole.dtype, whole.shape, whole.bytes, whole.between_tasks, {}};
  }
  const detail::cut_row& row = cut_.rows[i];
  transfer t;
  t.edge = static_cast<std::int64_t>(i);
  t.between_tasks = cut_.words->between_tasks(row);
  output_type type{dtype::float32, partial_shape{0}, false};
  if (row.slot == detail::cut_row::control_slot) t.kind = transfer_kind::control;
  else type = cut_.words->node_of(row.node).outputs()[static_cast<std::size_t>(row.slot)];
  if (cut_.words->narrow && t.between_tasks && t.kind == transfer_kind::data && type.dtype == dtype::float32) type.dtype = dtype::bfloat16;
  t.dtype = type.dtype;
  t.bytes = detail::bytes_of(type);
  t.shape = std::move(type.shape);
  return t;
}

WEFT_DECL transfer transfer_table::operator[](std::size_t i) const {
  if (cut_.rows.empty()) return edges_[i];
  const detail::cut_row& row = cut_.rows[i];
  const detail::cut_words& words = *cut_.words;
  transfer t = brief(i);
  const bool control = t.kind == transfer_kind::control;
  const node& source = words.node_of(row.node);
  t.source = control ? "^" + source.name() : to_text(output{&source, row.slot});
  t.from = words.devices->names[static_cast<std::size_t>(row.from)];
  t.to = words.devices->names[static_cast<std::size_t>(row.to)];
  for (std::int32_t place = row.first_consumer; place >= 0; place = cut_.consumers[static_cast<std::size_t>(place)].next) {
    const node& consumer = words.node_of(cut_.consumers[static_cast<std::size_t>(place)].node);
    if (place == row.first_consumer) t.reason = "'" + consumer.name() + "' is " + words.where.reason_of(consumer);
    t.consumers.push_back((control ? "^" : "") + consumer.name());
  }
  return t;
}

WEFT_DECL std::optional<std::int64_t> transfer_table::bytes_between(std::string_view from, std::string_view to, call_site where) const {
  const device_name source = parse_device_name(from, where), destination = parse_device_name(to, where);
  std::int64_t sum = 0;
  for (const transfer& t : *this) {
    if (t.kind != transfer_kind::data || !matches(source, parse_device_name(t.from)) || !matches(destination, parse_device_name(t.to))) continue;
    if (!t.bytes || *t.bytes > INT64_MAX - sum) return std::nullopt;
    sum += *t.bytes;
  }
  return sum;
}

WEFT_DECL std::vector<transfer> transfer_table::all() const {
  std::vector<transfer> out = feeds_;
  out.reserve(feeds_.size() + size() + fetches_.size());
  for (transfer t : *this) out.push_back(std::move(t));
  out.insert(out.end(), fetches_.begin(), fetches_.end());
  return out;
}

}  // namespace weft
#endif

#endif
