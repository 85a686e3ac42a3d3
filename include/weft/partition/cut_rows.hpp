#ifndef WEFT_PARTITION_CUT_ROWS_HPP
#define WEFT_PARTITION_CUT_ROWS_HPP
// What crosses between devices, as a few numbers for each value: a large graph may have a million. Words are made of them when somebody reads them.

#include <weft/core/config.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>
#if WEFT_HAS_BODIES
#include <weft/graph/graph_state.hpp>
#include <weft/placement/placement.hpp>

#include <optional>
#include <string>
#include <utility>
#endif

namespace weft::detail {

struct cut_words;

// A value, and the devices that it leaves and reaches; nodes by id, devices by number. A slot of `control_slot` stands for a node to wait for.
struct cut_row {
  static constexpr std::int32_t control_slot = -1;
  std::int32_t node = 0, slot = 0, from = 0, to = 0;
  // Places among the consumers; -1 for none.
  std::int32_t first_consumer = -1, last_consumer = -1;
};

// Rows by the number of their edge. What the consumers of a row are is a list through `consumers`.
struct cut_rows {
  struct consumer {
    std::int32_t node, next;
  };
  std::vector<cut_row> rows;
  std::vector<consumer> consumers;
  std::shared_ptr<const cut_words> words;

  // Adds a consumer, unless it was the last one.
  void consume(std::size_t row, std::int32_t node);
};

}  // namespace weft::detail

#if WEFT_HAS_BODIES
namespace weft::detail {

// The devices of a cut: their names, and the numbers of their tasks.
struct cut_devices {
  std::vector<std::string> names;
  std::vector<int> tasks;
};

// What the numbers of rows mean. Keeps the graph that was cut.
struct cut_words {
  std::shared_ptr<graph_state> graph;
  std::shared_ptr<const cut_devices> devices;
  placement where;
  // Whether float values travel between tasks as bfloat16.
  bool narrow = false;

  const node& node_of(std::int32_t id) const { return *graph->node_at(static_cast<std::size_t>(id)); }
  bool between_tasks(const cut_row& row) const noexcept { return devices->tasks[static_cast<std::size_t>(row.from)] != devices->tasks[static_cast<std::size_t>(row.to)]; }
};

inline void cut_rows::consume(std::size_t row, std::int32_t node) {
  cut_row& of = rows[row];
  if (of.last_consumer >= 0 && consumers[static_cast<std::size_t>(of.last_consumer)].node == node) return;
  const auto place = static_cast<std::int32_t>(consumers.size());
  if (of.last_consumer >= 0) consumers[static_cast<std::size_t>(of.last_consumer)].next = place;
  else of.first_consumer = place;
  of.last_consumer = place;
  consumers.push_back({node, -1});
}

// The size of a value; nothing when dtype or shape do not say it.
inline std::optional<std::int64_t> bytes_of(const output_type& type) {
  const auto elements = type.shape.elements();
  if (!elements || !is_plain(type.dtype)) return std::nullopt;
  const auto size = static_cast<std::int64_t>(size_of(type.dtype));
  return *elements > INT64_MAX / size ? std::nullopt : std::optional<std::int64_t>(*elements * size);
}

// Finds rows by the value and the device, or task, that it reaches: an open table of their numbers, at most half full.
class cut_row_index {
 public:
  // `places` are the devices or tasks of rows, by the numbers of their devices.
  std::int32_t find(const std::vector<cut_row>& rows, const std::vector<int>& places, std::int32_t node, std::int32_t slot, int place) const noexcept;
  void add(const std::vector<cut_row>& rows, const std::vector<int>& places, std::int32_t row);

 private:
  static std::size_t hash(std::int32_t node, std::int32_t slot, int place) noexcept;
  void put(const std::vector<cut_row>& rows, const std::vector<int>& places, std::int32_t row) noexcept;
  std::vector<std::int32_t> table_;  // -1: free
  std::size_t count_ = 0;
};

inline std::size_t cut_row_index::hash(std::int32_t node, std::int32_t slot, int place) noexcept {
  std::uint64_t h = (static_cast<std::uint64_t>(static_cast<std::uint32_t>(node)) << 32 ^ static_cast<std::uint32_t>(slot)) * 0x9e3779b97f4a7c15u;
  h = (h ^ h >> 32 ^ static_cast<std::uint32_t>(place)) * 0xd6e8feb86659fd93u;
  return static_cast<std::size_t>(h ^ h >> 32);
}

inline std::int32_t cut_row_index::find(const std::vector<cut_row>& rows, const std::vector<int>& places, std::int32_t node, std::int32_t slot, int place) const noexcept {
  if (table_.empty()) return -1;
  const std::size_t mask = table_.size() - 1;
  for (std::size_t i = hash(node, slot, place) & mask; table_[i] >= 0; i = (i + 1) & mask) {
    const cut_row& row = rows[static_cast<std::size_t>(table_[i])];
    if (row.node == node && row.slot == slot && places[static_cast<std::size_t>(row.to)] == place) return table_[i];
  }
  return -1;
}

inline void cut_row_index::put(const std::vector<cut_row>& rows, const std::vector<int>& places, std::int32_t row) noexcept {
  const cut_row& of = rows[static_cast<std::size_t>(row)];
  const std::size_t mask = table_.size() - 1;
  std::size_t i = hash(of.node, of.slot, places[static_cast<std::size_t>(of.to)]) & mask;
  while (table_[i] >= 0) i = (i + 1) & mask;
  table_[i] = row;
}

inline void cut_row_index::add(const std::vector<cut_row>& rows, const std::vector<int>& places, std::int32_t row) {
  if (2 * (count_ + 1) > table_.size()) {
    const std::vector<std::int32_t> before = std::exchange(table_, std::vector<std::int32_t>(table_.empty() ? 16 : 2 * table_.size(), -1));
    for (const std::int32_t each : before)
      if (each >= 0) put(rows, places, each);
  }
  put(rows, places, row);
  ++count_;
}

}  // namespace weft::detail
#endif

#endif
