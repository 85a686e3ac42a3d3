#ifndef WEFT_GRAPH_NAME_INDEX_HPP
#define WEFT_GRAPH_NAME_INDEX_HPP
// The nodes of a graph by their names, and which names are taken without regard to case. Numbers in two open tables: the names stay where the nodes have them, and are entered when somebody asks for
// one.

#include <weft/core/config.hpp>
#include <weft/graph/node.hpp>
#include <weft/graph/word.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weft::detail {

class name_index {
 public:
  // The node of this name; nullptr when there is none.
  const node* find(std::string_view name, const std::vector<const node*>& nodes);
  // A name like `wanted` that no other differs from by case only, for the node that comes next or, with `for_scope`, for a scope: x, x_1, x_2, as TensorFlow.
  std::string take(const std::string& wanted, bool for_scope, const std::vector<const node*>& nodes);

 private:
  // `who` is the number of a node, or one of `scopes_` from -1 downward; `used` counts how often the name was asked for, and is 0 in an empty place.
  struct entry {
    std::uint32_t hash = 0;
    std::int32_t who = 0, used = 0;
  };
  static void lower(std::string_view text, std::string& out);
  static void make_room(std::vector<entry>& table, std::size_t used);
  void enter(const std::vector<const node*>& nodes);
  static entry& free_place(std::vector<entry>& table, std::uint32_t hash) noexcept;
  entry* find_taken(const std::string& key, const std::vector<const node*>& nodes);
  void take_key(const std::string& key, std::int32_t who);
  void catch_up(const std::vector<const node*>& nodes);

  // Sizes are powers of two, at most half of the places are in use.
  std::vector<entry> names_, taken_;
  std::size_t named_ = 0, taken_count_ = 0, caught_up_ = 0;
  std::vector<std::string> scopes_;
  std::string scratch_;
};

}  // namespace weft::detail

#if WEFT_HAS_BODIES
namespace weft::detail {

WEFT_DECL void name_index::lower(std::string_view text, std::string& out) {
  out.assign(text);
  for (char& c : out)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + ('a' - 'A'));
}

WEFT_DECL name_index::entry& name_index::free_place(std::vector<entry>& table, std::uint32_t hash) noexcept {
  const std::size_t mask = table.size() - 1;
  std::size_t i = hash & mask;
  while (table[i].used != 0) i = (i + 1) & mask;
  return table[i];
}

WEFT_DECL void name_index::make_room(std::vector<entry>& table, std::size_t used) {
  if (2 * (used + 1) <= table.size()) return;
  std::vector<entry> larger(table.empty() ? 16 : 2 * table.size());
  for (const entry& e : table)
    if (e.used != 0) free_place(larger, e.hash) = e;
  table = std::move(larger);
}

WEFT_DECL const node* name_index::find(std::string_view name, const std::vector<const node*>& nodes) {
  enter(nodes);
  if (names_.empty()) return nullptr;
  const std::uint32_t hash = hash_text(name);
  const std::size_t mask = names_.size() - 1;
  for (std::size_t i = hash & mask; names_[i].used != 0; i = (i + 1) & mask)
    if (names_[i].hash == hash && nodes[static_cast<std::size_t>(names_[i].who)]->name() == name) return nodes[static_cast<std::size_t>(names_[i].who)];
  return nullptr;
}

WEFT_DECL void name_index::enter(const std::vector<const node*>& nodes) {
  for (; named_ < nodes.size(); ++named_) {
    make_room(names_, named_);
    const std::uint32_t hash = hash_text(nodes[named_]->name());
    free_place(names_, hash) = {hash, static_cast<std::int32_t>(named_), 1};
  }
}

WEFT_DECL name_index::entry* name_index::find_taken(const std::string& key, const std::vector<const node*>& nodes) {
  if (taken_.empty()) return nullptr;
  const std::uint32_t hash = hash_text(key);
  const std::size_t mask = taken_.size() - 1;
  for (std::size_t i = hash & mask; taken_[i].used != 0; i = (i + 1) & mask) {
    if (taken_[i].hash != hash) continue;
    const std::int32_t who = taken_[i].who;
    lower(who < 0 ? scopes_[static_cast<std::size_t>(-1 - who)] : nodes[static_cast<std::size_t>(who)]->name(), scratch_);
    if (scratch_ == key) return &taken_[i];
  }
  return nullptr;
}

WEFT_DECL void name_index::take_key(const std::string& key, std::int32_t who) {
  make_room(taken_, taken_count_);
  const std::uint32_t hash = hash_text(key);
  free_place(taken_, hash) = {hash, who, 1};
  ++taken_count_;
}

// Nodes that took their names from here are there already.
WEFT_DECL void name_index::catch_up(const std::vector<const node*>& nodes) {
  std::string key;
  for (; caught_up_ < nodes.size(); ++caught_up_) {
    lower(nodes[caught_up_]->name(), key);
    if (find_taken(key, nodes) == nullptr) take_key(key, static_cast<std::int32_t>(caught_up_));
  }
}

WEFT_DECL std::string name_index::take(const std::string& wanted, bool for_scope, const std::vector<const node*>& nodes) {
  catch_up(nodes);
  std::string key, name = wanted;
  lower(wanted, key);
  if (entry* first = find_taken(key, nodes)) {
    int i = first->used;
    std::string unique_key;
    do {
      name = wanted + "_" + std::to_string(i);
      unique_key = key + "_" + std::to_string(i++);
    } while (find_taken(unique_key, nodes) != nullptr);
    find_taken(key, nodes)->used = i;
    key = std::move(unique_key);
  }
  if (for_scope) scopes_.push_back(name);
  else ++caught_up_;
  take_key(key, for_scope ? -static_cast<std::int32_t>(scopes_.size()) : static_cast<std::int32_t>(nodes.size()));
  return name;
}

}  // namespace weft::detail
#endif

#endif
