// The graphs that devices get for one step, beside TensorFlow's. New nodes are compared by what they are for, not by their names.
#include "runner.hpp"

#include <weft/partition/partition.hpp>
#include <weft/session/local_session.hpp>

#include <algorithm>
#include <map>

namespace conformance {

using namespace weft::detail;

namespace {

std::string full(const std::string& device) { return to_full_text(weft::parse_device_name(device)); }

/// A node of a partition, as a file or a partitioned graph has it.
struct part_node {
  std::string name, op, device, type, edge, send_device, recv_device;
  bool client = false;
  std::vector<std::string> inputs;
};

/// The nodes of all partitions of a step.
class part_nodes {
 public:
  void add(part_node n) {
    n.device = full(n.device);
    if (n.op == "_HostSend") n.op = "_Send";
    if (n.op == "_HostRecv") n.op = "_Recv";
    if (!n.send_device.empty()) n.send_device = full(n.send_device);
    if (!n.recv_device.empty()) n.recv_device = full(n.recv_device);
    const std::string key = n.device + " " + n.name;
    if (n.op == "_Send" && !n.client) sends_[n.edge + " " + n.send_device + " " + n.recv_device] = key;
    nodes_[key] = std::move(n);
  }
  // One line per node, in an order that does not depend on the names of new nodes.
  std::vector<std::string> lines() const {
    std::vector<std::string> out;
    for (const auto& entry : nodes_) {
      const part_node& n = entry.second;
      std::string line = known_as(n, 0) + " = " + n.op + "(";
      for (const std::string& in : inputs_of(n, 0)) line += in + " ";
      out.push_back(line + ") on " + n.device);
    }
    std::sort(out.begin(), out.end());
    return out;
  }

