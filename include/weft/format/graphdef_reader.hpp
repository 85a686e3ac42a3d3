#ifndef WEFT_FORMAT_GRAPHDEF_READER_HPP
#define WEFT_FORMAT_GRAPHDEF_READER_HPP
// A graph from protobuf-JSON of GraphDef.

#include <weft/core/config.hpp>
#include <weft/format/function_json.hpp>
#include <weft/graph/graph.hpp>
#include <weft/ops/standard.hpp>

#include <cstdint>
#include <string>
#include <string_view>

namespace weft {

/// How a graph is read from a file.
struct import_options {
  /// The definitions of the ops it may use.
  op_registry ops = standard_ops();
  /// Put before every name with a '/' between, as TensorFlow's `import_graph_def(name=...)` does; nothing when empty.
  std::string prefix;
  /// How many nodes are accepted.
  std::size_t max_nodes = 1'000'000;
  /// How many bytes values may take that the text does not spell out: a few characters may repeat one value any number of times.
  std::uint64_t max_repeated_bytes = std::uint64_t(1) << 30;
};

/// The graph of this text, field names in either spelling, nodes in any order; attributes that are left out get their defaults. Throws
/// INVALID_ARGUMENT with the way to the faulty field (`node[3].attr.dtype.type: ...`), NOT_FOUND naming the ops that are not defined,
/// UNIMPLEMENTED for dtypes that weft has not, RESOURCE_EXHAUSTED. Functions of the file's library are kept, and may be used as ops.
graph from_graphdef_json(std::string_view text, const import_options& options = {});
/// The graph in this file. Throws as `from_graphdef_json`, the file's name before the fault; NOT_FOUND when it cannot be read.
graph read_graphdef_json(const std::string& path, const import_options& options = {});

namespace detail {
// The graph in a parsed text, or in a part of one.
graph graph_at(const json_at& at, const import_options& options);
}  // namespace detail

}  // namespace weft

#if WEFT_HAS_FORMAT_BODIES
#include <algorithm>
#include <map>
#include <memory>
#include <unordered_map>

namespace weft::detail {

/// Reads the nodes of a GraphDef into a new graph.
class graph_reader {
 public:
  graph_reader(const json_at& at, const import_options& options) : at_(at), options_(options), out_(op_registry()), room_(options.max_repeated_bytes) {}

  // 1. functions, whose signatures are ops; 2. every node's name and op; 3. inputs by number; 4. nodes after their inputs, otherwise in the order of the file; 5. the edges that close loops.
  graph run();

 private:
  struct entry {
    const json_value* json;
    std::string name, op;
    // Numbers of the nodes it needs, and the output of each; -1 for a control input.
    std::vector<std::pair<std::size_t, int>> inputs;
    const node* made = nullptr;
    bool open = false;
  };
  void read_functions();
  void read_names();
  void read_inputs(std::size_t number);
  void add_after_inputs(std::size_t number);
  void add(std::size_t number);
  void close_loops(std::size_t number);
  bool closes_loop(const entry& e, std::size_t from) const { return e.op == "Merge" && entries_[from].op == "NextIteration"; }
  std::string full_name(const entry& e) const { return options_.prefix.empty() ? e.name : options_.prefix + "/" + e.name; }
  void add_merge_of_loop(const entry& e, node_spec& spec) const;
  [[noreturn]] void bad_node(const error& fault, std::size_t number) const;
  json_at place(std::size_t number) const { return json_at(*entries_[number].json, *nodes_at_, number); }
  [[noreturn]] void bad_cycle(const std::vector<std::size_t>& way, std::size_t closes) const;

