#include <weft/train/hooks.hpp>

#include "../format/file_test_support.hpp"

#include <weft/graph.hpp>
#include <weft/session/local_session.hpp>
#include <weft/tensor/xtensor.hpp>
#include <weft/train/monitored_session.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

namespace {

struct model {
  model() {
    const auto scope = graph.as_default();
    step = weft::create_global_step();
    x = weft::placeholder<float, 0>("x");
    loss = weft::log(x);
    train = weft::group({step.assign_add(weft::constant(std::int64_t(1)))});
  }
  // Steps with these losses' inputs; the first error's text.
  std::string run(std::vector<std::shared_ptr<weft::session_hook>> hooks, const std::vector<float>& inputs) {
    weft::monitored_session_options options;
    options.hooks = std::move(hooks);
    try {
      weft::monitored_session session([this] { return std::make_unique<weft::local_session>(weft::session_options(), graph); }, options, graph);
      for (const float v : inputs) {
        if (session.should_stop()) break;
        session.run({{x, v}}, loss, train);
        ++steps;
      }
    } catch (const weft::error& e) {
      return e.message();
    }
    return "";
  }
  weft::graph graph;
  weft::variable<std::int64_t, 0> step;
  weft::tensor<float, 0> x, loss;
  weft::operation train;
  int steps = 0;
};

}  // namespace

TEST_CASE("hooks: a loss that is not a number fails the step or stops") {
  model fails;
  const std::string why = fails.run({std::make_shared<weft::nan_hook>(fails.loss)}, {1, 2, -1, 1});
  CHECK(why.find("the loss is not a number at step ") == 0);
  CHECK(fails.steps == 2);
  model stops;
  CHECK(stops.run({std::make_shared<weft::nan_hook>(stops.loss, weft::nan_loss::stop)}, {1, -1, 1, 1}).empty());
  CHECK(stops.steps == 2);
}

TEST_CASE("hooks: values and the speed are logged, each so many steps") {
  model m;
  std::vector<std::string> lines, rates;
  const auto log = std::make_shared<weft::logging_hook>(std::vector<std::pair<std::string, weft::output>>{{"loss", m.loss.raw()}, {"x", m.x.raw()}}, 3, [&](std::string_view l) { lines.emplace_back(l); });
  const auto counter = std::make_shared<weft::step_counter_hook>(4, [&](std::string_view l) { rates.emplace_back(l); });
  CHECK(m.run({log, counter}, {1, 1, 1, 1, 1, 1, 1, 1, 1, 1}).empty());
  REQUIRE(lines.size() >= 3);
  CHECK(lines[0].find(": loss = 0, x = 1") != std::string::npos);
  CHECK(lines[0].find("step ") == 0);
  REQUIRE(rates.size() >= 1);
  CHECK(rates[0].find("steps/s: ") == 0);
  CHECK(counter->steps_per_second() > 0);
}

TEST_CASE("hooks: scalars go to an event file") {
  const file_test::folder dir;
  model m;
  CHECK(m.run({std::make_shared<weft::summary_hook>(dir / "run", std::vector<std::pair<std::string, weft::output>>{{"loss", m.loss.raw()}}, 2)}, {1, 1, 1, 1, 1}).empty());
  const auto files = weft::detail::names_in_folder(dir / "run");
  const auto is_events = [](const std::string& f) { return f.find("events.out.tfevents.") == 0; };
  REQUIRE(std::count_if(files.begin(), files.end(), is_events) == 1);
  const std::string events = file_test::get(dir / ("run/" + *std::find_if(files.begin(), files.end(), is_events)));
  std::size_t found = 0;
  for (auto at = events.find("loss"); at != std::string::npos; at = events.find("loss", at + 1)) ++found;
  CHECK(found >= 2);
  CHECK(events.find("brain.Event:2") == 23);
}

TEST_CASE("hooks: how a step went goes to a file, each so many steps") {
  const file_test::folder dir;
  model m;
  CHECK(m.run({std::make_shared<weft::profile_hook>(dir / "run", 2)}, {1, 1, 1, 1, 1}).empty());
  std::vector<std::string> files;
  for (const std::string& f : weft::detail::names_in_folder(dir / "run"))
    if (f.find("timeline-") == 0) files.push_back(f);
  REQUIRE(files.size() >= 2);
  const std::string text = file_test::get(dir / ("run/" + files.back()));
  CHECK(text.find(R"({"displayTimeUnit":"ms")") == 0);
  CHECK(text.find(R"("name":"/job:localhost/task:0")") != std::string::npos);
  CHECK(text.find(R"("cat":"AssignAddVariableOp")") != std::string::npos);
}

TEST_CASE("hooks: progress is one line, with what is known; nothing where there is no terminal") {
  model m;
  std::vector<std::string> lines;
  const auto progress = std::make_shared<weft::progress_hook>(4, m.loss.raw(), [&](std::string_view l) { lines.emplace_back(l); });
  CHECK(m.run({progress, std::make_shared<weft::progress_hook>(4)}, {1, 1, 1, 1, 1}).empty());
  REQUIRE(lines.size() >= 2);
  CHECK(lines.back().find("/4  loss 0") != std::string::npos);
  CHECK(lines.back().find(" steps/s") != std::string::npos);
}
