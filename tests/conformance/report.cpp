#include "report.hpp"
#include "values.hpp"

#include <weft/format/graphdef.hpp>

#include <cstdio>
#include <filesystem>

namespace conformance {

bool is_later(const std::string& op) {
  static const std::set<std::string> later = {
      "Switch", "RefSwitch", "Merge", "RefMerge", "Enter", "RefEnter", "Exit", "RefExit", "NextIteration", "RefNextIteration", "LoopCond", "ControlTrigger", "Variable", "VariableV2",
      "Assign", "AssignAdd", "AssignSub", "IsVariableInitialized", "If", "StatelessIf", "While", "StatelessWhile", "Case", "StatelessCase", "PartitionedCall", "StatefulPartitionedCall",
      "SymbolicGradient", "SaveV2", "RestoreV2", "MergeV2Checkpoints", "ShardedFilename", "StaticRegexFullMatch", "StringJoin", "ApplyGradientDescent"};
  if (later.count(op) != 0) return true;
  for (const char* word : {"function ", "Stack", "Barrier", "TensorArray"})
    if (op.find(word) != std::string::npos) return true;
  return false;
}

void differences::read_file(const std::string& path) {
  using namespace weft::detail;
  const json_value json = parse_json(read_whole_file(path));
  const json_at top(json);
  for (std::size_t i = 0; i < elements_at(top).size(); ++i) {
    const json_at entry(json.items[i], top, i);
    expect_fields(entry, {"cases", "why"});
    const json_at cases = field(entry, "cases");
    const std::string why = string_at(field(entry, "why"));
    for (std::size_t j = 0; j < elements_at(cases).size(); ++j) {
      std::string name = string_at(json_at(cases.value.items[j], cases, j));
      if (!name.empty() && name.back() == '*') {
        name.pop_back();
        beginnings_[name] = why;
      } else {
        exact_[name] = why;
      }
    }
  }
}

differences differences::read(const std::string& folder) {
  differences out;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().filename().string();
    if (name.size() >= 16 && name.compare(name.size() - 16, 16, "differences.json") == 0) out.read_file(entry.path().string());
  }
  return out;
}

std::string differences::find(const std::string& name) const {
  if (const auto it = exact_.find(name); it != exact_.end()) return it->second;
  for (const auto& [beginning, why] : beginnings_)
    if (name.compare(0, beginning.size(), beginning) == 0) return why;
  return "";
}

void report::add(case_result r) {
  r.file = file_;
  total_.add(r.what);
  by_op_[r.op].add(r.what);
  by_file_[r.file].add(r.what);
  if (r.what != outcome::passed) results_.push_back(std::move(r));
}

void report::passed(const std::string& op, const std::string& name) {
  if (known_.listed(name)) add({"", name, op, outcome::failed, "is listed as a difference but holds; remove it from the list"});
  else add({"", name, op, outcome::passed, ""});
}

void report::failed(const std::string& op, const std::string& name, const std::string& why) {
  const std::string known = known_.find(name);
  if (known.empty()) add({"", name, op, outcome::failed, why});
  else add({"", name, op, outcome::skipped, "known difference: " + known});
}

void report::skipped(const std::string& op, const std::string& name, const std::string& why) { add({"", name, op, outcome::skipped, why}); }

void report::missing(const std::string& op, const std::string& name, const std::string& missing_op, const char* what) {
  ++missing_[missing_op][what];
  const std::string why = "op '" + missing_op + "' has no " + what;
  if (is_later(missing_op)) skipped(op, name, why);
  else failed(op, name, why);
}

std::string report::text() const {
  std::string out;
  for (const case_result& r : results_)
    if (r.what == outcome::failed) out += "FAILED " + r.file + ": " + r.name + "\n    " + r.why + "\n";
  std::map<std::string, int> reasons;
  for (const case_result& r : results_)
    if (r.what == outcome::skipped) ++reasons[r.file + ": " + r.why];
  for (const auto& [why, n] : reasons) out += "skipped " + std::to_string(n) + " of " + why + "\n";
  const auto table = [&out](const std::map<std::string, counts>& by, const char* title) {
    char line[200];
    std::snprintf(line, sizeof line, "%-44s %8s %8s %8s\n", title, "passed", "failed", "skipped");
    out += line;
    for (const auto& [name, n] : by) {
      std::snprintf(line, sizeof line, "%-44s %8d %8d %8d\n", name.c_str(), n.passed, n.failed, n.skipped);
      out += line;
    }
  };
  table(by_op_, "op");
  table(by_file_, "file");
  return out + std::to_string(total_.passed) + " passed, " + std::to_string(total_.failed) + " failed, " + std::to_string(total_.skipped) + " skipped\n";
}

std::string report::missing_text() const {
  std::string out;
  for (const auto& [op, kinds] : missing_) {
    out += op + ":";
    for (const auto& [what, n] : kinds) out += " no " + std::string(what) + " for " + std::to_string(n) + " cases;";
    out.back() = '\n';
  }
  return out;
}

}  // namespace conformance
