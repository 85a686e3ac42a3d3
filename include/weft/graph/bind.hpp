#ifndef WEFT_GRAPH_BIND_HPP
#define WEFT_GRAPH_BIND_HPP
// Fits a node's inputs and attributes to its op's definition: infers type and number attributes, fills defaults, checks what
// the definition allows, and lists the outputs' dtypes.

#include <weft/core/config.hpp>
#include <weft/graph/node.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#if WEFT_HAS_BODIES
namespace weft::detail {

// Works on a node in the making; every method throws INVALID_ARGUMENT about it.
class binder {
 public:
  binder(const op_def& def, array_view<output> inputs, attr_map& attrs, const node& about)
      : def_(def), inputs_(inputs), attrs_(attrs), about_(about) {}

  // 1. inputs: counts and dtypes; 2. defaults; 3. what the definition allows.
  void run() {
    bind_inputs();
    for (const auto& a : def_.attrs)
      if (attrs_.find(a.name) == attrs_.end()) {
        if (!a.default_value) bad("attribute '" + a.name + "' of kind " + a.kind + " is missing");
        put(a.name, *a.default_value);
      }
    for (const auto& a : def_.attrs) check(a);
  }

  std::vector<output_type> outputs() const {
    std::vector<output_type> out;
    for (const auto& arg : def_.outputs)
      for (const dtype type : types_of(arg)) out.push_back({type, partial_shape(), arg.is_ref});
    return out;
  }

 private:
  [[noreturn]] void bad(std::string message) const { about_.fail_about(error_code::invalid_argument, std::move(message)); }

  std::size_t fixed_inputs() const {
    std::size_t n = 0;
    for (const auto& arg : def_.inputs) n += arg.number_attr.empty() && arg.type_list_attr.empty() ? 1 : 0;
    return n;
  }

  // How many tensors an argument takes: said by an attribute, or what the other arguments leave.
  std::size_t count_of(const arg_def& arg) const {
    if (arg.number_attr.empty() && arg.type_list_attr.empty()) return 1;
    if (!arg.number_attr.empty()) {
      if (const auto* n = find<std::int64_t>(arg.number_attr); n != nullptr && *n >= 0) return static_cast<std::size_t>(*n);
    } else if (const auto* list = find<std::vector<dtype>>(arg.type_list_attr)) {
      return list->size();
    }
    std::size_t lists = 0;
    for (const auto& other : def_.inputs)
      lists += (!arg.number_attr.empty() ? other.number_attr == arg.number_attr : other.type_list_attr == arg.type_list_attr) ? 1 : 0;
    const std::size_t fixed = fixed_inputs();
    if (lists == 0 || inputs_.size() < fixed) return 0;
    return (inputs_.size() - fixed) / lists;
  }

  void bind_inputs() {
    std::size_t expected = 0;
    for (const auto& arg : def_.inputs) expected += count_of(arg);
    if (expected != inputs_.size()) bad("takes " + std::to_string(expected) + " inputs, found " + std::to_string(inputs_.size()));
    std::size_t at = 0;
    for (const auto& arg : def_.inputs) {
      const std::size_t n = count_of(arg);
      std::vector<dtype> list;
      for (std::size_t i = 0; i < n; ++i, ++at) {
        const output& in = inputs_[at];
        const dtype found = in.from->output_dtype(in.index);
        if (arg.is_ref && !in.from->outputs()[static_cast<std::size_t>(in.index)].is_ref)
          bad("input '" + arg.name + "' must be a reference, found the value '" + to_text(in) + "'");
        if (!arg.type_list_attr.empty()) list.push_back(found);
        else expect(arg, found, in);
      }
      if (!arg.number_attr.empty()) put(arg.number_attr, static_cast<std::int64_t>(n));
      if (!arg.type_list_attr.empty()) {
        const auto [it, fresh] = put(arg.type_list_attr, list);
        if (!fresh && it->second != attr_value(list)) bad("the inputs of '" + arg.name + "' have dtypes " + to_text(attr_value(list)) + ", expected " + to_text(it->second));
      }
    }
  }

