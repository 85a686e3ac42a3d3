#include <weft/cluster/remote_rendezvous.hpp>

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

using weft::dtype;
using weft::error_code;
using weft::part_edge;
using weft::status;
using weft::task_id;
using weft::tensor_value;

namespace {

const task_id peer{"ps", 0};

struct recording_outlet : weft::tensor_outlet {
  void push(const weft::step_id&, const weft::rendezvous_key& key, tensor_value value, bool is_dead, bool bulk) override {
    pushed.push_back(std::to_string(key.edge) + (bulk ? " bulk" : " small") + (is_dead ? " dead" : " " + std::to_string(static_cast<int>(value.item<float>()))));
  }
  std::shared_ptr<const void> hold(const weft::step_id&, std::size_t) override {
    if (room.use_count() > most) weft::fail(error_code::resource_exhausted, "no room");
    return room;
  }
  std::vector<std::string> pushed;
  // Values that may wait for the other task.
  long most = 2;
  const std::shared_ptr<const int> room = std::make_shared<const int>(0);
};

// Edge 1 stays here, 2 comes from the peer, 3 goes there small, 4 goes there and may be large.
struct fixture {
  std::vector<part_edge> edges{{1, part_edge::direction::inside, {}, dtype::float32, false},
                               {2, part_edge::direction::incoming, peer, dtype::float32, false},
                               {3, part_edge::direction::outgoing, peer, dtype::float32, false},
                               {4, part_edge::direction::outgoing, peer, dtype::float32, true}};
  std::shared_ptr<recording_outlet> outlet = std::make_shared<recording_outlet>();
  std::vector<status> aborts;
  weft::remote_rendezvous meets{{1, 1}, edges, {{peer, outlet}}, [this](const status& why) { aborts.push_back(why); }};

  std::string received;
  weft::rendezvous::receiver receiver() {
    return [this](const status& s, tensor_value value, bool is_dead) { received = !s.ok() ? s.message + (s.derived ? " (derived)" : "") : is_dead ? "dead" : std::to_string(static_cast<int>(value.item<float>())); };
  }
};

tensor_value number(float v) { return tensor_value::scalar(v); }

}  // namespace

TEST_CASE_FIXTURE(fixture, "remote_rendezvous: values meet their receivers in either order") {
  CHECK(meets.send({1, 0}, number(5), false).ok());
  meets.receive({1, 0}, receiver());
  CHECK(received == "5");
  meets.receive({2, 0}, receiver());
  CHECK(received == "5");
  meets.deliver(peer, {2, 0}, number(6), false, nullptr);
  CHECK(received == "6");
}

TEST_CASE_FIXTURE(fixture, "remote_rendezvous: iterations are apart, dead values pass") {
  meets.deliver(peer, {2, 7}, tensor_value(), true, nullptr);
  meets.deliver(peer, {2, 8}, number(8), false, nullptr);
  meets.receive({2, 8}, receiver());
  CHECK(received == "8");
  meets.receive({2, 7}, receiver());
  CHECK(received == "dead");
}

TEST_CASE_FIXTURE(fixture, "remote_rendezvous: small tensors go at once, large ones when the receiver is ready") {
  CHECK(meets.send({4, 0}, number(4), false).ok());
  CHECK(meets.send({3, 0}, number(3), false).ok());
  CHECK(outlet->pushed == std::vector<std::string>{"3 small 3"});
  CHECK(meets.holds_back());
  CHECK(meets.open_with(peer));
  meets.peer_ready(peer);
  CHECK(outlet->pushed == std::vector<std::string>{"3 small 3", "4 bulk 4"});
  CHECK_FALSE(meets.holds_back());
  CHECK(meets.send({4, 1}, number(9), false).ok());
  CHECK(outlet->pushed.back() == "4 bulk 9");
}

TEST_CASE_FIXTURE(fixture, "remote_rendezvous: large tensors wait for their receiver only as far as there is room, which is free again when they go or are dropped") {
  CHECK(meets.send({4, 0}, number(1), false).ok());
  CHECK(meets.send({4, 1}, number(2), false).ok());
  CHECK(meets.send({4, 2}, number(3), false).code == error_code::resource_exhausted);
  CHECK(outlet->room.use_count() == 3);
  meets.peer_ready(peer);
  CHECK(outlet->pushed == std::vector<std::string>{"4 bulk 1", "4 bulk 2"});
  CHECK(outlet->room.use_count() == 1);
  weft::remote_rendezvous next({1, 2}, edges, {{peer, outlet}}, nullptr);
  CHECK(next.send({4, 0}, number(1), false).ok());
  CHECK(outlet->room.use_count() == 2);
  next.abort(status(error_code::cancelled, "over"));
  CHECK(outlet->room.use_count() == 1);
}

TEST_CASE_FIXTURE(fixture, "remote_rendezvous: an abort ends whoever waits and is told once") {
  meets.receive({2, 0}, receiver());
  meets.abort(status(error_code::unavailable, "the task is gone"));
  meets.abort(status(error_code::cancelled, "later"));
  CHECK(received == "the task is gone (derived)");
  REQUIRE(aborts.size() == 1);
  CHECK(aborts[0].message == "the task is gone");
  CHECK(meets.send({3, 0}, number(3), false).message == "the task is gone");
  meets.receive({1, 0}, receiver());
  CHECK(received == "the task is gone (derived)");
  CHECK_FALSE(meets.open_with(peer));
}

TEST_CASE_FIXTURE(fixture, "remote_rendezvous: what does not belong to the step aborts it") {
  SUBCASE("another edge") {
    meets.deliver(peer, {9, 0}, number(1), false, nullptr);
    CHECK(aborts.at(0).message == "step 1 has no edge 9 here that /job:ps/task:0 could send");
  }
  SUBCASE("another task") {
    meets.deliver({"work", 1}, {2, 0}, number(1), false, nullptr);
    CHECK(aborts.at(0).message == "step 1 has no edge 2 here that /job:work/task:1 could send");
  }
  SUBCASE("another dtype") {
    meets.deliver(peer, {2, 0}, tensor_value::scalar(1.0), false, nullptr);
    CHECK(aborts.at(0).message == "edge 2 carries float, but /job:ps/task:0 sent double");
  }
  SUBCASE("twice") {
    meets.deliver(peer, {2, 0}, number(1), false, nullptr);
    meets.deliver(peer, {2, 0}, number(1), false, nullptr);
    CHECK(aborts.at(0).message == "edge 2 got a second value in iteration 0");
  }
}
