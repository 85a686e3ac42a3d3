#ifndef WEFT_SIMULATE_COST_MODEL_HPP
#define WEFT_SIMULATE_COST_MODEL_HPP
// What nodes and transfers are expected to cost. The speeds are data, typed in or measured by the program `calibrate`.

#include <weft/core/config.hpp>
#include <weft/core/status.hpp>
#include <weft/graph/node.hpp>
#include <weft/partition/transfer.hpp>

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#if WEFT_HAS_BODIES
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>
#endif

namespace weft {

/// The work of one run of a node.
struct node_cost {
  /// Floating point operations: a multiply-add counts two.
  double flops = 0;
  /// Bytes read and written.
  double bytes = 0;
};

/// The work of a node, from its op and the shapes that are known before running; a size that is not known counts as `unknown_size`. Products and convolutions count their
/// multiply-adds, elementwise functions a few operations per element, ops that only rename or look at a value nothing.
node_cost cost_of(const node& n, std::int64_t unknown_size = 1);

/// How fast one task is.
struct task_speed {
  double flops_per_second = 5e10;
  /// Of reading and writing memory.
  double bytes_per_second = 1e10;
  /// What any node costs besides its work, seconds.
  double seconds_per_node = 5e-8;
  /// What a task's part of a step costs besides its nodes, seconds.
  double seconds_per_step = 2e-5;
  /// Nodes that run at once.
  int processors = 1;
};

/// How fast values go from one task to another.
struct link_speed {
  /// Seconds from the last byte sent to the value being there.
  double latency = 3e-5;
  double bytes_per_second = 2e9;
};

/// Speeds of tasks and links: one for all, and exceptions.
struct cost_model {
  task_speed task;
  link_speed link;
  /// By task, `/job:ps/task:0`.
  std::map<std::string, task_speed> tasks;
  /// By sending and receiving task.
  std::map<std::pair<std::string, std::string>, link_speed> links;
  /// What a dimension counts that is not known before running, e.g. the batch.
  std::int64_t unknown_size = 1;

  const task_speed& speed_of(const std::string& task_name) const;
  const link_speed& speed_of(const std::string& from_task, const std::string& to_task) const;
  /// Seconds of one run of the node on the task.
  double seconds(const node& n, const std::string& task_name) const { return seconds(n, speed_of(task_name)); }
  /// The same, on a task of this speed.
  double seconds(const node& n, const task_speed& speed) const;
  /// Bytes of a transfer; of one whose size is not known, with `unknown_size` for each open dimension.
  double bytes(const transfer& t) const;
};

/// One speed a line, `task.flops_per_second 5e+10`, as `calibrate` prints them. Exceptions are lines `task /job:ps/task:0 flops_per_second 1e+10`.
std::string to_text(const cost_model& model);

/// Reads such lines; `#` begins a comment. Throws INVALID_ARGUMENT that names the line for an unknown speed, or one that is not a positive number.
cost_model parse_cost_model(std::string_view text);

}  // namespace weft

