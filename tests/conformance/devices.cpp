// Device names and placement beside TensorFlow's.
#include "runner.hpp"

#include <weft/core/device_name.hpp>
#include <weft/ops/standard_catalogue.hpp>
#include <weft/placement/placer.hpp>

#include <algorithm>

namespace conformance {

using namespace weft::detail;

namespace {

// TensorFlow writes the replica of every complete name.
std::string full(const std::string& device) { return to_full_text(weft::parse_device_name(device)); }

// The printed form in `text`; "(refused)" for null or an error.
std::string text_or_refused(const json_at& at, std::string_view name) {
  const json_value* v = find_field(at, name);
  if (v == nullptr) return "(refused)";
  const json_at one(*v, at, name);
  if (v->kind == json_kind::string) return v->text;
  return find_field(one, "text") == nullptr ? "(refused)" : text_field_of(one, "text");
}

template <class F> std::string or_refused(F&& f) {
  try {
    return f();
  } catch (const weft::error&) {
    return "(refused)";
  }
}

// A name as weft writes it in full; what weft cannot read stays as it is.
std::string normal(const std::string& text) {
  return text == "(refused)" || !weft::try_parse_device_name(text) ? text : full(text);
}

// Whether TensorFlow takes a name that weft refuses on purpose: a component given twice, a number beyond 31 bits, a wildcard for the type alone.
bool is_loose(const std::string& name) {
  std::vector<std::string> seen;
  std::size_t digits = 0;
  for (std::size_t i = 0; i <= name.size(); ++i) {
    digits = i < name.size() && name[i] >= '0' && name[i] <= '9' ? digits + 1 : 0;
    if (digits > 9) return true;
    if (i == name.size() || name[i] != '/') continue;
    std::string word = name.substr(i + 1, name.find_first_of(":/", i + 1) - i - 1);
    if (word == "cpu" || word == "gpu") word = "device";
    if (std::find(seen.begin(), seen.end(), word) != seen.end()) return true;
    seen.push_back(word);
  }
  return name.find("device:*") != std::string::npos;
}

std::string expect_text(const char* what, const std::string& expected_text, const std::string& found) {
  const std::string expected = normal(expected_text);
  return expected == found ? "" : std::string(what) + ": expected '" + expected + "', found '" + found + "'";
}

std::string check_pair(const json_at& cpp, const std::string& first, const std::string& second) {
  const weft::device_name a = weft::parse_device_name(first), b = weft::parse_device_name(second);
  using merge = weft::device_name (*)(const weft::device_name&, const weft::device_name&);
  const std::pair<const char*, merge> merges[] = {{"merge", &weft::merge_names}, {"soft", &weft::merge_names_soft}, {"override", &weft::merge_override_names}};
  for (const auto& [what, f] : merges)
    if (const std::string why = expect_text(what, text_or_refused(cpp, what), or_refused([&, m = f] { return to_full_text(m(a, b)); })); !why.empty()) return why;
  // To weft a name with job and task is in replica 0 unless it says otherwise, to TensorFlow it is no whole task.
  const bool whole = first.find("/replica:") != std::string::npos && second.find("/replica:") != std::string::npos;
  const std::pair<const char*, bool> predicates[] = {{"specification", is_specification(a, b)}, {"same_address_space", same_task(a, b)}};
  for (const auto& [what, found] : predicates)
    if (!whole && std::string_view(what) == "same_address_space") continue;
    else if (const json_value* v = find_field(cpp, what); v != nullptr && v->boolean != found) return std::string(what) + ": expected " + (v->boolean ? "true" : "false");
  return "";
}

std::string check_device_name(const json_at& record) {
  const std::string kind = text_field_of(record, "kind");
  const auto in = names_field_of(record, "in");
  const json_value* cpp_field = find_field(record, "cpp");
  if (kind == "canonical") {
    const std::string expected = cpp_field == nullptr || cpp_field->kind != json_kind::string ? "(refused)" : cpp_field->text;
    return expect_text("canonical", expected, or_refused([&] { return weft::to_full_text(weft::canonical(weft::parse_device_name(in[0]), weft::parse_device_name(in[1]))); }));
  }
  if (cpp_field == nullptr && kind == "split") return "";
  if (cpp_field == nullptr) return expect_text(kind.c_str(), "(refused)", or_refused([&] { return to_full_text(weft::parse_device_name(in[0])); }));
  const json_at cpp(*cpp_field, record, "cpp");
  if (kind == "parse") return expect_text("parse", text_or_refused(cpp, "full"), or_refused([&] { return to_full_text(weft::parse_device_name(in[0])); }));
  if (kind == "pair") return check_pair(cpp, in[0], in[1]);
  if (text_or_refused(cpp, "task") == "(refused)") return "";
  return expect_text("task", text_or_refused(cpp, "task"), or_refused([&] {
                       weft::device_name task = weft::parse_device_name(in[0]);
                       task.type.reset();
                       task.id.reset();
                       return to_full_text(task);
                     }));
}

// The devices of the data's cluster; with `device_filters` only those that match one, and the session's own.
weft::device_set devices_at(const json_at& record, const cluster_of_data& cluster) {
  const auto kernels = std::make_shared<weft::kernel_catalogue>([] {
    // TensorFlow has kernels of every op but those that stand for having none.
    weft::kernel_catalogue out;
    for (const auto& def : import_of_data().ops.all()) {
      if (def->name == "NcclAllReduce") continue;
      weft::kernel_entry entry;
      entry.op = def->name;
      entry.device_type = "CPU";
      if (def->name == "LRN") entry.constraints.emplace("T", std::vector<weft::dtype>{weft::dtype::float32, weft::dtype::half});
      out.add(std::move(entry));
    }
    return out;
  }());
  const std::map<std::string, int> per_task{{"CPU", cluster.cpus}};
  const weft::device_set all = cluster.spec.empty() ? weft::device_set::of_task(weft::local_task, per_task, kernels) : weft::device_set::of_cluster(cluster.spec, per_task, kernels);
  const json_at options = field(record, "options");
  const auto filters = names_field_of(options, "device_filters");
  if (filters.empty()) return all;
  weft::device_set out;
  const weft::device_name own = weft::parse_device_name(text_field_of(record, "target"));
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto meets = [&](const std::string& filter) { return matches(weft::parse_device_name(filter), all.names()[i]); };
    if (matches(own, all.names()[i]) || std::any_of(filters.begin(), filters.end(), meets)) out.add(all.devices()[i]);
  }
  for (const std::string& task : out.tasks()) out.set_catalogue(task, kernels);
  return out;
}

bool flag_at(const json_at& record, std::string_view name) {
  const json_at options = field(record, "options");
  const json_value* v = find_field(options, name);
  return v != nullptr && v->boolean;
}

weft::placement place_as_asked(const json_at& record, const weft::graph& g, const weft::device_set& devices) {
  weft::placement_options options;
  options.default_task = text_field_of(record, "target");
  options.allow_soft_placement = flag_at(record, "allow_soft_placement");
  return place(g, devices, options);
}

std::string check_placement(const json_at& record, const json_at& expect) {
  const weft::graph g = graph_at(field(record, "graph_def"), import_of_data());
  const weft::device_set devices = devices_at(record, cluster_at(record));
  const weft::placement where = place_as_asked(record, g, devices);
  if (const json_value* failure = find_field(expect, "error")) return "expected an error (" + text_field_of(json_at(*failure, expect, "error"), "message") + "), found none";
  const json_at expected = field(expect, "placement");
  for (const json_value& member : expected.value.items) {
    const weft::node* n = g.find(member.key);
    if (n == nullptr) return "there is no node '" + member.key + "'";
    if (full(where.device_of(*n)) != member.text) return "'" + member.key + "': expected " + member.text + ", found " + full(where.device_of(*n)) + " (" + where.reason_of(*n) + ")";
  }
  return "";
}

}  // namespace

