// Prints what is known of each op, a line each: name, kernel dtypes, gradient, separated by tabs. tools/op_table.py makes docs/ops.md of it.
#include <weft/gradients/gradient_registry.hpp>
#include <weft/graph.hpp>
#include <weft/ops/standard_catalogue.hpp>

#include <iostream>
#include <string>

namespace {

std::string dtypes_of(const weft::kernel_entry& kernel) {
  std::string out;
  for (const auto& [attr, types] : kernel.constraints) {
    out += (out.empty() ? "" : "; ") + attr + ":";
    for (const weft::dtype type : types) out += std::string(" ") + weft::to_text(type);
  }
  return out.empty() ? "any" : out;
}

std::string kernels_of(const std::string& op) {
  std::string out;
  for (const weft::kernel_entry& kernel : weft::standard_catalogue().kernels_of(op)) out += (out.empty() ? "" : " | ") + dtypes_of(kernel);
  return out.empty() ? "none" : out;
}

const char* gradient_of(const std::string& op) {
  const weft::gradient_registry& rules = weft::standard_gradients();
  return rules.find(op) != nullptr ? "yes" : rules.has(op) ? "none" : "no rule";
}

}  // namespace

int main() {
  for (const auto& op : weft::standard_ops().all()) std::cout << op->name << '\t' << kernels_of(op->name) << '\t' << gradient_of(op->name) << '\n';
}
