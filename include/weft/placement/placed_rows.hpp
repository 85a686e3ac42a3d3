#ifndef WEFT_PLACEMENT_PLACED_ROWS_HPP
#define WEFT_PLACEMENT_PLACED_ROWS_HPP
// Where nodes are and why, as two numbers for each: a graph has many nodes, few devices and few reasons. Words are made of them when somebody reads them.

#include <weft/core/config.hpp>
#include <weft/graph/graph_state.hpp>

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>
#if WEFT_HAS_BODIES
#include <unordered_map>
#endif

namespace weft::detail {

// What a reason's number stands for: a text, or the node that it speaks of.
enum class reason_kind : std::uint32_t { text, variable, resource, input, consumer, consumers, colocated };

struct placed_reason {
  std::uint32_t kind : 3;
  std::uint32_t number : 29;
  friend bool operator==(const placed_reason& a, const placed_reason& b) noexcept { return a.kind == b.kind && a.number == b.number; }
};

// A device, by its number among the words, and a reason.
struct placed_row {
  std::int32_t device;
  placed_reason reason;
};

// What the numbers of rows mean. Keeps the graph whose nodes its reasons speak of.
struct placed_words {
  std::vector<std::string> devices, texts;
  std::shared_ptr<graph_state> graph;
  std::string text_of(placed_reason why) const;
};

// Rows of nodes by id, from `first` on, behind those of an earlier placement, which it shares. Each block is larger than the next one, so that there are few.
struct placed_block {
  std::shared_ptr<const placed_block> before;
  std::size_t first = 0;
  std::shared_ptr<const placed_words> words;
  std::vector<placed_row> rows;
};
std::shared_ptr<const placed_block> add_block(std::shared_ptr<const placed_block> before, std::shared_ptr<const placed_words> words, std::vector<placed_row> rows);

}  // namespace weft::detail

#if WEFT_HAS_BODIES
namespace weft::detail {

// Words in the making: each is there once.
class placed_words_in_the_making {
 public:
  explicit placed_words_in_the_making(std::shared_ptr<graph_state> g) { words_.graph = std::move(g); }
  // Goes on with words that there are.
  explicit placed_words_in_the_making(const placed_words& words);
  std::int32_t device(const std::string& name) { return number(name, words_.devices, devices_); }
  placed_reason text(const std::string& words) { return reason(reason_kind::text, number(words, words_.texts, texts_)); }
  placed_reason about(reason_kind kind, const node& n) const noexcept { return reason(kind, n.id()); }
  const placed_words& words() const noexcept { return words_; }
  // Adds the rows of a block in these words.
  void translate(const placed_block& from, std::vector<placed_row>& to);
  std::shared_ptr<const placed_words> take() { return std::make_shared<const placed_words>(std::move(words_)); }

 private:
  static placed_reason reason(reason_kind kind, int number) noexcept { return {static_cast<std::uint32_t>(kind) & 7u, static_cast<std::uint32_t>(number) & 0x1fffffffu}; }
  static std::int32_t number(const std::string& what, std::vector<std::string>& list, std::unordered_map<std::string, int>& known);
  placed_words words_;
  std::unordered_map<std::string, int> devices_, texts_;
};

WEFT_DECL std::string placed_words::text_of(placed_reason why) const {
  const auto kind = static_cast<reason_kind>(why.kind);
  if (kind == reason_kind::text) return texts[why.number];
  const std::string name = "'" + graph->node_at(why.number)->name() + "'";
  switch (kind) {
    case reason_kind::variable: return "with its variable " + name;
    case reason_kind::resource: return "with its resource " + name;
    case reason_kind::input: return "with its input " + name;
    case reason_kind::consumer: return "with its consumer " + name;
    case reason_kind::consumers: return "with its consumers " + name + ", ...";
    default: return "colocated with " + name;
  }
}

WEFT_DECL placed_words_in_the_making::placed_words_in_the_making(const placed_words& words) : words_(words) {
  for (std::size_t i = 0; i < words_.devices.size(); ++i) devices_.emplace(words_.devices[i], static_cast<int>(i));
  for (std::size_t i = 0; i < words_.texts.size(); ++i) texts_.emplace(words_.texts[i], static_cast<int>(i));
}

WEFT_DECL std::int32_t placed_words_in_the_making::number(const std::string& what, std::vector<std::string>& list, std::unordered_map<std::string, int>& known) {
  const auto it = known.find(what);
  if (it != known.end()) return it->second;
  const auto fresh = static_cast<int>(list.size());
  list.push_back(what);
  known.emplace(what, fresh);
  return fresh;
}

WEFT_DECL void placed_words_in_the_making::translate(const placed_block& from, std::vector<placed_row>& to) {
  std::vector<std::int32_t> devices, texts;
  for (const std::string& name : from.words->devices) devices.push_back(device(name));
  for (const std::string& words : from.words->texts) texts.push_back(static_cast<std::int32_t>(text(words).number));
  for (placed_row row : from.rows) {
    row.device = devices[static_cast<std::size_t>(row.device)];
    if (row.reason.kind == static_cast<std::uint32_t>(reason_kind::text)) row.reason = reason(reason_kind::text, texts[row.reason.number]);
    to.push_back(row);
  }
}

// Takes in what is not larger than the block, so that a graph that grows node by node has its rows copied a few times each.
WEFT_DECL std::shared_ptr<const placed_block> add_block(std::shared_ptr<const placed_block> before, std::shared_ptr<const placed_words> words, std::vector<placed_row> rows) {
  if (rows.empty()) return before;
  std::vector<std::shared_ptr<const placed_block>> taken;
  std::size_t size = rows.size();
  for (; before != nullptr && before->rows.size() <= size; before = before->before) {
    size += before->rows.size();
    taken.push_back(before);
  }
  auto out = std::make_shared<placed_block>();
  out->first = before == nullptr ? 0 : before->first + before->rows.size();
  out->before = std::move(before);
  out->words = std::move(words);
  out->rows = std::move(rows);
  if (taken.empty()) return out;
  placed_words_in_the_making all(*out->words);
  std::vector<placed_row> together;
  together.reserve(size);
  for (std::size_t i = taken.size(); i-- > 0;) all.translate(*taken[i], together);
  together.insert(together.end(), out->rows.begin(), out->rows.end());
  out->rows = std::move(together);
  out->words = all.take();
  return out;
}

}  // namespace weft::detail
#endif

#endif
