#include <weft/session/part_passes.hpp>

#include <weft/kernels/standard.hpp>
#include <weft/ops/standard.hpp>
#include <weft/session/local_session.hpp>

#include <doctest/doctest.h>
#include <weft/ops/array.hpp>
#include <weft/ops/math.hpp>
#include <weft/ops/state.hpp>
#include <weft/partition/partitioned_graph.hpp>
#include <weft/tensor/xtensor.hpp>

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

using weft::dtype;
using weft::output;
using weft::shape;
using weft::tensor_value;

namespace {

// The fetches of a step, or the error.
struct outcome {
  std::vector<tensor_value> values;
  std::string error;
};

outcome run(const weft::graph& g, const weft::step_signature& step, std::vector<tensor_value> feeds, const weft::optimizer_options& passes) {
  weft::session_options options;
  options.optimizer = passes;
  weft::local_session session(options, g);
  outcome out;
  out.values.resize(step.fetches.size());
  try {
    session.prepare(step)->run(feeds.data(), out.values.data(), {});
  } catch (const weft::error& e) {
    out.error = e.what();
    out.values.clear();
  }
  return out;
}

const weft::optimizer_options each_pass[] = {{true, false, false, false}, {false, true, false, false}, {false, false, true, false}, {false, false, false, true}, {true, true, true, true}};

// A graph of elementwise ops on values of few shapes, constants among them, some of which wait for others.
class random_graph {
 public:
  random_graph(unsigned seed, dtype type) : random_(seed), type_(type), scope_(graph.as_default()) {
    const shape shapes[] = {{40, 30}, {30}, {1, 30}, {}, {40, 1}, {1}};
    for (int i = 0; i < 9; ++i) {
      // Most of them have the common shape.
      const shape& s = shapes[i < 4 ? 0 : pick(6)];
      tensor_value v(type, s);
      for (std::int64_t k = 0; k < v.elements(); ++k) set(v, k, static_cast<double>(pick(4001) - 2000) / 500);
      if (pick(3) == 0) {
        add("Const", {}, {{"dtype", type}, {"value", v}});
      } else {
        const bool known = pick(2) == 0;
        add("Placeholder", {}, {{"dtype", type}, {"shape", known ? weft::partial_shape(s) : weft::partial_shape()}});
        step.feeds.push_back(values_.back());
        feeds.push_back(v);
      }
    }
    const char* binary[] = {"AddV2", "Sub", "Mul", "Maximum", "Minimum", "RealDiv", "SquaredDifference", "SigmoidGrad", "TanhGrad"};
    const char* unary[] = {"Neg", "Square", "Tanh", "Sigmoid", "Abs", "Exp", "Sqrt", "Identity", "Relu"};
    for (int i = 0; i < 60; ++i) {
      const bool two = pick(3) != 0;
      const char* op = two ? binary[pick(9)] : unary[pick(9)];
      std::vector<output> inputs{any()};
      if (two) inputs.push_back(any());
      std::vector<const weft::node*> wait;
      if (pick(12) == 0) wait.push_back(any().from);
      try {
        add(op, std::move(inputs), {}, std::move(wait));
      } catch (const weft::error&) {
        // The shapes do not fit; nothing was added.
      }
    }
    for (std::size_t back = 1; back < 10; back += 1 + static_cast<std::size_t>(pick(3))) step.fetches.push_back(values_[values_.size() - back]);
  }

  weft::graph graph;
  weft::step_signature step;
  std::vector<tensor_value> feeds;

 private:
  int pick(int n) { return static_cast<int>(random_() % static_cast<unsigned>(n)); }
  // Rather what was made last, so that chains come about.
  output any() {
    const std::size_t back = std::min(values_.size() - 1, static_cast<std::size_t>(pick(2) == 0 ? pick(3) : pick(200)));
    return values_[values_.size() - 1 - back];
  }
  void set(tensor_value& v, std::int64_t i, double x) const {
    if (type_ == dtype::float64) v.mutable_data<double>()[i] = x;
    else v.mutable_data<float>()[i] = static_cast<float>(x);
  }
  void add(const char* op, std::vector<output> inputs, weft::attr_map attrs, std::vector<const weft::node*> wait = {}) {
    weft::node_spec spec;
    spec.op = op;
    spec.inputs = std::move(inputs);
    spec.attrs = std::move(attrs);
    spec.control_inputs = std::move(wait);
    values_.push_back({&graph.add(std::move(spec)), 0});
  }
  std::mt19937 random_;
  dtype type_;
  weft::detail::graph_scope scope_;
  std::vector<output> values_;
};

}  // namespace

TEST_CASE("passes: random graphs give the same bits and the same errors with and without") {
  int fused = 0, folded = 0, failed = 0;
  for (unsigned seed = 0; seed < 60; ++seed) {
    CAPTURE(seed);
    random_graph r(seed, seed % 2 == 0 ? dtype::float32 : dtype::float64);
    const outcome plain = run(r.graph, r.step, r.feeds, weft::optimizer_options::none());
    for (const auto& passes : each_pass) {
      const outcome found = run(r.graph, r.step, r.feeds, passes);
      CHECK(found.error.empty() == plain.error.empty());
      CHECK(found.values == plain.values);
    }
    failed += !plain.error.empty();
    weft::local_session session({}, r.graph);
    const weft::partitioned_graph cut = session.partitions(r.step);
    for (const weft::part& p : cut.parts()) {
      const weft::graph runs = weft::detail::optimized_part(p.graph, weft::standard_kernels(), {});
      for (const weft::node* n : runs.nodes()) {
        fused += n->op() == "_Fused";
        folded += n->op() == "Const" && r.graph.find(n->name())->op() != "Const";
      }
    }
  }
  CHECK(fused > 100);
  CHECK(folded > 20);
  CHECK(failed < 40);
}

TEST_CASE("passes: an error in a fused node names the user's node and line") {
  const weft::graph g;
  const auto scope = g.as_default();
  const auto x = weft::placeholder<float>("x"), y = weft::placeholder<float>("y");
  const auto product = weft::multiply(x, y, "product");
  const auto sum = weft::add(product, x, "sum");
  const std::vector<tensor_value> feeds{tensor_value(dtype::float32, shape{2}), tensor_value(dtype::float32, shape{3})};
  const weft::step_signature step{{x.raw(), y.raw()}, {sum.raw()}, {}};
  const outcome plain = run(g, step, feeds, weft::optimizer_options::none()), fused = run(g, step, feeds, {});
  CHECK(fused.error == plain.error);
  CHECK(fused.error.find("Mul 'product' (part_passes_test.cpp:") != std::string::npos);
}

TEST_CASE("passes: what is read from a variable is not overwritten, and state is not folded") {
  const weft::graph g;
  const auto scope = g.as_default();
  const weft::variable<float, 1> v(std::vector<float>{1, 2}, "v");
  const auto x = v.read();
  const auto y = weft::add(weft::multiply(x, x), x, "y");
  weft::local_session session({}, g);
  session.run(weft::global_variables_initializer());
  for (int i = 0; i < 2; ++i) CHECK(session.run(y) == xt::xtensor<float, 1>{2, 6});
  CHECK(session.run(v) == xt::xtensor<float, 1>{1, 2});
}
