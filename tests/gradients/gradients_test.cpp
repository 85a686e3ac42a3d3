#include <weft/gradients/gradients.hpp>

#include "../error_of.hpp"

#include <weft/gradients.hpp>
#include <weft/session.hpp>

#include <doctest/doctest.h>

#include <string>
#include <tuple>
#include <type_traits>
#include <vector>

namespace {

using weft::gradients;

std::vector<float> numbers(const weft::tensor_value& v) { return {v.data<float>(), v.data<float>() + v.elements()}; }

/// The gradients as values, one for each x; nothing for none.
std::vector<std::vector<float>> values(const std::vector<weft::gradient_output>& found, const std::vector<weft::feed>& feeds = {}) {
  weft::session session;
  std::vector<std::vector<float>> out;
  for (const auto& g : found) {
    out.emplace_back();
    if (g.empty()) continue;
    REQUIRE(g.is_dense());
    out.back() = numbers(session.run(weft::run_options(), feeds, {g.values()})[0]);
  }
  return out;
}

using lists = std::vector<std::vector<float>>;

}  // namespace

TEST_CASE("gradients: the types of the results follow the xs") {
  weft::graph graph;
  const auto scope = graph.as_default();
  const auto x = weft::placeholder<float, 2>({2, 3}), w = weft::placeholder<float, 2>({3, 2});
  const weft::variable<double, 1> v(weft::constant({1.0, 2.0}));
  const weft::tensor<float, 0> loss = weft::reduce_sum(weft::matmul(x, w));
  static_assert(std::is_same_v<decltype(gradients(loss, w)), weft::gradient<float, 2>>);
  static_assert(std::is_same_v<decltype(gradients(loss, v)), weft::gradient<double, 1>>);
  static_assert(std::is_same_v<decltype(gradients(loss, x, w)), std::tuple<weft::gradient<float, 2>, weft::gradient<float, 2>>>);
  static_assert(std::is_same_v<decltype(gradients(loss, x, v, w)), std::tuple<weft::gradient<float, 2>, weft::gradient<double, 1>, weft::gradient<float, 2>>>);
  static_assert(std::is_same_v<decltype(gradients(loss, std::tie(w, v), weft::gradient_options())), std::tuple<weft::gradient<float, 2>, weft::gradient<double, 1>>>);
  static_assert(std::is_same_v<decltype(gradients(loss, std::vector<weft::tensor<float, 2>>{x, w})), std::vector<weft::gradient<float, 2>>>);
  static_assert(std::is_same_v<decltype(gradients(loss, std::vector<weft::output>())), std::vector<weft::gradient_output>>);
  static_assert(std::is_convertible_v<weft::gradient<float, 2>, weft::tensor<float, 2>>);
  const auto [dx, dw] = gradients(loss, x, w);
  CHECK(dx.shape() == weft::partial_shape{2, 3});
  CHECK(dw.shape() == weft::partial_shape{3, 2});
  CHECK(gradients(loss, v).empty());
  CHECK(gradients(std::tie(loss, w), w).shape() == weft::partial_shape{3, 2});
}

TEST_CASE("gradients: sums over paths") {
  weft::graph graph;
  const auto scope = graph.as_default();
  const auto x = weft::constant(3.f);
  // y = 2x, z = y + x: dz/dx = 3, dz/dy = 1.
  const auto y = 2.f * x;
  const auto z = y + x;
  CHECK(values(gradients(z, {x.raw(), y.raw()})) == lists{{3}, {1}});
  // One lies behind the other: y = x^2, y1 = y^2, y2 = y1^2; d(y + y2)/dx = 2x + 8x^7.
  const auto a = weft::square(x), a1 = weft::square(a), a2 = weft::square(a1);
  CHECK(values(gradients(std::tie(a, a2), {x.raw()})) == lists{{17502}});
  CHECK(values(gradients(a + a2, {x.raw()})) == lists{{17502}});
  // Ten times the same term.
  auto sum = y;
  for (int i = 1; i < 10; ++i) sum = sum + y;
  CHECK(values(gradients(sum, {x.raw(), y.raw()})) == lists{{20}, {10}});
  // A y that is an x, and an x given twice.
  CHECK(values(gradients(x, {x.raw(), x.raw()})) == lists{{1}, {1}});
  CHECK(values(gradients(std::tie(a, x), {x.raw()})) == lists{{7}});
  // 2^12 paths.
  auto doubled = x;
  for (int i = 0; i < 12; ++i) doubled = doubled + doubled;
  CHECK(values(gradients(doubled, {x.raw()})) == lists{{4096}});
}

