#include <weft/train/variable_scope.hpp>

#include <doctest/doctest.h>
#include <weft/gradients.hpp>
#include <weft/graph/text.hpp>
#include <weft/ops/standard.hpp>
#include <weft/session/local_session.hpp>
#include <weft/tensor/xtensor.hpp>

#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

using weft::call_site;
using weft::get_variable;
using weft::graph;
using weft::variable;
using weft::variable_scope;

namespace {
struct fixture {
  graph g;
  weft::detail::graph_scope scope = g.as_default();
};
template <class Call> std::string message(Call&& call) {
  try {
    (void)call();
  } catch (const weft::error& e) {
    return e.what();
  }
  return "";
}
}  // namespace

TEST_CASE("get_variable: a typed variable with TensorFlow's nodes") {
  fixture t;
  const auto w = get_variable<float>("w", {2, 3}, weft::zeros_initializer());
  static_assert(std::is_same_v<decltype(w), const variable<float, 2>>);
  CHECK(to_text(t.g) ==
        "w/Initializer/zeros = Const()  float[2,3]  {_class=[\"loc:@w\"], value=float[2,3]}\n"
        "w = VarHandleOp()  resource  {_class=[\"loc:@w\"], dtype=float, shape=[2,3], shared_name=\"w\"}\n"
        "w/IsInitialized/VarIsInitializedOp = VarIsInitializedOp(w)  bool[]\n"
        "w/Assign = AssignVariableOp(w, w/Initializer/zeros)\n"
        "w/Read/ReadVariableOp = ReadVariableOp(w)  float[2,3]\n");
  const variable<std::int64_t, 0> n = get_variable<std::int64_t, 0>("n", {});
  const variable<double> dynamic = get_variable<double>("d", weft::shape({4}), {weft::ones_initializer(), weft::not_trainable});
  CHECK(dynamic.shape().text() == "[4]");
  CHECK(weft::trainable_variables().size() == 1);
  weft::local_session session;
  session.run(weft::global_variables_initializer());
  CHECK(session.run(n) == 0);
}

TEST_CASE("variable_scope: names of variables, and names of nodes, which stay unique") {
  fixture t;
  {
    const variable_scope outer("net");
    const auto a = get_variable<float>("w", {2});
    const auto named = weft::name_scope("ops");
    const variable_scope inner("layer");
    const auto b = get_variable<float>("w", {2});
    CHECK(a.name() == "net/w");
    CHECK(b.name() == "net/layer/w");
    CHECK(weft::constant(1.f, "x").name() == "net/ops/layer/x");
    CHECK(weft::get_variable_scope().name == "net/layer");
  }
  const variable_scope again("net");
  CHECK(get_variable<float>("b", {2}).name() == "net/b");
  CHECK(weft::constant(1.f, "x").name() == "net_1/x");
}

TEST_CASE("variable_scope: one that is shared is the same variable") {
  fixture t;
  const auto layer = [] { return get_variable<float>("w", {2, 2}); };
  const auto first = [&] {
    const variable_scope scope("shared", weft::auto_reuse);
    return layer();
  }();
  const auto second = [&] {
    const variable_scope scope("shared", weft::auto_reuse);
    return layer();
  }();
  CHECK(first.raw() == second.raw());
  CHECK(first.initializer().get() == second.initializer().get());
  const variable_scope scope("shared", weft::reuse_variables);
  CHECK(layer().raw() == first.raw());
  // Reuse holds inside too, unless the scope inside says otherwise.
  CHECK(message([] {
          const variable_scope inside("other");
          return get_variable<float>("w", {2}, {}, call_site{"user.cpp", 9});
        }) == "NOT_FOUND: user.cpp:9: there is no variable 'shared/other/w' to reuse; it is made by get_variable outside of reuse, or here with auto_reuse");
  CHECK(weft::global_variables().size() == 1);
}

TEST_CASE("variable_scope: errors name both lines") {
  fixture t;
  (void)get_variable<float>("w", {2}, {}, call_site{"user.cpp", 3});
  CHECK(message([] { return get_variable<float>("w", {2}, {}, call_site{"user.cpp", 5}); }) ==
        "ALREADY_EXISTS: user.cpp:5: there is a variable 'w' already, made at user.cpp:3; to share it, ask for it in a variable_scope with reuse_variables or auto_reuse");
  const variable_scope scope("", weft::reuse_variables);
  CHECK(message([] { return get_variable<float>("w", {3}, {}, call_site{"user.cpp", 7}); }) ==
        "INVALID_ARGUMENT: user.cpp:7: the variable 'w' made at user.cpp:3 has shape [2], it is to be reused with shape [3]");
  CHECK(message([] { return get_variable<double>("w", {2}, {}, call_site{"user.cpp", 8}); }) == "INVALID_ARGUMENT: user.cpp:8: the variable 'w' (user.cpp:3) is float, not double");
  CHECK(message([] { return get_variable<float>("", {2}, {}, call_site{"user.cpp", 9}); }) == "INVALID_ARGUMENT: user.cpp:9: get_variable: '' is no name of a variable");
}