#if WEFT_HAS_BODIES
namespace weft::detail {

inline double elements_of(const partial_shape& s, std::int64_t unknown_size) {
  if (!s.known_rank()) return static_cast<double>(unknown_size);
  double n = 1;
  for (const std::int64_t size : s.sizes()) n *= static_cast<double>(size < 0 ? unknown_size : size);
  return n;
}

inline double bytes_of(dtype type, const partial_shape& s, std::int64_t unknown_size) {
  const std::size_t width = type == dtype::string ? 16 : type == dtype::resource || type == dtype::invalid ? 0 : size_of(type);
  return static_cast<double>(width) * elements_of(s, unknown_size);
}

inline double size_at(const partial_shape& s, int from_end, std::int64_t unknown_size) {
  if (!s.known_rank() || s.rank() < from_end) return static_cast<double>(unknown_size);
  const std::int64_t size = s.sizes()[static_cast<std::size_t>(s.rank() - from_end)];
  return static_cast<double>(size < 0 ? unknown_size : size);
}

inline const partial_shape& input_shape(const node& n, std::size_t i) { return n.inputs()[i].from->output_shape(n.inputs()[i].index); }

// Operations per element of what a node computes, by op; 1 for what is not named.
struct op_work {
  std::string_view op;
  double per_element;
};
inline constexpr op_work elementwise_work[] = {
    {"Exp", 10}, {"Log", 10}, {"Tanh", 15}, {"Sigmoid", 12}, {"Softplus", 20}, {"Elu", 12}, {"Selu", 12}, {"Sqrt", 4}, {"Rsqrt", 5}, {"Pow", 30}, {"Sin", 15}, {"Cos", 15}, {"Erf", 20}, {"Softmax", 14},
    {"LogSoftmax", 14}, {"SoftmaxCrossEntropyWithLogits", 20}, {"SparseSoftmaxCrossEntropyWithLogits", 20}, {"RandomUniform", 8}, {"RandomStandardNormal", 40}, {"TruncatedNormal", 60},
    {"ResourceApplyAdam", 12}, {"ResourceApplyGradientDescent", 2}, {"ResourceApplyMomentum", 4}, {"ResourceApplyAdagrad", 6}};

// Ops that hand a value, a handle or a shape on.
inline constexpr std::string_view free_ops[] = {"Const", "Identity", "IdentityN", "NoOp", "Placeholder", "VarHandleOp", "ReadVariableOp", "Reshape", "Squeeze", "ExpandDims", "Shape", "Rank", "Size", "StopGradient", "_Arg", "_Retval", "_Send", "_Recv"};

inline constexpr std::string_view product_ops[] = {"MatMul", "BatchMatMul", "BatchMatMulV2", "Conv2D", "Conv2DBackpropInput", "Conv2DBackpropFilter", "DepthwiseConv2dNative"};

// What kind of work an op is.
struct op_kind {
  bool is_free = false, is_product = false;
  double per_element = 1;
};
WEFT_DECL const op_kind& kind_of_op(std::string_view op) {
  static const std::unordered_map<std::string_view, op_kind> known = [] {
    std::unordered_map<std::string_view, op_kind> out;
    for (const op_work& w : elementwise_work) out[w.op].per_element = w.per_element;
    for (const std::string_view name : free_ops) out[name].is_free = true;
    for (const std::string_view name : product_ops) out[name].is_product = true;
    return out;
  }();
  static const op_kind other;
  const auto it = known.find(op);
  return it == known.end() ? other : it->second;
}

// Multiply-adds of one of `product_ops`.
inline double multiply_adds(const node& n, std::int64_t unknown_size) {
  const std::string& op = n.op();
  if (op == "MatMul" || op == "BatchMatMul" || op == "BatchMatMulV2") {
    const bool flip = op == "MatMul" ? n.attr<bool>("transpose_a") : n.attr<bool>("adj_x");
    return elements_of(n.output_shape(0), unknown_size) * size_at(input_shape(n, 0), flip ? 2 : 1, unknown_size);
  }
  // Each output element of a convolution is a product with one filter; its gradients do the same work.
  const auto filter_work = [&](const partial_shape& output, const partial_shape& filter) {
    return elements_of(output, unknown_size) * elements_of(filter, unknown_size) / std::max(1.0, size_at(filter, 1, unknown_size));
  };
  if (op == "Conv2D") return filter_work(n.output_shape(0), input_shape(n, 1));
  if (op == "Conv2DBackpropInput") return filter_work(input_shape(n, 2), input_shape(n, 1));
  if (op == "Conv2DBackpropFilter") return filter_work(input_shape(n, 2), n.output_shape(0));
  return elements_of(n.output_shape(0), unknown_size) * size_at(input_shape(n, 1), 4, unknown_size) * size_at(input_shape(n, 1), 3, unknown_size);
}

}  // namespace weft::detail

namespace weft {

WEFT_DECL node_cost cost_of(const node& n, std::int64_t unknown_size) {
  node_cost out;
  const detail::op_kind& kind = detail::kind_of_op(n.op());
  if (kind.is_free) return out;
  double most = 0;  // elements of the largest value
  for (std::size_t i = 0; i < n.inputs().size(); ++i) {
    const output& in = n.inputs()[i];
    out.bytes += detail::bytes_of(in.from->output_dtype(in.index), detail::input_shape(n, i), unknown_size);
    most = std::max(most, detail::elements_of(detail::input_shape(n, i), unknown_size));
  }
  for (const output_type& type : n.outputs()) {
    out.bytes += detail::bytes_of(type.dtype, type.shape, unknown_size);
    most = std::max(most, detail::elements_of(type.shape, unknown_size));
  }
  out.flops = kind.is_product ? 2 * detail::multiply_adds(n, unknown_size) : most * kind.per_element;
  return out;
}

WEFT_DECL const task_speed& cost_model::speed_of(const std::string& task_name) const {
  const auto own = tasks.find(task_name);
  return own == tasks.end() ? task : own->second;
}

WEFT_DECL const link_speed& cost_model::speed_of(const std::string& from_task, const std::string& to_task) const {
  const auto own = links.find({from_task, to_task});
  return own == links.end() ? link : own->second;
}

// The slower of computing and moving bytes decides.
WEFT_DECL double cost_model::seconds(const node& n, const task_speed& speed) const {
  const node_cost cost = cost_of(n, unknown_size);
  return speed.seconds_per_node + std::max(cost.flops / speed.flops_per_second, cost.bytes / speed.bytes_per_second);
}

WEFT_DECL double cost_model::bytes(const transfer& t) const {
  if (t.bytes) return static_cast<double>(*t.bytes);
  return t.kind == transfer_kind::control ? 0 : detail::bytes_of(t.dtype, t.shape, unknown_size);
}

}  // namespace weft