TEST_CASE("gradients: every way to add gives the same, by different nodes") {
  for (const auto method : {weft::aggregation_method::add_n, weft::aggregation_method::tree, weft::aggregation_method::accumulate_n}) {
    weft::graph graph;
    const auto scope = graph.as_default();
    const auto x = weft::constant({1.f, 2.f});
    const auto y = weft::add_n({weft::square(x), weft::negative(x), 4.f * x, x});
    weft::gradient_options options;
    options.aggregation = method;
    const auto g = gradients(y, x, options);
    weft::session session;
    CHECK(session.run(g) == xt::xtensor<float, 1>{6.f, 8.f});
    if (method == weft::aggregation_method::add_n) CHECK(g.raw().from->op() == "AddN");
    if (method == weft::aggregation_method::tree) CHECK(graph.find("gradients/Const_gradient_sum/AddN_2") != nullptr);
    if (method == weft::aggregation_method::accumulate_n) CHECK(g.raw().from->op() == "AccumulateNV2");
  }
}

TEST_CASE("gradients: grad_ys weigh the ys") {
  weft::graph graph;
  const auto scope = graph.as_default();
  const auto x = weft::constant({1.f, 2.f});
  const auto a = weft::square(x), b = 3.f * x;
  weft::gradient_options options;
  options.grad_ys = {weft::constant({10.f, 20.f}), {}};
  CHECK(values(gradients(std::tie(a, b), {x.raw()}, options)) == lists{{23, 83}});
  options.grad_ys = {weft::constant({5.f, 6.f})};
  CHECK(values(gradients(x, {x.raw()}, options)) == lists{{5, 6}});
  options.grad_ys = {weft::constant({1, 2})};
  CHECK(error_of([&] { gradients(a, {x.raw()}, options); }).message == "the gradient given for 'Square' has dtype int32, expected float");
  options.grad_ys = {weft::constant({1.f, 2.f, 3.f})};
  CHECK(error_of([&] { gradients(a, {x.raw()}, options); }).code == weft::error_code::invalid_argument);
  options.grad_ys = {{}, {}};
  CHECK(error_of([&] { gradients(a, {x.raw()}, options); }).message == "gradients: expected one of grad_ys for each of 1 ys, found 2");
}

TEST_CASE("gradients: stop_gradients makes constants of tensors") {
  weft::graph graph;
  const auto scope = graph.as_default();
  const auto x = weft::constant({2.f, 3.f});
  const auto a = weft::square(x), y = a * x;
  CHECK(values(gradients(y, {x.raw()})) == lists{{12, 27}});
  weft::gradient_options options;
  options.stop_gradients = {a};
  CHECK(values(gradients(y, {x.raw()}, options)) == lists{{4, 9}});
  CHECK(values(gradients(y, {x.raw(), a.raw()}, options)) == lists{{4, 9}, {2, 3}});
  // Partial derivatives of p + q where q depends on p.
  const auto q = 2.f * x, sum = x + q;
  CHECK(values(gradients(sum, {x.raw(), q.raw()})) == lists{{3, 3}, {1, 1}});
  options.stop_gradients = {x, q};
  CHECK(values(gradients(sum, {x.raw(), q.raw()}, options)) == lists{{1, 1}, {1, 1}});
  // The op does the same.
  const weft::tensor<float, 1> stopped(weft::output{&weft::detail::add_node("StopGradient", {a.raw()}, {}), 0});
  CHECK(values(gradients(stopped * x, {x.raw()})) == lists{{4, 9}});
}