  const json_at& at_;
  const import_options& options_;
  graph out_;
  std::uint64_t room_;
  const json_at* nodes_at_ = nullptr;
  std::vector<entry> entries_;
  std::unordered_map<std::string_view, std::size_t> by_name_;
};

inline graph graph_reader::run() {
  expect_fields(at_, {"node", "library", "version", "versions", "debug_info"});
  read_functions();
  const json_value* nodes = find_field(at_, "node");
  if (nodes == nullptr) return std::move(out_);
  const json_at list(*nodes, at_, "node");
  nodes_at_ = &list;
  if (elements_at(list).size() > options_.max_nodes)
    bad_json(list, "the graph has " + std::to_string(nodes->items.size()) + " nodes, at most " + std::to_string(options_.max_nodes) + " are accepted (import_options::max_nodes)", error_code::resource_exhausted);
  read_names();
  for (std::size_t i = 0; i < entries_.size(); ++i) read_inputs(i);
  for (std::size_t i = 0; i < entries_.size(); ++i) add_after_inputs(i);
  for (std::size_t i = 0; i < entries_.size(); ++i) close_loops(i);
  return std::move(out_);
}

inline void graph_reader::read_functions() {
  op_registry ops = options_.ops;
  std::vector<std::shared_ptr<const function_def>> functions;
  if (const json_value* library = find_field(at_, "library")) functions = functions_at(json_at(*library, at_, "library"), ops, room_);
  out_ = graph(std::move(ops));
  for (auto& f : functions) out_.state()->add_function(std::move(f));
}

inline void graph_reader::read_names() {
  const auto& items = nodes_at_->value.items;
  entries_.resize(items.size());
  std::map<std::string, std::pair<std::string, int>> unknown;
  for (std::size_t i = 0; i < items.size(); ++i) {
    const json_at one(items[i], *nodes_at_, i);
    entry& e = entries_[i];
    expect_fields(one, {"name", "op", "input", "device", "attr", "experimental_debug_info", "experimental_type"});
    e.json = &items[i];
    e.name = text_field(one, "name");
    e.op = text_field(one, "op");
    if (e.name.empty()) bad_json(one, "the node has no name");
    if (e.op.empty()) bad_json(one, "node '" + e.name.substr(0, 200) + "' does not say its op");
    if (out_.ops().find(e.op) == nullptr) ++unknown.emplace(e.op, std::pair<std::string, int>(e.name, 0)).first->second.second;
  }
  std::string list;
  for (const auto& [op, first] : unknown)
    if (list.size() < 2000) list += (list.empty() ? "'" : ", '") + op.substr(0, 200) + "' (node '" + first.first.substr(0, 200) + "'" + (first.second > 1 ? " and " + std::to_string(first.second - 1) + " more" : "") + ")";
  if (!list.empty()) fail(error_code::not_found, "the graph uses ops that are not defined: " + list + "; add their definitions to import_options::ops");
  by_name_.reserve(items.size());
  for (std::size_t i = 0; i < items.size(); ++i)
    if (!by_name_.emplace(entries_[i].name, i).second) bad_json(json_at(items[i], *nodes_at_, i), "there is more than one node '" + entries_[i].name.substr(0, 200) + "'", error_code::already_exists);
}

// `x`, `x:1`, `^x`.
inline void graph_reader::read_inputs(std::size_t number) {
  const json_at where = place(number);
  const json_value* inputs = find_field(where, "input");
  if (inputs == nullptr) return;
  const json_at list(*inputs, where, "input");
  bool control_seen = false;
  for (std::size_t i = 0; i < elements_at(list).size(); ++i) {
    const json_at one(inputs->items[i], list, i);
    std::string_view text = string_at(one);
    int index = 0;
    const bool control = !text.empty() && text[0] == '^';
    if (control) {
      text.remove_prefix(1);
      index = -1;
    } else if (const auto colon = text.rfind(':'); colon != std::string_view::npos) {
      const std::string_view digits = text.substr(colon + 1);
      if (digits.empty() || digits.size() > 6 || digits.find_first_not_of("0123456789") != std::string_view::npos) bad_json(one, "'" + std::string(text.substr(0, 200)) + "' is not an input; expected 'node', 'node:1' or '^node'");
      index = std::stoi(std::string(digits));
      text = text.substr(0, colon);
    }
    if (control_seen && !control) bad_json(one, "control inputs come after all others");
    control_seen = control;
    const auto found = by_name_.find(text);
    if (found == by_name_.end()) bad_json(one, "node '" + entries_[number].name.substr(0, 200) + "' has the input '" + std::string(text.substr(0, 200)) + "', but there is no such node");
    entries_[number].inputs.emplace_back(found->second, index);
  }
}

// Without recursion: a chain may have a million nodes.
inline void graph_reader::add_after_inputs(std::size_t number) {
  if (entries_[number].made != nullptr) return;
  std::vector<std::size_t> way{number}, next{0};
  entries_[number].open = true;
  while (!way.empty()) {
    entry& top = entries_[way.back()];
    if (next.back() == top.inputs.size()) {
      add(way.back());
      top.open = false;
      way.pop_back();
      next.pop_back();
      continue;
    }
    const auto [input, index] = top.inputs[next.back()++];
    if (entries_[input].made != nullptr || (index >= 0 && closes_loop(top, input))) continue;
    if (entries_[input].open) bad_cycle(way, input);
    entries_[input].open = true;
    way.push_back(input);
    next.push_back(0);
  }
}

inline void graph_reader::bad_cycle(const std::vector<std::size_t>& way, std::size_t closes) const {
  std::string names;
  const auto first = std::find(way.begin(), way.end(), closes);
  for (auto at = first; at != way.end() && at - first < 10; ++at) names += "'" + entries_[*at].name + "' <- ";
  names += way.end() - first > 10 ? "... <- '" + entries_[closes].name + "'" : "'" + entries_[closes].name + "'";
  fail(error_code::invalid_argument, "nodes in a cycle: " + names + "; only the edge from a NextIteration to a Merge may close one");
}

inline void graph_reader::bad_node(const error& fault, std::size_t number) const {
  status s = fault.status();
  s.message = path_of(place(number)) + ": " + s.message;
  if (s.node.empty()) {
    s.node = full_name(entries_[number]);
    s.op = entries_[number].op;
  }
  throw error(std::move(s));
}

// The Merge of a loop is made with the value that enters the loop in the place of the one that comes from its end, and with unknown shape.
inline void graph_reader::add_merge_of_loop(const entry& e, node_spec& spec) const {
  if (spec.inputs.empty() || spec.inputs[0].from == nullptr) fail(error_code::invalid_argument, "the first input of the Merge of a loop must come from outside the loop");
  for (output& in : spec.inputs)
    if (in.from == nullptr) in = spec.inputs[0];
  const output& first = spec.inputs[0];
  if (first.index >= first.from->output_count()) fail(error_code::invalid_argument, "'" + first.from->name() + "' has " + std::to_string(first.from->output_count()) + " outputs, asked for number " + std::to_string(first.index));
  const dtype type = first.from->output_dtype(first.index);
  const auto expect = [&](const char* name, attr_value value) {
    const auto found = spec.attrs.emplace(name, value).first;
    if (found->second != value) fail(error_code::invalid_argument, "attribute '" + std::string(name) + "' of '" + e.name + "' is " + to_text(found->second) + ", its inputs say " + to_text(value));
  };
  expect("T", type);
  expect("N", static_cast<std::int64_t>(spec.inputs.size()));
  spec.outputs = std::vector<output_type>{{type, partial_shape(), false}, {dtype::int32, partial_shape({}), false}};
}

inline void graph_reader::add(std::size_t number) {
  entry& e = entries_[number];
  const json_at where = place(number);
  node_spec spec;
  spec.op = e.op;
  spec.name = full_name(e);
  spec.exact_name = true;
  spec.scoped = false;
  spec.attrs = attrs_at(where, out_.ops().find(e.op).get(), room_);
  bool loop = false;
  for (const auto& [from, index] : e.inputs) {
    if (index < 0) spec.control_inputs.push_back(entries_[from].made);
    else spec.inputs.push_back({closes_loop(e, from) ? nullptr : entries_[from].made, index});
    loop = loop || (index >= 0 && closes_loop(e, from));
  }
  try {
    if (const std::string device = text_field(where, "device"); !device.empty()) spec.device = to_text(parse_device_name(device));
    if (loop) add_merge_of_loop(e, spec);
    e.made = &out_.add(std::move(spec));
  } catch (const error& fault) {
    bad_node(fault, number);
  }
}

inline void graph_reader::close_loops(std::size_t number) {
  const entry& e = entries_[number];
  try {
    for (std::size_t i = 0; i < e.inputs.size() && e.inputs[i].second >= 0; ++i)
      if (closes_loop(e, e.inputs[i].first)) out_.state()->close_loop(*e.made, i, {entries_[e.inputs[i].first].made, e.inputs[i].second});
  } catch (const error& fault) {
    bad_node(fault, number);
  }
}

WEFT_DECL graph graph_at(const json_at& at, const import_options& options) { return graph_reader(at, options).run(); }

}  // namespace weft::detail

namespace weft {

WEFT_DECL graph from_graphdef_json(std::string_view text, const import_options& options) {
  const detail::json_value parsed = detail::parse_json(text);
  return detail::graph_at(parsed, options);
}

WEFT_DECL graph read_graphdef_json(const std::string& path, const import_options& options) {
  const std::string text = detail::read_whole_file(path);
  try {
    return from_graphdef_json(text, options);
  } catch (const error& fault) {
    status s = fault.status();
    s.message = path + ": " + s.message;
    throw error(std::move(s));
  }
}

}  // namespace weft
#endif

#endif
