// Definitions of ops beside TensorFlow's.
#include "runner.hpp"

#include <weft/format/attr_json.hpp>
#include <weft/ops/standard.hpp>

#include <algorithm>

namespace conformance {

using namespace weft::detail;

namespace {

std::string arg_text(const weft::arg_def& a) {
  std::string type = a.type != weft::dtype::invalid ? to_text(a.type) : a.type_attr + a.type_list_attr;
  if (!a.number_attr.empty()) type = a.number_attr + " * " + type;
  return a.name + ": " + (a.is_ref ? "Ref(" + type + ")" : type);
}

std::string args_text(const std::vector<weft::arg_def>& args) {
  std::string out;
  for (const auto& a : args) out += (out.empty() ? "" : ", ") + arg_text(a);
  return "(" + out + ")";
}

// Dtypes of which weft may leave some out, since it computes with none of them.
bool is_optional_dtype(weft::dtype type) { return type == weft::dtype::complex64 || type == weft::dtype::complex128 || type == weft::dtype::variant; }

std::string compare_types(const std::string& attr, const std::vector<weft::dtype>& expected, const std::vector<weft::dtype>& found) {
  // An op that weft lets have any dtype where TensorFlow does not, or the other way round.
  if (expected.empty() != found.empty()) return "attribute '" + attr + "': expected dtypes " + to_text(weft::attr_value(expected)) + ", found " + to_text(weft::attr_value(found)) + " (none: any)";
  for (const weft::dtype type : found)
    if (std::find(expected.begin(), expected.end(), type) == expected.end()) return "attribute '" + attr + "' allows " + to_text(type) + ", which TensorFlow does not";
  for (const weft::dtype type : expected)
    if (!is_optional_dtype(type) && std::find(found.begin(), found.end(), type) == found.end()) return "attribute '" + attr + "' does not allow " + to_text(type);
  return "";
}

std::string default_text(const weft::attr_def& a) { return a.default_value ? to_text(*a.default_value) : "no default"; }

std::string compare_attrs(const weft::op_def& expected, const weft::op_def& found) {
  for (const auto& e : expected.attrs) {
    const weft::attr_def* f = found.find_attr(e.name);
    // Attributes that are younger than TensorFlow 1 have defaults.
    if (f == nullptr && e.default_value) continue;
    if (f == nullptr) return "attribute '" + e.name + "' is missing";
    if (e.kind != f->kind) return "attribute '" + e.name + "': expected kind " + e.kind + ", found " + f->kind;
    if (e.default_value != f->default_value) return "attribute '" + e.name + "': expected default " + default_text(e) + ", found " + default_text(*f);
    if (e.minimum != f->minimum) return "attribute '" + e.name + "': expected minimum " + std::to_string(e.minimum.value_or(-1)) + ", found " + std::to_string(f->minimum.value_or(-1)) + " (-1: none)";
    auto a = e.allowed_strings, b = f->allowed_strings;
    std::sort(a.begin(), a.end());
    std::sort(b.begin(), b.end());
    if (a != b) return "attribute '" + e.name + "': expected one of " + to_text(weft::attr_value(a)) + ", found " + to_text(weft::attr_value(b));
    if (const std::string why = compare_types(e.name, e.allowed_types, f->allowed_types); !why.empty()) return why;
  }
  for (const auto& f : found.attrs)
    if (f.name[0] != '_' && expected.find_attr(f.name) == nullptr) return "attribute '" + f.name + "' is not TensorFlow's";
  return "";
}

}  // namespace

void run_op_def(const json_at& record, const options& asked, report& into) {
  const std::string op = string_at(field(record, "name")), name = "definition of " + op;
  if (!asked.wants(op)) return;
  const auto found = weft::standard_ops().find(op);
  if (found == nullptr) return into.missing(op, name, op, "definition");
  const weft::op_def expected = op_def_at(field(record, "op_def"));
  std::string why;
  if (args_text(expected.inputs) != args_text(found->inputs)) why = "expected inputs " + args_text(expected.inputs) + ", found " + args_text(found->inputs);
  else if (args_text(expected.outputs) != args_text(found->outputs)) why = "expected outputs " + args_text(expected.outputs) + ", found " + args_text(found->outputs);
  else if (expected.stateful != found->stateful) why = std::string("expected ") + (expected.stateful ? "stateful" : "not stateful");
  else if (expected.commutative != found->commutative) why = std::string("expected ") + (expected.commutative ? "commutative" : "not commutative");
  else why = compare_attrs(expected, *found);
  if (why.empty()) into.passed(op, name);
  else into.failed(op, name, why);
}

}  // namespace conformance