TEST_CASE("gradients: what is not reached is none, or zeros") {
  weft::graph graph;
  const auto scope = graph.as_default();
  const auto x = weft::constant({2.5f, -1.5f});
  const auto other = weft::constant({{1.f, 2.f}});
  const auto integers = weft::cast<std::int32_t>(x);
  const auto through_integers = weft::cast<float>(integers);
  const auto compared = weft::cast<float>(weft::less(x, 1.f));
  const auto later = weft::square(through_integers);
  CHECK(values(gradients(weft::square(x), {x.raw(), other.raw()})) == lists{{5, -3}, {}});
  CHECK(values(gradients(through_integers, {x.raw(), later.raw()})) == lists{{}, {}});
  CHECK(values(gradients(compared, {x.raw()})) == lists{{}});
  CHECK(values(gradients(integers * integers, {integers.raw()})) == lists{{}});
  CHECK(gradients(std::vector<weft::output>(), {x.raw()})[0].empty());
  CHECK(gradients(x, std::vector<weft::output>()).empty());
  weft::gradient_options options;
  options.unconnected = weft::unconnected_gradients::zero;
  CHECK(values(gradients(through_integers, {x.raw(), other.raw()}, options)) == lists{{0, 0}, {0, 0}});
  const weft::variable<float, 1> v(weft::constant({1.f, 2.f, 3.f}));
  CHECK(values(gradients(x, {v.raw()}, options)) == lists{{0, 0, 0}});
}

TEST_CASE("gradients: variables are differentiated through their reads") {
  weft::graph graph;
  const auto scope = graph.as_default();
  const weft::variable<float, 2> w(weft::constant({{1.f, 2.f}, {3.f, 4.f}}));
  const weft::variable<float, 1> b(weft::constant({0.5f, -0.5f}));
  const auto x = weft::constant({{1.f, -1.f}});
  const auto loss = weft::reduce_sum(weft::square(weft::matmul(x, w) + b));
  // xw + b = (-1.5, -2.5).
  const auto [dw, db] = gradients(loss, w, b);
  weft::session session;
  session.run(weft::global_variables_initializer());
  CHECK(session.run(dw) == xt::xtensor<float, 2>{{-3.f, -5.f}, {3.f, 5.f}});
  CHECK(session.run(db) == xt::xtensor<float, 1>{-3.f, -5.f});
  // Two reads of one variable.
  CHECK(session.run(gradients(weft::reduce_sum(w * w), w)) == xt::xtensor<float, 2>{{2.f, 4.f}, {6.f, 8.f}});
  // A read as such is a tensor.
  const auto read = w.read();
  CHECK(session.run(gradients(weft::reduce_sum(read * w), read)) == xt::xtensor<float, 2>{{1.f, 2.f}, {3.f, 4.f}});
}

TEST_CASE("gradients: derivatives of derivatives") {
  weft::graph graph;
  const auto scope = graph.as_default();
  const auto x = weft::constant(2.f);
  const auto y = x * x * x * x;
  const auto first = gradients(y, x);
  const auto second = gradients(first, x);
  const auto third = gradients(second, x);
  const auto fourth = gradients(third, x);
  weft::session session;
  CHECK(session.run(first) == 32.f);
  CHECK(session.run(second) == 48.f);
  CHECK(session.run(third) == 48.f);
  CHECK(session.run(fourth) == 24.f);
}