TEST_CASE("variable_scope: a variable that get_variable did not make is none of its own") {
  fixture t;
  const variable<float, 0> plain(1.f, "w");
  CHECK(message([] {
          const variable_scope scope("", weft::reuse_variables);
          return get_variable<float, 0>("w", {});
        }).substr(0, 10) == "NOT_FOUND:");
  CHECK(get_variable<float, 0>("w", {}).name() == "w_1");
  const variable_scope scope("", weft::reuse_variables);
  CHECK(get_variable<float, 0>("w", {}).name() == "w_1");
}

TEST_CASE("variable_scope: what a scope says of variables, and of strings") {
  fixture t;
  weft::variable_scope_options options;
  options.initializer = weft::constant_initializer(3);
  options.regularizer = weft::l2_regularizer(0.5);
  const auto saved = [&] {
    const variable_scope scope("s", options);
    (void)get_variable<float>("w", {2});
    (void)get_variable<float>("b", {2}, weft::ones_initializer());
    return scope.value();
  }();
  CHECK(message([] { return get_variable<std::string>("names", {2}, {}, call_site{"user.cpp", 4}); }) == "INVALID_ARGUMENT: user.cpp:4: the variable 'names' of dtype string needs an initializer");
  const auto penalties = t.g.state()->collection("regularization_losses");
  REQUIRE(penalties.size() == 2);
  CHECK(penalties[0]->name() == "s/w/Regularizer/l2_regularizer");
  const variable_scope inside("elsewhere");
  const variable_scope again(saved, weft::reuse_variables);
  const auto w = get_variable<float>("w", {2});
  CHECK(w.name() == "s/w");
  weft::local_session session;
  session.run(weft::global_variables_initializer());
  CHECK(session.run(w)(1) == 3.f);
  CHECK(session.run(weft::tensor<float, 0>(weft::output{penalties[0], 0})) == 4.5f);
}

TEST_CASE("variable_scope: a layer built several times") {
  fixture t;
  std::vector<std::string> names;
  const auto dense = [&] {
    const auto scope = weft::unique_variable_scope("dense");
    names.push_back(get_variable<float>("kernel", {2}).name());
  };
  dense();
  dense();
  const variable_scope outer("outer");
  dense();
  CHECK(names == std::vector<std::string>{"dense/kernel", "dense_1/kernel", "outer/dense/kernel"});
  CHECK_THROWS_AS((void)weft::unique_variable_scope("x", weft::reuse_variables), weft::error);
  weft::reuse_variables_from_here();
  CHECK_THROWS_AS((void)get_variable<float>("fresh", {2}), weft::error);
}

TEST_CASE("variable_scope: each graph has its own") {
  fixture t;
  const variable_scope scope("s", weft::reuse_variables);
  const graph other;
  const auto inside = other.as_default();
  CHECK(weft::get_variable_scope().name.empty());
  CHECK(get_variable<float>("w", {2}).name() == "w");
}

TEST_CASE("get_variable: reads come from the caching device, once") {
  fixture t;
  weft::variable_options options(weft::constant_initializer({1.f, 2.f}));
  options.caching_device = "/job:worker/task:0";
  const auto place = weft::with_device("/job:ps/task:0");
  const auto w = get_variable<float>("w", {2}, options);
  CHECK(w.is_cached());
  const auto twice = w + w;
  const auto squared = weft::square(w);
  CHECK(twice.raw().from->inputs()[0].from->name() == "w/cached");
  CHECK(squared.raw().from->inputs()[0].from->name() == "w/cached");
  CHECK(t.g.find("w/cached")->device() == "/job:worker/task:0");
  CHECK(w.read().raw().from->op() == "ReadVariableOp");
  const variable_scope scope("", weft::reuse_variables);
  CHECK(get_variable<float>("w", {2}).is_cached());
  const auto gradient = weft::gradients(squared, w);
  CHECK_FALSE(gradient.empty());
}