void run_device_name(const json_at& record, const options& asked, report& into) {
  const std::string name = text_field_of(record, "name"), op = "device_names";
  if (!asked.wants(op)) return;
  std::string why;
  try {
    why = check_device_name(record);
  } catch (const weft::error& e) {
    why = std::string("found ") + e.what();
  }
  if (why.empty()) into.passed(op, name);
  else if (const auto in = names_field_of(record, "in"); is_loose(in[0]) || is_loose(in.back())) into.skipped(op, name, "weft refuses repeated components, numbers beyond 31 bits and '/device:*'");
  else into.failed(op, name, why);
}

void run_placement(const json_at& record, const options& asked, report& into) {
  const std::string name = text_field_of(record, "name"), op = "placement";
  if (!asked.wants(op)) return;
  const json_at expect = field(record, "expect");
  if (const lack l = find_lack(field(record, "graph_def"), false); l.what != nullptr) return into.missing(op, name, l.op, l.what);
  try {
    const std::string why = check_placement(record, expect);
    if (why.empty()) into.passed(op, name);
    else into.failed(op, name, why);
  } catch (const weft::error& e) {
    if (find_field(expect, "error") != nullptr) into.passed(op, name);
    else into.failed(op, name, std::string("found ") + e.what());
  }
}

}  // namespace conformance