TEST_CASE("gradients: names, scopes and call sites of the nodes") {
  weft::graph graph;
  const auto scope = graph.as_default();
  const auto x = weft::placeholder<float, 1>({2}, "x"), z = weft::placeholder<float, 1>({2}, "z");
  const int line = __LINE__ + 1;
  const auto y = weft::multiply(x, z, "y");
  gradients(y, x);
  CHECK(graph.find("gradients/grad_ys_0")->op() == "Const");
  CHECK(graph.find("gradients/Fill")->inputs()[1].from->name() == "gradients/grad_ys_0");
  const weft::node* product = graph.find("gradients/y_grad/Mul");
  REQUIRE(product != nullptr);
  CHECK(product->inputs() == std::vector<weft::output>{{graph.find("gradients/Fill"), 0}, z.raw()});
  CHECK(product->site().text() == "gradients_test.cpp:" + std::to_string(line));
  CHECK_MESSAGE(graph.find("gradients/y_grad/Mul_1") == nullptr, "what no x needs is not built");
  gradients(y, x);
  CHECK(graph.find("gradients_1/y_grad/Mul") != nullptr);
  weft::gradient_options options;
  options.name = "first";
  {
    const auto inside = weft::name_scope("tower");
    gradients(y, x, options);
  }
  CHECK(graph.find("tower/first/y_grad/Mul") != nullptr);
}

TEST_CASE("gradients: devices come from the caller's scopes, or from the ops") {
  weft::graph graph;
  const auto scope = graph.as_default();
  weft::tensor<float, 2> w, wx, wy;
  const auto x = weft::constant({{1.f}, {2.f}}), y = weft::constant({{3.f}, {4.f}});
  {
    const auto on = weft::with_device("/device:CPU:7");
    w = weft::tensor<float, 2>(weft::placeholder<float, 2>({1, 2}, "w"));
  }
  {
    const auto on = weft::with_device("/task:1");
    wx = weft::matmul(w, x, {}, "wx");
  }
  {
    const auto on = weft::with_device("/task:2");
    wy = weft::matmul(w, y, {}, "wy");
  }
  const auto group_of = [](const weft::output& o) {
    const auto* groups = o.from->find_attr<std::vector<std::string>>("_class");
    return groups == nullptr ? std::string() : groups->at(0);
  };
  const auto z = weft::add(wx, wy, "z");
  {
    const auto on = weft::with_device("/task:5");
    const auto plain = gradients(z, {w.raw()})[0].values();
    CHECK(plain.from->op() == "AddN");
    CHECK(plain.from->device() == "/task:5");
    CHECK(plain.from->inputs()[0].from->device() == "/task:5");
    CHECK(group_of(plain.from->inputs()[0]) == "");
  }
  weft::gradient_options options;
  options.colocate_with_ops = true;
  const auto together = gradients(z, {w.raw()}, options)[0].values();
  const weft::node* sum = together.from;
  REQUIRE(sum->op() == "AddN");
  CHECK(sum->inputs()[0].from->device() == "/task:1");
  CHECK(group_of(sum->inputs()[0]) == "loc:@wx");
  CHECK(sum->inputs()[1].from->device() == "/task:2");
  CHECK(group_of(sum->inputs()[1]) == "loc:@wy");
  CHECK(group_of(together) == "loc:@w");
  CHECK(sum->device() == "/device:CPU:7");
}

TEST_CASE("gradients: gates hold each back until all are there") {
  for (const auto gate : {weft::gradient_gate::op, weft::gradient_gate::graph}) {
    weft::graph graph;
    const auto scope = graph.as_default();
    const auto a = weft::constant({2.f, 3.f}), b = weft::constant({5.f, 7.f});
    weft::gradient_options options;
    options.gate = gate;
    const auto [da, db] = gradients(a * b, std::tie(a, b), options);
    for (const weft::node* n : {da.raw().from, db.raw().from}) {
      CHECK(n->op() == "Identity");
      REQUIRE(n->control_inputs().size() == 1);
      CHECK(n->control_inputs()[0]->name() == (gate == weft::gradient_gate::op ? "gradients/mul_grad/tuple/group_deps" : "gradients/tuple/group_deps"));
      CHECK(n->control_inputs()[0]->control_inputs().size() == 2);
    }
    weft::session session;
    CHECK(session.run(da) == xt::xtensor<float, 1>{5.f, 7.f});
    CHECK(session.run(db) == xt::xtensor<float, 1>{2.f, 3.f});
  }
}

