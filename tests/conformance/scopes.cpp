// Programs of scopes as data: names, devices, colocation and control inputs of the nodes they make.
#include "runner.hpp"

#include <weft/graph/scope.hpp>
#include <weft/ops/control.hpp>
#include <weft/ops/standard.hpp>
#include <weft/train/device_setter.hpp>
#include <weft/train/variable_scope.hpp>

#include <algorithm>
#include <map>

namespace conformance {

using namespace weft::detail;

namespace {

/// Thrown for an action that weft has no function for yet.
struct no_such_action {
  std::string name;
};

/// Carries out a program in the thread's default graph.
class scope_program {
 public:
  void run(const json_at& actions) {
    for (std::size_t i = 0; i < elements_at(actions).size(); ++i) act(json_at(actions.value.items[i], actions, i));
  }

 private:
  static std::string text(const json_at& action, const char* name) {
    const json_value* v = find_field(action, name);
    return v == nullptr ? std::string() : v->text;
  }
  weft::output made(const std::string& id) const {
    const auto colon = id.find(':');
    weft::output out = ids_.at(id.substr(0, colon));
    if (colon != std::string::npos) out.index = std::stoi(id.substr(colon + 1));
    return out;
  }
  std::vector<weft::operation> operations(const json_at& action, const char* name) const {
    std::vector<weft::operation> out;
    for (const std::string& id : names_field_of(action, name)) out.emplace_back(*made(id).from);
    return out;
  }
  void keep(const json_at& action, const weft::node& n) { ids_[text(action, "id")] = {&n, 0}; }
  void body(const json_at& action) { run(field(action, "body")); }
  void act(const json_at& action);
  void add(const json_at& action, const char* op, std::vector<weft::output> inputs, weft::attr_map attrs) {
    const std::string name = text(action, "name");
    keep(action, add_node(op, std::move(inputs), weft::op_name(std::string_view(name), weft::call_site()), std::move(attrs)));
  }
  void in_scope(const json_at& action);
  bool make(const json_at& action);