 private:
  static bool is_new(const part_node& n) {
    if ((n.op == "_Send" || n.op == "_Recv") && !n.client) return true;
    std::size_t end = n.name.size();
    while (end > 0 && n.name[end - 1] >= '0' && n.name[end - 1] <= '9') --end;
    if (end == n.name.size() || end < 2) return false;
    const std::string mark = n.name.substr(end - 2, 2);
    return mark == "_S" || mark == "_G" || mark == "/_";
  }
  std::string known_as(const part_node& n, int depth) const {
    if (!is_new(n)) return n.name;
    if (depth > 60) return "(a cycle)";
    if (n.op == "_Recv") {
      const auto send = sends_.find(n.edge + " " + n.send_device + " " + n.recv_device);
      return "recv(" + (send == sends_.end() ? "nothing" : known_as(nodes_.at(send->second), depth + 1)) + ")";
    }
    std::string out = n.op + "{" + n.type + "}(";
    for (const std::string& in : inputs_of(n, depth + 1)) out += in + " ";
    return out + ")" + (n.op == "_Send" ? " to " + n.recv_device : " on " + n.device);
  }
  // Data inputs in their order, then control inputs by what they are.
  std::vector<std::string> inputs_of(const part_node& n, int depth) const {
    std::vector<std::string> data, control;
    for (const std::string& in : n.inputs) {
      const bool waits = in[0] == '^';
      std::string base = waits ? in.substr(1) : in, index;
      if (const auto colon = base.rfind(':'); colon != std::string::npos) {
        index = base.substr(colon);
        base.resize(colon);
      }
      const auto from = nodes_.find(n.device + " " + base);
      const std::string known = from == nodes_.end() ? base + " (elsewhere)" : known_as(from->second, depth);
      (waits ? control : data).push_back((waits ? "^" : "") + known + index);
    }
    std::sort(control.begin(), control.end());
    data.insert(data.end(), control.begin(), control.end());
    return data;
  }
  std::map<std::string, part_node> nodes_;
  std::map<std::string, std::string> sends_;
};

part_nodes expected_nodes(const json_at& partitions) {
  part_nodes out;
  for (const json_value& device : partitions.value.items) {
    const json_at graph(device, partitions, device.key);
    const json_value* list = find_field(graph, "node");
    for (std::size_t i = 0; list != nullptr && i < list->items.size(); ++i) {
      const json_at one(list->items[i], graph, i);
      std::uint64_t room = usual_room;
      const weft::attr_map attrs = attrs_at(one, nullptr, room);
      part_node n{text_field_of(one, "name"), text_field_of(one, "op"), text_field_of(one, "device"), "", "", "", "", false, names_field_of(one, "input")};
      const auto text = [&attrs](const char* name) {
        const auto it = attrs.find(name);
        const std::string* found = it == attrs.end() ? nullptr : it->second.get<std::string>();
        return found == nullptr ? std::string() : *found;
      };
      for (const char* name : {"T", "tensor_type", "dtype"})
        if (const auto it = attrs.find(name); it != attrs.end()) n.type = to_text(it->second);
      n.edge = text("tensor_name");
      n.send_device = text("send_device");
      n.recv_device = text("recv_device");
      if (const auto it = attrs.find("client_terminated"); it != attrs.end()) n.client = *it->second.get<bool>();
      out.add(std::move(n));
    }
  }
  return out;
}

part_nodes found_nodes(const weft::partitioned_graph& parts) {
  part_nodes out;
  for (const weft::part& p : parts.parts())
    for (const weft::node* n : p.graph.nodes()) {
      part_node made{n->name(), n->op(), n->device(), "", "", "", "", false, {}};
      for (const weft::output& in : n->inputs()) made.inputs.push_back(to_text(in));
      for (const weft::node* before : n->control_inputs()) made.inputs.push_back("^" + before->name());
      const auto text = [n](const char* name) {
        const std::string* found = n->find_attr<std::string>(name);
        return found == nullptr ? std::string() : *found;
      };
      for (const char* name : {"T", "tensor_type", "dtype"})
        if (const auto* type = n->find_attr<weft::dtype>(name)) made.type = to_text(*type);
      made.edge = text("tensor_name");
      made.send_device = text("send_device");
      made.recv_device = text("recv_device");
      if (const bool* client = n->find_attr<bool>("client_terminated")) made.client = *client;
      out.add(std::move(made));
    }
  return out;
}

weft::partition_options step_of(const json_at& record, const weft::graph& g) {
  weft::partition_options out;
  const json_at given = field(record, "options");
  const auto flag = [&given](const char* name) {
    const json_value* v = find_field(given, name);
    return v != nullptr && v->boolean;
  };
  out.form = weft::partition_form::tensorflow;
  out.master = text_field_of(record, "target");
  out.allow_soft_placement = flag("allow_soft_placement");
  out.bfloat16_sendrecv = flag("bfloat16_sendrecv");
  const json_at feeds = field(record, "feeds");
  for (const json_value& member : feeds.value.items) out.feeds.push_back(g.find_output(member.key));
  for (const std::string& name : names_field_of(record, "fetches")) {
    const weft::output o = g.find_output(name);
    if (std::find(out.fetches.begin(), out.fetches.end(), o) == out.fetches.end()) out.fetches.push_back(o);
  }
  for (const std::string& name : names_field_of(record, "targets")) out.targets.push_back(g.operation(name).get());
  return out;
}

std::string check_partitions(const json_at& record, const weft::graph& g) {
  const cluster_of_data cluster = cluster_at(record);
  weft::partition_options step = step_of(record, g);
  step.devices = {{"CPU", cluster.cpus}};
  const weft::device_set devices = cluster.spec.empty() ? weft::device_set::of_task(weft::local_task, step.devices) : weft::device_set::of_cluster(cluster.spec, step.devices);
  weft::placement_options placing;
  placing.default_task = step.master;
  placing.allow_soft_placement = step.allow_soft_placement;
  const weft::partitioned_graph parts = weft::partition(g, devices, place(g, devices, placing), step);
  const json_at expect = field(record, "expect");
  const auto expected = expected_nodes(field(expect, "partitions")).lines(), found = found_nodes(parts).lines();
  for (std::size_t i = 0; i < std::max(expected.size(), found.size()); ++i)
    if (i >= expected.size() || i >= found.size() || expected[i] != found[i])
      return "expected " + (i < expected.size() ? "'" + expected[i] + "'" : "no more") + ", found " + (i < found.size() ? "'" + found[i] + "'" : "no more");
  return "";
}

// What a session says that it runs is what `partition` says.
std::string check_session_partitions(weft::local_session& session, const weft::session_options& options, const weft::step_signature& what) {
  const weft::device_set devices = options.cluster.empty() ? weft::device_set::of_task(weft::local_task, options.devices) : weft::device_set::of_cluster(options.cluster, options.devices);
  weft::placement_options placing;
  placing.allow_soft_placement = options.allow_soft_placement;
  weft::partition_options step;
  step.feeds = what.feeds;
  step.fetches = what.fetches;
  step.targets = what.targets;
  step.merge_equal_nodes = options.optimizer.merge_equal_nodes;
  step.skip_identities = options.optimizer.skip_identities;
  const std::string differs = difference(weft::partition(session.graph(), devices, place(session.graph(), devices, placing), step), session.partitions(what));
  return differs.empty() ? "" : "the session's partitions are others: " + differs;
}

// The values of the step, on the tasks of the cluster in this process.
std::string check_partition_values(const json_at& record, const weft::graph& g) {
  const cluster_of_data cluster = cluster_at(record);
  weft::session_options options;
  options.kernel_threads = 1;
  options.optimizer = passes();
  options.cluster = cluster.spec;
  options.devices = {{"CPU", cluster.cpus}};
  options.allow_soft_placement = true;
  weft::local_session session(options, weft::graph(g.state()));
  for (const std::string& name : names_field_of(record, "init")) {
    weft::step_signature init;
    init.targets = {g.operation(name).get()};
    run_step(session, init, {});
  }
  const json_at expect = field(record, "expect"), feeds = field(record, "feeds"), values = field(expect, "values");
  weft::step_signature what;
  std::vector<weft::tensor_value> fed;
  for (const json_value& member : feeds.value.items) {
    what.feeds.push_back(g.find_output(member.key));
    fed.push_back(value_at(json_at(member, feeds, member.key), string_form::base64));
  }
  for (const std::string& name : names_field_of(record, "fetches")) what.fetches.push_back(g.find_output(name));
  for (const std::string& name : names_field_of(record, "targets")) what.targets.push_back(g.operation(name).get());
  if (std::string why = check_session_partitions(session, options, what); !why.empty()) return why;
  const auto got = run_step(session, what, fed);
  for (std::size_t i = 0; i < elements_at(values).size() && i < got.size(); ++i)
    if (values.value.items[i].kind != json_kind::null)
      if (const std::string why = compare(value_at(json_at(values.value.items[i], values, i), string_form::base64), got[i], std::nullopt); !why.empty()) return "'" + to_text(what.fetches[i]) + "' " + why;
  return "";
}

}  // namespace

void run_partition(const json_at& record, const options& asked, report& into) {
  const std::string name = text_field_of(record, "name"), op = "partition";
  if (!asked.wants(op)) return;
  const json_at def = field(record, "graph_def");
  if (const lack l = find_lack(def, false); l.what != nullptr) return into.missing(op, name, l.op, l.what);
  try {
    const weft::graph g = graph_at(def, import_of_data());
    const std::string why = check_partitions(record, g);
    if (why.empty()) into.passed(op, name);
    else into.failed(op, name, why);
    const bool bfloat16 = find_field(field(record, "options"), "bfloat16_sendrecv") != nullptr;
    if (const lack l = find_lack(def, true); l.what != nullptr) return into.missing(op, name + " values", l.op, l.what);
    const std::string values = bfloat16 ? "" : check_partition_values(record, g);
    if (values.empty()) into.passed(op, name + " values");
    else into.failed(op, name + " values", values);
  } catch (const weft::error& e) {
    if (e.code() == weft::error_code::unimplemented && is_later(e.op())) into.skipped(op, name, "op '" + e.op() + "' does not run yet");
    else into.failed(op, name, std::string("found ") + e.what());
  }
}

}  // namespace conformance