TEST_CASE("gradients: errors name the node and its line") {
  weft::op_registry ops = weft::standard_ops();
  ops.add(weft::op("Opaque").input("x: T").output("y: T").attr("T: type").shapes(weft::detail::unchanged_shape));
  weft::graph graph(ops);
  const auto scope = graph.as_default();
  const auto x = weft::constant({1.f, 2.f}), z = weft::constant({1.f, 2.f});
  const int line = __LINE__ + 1;
  const weft::tensor<float, 1> hidden(weft::output{&weft::detail::add_node("Opaque", {x.raw()}, "hidden"), 0});
  const auto y = hidden * z;
  const auto found = error_of([&] { gradients(y, x); });
  CHECK(found.code == weft::error_code::not_found);
  CHECK(found.text() == "NOT_FOUND: Opaque 'hidden' (gradients_test.cpp:" + std::to_string(line) +
                            "): no gradient is defined for op 'Opaque'; add a rule to a gradient_registry, or put stop_gradient behind the node if it is to count as a constant");
  CHECK_MESSAGE(!gradients(y, z).empty(), "a path that does not lead to x does not matter");
  weft::gradient_options options;
  options.stop_gradients = {hidden};
  CHECK(gradients(y, x, options).empty());

  weft::gradient_registry rules = weft::standard_gradients();
  rules.add("Opaque", [](weft::gradient_context& c) { c.set(0, c.gradient_as_it_is()); });
  CHECK_THROWS_WITH(rules.add("Opaque", nullptr), "ALREADY_EXISTS: op 'Opaque' already has a gradient; use 'replace' to give it another");
  options = weft::gradient_options();
  options.registry = &rules;
  CHECK(gradients(y, x, options).raw().from->op() == "Mul");
  rules.replace("Opaque", [](weft::gradient_context& c) { c.set(0, c.integers({1, 2, 3})); });
  CHECK(error_of([&] { gradients(y, x, options); }).message == "the gradient of input 0 has shape [3], expected [2] as the input 'Const'");
  rules.replace("Opaque", [](weft::gradient_context& c) { c.set(0, c.integers({1, 2})); });
  CHECK(error_of([&] { gradients(y, x, options); }).message == "the gradient of input 0 has dtype int32, expected float as the input 'Const'");
  rules.replace("Opaque", nullptr);
  CHECK(gradients(y, x, options).empty());

  weft::graph elsewhere;
  const auto there = elsewhere.as_default();
  const auto foreign = weft::constant(1.f);
  CHECK(error_of([&] { gradients(foreign, x); }).message == "gradients: 'Const' belongs to another graph; all tensors must be in one graph");
  CHECK(error_of([&] { gradients(foreign, weft::tensor<float>()); }).message == "gradients: an x is an empty tensor, not made by any op");
}

