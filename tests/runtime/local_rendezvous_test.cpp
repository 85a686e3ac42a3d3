#include <weft/runtime/local_rendezvous.hpp>

#include <doctest/doctest.h>

#include <atomic>
#include <thread>
#include <vector>

using weft::error_code;
using weft::local_rendezvous;
using weft::status;
using weft::tensor_value;

namespace {

struct answer {
  int calls = 0;
  status why;
  tensor_value value;
  bool is_dead = false;
  weft::rendezvous::receiver receiver() {
    return [this](const status& s, tensor_value v, bool dead) {
      ++calls;
      why = s;
      value = std::move(v);
      is_dead = dead;
    };
  }
};

}  // namespace

TEST_CASE("local_rendezvous: a value meets its receiver in either order") {
  local_rendezvous meet;
  answer early, late;
  meet.receive({1, 0}, early.receiver());
  CHECK(early.calls == 0);
  CHECK(meet.send({1, 0}, tensor_value::scalar(1.5f), false).ok());
  CHECK(early.calls == 1);
  CHECK(early.value.item<float>() == 1.5f);
  CHECK(meet.send({2, 0}, tensor_value::scalar(2.5f), true).ok());
  meet.receive({2, 0}, late.receiver());
  CHECK(late.calls == 1);
  CHECK(late.value.item<float>() == 2.5f);
  CHECK(late.is_dead);
}

TEST_CASE("local_rendezvous: edges and iterations are apart") {
  local_rendezvous meet;
  for (int edge = 0; edge < 40; ++edge)
    for (int iteration = 0; iteration < 5; ++iteration) CHECK(meet.send({edge, iteration}, tensor_value::scalar(edge * 100 + iteration), false).ok());
  for (int edge = 0; edge < 40; ++edge)
    for (int iteration = 0; iteration < 5; ++iteration) {
      answer a;
      meet.receive({edge, iteration}, a.receiver());
      REQUIRE(a.calls == 1);
      CHECK(a.value.item<std::int32_t>() == edge * 100 + iteration);
    }
}

TEST_CASE("local_rendezvous: a long loop leaves nothing behind") {
  local_rendezvous meet;
  answer a;
  for (int i = 0; i < 100000; ++i) {
    meet.receive({7, i}, a.receiver());
    meet.send({7, i}, tensor_value::scalar(i), false);
  }
  CHECK(a.calls == 100000);
  CHECK(a.value.item<std::int32_t>() == 99999);
}

TEST_CASE("local_rendezvous: an edge is sent and received once per step") {
  local_rendezvous meet;
  CHECK(meet.send({1, 0}, tensor_value::scalar(1), false).ok());
  CHECK(meet.send({1, 0}, tensor_value::scalar(1), false).message == "edge 1 was sent twice in one step");
  answer one, two;
  meet.receive({2, 0}, one.receiver());
  meet.receive({2, 0}, two.receiver());
  CHECK(one.calls == 0);
  CHECK(two.calls == 1);
  CHECK(two.why.message == "edge 2 is received twice in one step");
  meet.abort(status(error_code::cancelled, "end"));
}

TEST_CASE("local_rendezvous: abort fails what waits and what comes, with the first reason") {
  local_rendezvous meet;
  answer waiting, later;
  meet.receive({1, 0}, waiting.receiver());
  meet.send({2, 0}, tensor_value::scalar(1), false);
  meet.abort(status(error_code::unavailable, "the peer is gone"));
  meet.abort(status(error_code::internal, "something else"));
  CHECK(waiting.calls == 1);
  CHECK(waiting.why.message == "the peer is gone");
  CHECK(meet.send({3, 0}, tensor_value::scalar(1), false).message == "the peer is gone");
  meet.receive({2, 0}, later.receiver());
  CHECK(later.why.code == error_code::unavailable);
}

TEST_CASE("local_rendezvous: after reset it serves another step") {
  local_rendezvous meet;
  meet.send({1, 0}, tensor_value::scalar(1), false);
  meet.abort(status(error_code::cancelled, "end"));
  meet.reset();
  answer a;
  meet.receive({1, 0}, a.receiver());
  CHECK(a.calls == 0);
  CHECK(meet.send({1, 0}, tensor_value::scalar(2), false).ok());
  CHECK(a.value.item<std::int32_t>() == 2);
  meet.send({1, 0}, tensor_value::scalar(3), false);
  meet.reset();
  CHECK(meet.send({1, 0}, tensor_value::scalar(4), false).ok());
}

TEST_CASE("local_rendezvous: many edges from several threads") {
  local_rendezvous meet;
  std::atomic<int> sum{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 2; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < 2000; ++i) meet.send({t * 2000 + i, 0}, tensor_value::scalar(1), false);
    });
    threads.emplace_back([&, t] {
      for (int i = 0; i < 2000; ++i)
        meet.receive({t * 2000 + i, 0}, [&](const status& s, const tensor_value& v, bool) { sum += s.ok() ? v.item<std::int32_t>() : 0; });
    });
  }
  for (auto& t : threads) t.join();
  CHECK(sum == 4000);
}
