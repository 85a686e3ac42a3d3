#include <weft/format/partition_json.hpp>

#include <weft/graph.hpp>

#include <doctest/doctest.h>

#include <string>

namespace {

weft::partitioned_graph two_tasks() {
  const weft::graph g;
  const auto scope = g.as_default();
  weft::tensor<float, 1> x, y;
  weft::with_device("/job:ps/task:0", [&] { x = weft::placeholder<float, 1>("x"); });
  weft::with_device("/job:work/task:0", [&] { y = weft::negative(x, "y"); });
  weft::partition_options options;
  options.fetches = {y.raw()};
  return weft::partition(g, {{"ps", 1}, {"work", 1}}, options);
}

}  // namespace

TEST_CASE("partition_json: tasks, nodes and transfers, in one line") {
  const std::string text = to_json(two_tasks(), 0);
  CHECK(text.find(R"({"parts":[{"task":"/job:ps/task:0","feeds":[],"fetches":[],"nodes":[{"name":"x","op":"Placeholder","device":"/job:ps/task:0/device:CPU:0","inputs":[],"outputs":[{"dtype":"float","shape":[-1]}]})") == 0);
  CHECK(text.find(R"("fetches":["y:0"])") != std::string::npos);
  CHECK(text.find(R"("transfers":[{"kind":"data","edge":0,"source":"x","consumers":["y"],"from":"/job:ps/task:0/device:CPU:0","to":"/job:work/task:0/device:CPU:0","dtype":"float","shape":[-1],"bytes":null,"betweenTasks":true,)") !=
        std::string::npos);
  CHECK(to_json(two_tasks(), 0) == text);
}

TEST_CASE("partition_json: indented, and of nothing") {
  CHECK(to_json(two_tasks()).find("{\n  \"parts\": [\n    {\n      \"task\": \"/job:ps/task:0\",\n") == 0);
  CHECK(to_json(weft::partitioned_graph(), 0) == R"({"parts":[],"transfers":[]})");
}