TEST_CASE("gradients: a chain of 100,000 ops takes no recursion") {
  weft::graph graph;
  const auto scope = graph.as_default();
  const weft::tensor<float, 0> x = weft::constant(0.5f);
  weft::tensor<float, 0> y = x;
  for (int i = 0; i < 100'000; ++i) y = weft::negative(y);
  const auto g = gradients(y, x);
  weft::session session;
  CHECK(session.run(g) == 1.f);
}

TEST_CASE("gradients: stop_gradients and the op agree for every choice of constants") {
  // The function of a, b, c, d is the same with constants made by the op and by the option: b = a + 3a, c = a + 2b, d = b + c, loss = a + b + c + d.
  const auto derivatives = [](unsigned by_op, unsigned by_option) {
    weft::graph graph;
    const auto scope = graph.as_default();
    const auto through = [&](const weft::tensor<float, 0>& t, unsigned bit) { return (by_op >> bit & 1U) != 0 ? weft::stop_gradient(t) : t; };
    const weft::tensor<float, 0> a = weft::constant(1.f), a1 = through(a, 3), b = through(a1 + 3.f * a1, 2), c = through(a1 + 2.f * b, 1), d = through(b + c, 0);
    weft::gradient_options options;
    const weft::tensor<float, 0> all[] = {d, c, b, a1};
    for (unsigned bit = 0; bit < 4; ++bit)
      if ((by_option >> bit & 1U) != 0) options.stop_gradients.push_back(all[bit]);
    return values(gradients(a1 + b + c + d, {a1.raw(), b.raw(), c.raw(), d.raw()}, options));
  };
  for (unsigned set = 0; set < 16; ++set) CHECK(derivatives(set, 0) == derivatives(0, set));
  CHECK(derivatives(0, 0) == lists{{27}, {6}, {2}, {1}});
  CHECK(derivatives(0, 15) == lists{{1}, {1}, {1}, {1}});
}

TEST_CASE("gradients: an output that nothing depends on counts as zeros") {
  weft::graph graph;
  const auto scope = graph.as_default();
  const auto x = weft::constant({1.f, 2.f, 3.f, 4.f});
  const weft::output axis{&weft::detail::add_const(weft::tensor_value::scalar(0), {}), 0};
  const weft::node& split = weft::detail::add_node("Split", {axis, x.raw()}, {}, {{"num_split", 2}});
  CHECK(values(gradients(weft::square(weft::tensor<float>(weft::output{&split, 1})), {x.raw()})) == lists{{0, 0, 6, 8}});
}

TEST_CASE("gradients: rows that are gathered stay rows") {
  weft::graph graph;
  const auto scope = graph.as_default();
  const weft::variable<float, 2> table(weft::constant({{1.f, 2.f}, {3.f, 4.f}, {5.f, 6.f}}));
  const auto rows = [&](weft::tensor_value ids) {
    const weft::output indices{&weft::detail::add_const(std::move(ids), {}), 0};
    const weft::output axis{&weft::detail::add_const(weft::tensor_value::scalar(0), {}), 0};
    return weft::tensor<float>(weft::output{&weft::detail::add_node("GatherV2", {weft::identity(table.read()).raw(), indices, axis}, {}), 0});
  };
  const auto a = rows(weft::tensor_value::from<std::int32_t>({2}, {2, 0})), b = rows(weft::tensor_value::from<std::int64_t>({1, 2}, {1, 2}));
  const auto one = gradients(weft::square(a), table);
  REQUIRE(one.is_sparse());
  CHECK(one.slices().indices.from->op() == "Const");
  weft::session session;
  session.run(weft::global_variables_initializer());
  CHECK(session.run(one) == xt::xtensor<float, 2>{{2.f, 4.f}, {0.f, 0.f}, {10.f, 12.f}});
  // Several are joined, with indices of the wider type.
  const auto both = gradients(std::tie(a, b), table);
  REQUIRE(both.is_sparse());
  const auto parts = session.run({}, {}, {both.slices().values, both.slices().indices});
  CHECK(parts[0].shape() == weft::shape{4, 2});
  CHECK(std::vector<std::int64_t>(parts[1].data<std::int64_t>(), parts[1].data<std::int64_t>() + 4) == std::vector<std::int64_t>{2, 0, 1, 2});
  CHECK(session.run(both) == xt::xtensor<float, 2>{{1.f, 1.f}, {1.f, 1.f}, {2.f, 2.f}});
  // With a dense one they become dense.
  const weft::tensor<float, 2> read = table.read();
  const auto mixed = gradients(std::tie(a, read), table);
  CHECK(!mixed.is_sparse());
  CHECK(session.run(mixed) == xt::xtensor<float, 2>{{2.f, 2.f}, {1.f, 1.f}, {2.f, 2.f}});
}
