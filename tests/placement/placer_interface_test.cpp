#include <weft/placement/placer_interface.hpp>

#include "small_world.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

using small::world;

namespace {

// Sends every group to the open device at a position from the end.
struct backwards final : weft::placer {
  std::string name() const override { return "backwards"; }
  std::vector<weft::placement_choice> choose(const weft::placement_question& question) const override {
    std::vector<weft::placement_choice> out;
    for (const weft::placement_group& g : question.groups) out.push_back({g.open->back(), ""});
    return out;
  }
};

// Gives the answer it was made with, whatever is asked.
struct fixed_answer final : weft::placer {
  explicit fixed_answer(std::vector<weft::placement_choice> a) : answer(std::move(a)) {}
  std::string name() const override { return "fixed"; }
  std::vector<weft::placement_choice> choose(const weft::placement_question&) const override { return answer; }
  std::vector<weft::placement_choice> answer;
};

}  // namespace

TEST_CASE("placer: a function chooses among what requests and kernels leave open") {
  world w;
  std::vector<std::string> asked;
  w.options.placer = weft::place_by([&](const weft::node& n, const std::vector<std::string>& open) {
    asked.push_back(n.name() + ": " + open.front() + " of " + std::to_string(open.size()));
    return n.name() == "left" ? std::string() : n.name() == "free" ? std::string("/job:ps/task:1") : open.back();
  }, "mine");
  const auto& v = w.add("VarHandleOp", "w", {}, "/job:ps");
  const auto& read = w.add("ReadVariableOp", "read", {&v});
  const auto& free = w.add("Neg", "free", {&read});
  const auto& left = w.add("Neg", "left", {&free});
  const auto& pinned = w.add("Neg", "pinned", {&left}, "/job:work/task:0");
  const auto& tied = w.add("Neg", "tied", {&left}, "", {}, {"loc:@free"});
  CHECK(w.where(v) == "/job:ps/task:1/device:CPU:0 (chosen by 'mine', within '/job:ps' pinned at train.cpp:10)");
  CHECK(asked == std::vector<std::string>{"w: /job:ps/task:0/device:CPU:0 of 2", "free: /job:work/task:1/device:CPU:0 of 4", "left: /job:work/task:1/device:CPU:0 of 4"});
  CHECK(w.where(read) == "/job:ps/task:1/device:CPU:0 (with its variable 'w')");
  CHECK(w.where(free) == "/job:ps/task:1/device:CPU:0 (chosen by 'mine')");
  CHECK(w.where(tied) == "/job:ps/task:1/device:CPU:0 (colocated with 'free')");
  CHECK(w.where(left) == "/job:work/task:1/device:CPU:0 (default device)");
  CHECK(w.where(pinned) == "/job:work/task:0/device:CPU:0 (pinned at train.cpp:14)");
}

TEST_CASE("placer: constants follow the consumers that a placer moved") {
  world w;
  w.options.placer = weft::place_by([](const weft::node& n, const std::vector<std::string>&) { return std::string(n.op() == "Neg" ? "/job:ps/task:0" : ""); });
  const auto& x = w.add("Const", "x");
  w.add("Neg", "y", {&x});
  CHECK(w.where(x) == "/job:ps/task:0/device:CPU:0 (with its consumer 'y')");
}

TEST_CASE("placer: with soft placement a placer chooses among what is left of the request") {
  world w;
  w.options.allow_soft_placement = true;
  w.options.placer = std::make_shared<const backwards>();
  const auto& x = w.add("Neg", "x", {&w.add("Const", "c")}, "/job:ps/device:GPU:0");
  CHECK(w.where(x) == "/job:ps/task:1/device:CPU:0 (chosen by 'backwards')");
}

TEST_CASE("placer: nodes of an earlier placement are not asked about again") {
  world w;
  const auto& x = w.add("Const", "x");
  const auto before = weft::place(w.graph, w.devices, w.options);
  w.options.earlier = &before;
  w.options.placer = std::make_shared<const backwards>();
  CHECK(w.where(x) == "/job:work/task:1/device:CPU:0 (default device)");
  const auto& y = w.add("Neg", "y", {&x});
  CHECK(w.where(y) == "/job:work/task:0/device:CPU:0 (chosen by 'backwards')");
}

TEST_CASE("placer: answers that cannot be met name the placer, the node and its line") {
  struct row {
    const char* answer;
    const char* error;
  };
  const std::string open = "; open to it are /job:ps/task:0/device:CPU:0, /job:ps/task:1/device:CPU:0";
  for (const row& r : {row{"/job:nosuch", "cannot go to '/job:nosuch'; open"}, row{"/job:work/task:0", "cannot go to '/job:work/task:0'; open"}, row{"/job:ps/task:7", "cannot go to '/job:ps/task:7'; open"}}) {
    world w;
    w.add("Const", "x", {}, "/job:ps");
    w.options.placer = weft::place_by([&](const weft::node&, const std::vector<std::string>&) { return std::string(r.answer); }, "mine");
    CHECK(w.failure() == "INVALID_ARGUMENT: Const 'x' (train.cpp:10): placer 'mine': cannot go to '" + std::string(r.answer) + "'" + open);
  }
  world w;
  const auto& x = w.add("Const", "x", {}, "/job:ps");
  w.options.placer = weft::place_by([&](const weft::node&, const std::vector<std::string>&) { return std::string("nonsense"); });
  CHECK(w.failure().find("INVALID_ARGUMENT: Const 'x' (train.cpp:10): placer 'function': device string 'nonsense' is malformed") == 0);
  w.options.placer = weft::place_by([&](const weft::node&, const std::vector<std::string>&) -> std::string { throw std::runtime_error("out of ideas"); }, "mine");
  CHECK(w.failure() == "UNKNOWN: Const 'x' (train.cpp:10): placer 'mine': when asked for its device: out of ideas");
  w.options.placer = weft::place_by([&](const weft::node&, const std::vector<std::string>&) -> std::string { x.fail_about(weft::error_code::unavailable, "asked too early"); }, "mine");
  CHECK(w.failure() == "UNAVAILABLE: Const 'x' (train.cpp:10): placer 'mine': asked too early");

  w.options.placer = std::make_shared<const fixed_answer>(std::vector<weft::placement_choice>{});
  CHECK(w.failure() == "INVALID_ARGUMENT: placer 'fixed' answered for 0 groups of nodes, expected 1");
  w.options.placer = std::make_shared<const fixed_answer>(std::vector<weft::placement_choice>{{3, ""}});
  CHECK(w.failure() == "INVALID_ARGUMENT: Const 'x' (train.cpp:10): placer 'fixed' chose '/job:work/task:1/device:CPU:0'" + open);
  w.options.placer = std::make_shared<const fixed_answer>(std::vector<weft::placement_choice>{{99, ""}});
  CHECK(w.failure() == "INVALID_ARGUMENT: Const 'x' (train.cpp:10): placer 'fixed' chose device number 99 of 4" + open);
  CHECK_THROWS_WITH_AS(weft::place_by({}, "none"), "INVALID_ARGUMENT: place_by: the function of placer 'none' is empty", weft::error);
  // The graph is as it was.
  w.options.placer = nullptr;
  CHECK(w.where(x) == "/job:ps/task:0/device:CPU:0 (pinned at train.cpp:10)");
}