namespace weft::detail {

struct speed_field {
  std::string_view name;
  double task_speed::*of_task;
  double link_speed::*of_link;
};
inline constexpr speed_field speed_fields[] = {{"flops_per_second", &task_speed::flops_per_second, nullptr},   {"bytes_per_second", &task_speed::bytes_per_second, nullptr},
                                               {"seconds_per_node", &task_speed::seconds_per_node, nullptr},   {"seconds_per_step", &task_speed::seconds_per_step, nullptr},
                                               {"latency", nullptr, &link_speed::latency},                     {"bytes_per_second", nullptr, &link_speed::bytes_per_second}};

inline std::string speed_text(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}

inline void write_speeds(std::string& out, const std::string& before, const task_speed& speed) {
  for (const speed_field& f : speed_fields)
    if (f.of_task != nullptr) out += before + std::string(f.name) + " " + speed_text(speed.*f.of_task) + "\n";
  out += before + "processors " + std::to_string(speed.processors) + "\n";
}
inline void write_speeds(std::string& out, const std::string& before, const link_speed& speed) {
  for (const speed_field& f : speed_fields)
    if (f.of_link != nullptr) out += before + std::string(f.name) + " " + speed_text(speed.*f.of_link) + "\n";
}

inline std::vector<std::string> words_of(std::string_view line) {
  std::vector<std::string> out;
  for (std::size_t i = 0; i < line.size();) {
    const std::size_t begin = line.find_first_not_of(" \t\r", i);
    if (begin == std::string_view::npos || line[begin] == '#') break;
    i = std::min(line.find_first_of(" \t\r", begin), line.size());
    out.emplace_back(line.substr(begin, i - begin));
  }
  return out;
}

class cost_model_reader {
 public:
  cost_model read(std::string_view text) {
    while (!text.empty()) {
      const std::size_t end = std::min(text.find('\n'), text.size());
      line_ = text.substr(0, end);
      ++number_;
      text.remove_prefix(std::min(end + 1, text.size()));
      if (const std::vector<std::string> words = words_of(line_); !words.empty()) read_line(words);
    }
    return std::move(model_);
  }

 private:
  [[noreturn]] void bad(const std::string& why) const { fail(error_code::invalid_argument, "line " + std::to_string(number_) + " of the cost model, '" + std::string(line_) + "': " + why); }
  double number(const std::string& word) const {
    char* end = nullptr;
    const double value = std::strtod(word.c_str(), &end);
    if (end == word.c_str() || *end != '\0' || !(value >= 0) || !std::isfinite(value)) bad("'" + word + "' is not a number of at least 0");
    return value;
  }
  void set(task_speed& speed, const std::string& name, const std::string& word) {
    if (name == "processors") {
      const double count = number(word);
      if (count < 1 || count > 1e6) bad("the number of processors is from 1 to 1000000");
      speed.processors = static_cast<int>(count);
      return;
    }
    for (const speed_field& f : speed_fields)
      if (f.of_task != nullptr && f.name == name) {
        speed.*f.of_task = number(word);
        if (name.find("per_second") != std::string::npos && speed.*f.of_task == 0) bad("a rate is above 0");
        return;
      }
    bad("'" + name + "' is no speed of a task");
  }
  void set(link_speed& speed, const std::string& name, const std::string& word) {
    for (const speed_field& f : speed_fields)
      if (f.of_link != nullptr && f.name == name) {
        speed.*f.of_link = number(word);
        if (name == "bytes_per_second" && speed.bytes_per_second == 0) bad("a rate is above 0");
        return;
      }
    bad("'" + name + "' is no speed of a link");
  }
  void read_line(const std::vector<std::string>& w) {
    if (w.size() == 2 && w[0] == "unknown_size") model_.unknown_size = static_cast<std::int64_t>(number(w[1]));
    else if (w.size() == 2 && w[0].rfind("task.", 0) == 0) set(model_.task, w[0].substr(5), w[1]);
    else if (w.size() == 2 && w[0].rfind("link.", 0) == 0) set(model_.link, w[0].substr(5), w[1]);
    else if (w.size() == 4 && w[0] == "task") set(model_.tasks.emplace(w[1], model_.task).first->second, w[2], w[3]);
    else if (w.size() == 5 && w[0] == "link") set(model_.links.emplace(std::make_pair(w[1], w[2]), model_.link).first->second, w[3], w[4]);
    else bad("expected 'task.SPEED NUMBER', 'link.SPEED NUMBER', 'task TASK SPEED NUMBER', 'link TASK TASK SPEED NUMBER' or 'unknown_size NUMBER'");
  }

  cost_model model_;
  std::string_view line_;
  int number_ = 0;
};

}  // namespace weft::detail

namespace weft {

WEFT_DECL std::string to_text(const cost_model& model) {
  std::string out;
  detail::write_speeds(out, "task.", model.task);
  detail::write_speeds(out, "link.", model.link);
  out += "unknown_size " + std::to_string(model.unknown_size) + "\n";
  for (const auto& [name, speed] : model.tasks) detail::write_speeds(out, "task " + name + " ", speed);
  for (const auto& [ends, speed] : model.links) detail::write_speeds(out, "link " + ends.first + " " + ends.second + " ", speed);
  return out;
}

WEFT_DECL cost_model parse_cost_model(std::string_view text) { return detail::cost_model_reader().read(text); }

}  // namespace weft
#endif

#endif