  std::map<std::string, weft::output> ids_;
  std::map<std::string, std::string> saved_;
};

// A number, or arrays of numbers as deep as the rank.
void read_numbers(const json_at& at, std::size_t depth, std::vector<float>& numbers, std::vector<std::int64_t>& sizes) {
  if (at.value.kind != json_kind::array) return numbers.push_back(float_at(at));
  if (sizes.size() == depth) sizes.push_back(static_cast<std::int64_t>(at.value.items.size()));
  for (std::size_t i = 0; i < at.value.items.size(); ++i) read_numbers(json_at(at.value.items[i], at, i), depth + 1, numbers, sizes);
}

weft::device_function setter_of(const json_at& arguments) {
  weft::replica_device_options options;
  if (find_field(arguments, "ps_device") != nullptr) options.ps_device = text_field_of(arguments, "ps_device");
  if (find_field(arguments, "worker_device") != nullptr) options.worker_device = text_field_of(arguments, "worker_device");
  if (find_field(arguments, "merge_devices") != nullptr) options.merge_devices = bool_at(field(arguments, "merge_devices"));
  options.ps_ops = names_field_of(arguments, "ps_ops");
  if (find_field(arguments, "cluster") == nullptr) return weft::replica_device_setter(static_cast<int>(integer_at(field(arguments, "ps_tasks"), 0, 1000)), options);
  // Addresses of jobs: a list, or a map from the number of the task.
  std::map<std::string, std::map<int, std::string>> jobs;
  const json_at cluster = field(arguments, "cluster");
  for (const json_value& job : cluster.value.items)
    for (std::size_t i = 0; i < job.items.size(); ++i) jobs[job.key][job.kind == json_kind::array ? static_cast<int>(i) : std::stoi(job.items[i].key)] = job.items[i].text;
  return weft::replica_device_setter(weft::cluster_spec(std::move(jobs)), options);
}

// Actions that make nodes.
bool scope_program::make(const json_at& action) {
  const std::string what = text(action, "do");
  if (what == "const") {
    std::vector<float> numbers;
    std::vector<std::int64_t> sizes;
    read_numbers(field(action, "value"), 0, numbers, sizes);
    const weft::tensor_value v = weft::tensor_value::from<float>(weft::shape(sizes), numbers);
    add(action, "Const", {}, {{"dtype", v.dtype()}, {"value", v}});
  } else if (what == "op") {
    std::vector<weft::output> inputs;
    for (const std::string& id : names_field_of(action, "in")) inputs.push_back(made(id));
    const std::string op = text(action, "op"), name = text(action, "name");
    weft::attr_map attrs;
    // Operators read variables for themselves.
    const auto reads = [&](std::size_t i) { return side{inputs[i], inputs[i].from->op() == "VarHandleOp" && op.find("VariableOp") == std::string::npos, weft::tensor_value()}; };
    if (inputs.size() == 2 && (reads(0).reads_variable || reads(1).reads_variable)) {
      ids_[text(action, "id")] = add_binary(op.c_str(), op.c_str(), reads(0), reads(1), weft::op_name(std::string_view(name), weft::call_site()));
      return true;
    }
    if (inputs.size() == 1 && reads(0).reads_variable) {
      ids_[text(action, "id")] = add_unary(op.c_str(), reads(0), weft::op_name(std::string_view(name), weft::call_site()));
      return true;
    }
    if (op == "ReadVariableOp" || op == "AssignVariableOp" || op == "AssignAddVariableOp") attrs = {{"dtype", weft::dtype::float32}};
    add(action, op.c_str(), std::move(inputs), std::move(attrs));
  } else if (what == "unpack") {
    add(action, "Unpack", {made(text(action, "in"))}, {{"num", integer_at(field(action, "parts"))}});
  } else if (what == "var_handle") {
    add(action, "VarHandleOp", {}, {{"dtype", weft::dtype::float32}, {"shape", partial_shape_at(field(action, "shape"))}, {"shared_name", text(action, "name")}});
  } else if (what == "group") {
    const std::string name = text(action, "name");
    keep(action, *group(operations(action, "of"), weft::op_name(std::string_view(name), weft::call_site())).get());
  } else if (what == "tuple") {
    std::vector<weft::tensor<float>> all;
    for (const std::string& id : names_field_of(action, "of")) all.emplace_back(made(id));
    const std::string name = text(action, "name");
    (void)weft::tuple_of(all, weft::op_name(std::string_view(name), weft::call_site()));
  } else if (what == "with_dependencies") {
    const std::string name = text(action, "name");
    ids_[text(action, "id")] = weft::with_dependencies(operations(action, "on"), weft::tensor<float>(made(text(action, "in"))), weft::op_name(std::string_view(name), weft::call_site())).raw();
  } else if (what == "get_variable") {
    ids_[text(action, "id")] = weft::get_variable<float>(text(action, "name"), weft::shape(partial_shape_at(field(action, "shape")).sizes()), weft::zeros_initializer()).raw();
  } else {
    return false;
  }
  return true;
}

// Actions that act on the nodes made in their body.
void scope_program::in_scope(const json_at& action) {
  const std::string what = text(action, "do");
  if (what == "device") {
    if (find_field(action, "spec") == nullptr) {
      const auto scope = weft::with_device(nullptr);
      return body(action);
    }
    const auto scope = weft::with_device(text(action, "spec"));
    return body(action);
  }
  if (what == "device_function") {
    std::map<std::string, const json_value*> table;
    const json_at rows = field(action, "table");
    for (const json_value& row : rows.value.items) table[row.key] = &row;
    const auto scope = weft::with_device([table](const weft::node& n) {
      const auto it = table.find(n.op()), other = table.find("*");
      const json_value* row = it != table.end() ? it->second : other != table.end() ? other->second : nullptr;
      return row == nullptr || row->kind == json_kind::null ? n.device() : row->text;
    });
    return body(action);
  }
  if (what == "replica_device_setter") {
    const auto scope = weft::with_device(setter_of(field(action, "arguments")));
    return body(action);
  }
  if (what == "colocate") {
    const json_value* alone = find_field(action, "ignore_existing");
    const std::string with = text(action, "with");
    if (with.empty() || (alone != nullptr && alone->boolean)) {
      const auto free = weft::colocate_with(nullptr);
      if (with.empty()) return body(action);
      const auto scope = weft::colocate_with(weft::operation(*made(with).from));
      return body(action);
    }
    const auto scope = weft::colocate_with(weft::operation(*made(with).from));
    return body(action);
  }
  if (what == "control") {
    if (find_field(action, "on") == nullptr) {
      const auto scope = weft::control_dependencies(nullptr);
      return body(action);
    }
    const auto scope = weft::control_dependencies(operations(action, "on"));
    return body(action);
  }
  if (what == "name_scope") {
    const auto scope = weft::name_scope(find_field(action, "saved") != nullptr ? saved_.at(text(action, "saved")) : text(action, "name"));
    if (find_field(action, "save") != nullptr) saved_[text(action, "save")] = thread_scopes().top().name_scope + "/";
    return body(action);
  }
  if (what == "variable_scope") {
    const json_value* reuse = find_field(action, "reuse");
    const bool automatic = reuse != nullptr && reuse->kind == json_kind::string;
    const weft::variable_scope scope(text(action, "name"), automatic ? weft::auto_reuse : reuse != nullptr && reuse->boolean ? weft::reuse_variables : weft::variable_reuse::none);
    return body(action);
  }
  throw no_such_action{what};
}

void scope_program::act(const json_at& action) {
  if (!make(action)) in_scope(action);
}

// What a scope can say of a node.
std::string node_text(const std::string& name, const std::string& op, std::vector<std::string> inputs, const std::string& device, const weft::attr_map& attrs) {
  std::sort(std::find_if(inputs.begin(), inputs.end(), [](const std::string& in) { return in[0] == '^'; }), inputs.end());
  std::string out = name + " = " + op + "(";
  for (const std::string& in : inputs) out += in + " ";
  out += ") " + device;
  if (const auto it = attrs.find("_class"); it != attrs.end()) out += " " + to_text(it->second);
  return out;
}

std::string compare_nodes(const json_at& expected, const weft::graph& g) {
  const json_at list = field(expected, "node");
  const auto nodes = g.nodes();
  for (std::size_t i = 0; i < std::max(list.value.items.size(), nodes.size()); ++i) {
    std::string want = "no more", have = "no more";
    if (i < list.value.items.size()) {
      const json_at one(list.value.items[i], list, i);
      std::uint64_t room = usual_room;
      const json_value* device = find_field(one, "device");
      want = node_text(text_field_of(one, "name"), text_field_of(one, "op"), names_field_of(one, "input"),
                       device == nullptr ? "" : to_text(weft::parse_device_name(device->text)), attrs_at(one, nullptr, room));
    }
    if (i < nodes.size()) {
      std::vector<std::string> inputs;
      for (const weft::output& in : nodes[i]->inputs()) inputs.push_back(to_text(in));
      for (const weft::node* before : nodes[i]->control_inputs()) inputs.push_back("^" + before->name());
      have = node_text(nodes[i]->name(), nodes[i]->op(), inputs, nodes[i]->device(), nodes[i]->attrs());
    }
    if (want != have) return "expected '" + want + "', found '" + have + "'";
  }
  return "";
}

}  // namespace

void run_scopes(const json_at& record, const options& asked, report& into) {
  const std::string name = text_field_of(record, "name"), op = "scopes";
  if (!asked.wants(op)) return;
  const weft::graph g;
  try {
    const auto scope = g.as_default();
    scope_program program;
    program.run(field(record, "program"));
    if (find_field(record, "error") != nullptr) return into.failed(op, name, "expected an error (" + text_field_of(field(record, "error"), "message") + "), found none");
    const std::string why = compare_nodes(field(record, "graph_def"), g);
    if (why.empty()) into.passed(op, name);
    else into.failed(op, name, why);
  } catch (const no_such_action& a) {
    into.skipped(op, name, "there is no " + a.name + " yet");
  } catch (const weft::error& e) {
    if (find_field(record, "error") != nullptr) into.passed(op, name);
    else into.failed(op, name, std::string("found ") + e.what());
  }
}

}  // namespace conformance
