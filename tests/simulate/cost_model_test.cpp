#include <weft/simulate/cost_model.hpp>

#include <weft/graph.hpp>

#include <doctest/doctest.h>

#include <string>

namespace {

weft::node_cost cost(const weft::output& o, std::int64_t unknown_size = 1) { return weft::cost_of(*o.from, unknown_size); }

}  // namespace

TEST_CASE("cost_model: products and convolutions count two operations per multiply-add") {
  const weft::graph g;
  const auto scope = g.as_default();
  const auto a = weft::placeholder<float, 2>({3, 4}), b = weft::placeholder<float, 2>({4, 5}), c = weft::placeholder<float, 2>({5, 4}), open = weft::placeholder<float, 2>({weft::unknown, 4});
  CHECK(cost(weft::matmul(a, b).raw()).flops == 2 * 3 * 4 * 5);
  CHECK(cost(weft::matmul(a, b).raw()).bytes == 4 * (12 + 20 + 15));
  CHECK(cost(weft::matmul(a, c, weft::transpose_b).raw()).flops == 2 * 3 * 4 * 5);
  CHECK(cost(weft::matmul(open, b).raw(), 64).flops == 2 * 64 * 4 * 5);
  const auto images = weft::placeholder<float, 4>({2, 8, 8, 3}), filters = weft::placeholder<float, 4>({3, 3, 3, 16});
  CHECK(cost(weft::conv2d(images, filters, 1, weft::same_padding).raw()).flops == 2.0 * (2 * 8 * 8 * 16) * (3 * 3 * 3));
}

TEST_CASE("cost_model: elementwise work goes by the elements, and handing on costs nothing") {
  const weft::graph g;
  const auto scope = g.as_default();
  const auto x = weft::placeholder<float, 1>({1000});
  CHECK(cost((x + x).raw()).flops == 1000);
  CHECK(cost((x + x).raw()).bytes == 12000);
  CHECK(cost(weft::exp(x).raw()).flops == 10000);
  CHECK(cost(weft::identity(x).raw()).bytes == 0);
  CHECK(cost(x.raw()).flops == 0);
}

TEST_CASE("cost_model: the slower of computing and moving bytes decides, on each task by its own speed") {
  const weft::graph g;
  const auto scope = g.as_default();
  const auto x = weft::placeholder<float, 1>({1000});
  const auto y = x + x;
  weft::cost_model model;
  model.task = {1e6, 1e9, 0.5, 0, 1};
  CHECK(model.seconds(*y.raw().from, "/job:a/task:0") == doctest::Approx(0.5 + 1e-3));
  model.tasks["/job:a/task:1"] = {1e9, 12e3, 0, 0, 1};
  CHECK(model.seconds(*y.raw().from, "/job:a/task:1") == doctest::Approx(1));
}

TEST_CASE("cost_model: it is written and read again as lines") {
  weft::cost_model model;
  model.task.processors = 3;
  model.link.latency = 0.25;
  model.tasks["/job:ps/task:0"] = model.task;
  model.tasks["/job:ps/task:0"].flops_per_second = 7;
  model.links[{"/job:ps/task:0", "/job:work/task:1"}].bytes_per_second = 5;
  const std::string text = to_text(model);
  const weft::cost_model again = weft::parse_cost_model("# speeds of a machine\n\n" + text);
  CHECK(to_text(again) == text);
  CHECK(again.speed_of("/job:ps/task:0").flops_per_second == 7);
  CHECK(again.speed_of("/job:ps/task:0").processors == 3);
  CHECK(again.speed_of("/job:ps/task:0", "/job:work/task:1").bytes_per_second == 5);
  CHECK(again.speed_of("/job:work/task:1", "/job:ps/task:0").latency == 0.25);
}

TEST_CASE("cost_model: a bad line is named") {
  const auto why = [](const char* text) {
    try {
      weft::parse_cost_model(text);
    } catch (const weft::error& e) {
      return e.status().message;
    }
    return std::string();
  };
  CHECK(why("task.flops_per_second 1e9\ntask.flops 3") == "line 2 of the cost model, 'task.flops 3': 'flops' is no speed of a task");
  CHECK(why("link.latency x") == "line 1 of the cost model, 'link.latency x': 'x' is not a number of at least 0");
  CHECK(why("link.latency -1") == "line 1 of the cost model, 'link.latency -1': '-1' is not a number of at least 0");
  CHECK(why("link.latency nan") == "line 1 of the cost model, 'link.latency nan': 'nan' is not a number of at least 0");
  CHECK(why("link.bytes_per_second 0") == "line 1 of the cost model, 'link.bytes_per_second 0': a rate is above 0");
  CHECK(why("task.processors 0") == "line 1 of the cost model, 'task.processors 0': the number of processors is from 1 to 1000000");
  CHECK(why("hello").find("expected 'task.SPEED NUMBER'") != std::string::npos);
}