  void expect(const arg_def& arg, dtype found, const output& in) {
    dtype expected = arg.type;
    std::string why;
    if (!arg.type_attr.empty()) {
      const auto [it, fresh] = put(arg.type_attr, found);
      if (fresh) return;
      if (it->second.get<placeholder_attr>() != nullptr) return;
      const dtype* type = it->second.get<dtype>();
      if (type == nullptr) bad("attribute '" + arg.type_attr + "' must be of kind type, found " + it->second.kind());
      expected = *type;
      why = " (attribute '" + arg.type_attr + "')";
    }
    if (found != expected)
      bad("input '" + arg.name + "' must be " + to_text(expected) + why + ", found " + to_text(found) + " from '" + to_text(in) + "'; convert it with weft::cast");
  }

  void check(const attr_def& a) const {
    const attr_value& v = attrs_.find(a.name)->second;
    if (v.get<placeholder_attr>() != nullptr) return;
    if (a.kind != v.kind()) bad("attribute '" + a.name + "' must be of kind " + a.kind + ", found " + v.kind());
    if (const auto* type = v.get<dtype>()) check_type(a, *type);
    if (const auto* list = v.get<std::vector<dtype>>())
      for (const dtype type : *list) check_type(a, type);
    if (const auto* text = v.get<std::string>(); text != nullptr && !a.allowed_strings.empty() &&
        std::find(a.allowed_strings.begin(), a.allowed_strings.end(), *text) == a.allowed_strings.end())
      bad("attribute '" + a.name + "' must be one of " + to_text(attr_value(a.allowed_strings)) + ", found \"" + *text + "\"");
    if (!a.minimum) return;
    if (const auto* n = v.get<std::int64_t>(); n != nullptr && *n < *a.minimum)
      bad("attribute '" + a.name + "' must be at least " + std::to_string(*a.minimum) + ", found " + std::to_string(*n));
    if (const auto* list = v.get<std::vector<dtype>>(); list != nullptr && static_cast<std::int64_t>(list->size()) < *a.minimum)
      bad("attribute '" + a.name + "' must list at least " + std::to_string(*a.minimum) + ", found " + std::to_string(list->size()));
  }

  void check_type(const attr_def& a, dtype type) const {
    if (a.allowed_types.empty() || std::find(a.allowed_types.begin(), a.allowed_types.end(), type) != a.allowed_types.end()) return;
    bad("attribute '" + a.name + "' must be one of " + to_text(attr_value(a.allowed_types)) + ", found " + to_text(type));
  }

  std::pair<attr_map::iterator, bool> put(const std::string& name, attr_value v) const { return attrs_.emplace(name, std::move(v)); }
  template <class T> const T* find(const std::string& name) const {
    const attr_value* found = attrs_.get(name);
    return found == nullptr ? nullptr : found->get<T>();
  }

  std::vector<dtype> types_of(const arg_def& arg) const {
    if (!arg.type_list_attr.empty()) {
      const auto* list = find<std::vector<dtype>>(arg.type_list_attr);
      return list == nullptr ? std::vector<dtype>() : *list;
    }
    const dtype* named = arg.type_attr.empty() ? nullptr : find<dtype>(arg.type_attr);
    const std::int64_t* count = arg.number_attr.empty() ? nullptr : find<std::int64_t>(arg.number_attr);
    const std::int64_t n = count == nullptr ? 1 : *count;
    if (n < 0 || n > most_outputs) bad("attribute '" + arg.number_attr + "' must be from 0 to " + std::to_string(most_outputs) + ", found " + std::to_string(n));
    return std::vector<dtype>(static_cast<std::size_t>(n), named == nullptr ? arg.type : *named);
  }

  // Bounds what a graph from a file or the wire can ask for.
  static constexpr std::int64_t most_outputs = 65536;
  const op_def& def_;
  array_view<output> inputs_;
  attr_map& attrs_;
  const node& about_;
};

}  // namespace weft::detail
#endif

#endif
