#ifndef WEFT_OPS_NODE_GROUP_HPP
#define WEFT_OPS_NODE_GROUP_HPP
// The nodes of a builder that makes several: all of them are named below the name that the builder was given, which the last one has.

#include <weft/core/config.hpp>
#include <weft/graph/operand.hpp>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace weft::detail {

class node_group {
 public:
  /// Claims the name in the graph of `first`; `otherwise` when the caller gave none.
  node_group(const side& first, const op_name& name, const char* otherwise);

  /// The output that an operand stands for; a variable is read.
  output input(const side& x) const { return input_of(full_.c_str(), x, op_name(site_)); }
  /// A node named `below` this group, its first output.
  output add(const char* op, std::vector<output> inputs, const char* below, attr_map attrs = {}) const { return add_node_at(op, std::move(inputs), full_ + "/" + below, site_, std::move(attrs)); }
  /// The node that has the name of the group.
  output last(const char* op, std::vector<output> inputs, attr_map attrs = {}) const { return add_node_at(op, std::move(inputs), full_, site_, std::move(attrs)); }
  /// A scalar constant of a floating dtype.
  output number(double value, dtype type, const char* below) const;
  /// A vector of int32, or a scalar.
  output integers(const std::vector<std::int32_t>& values, const char* below) const;
  output integer(std::int32_t value, const char* below) const;
  /// A reduction over axes, with the axes' constant below its name.
  output reduce(const char* op, output in, const std::vector<std::int32_t>& axes, const char* below, bool keep_dims = true) const;

  const std::string& name() const noexcept { return full_; }
  call_site site() const noexcept { return site_; }
  graph_state& graph() const noexcept { return *graph_; }
  [[noreturn]] void fail(std::string message) const { throw error(error_code::invalid_argument, full_ + ": " + std::move(message), site_); }

 private:
  graph_state* graph_;
  std::string full_;
  call_site site_;
};

/// A scalar of a floating dtype.
tensor_value floating_scalar(double value, dtype type);

#if WEFT_HAS_BODIES
WEFT_DECL tensor_value floating_scalar(double value, dtype type) {
  switch (type) {
    case dtype::float64: return tensor_value::scalar(value);
    case dtype::half: return tensor_value::scalar(half(static_cast<float>(value)));
    case dtype::bfloat16: return tensor_value::scalar(bfloat16(static_cast<float>(value)));
    default: return tensor_value::scalar(static_cast<float>(value));
  }
}

WEFT_DECL node_group::node_group(const side& first, const op_name& name, const char* otherwise) : site_(name.site) {
  if (first.out.from == nullptr) throw error(error_code::invalid_argument, std::string(otherwise) + ": the operand is an empty tensor, not made by any op", name.site);
  graph_ = &first.out.from->owner();
  full_ = claim_name(*graph_, name, otherwise);
}
WEFT_DECL output node_group::number(double value, dtype type, const char* below) const { return add_const_at(floating_scalar(value, type), full_ + "/" + below, site_, *graph_); }
WEFT_DECL output node_group::integers(const std::vector<std::int32_t>& values, const char* below) const {
  return add_const_at(tensor_value::from<std::int32_t>({static_cast<std::int64_t>(values.size())}, values), full_ + "/" + below, site_, *graph_);
}
WEFT_DECL output node_group::integer(std::int32_t value, const char* below) const { return add_const_at(tensor_value::scalar(value), full_ + "/" + below, site_, *graph_); }
WEFT_DECL output node_group::reduce(const char* op, output in, const std::vector<std::int32_t>& axes, const char* below, bool keep_dims) const {
  const output indices = integers(axes, (std::string(below) + "/reduction_indices").c_str());
  return add(op, {in, indices}, below, {{"keep_dims", keep_dims}});
}
#endif

}  // namespace weft::detail

#endif
