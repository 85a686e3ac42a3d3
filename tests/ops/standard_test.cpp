#include <weft/ops/standard.hpp>

#include <doctest/doctest.h>

#include <set>
#include <string>

using weft::arg_def;
using weft::op_def;
using weft::op_registry;
using weft::standard_ops;

TEST_CASE("standard_ops: one registry, the same each time") {
  CHECK(&standard_ops() == &standard_ops());
  for (const char* name : {"Const", "Placeholder", "AddV2", "MatMul", "Sum", "Cast", "RandomUniform", "VarHandleOp", "ReadVariableOp", "NoOp", "_Send", "_Recv", "_Arg", "_Retval"}) {
    CAPTURE(name);
    REQUIRE(standard_ops().find(name) != nullptr);
    CHECK(standard_ops().find(name)->name == name);
  }
  CHECK(standard_ops().find("addv2") == nullptr);
}

TEST_CASE("standard_ops: every definition is whole") {
  for (const auto& def : standard_ops().all()) {
    CAPTURE(def->name);
    std::set<std::string> attrs;
    for (const auto& a : def->attrs) CHECK(attrs.insert(a.name).second);
    for (const auto* args : {&def->inputs, &def->outputs})
      for (const arg_def& arg : *args) {
        CAPTURE(arg.name);
        // A dtype, or an attribute that says it, but not both; what it refers to exists.
        CHECK((arg.type != weft::dtype::invalid) + !arg.type_attr.empty() + !arg.type_list_attr.empty() == 1);
        for (const std::string& attr : {arg.type_attr, arg.number_attr, arg.type_list_attr}) CHECK((attr.empty() || attrs.count(attr) == 1));
      }
  }
}

TEST_CASE("standard_ops: which keep state or have effects") {
  for (const char* name : {"AssignAddVariableOp", "AssignVariableOp", "DestroyResourceOp", "Multinomial", "RandomShuffle", "RandomStandardNormal", "RandomUniform", "ReadVariableOp", "VarHandleOp", "VarIsInitializedOp", "ResourceGather",
                           "ResourceScatterAdd", "ResourceApplyAdam", "ResourceSparseApplyAdagrad", "Assert", "CheckNumerics", "DeepCopy", "Print", "_Arg", "_HostRecv", "_HostSend", "_Recv", "_Retval", "_Send"}) {
    CAPTURE(name);
    CHECK(standard_ops().find(name)->stateful);
  }
  for (const char* name : {"AddV2", "Const", "Identity", "MatMul", "NoOp", "Placeholder", "Sum"}) {
    CAPTURE(name);
    CHECK(!standard_ops().find(name)->stateful);
  }
}

TEST_CASE("op_registry: a copy is extended, the original is not") {
  op_registry mine = standard_ops();
  const std::size_t before = standard_ops().size();
  mine.add(weft::op("Mine").output("y: float"));
  CHECK(mine.find("Mine") != nullptr);
  CHECK(mine.size() == before + 1);
  CHECK(standard_ops().find("Mine") == nullptr);
  CHECK(standard_ops().size() == before);
}
