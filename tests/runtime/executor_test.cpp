#include <weft/runtime/executor.hpp>

#include "part_builder.hpp"

#include <doctest/doctest.h>

#include <atomic>
#include <stdexcept>
#include <thread>

using namespace part_test;
using weft::error_code;
using weft::executor;
using weft::kernel_context;
using weft::status;
using weft::tensor_value;

namespace {

// Runs a step on this thread and expects success.
std::vector<tensor_value> run(executor& e, executor::step_args args) {
  std::vector<tensor_value> fetches;
  const status s = e.run(std::move(args), fetches);
  REQUIRE_MESSAGE(s.ok(), s.text());
  return fetches;
}

status run_to_error(executor& e, executor::step_args args) {
  std::vector<tensor_value> fetches(3);
  const status s = e.run(std::move(args), fetches);
  CHECK(fetches.empty());
  CHECK_FALSE(s.ok());
  return s;
}

std::unique_ptr<executor> chain(int length) {
  part_builder b;
  weft::output x = b.arg(0);
  for (int i = 0; i < length; ++i) x = b.affine("n" + std::to_string(i), x, 1, 1);
  b.fetch(x, 0);
  return b.build();
}

}  // namespace

TEST_CASE("executor: a chain of 100,000 nodes runs without recursion, again and again") {
  const auto e = chain(100000);
  CHECK(e->feed_count() == 1);
  CHECK(e->fetch_count() == 1);
  for (int i = 0; i < 3; ++i) CHECK(run(*e, with_feeds({scalar(5)})).at(0).item<float>() == 100005.0f);
  weft::thread_pool pool(1);
  outcome o;
  e->run_async(with_feeds({scalar(1)}, &pool), o.callback());
  REQUIRE(o.ended.wait());
  CHECK(o.why.ok());
  CHECK(o.fetches.at(0).item<float>() == 100001.0f);
}

TEST_CASE("executor: a diamond joins both ways once per step") {
  part_builder b;
  const auto x = b.arg(0);
  const auto left = b.affine("left", x, 2, 0), right = b.affine("right", x, 1, 3);
  const auto sum = b.add("Sum", "sum", {left, right, x, x});
  b.fetch(sum, 0);
  b.fetch(left, 1);
  const auto e = b.build();
  for (int i = 0; i < 3; ++i) {
    const auto fetches = run(*e, with_feeds({scalar(10)}));
    CHECK(fetches.at(0).item<float>() == 53.0f);  // 20 + 13 + 10 + 10
    CHECK(fetches.at(1).item<float>() == 20.0f);
  }
}

TEST_CASE("executor: control edges order nodes, also through NoOp and a constant") {
  std::vector<std::string> order;
  const auto note = [&](std::string name) {
    return [&order, name](kernel_context& c) {
      order.push_back(name);
      c.set_output(0, scalar(1));
    };
  };
  part_builder b;
  const auto last_made_first = b.call("first", {}, note("first"));
  const auto no_op = b.add("NoOp", "no_op", {}, {}, 0, {last_made_first.from});
  const auto second = b.call("second", {}, note("second"), 1, {no_op.from});
  const auto constant = b.constant("c", scalar(7), {second.from});
  const auto third = b.call("third", {constant}, [&](kernel_context& c) {
    order.push_back("third");
    c.set_output(0, c.input(0));
  });
  b.fetch(third, 0);
  b.fetch(constant, 1);
  const auto e = b.build();
  for (int i = 0; i < 2; ++i) {
    order.clear();
    const auto fetches = run(*e, with_feeds({}));
    CHECK(order == std::vector<std::string>{"first", "second", "third"});
    CHECK(fetches.at(0).item<float>() == 7.0f);
    CHECK(fetches.at(1).item<float>() == 7.0f);
  }
}

TEST_CASE("executor: a constant survives a kernel that takes it") {
  part_builder b;
  const auto c = b.constant("c", scalar(7));
  const auto taker = b.call("taker", {c}, [](kernel_context& context) {
    tensor_value mine = context.take_input(0);
    CHECK_FALSE(mine.writable());
    context.set_output(0, std::move(mine));
  });
  b.fetch(b.add("Identity", "same", {taker}), 0);
  b.fetch(b.add("Identity", "direct", {c}), 1);
  const auto e = b.build();
  for (int i = 0; i < 3; ++i) {
    const auto fetches = run(*e, with_feeds({}));
    CHECK(fetches.at(0).item<float>() == 7.0f);
    CHECK(fetches.at(1).item<float>() == 7.0f);
  }
}

TEST_CASE("executor: several outputs go to several readers and nowhere") {
  part_builder b;
  const auto split = b.call("split", {b.arg(0)}, [](kernel_context& c) {
    for (int i = 0; i < 3; ++i) c.set_output(i, scalar(c.input(0).item<float>() + static_cast<float>(i)));
  }, 3);
  const auto sum = b.add("Sum", "sum", {{split.from, 0}, {split.from, 2}, {split.from, 2}});
  b.fetch(sum, 0);
  b.fetch({split.from, 2}, 1);
  const auto e = b.build();
  for (int i = 0; i < 2; ++i) {
    const auto fetches = run(*e, with_feeds({scalar(10)}));
    CHECK(fetches.at(0).item<float>() == 34.0f);  // 10 + 12 + 12
    CHECK(fetches.at(1).item<float>() == 12.0f);
  }
}

TEST_CASE("executor: x * 0.1 + 0.3 allocates one buffer when the input is held elsewhere, none when it is not") {
  part_builder b;
  const auto x = b.arg(0);
  const auto product = b.affine("mul", x, 0.5f, 0);
  b.fetch(b.affine("add", product, 1, 0.25f), 0);
  const auto e = b.build();
  const tensor_value held = tensor_value::from<float>({3}, {1, 2, 4});
  const auto fresh = run(*e, with_feeds({held})).at(0);
  CHECK(fresh.buffer().get() != held.buffer().get());
  CHECK(held == tensor_value::from<float>({3}, {1, 2, 4}));
  CHECK(fresh == tensor_value::from<float>({3}, {0.75f, 1.25f, 2.25f}));

  tensor_value given = tensor_value::from<float>({3}, {1, 2, 4});
  const auto* storage = given.buffer().get();
  std::vector<tensor_value> feeds;
  feeds.push_back(std::move(given));
  const auto reused = run(*e, with_feeds(std::move(feeds))).at(0);
  CHECK(reused.buffer().get() == storage);
  CHECK(reused == tensor_value::from<float>({3}, {0.75f, 1.25f, 2.25f}));
}

TEST_CASE("executor: a value with two readers is written only by the last one") {
  const weft::buffer* seen[3] = {};
  part_builder b;
  const auto x = b.call("make", {}, [&](kernel_context& c) { seen[0] = c.allocate_output(0, weft::dtype::float32, {}).buffer().get(); *c.output(0).mutable_data<float>() = 1; });
  const auto reader = [&](int i) {
    return [&seen, i](kernel_context& c) {
      const float v = c.input(0).item<float>();
      tensor_value& out = c.forward_or_allocate(0, 0, weft::dtype::float32, {});
      *out.mutable_data<float>() = v + 1;
      seen[i] = out.buffer().get();
    };
  };
  b.fetch(b.call("one", {x}, reader(1)), 0);
  b.fetch(b.call("two", {x}, reader(2)), 1);
  const auto fetches = run(*b.build(), with_feeds({}));
  CHECK((seen[1] == seen[0]) != (seen[2] == seen[0]));
  CHECK(fetches.at(0).item<float>() == 2.0f);
  CHECK(fetches.at(1).item<float>() == 2.0f);
}

TEST_CASE("executor: a kernel that takes its input leaves it to nobody else") {
  part_builder b;
  const auto next = [](kernel_context& c) {
    const float* x = c.input(0).data<float>();
    tensor_value& out = c.take_or_allocate(0, 0, weft::dtype::float32, c.input(0).shape());
    *out.mutable_data<float>() = *x + 1;
  };
  const auto c = b.constant("c", scalar(7));
  b.fetch(b.call("one", {b.arg(0)}, next), 0);
  b.fetch(b.call("two", {c}, next), 1);
  const auto e = b.build();
  for (int i = 0; i < 2; ++i) {
    tensor_value given = scalar(1);
    const auto* storage = given.buffer().get();
    std::vector<tensor_value> feeds;
    feeds.push_back(std::move(given));
    const auto fetches = run(*e, with_feeds(std::move(feeds)));
    CHECK(fetches.at(0).item<float>() == 2.0f);
    CHECK(fetches.at(0).buffer().get() == storage);
    CHECK(fetches.at(1).item<float>() == 8.0f);
  }
}

TEST_CASE("executor: large outputs come from the step's buffers and go back there") {
  part_builder b;
  b.fetch(b.affine("double", b.affine("copy", b.arg(0), 1, 0), 2, 0), 0);
  b.fetch(b.affine("small", b.arg(1), 1, 1), 1);
  const auto e = b.build();
  const auto buffers = std::make_shared<weft::buffer_pool>();
  const tensor_value large = tensor_value::from<float>({1 << 18}, std::vector<float>(1 << 18, 3.0f)), small = scalar(1);
  const void* first = nullptr;
  for (int i = 0; i < 2; ++i) {
    executor::step_args args = with_feeds({large, small});
    args.buffers = buffers.get();
    const auto fetches = run(*e, std::move(args));
    CHECK(fetches.at(0).buffer()->memory() == buffers.get());
    CHECK(fetches.at(0).data<float>()[100] == 6.0f);
    CHECK(fetches.at(1).buffer()->memory() == nullptr);
    if (i == 0) first = fetches.at(0).buffer()->data();
    else CHECK(fetches.at(0).buffer()->data() == first);
  }
  CHECK(buffers->kept() == std::size_t{1} << 20);
}

TEST_CASE("executor: many threads run one executor at once") {
  part_builder b;
  const auto x = b.arg(0);
  std::vector<weft::output> sums;
  for (int i = 0; i < 8; ++i) {
    const std::string n = std::to_string(i);
    const auto heavy = b.heavy("heavy" + n, {x}, [](kernel_context& c) { c.set_output(0, scalar(c.input(0).item<float>() * 2)); });
    sums.push_back(b.affine("plus" + n, heavy, 1, static_cast<float>(i)));
  }
  b.fetch(b.add("Sum", "sum", sums), 0);
  const auto e = b.build();
  weft::thread_pool pool(2);
  std::atomic<int> right{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      for (int i = 0; i < 100; ++i) {
        std::vector<tensor_value> fetches;
        const float v = static_cast<float>(t * 1000 + i);
        if (e->run(with_feeds({scalar(v)}, &pool), fetches).ok() && fetches.at(0).item<float>() == 16 * v + 28) ++right;
        outcome o;
        e->run_async(with_feeds({scalar(v)}, &pool), o.callback());
        if (o.ended.wait() && o.why.ok() && o.fetches.at(0).item<float>() == 16 * v + 28) ++right;
      }
    });
  for (auto& t : threads) t.join();
  CHECK(right == 800);
}

TEST_CASE("executor: an error names node, op, line, device and task") {
  part_builder b;
  const auto bad = b.call("tower/mul", {b.arg(0)}, [](kernel_context& c) { c.fail("inner dimensions 3 and 4 differ"); });
  bool after = false;
  b.fetch(b.call("after", {bad}, [&](kernel_context&) { after = true; }), 0);
  const auto e = b.build();
  const status s = run_to_error(*e, with_feeds({scalar(1)}));
  CHECK(s.text() == "INVALID_ARGUMENT: Call 'tower/mul' (train.cpp:42) on /job:work/task:1/device:CPU:0 (127.0.0.1:33335): inner dimensions 3 and 4 differ");
  CHECK(s.task == "/job:work/task:1 (127.0.0.1:33335)");
  CHECK_FALSE(s.derived);
  CHECK_FALSE(after);
}

TEST_CASE("executor: after a failed step the next one finds nothing of it") {
  bool fails = true;
  part_builder b;
  const auto x = b.arg(0);
  const auto maybe = b.call("maybe", {x}, [&](kernel_context& c) {
    if (fails) c.fail("not now");
    c.set_output(0, c.input(0));
  });
  const auto other = b.affine("other", x, 1, 1);
  b.fetch(b.add("Sum", "sum", {maybe, other, x}), 0);
  const auto e = b.build();
  for (int i = 0; i < 3; ++i) {
    fails = true;
    CHECK(run_to_error(*e, with_feeds({scalar(1)})).message == "not now");
    fails = false;
    CHECK(run(*e, with_feeds({scalar(1)})).at(0).item<float>() == 4.0f);
  }
}

TEST_CASE("executor: any exception becomes a status") {
  const auto outcome_of = [](function f) {
    part_builder b;
    b.call("bad", {}, std::move(f));
    return run_to_error(*b.build(), with_feeds({}));
  };
  CHECK(outcome_of([](kernel_context&) { throw std::bad_alloc(); }).code == error_code::resource_exhausted);
  const status s = outcome_of([](kernel_context&) { throw std::out_of_range("index 7"); });
  CHECK(s.code == error_code::internal);
  CHECK(s.message == "the kernel threw an exception: index 7");
  CHECK(outcome_of([](kernel_context&) { throw 3; }).code == error_code::internal);
  CHECK(outcome_of([](kernel_context&) {}).message == "output 0 was left without a value");
}

TEST_CASE("executor: too few feeds are an error") {
  const auto e = chain(1);
  CHECK(run_to_error(*e, with_feeds({})).message == "the part takes 1 feeds, found 0");
  outcome o;
  e->run_async(with_feeds({}), o.callback());
  REQUIRE(o.ended.wait());
  CHECK(o.why.code == error_code::invalid_argument);
  CHECK(run(*e, with_feeds({scalar(1)})).at(0).item<float>() == 2.0f);
}

TEST_CASE("executor: the first root error wins over what follows from it") {
  weft::kernel_done later;
  part_builder b;
  b.async("pending", {}, [&](kernel_context&, weft::kernel_done done) { later = std::move(done); });
  b.call("root", {b.arg(0)}, [](kernel_context& c) { c.fail("the reason"); });
  const auto e = b.build();
  executor::step_args args = with_feeds({scalar(1)});
  std::vector<std::string> told;
  args.on_error = [&](const status& s) { told.push_back(s.message); };
  outcome o;
  e->run_async(std::move(args), o.callback());
  CHECK(told == std::vector<std::string>{"the reason"});
  CHECK(o.calls == 0);  // a kernel is still running
  later(status(error_code::cancelled, "because of something else"));
  REQUIRE(o.ended.wait());
  CHECK(o.calls == 1);
  CHECK(o.why.message == "the reason");
  CHECK(o.why.node == "root");
  CHECK(o.fetches.empty());
}

TEST_CASE("executor: a root error replaces a derived one") {
  weft::kernel_done later;
  part_builder b;
  b.async("pending", {}, [&](kernel_context&, weft::kernel_done done) { later = std::move(done); });
  b.async("derived", {b.arg(0)}, [](kernel_context&, weft::kernel_done done) {
    status s(error_code::cancelled, "the step was aborted");
    s.derived = true;
    done(s);
  });
  const auto e = b.build();
  outcome o;
  e->run_async(with_feeds({scalar(1)}), o.callback());
  later(status(error_code::internal, "the disk is full"));
  REQUIRE(o.ended.wait());
  CHECK(o.why.message == "the disk is full");
  CHECK_FALSE(o.why.derived);
}

TEST_CASE("executor: nothing starts once a step is cancelled") {
  weft::cancellation_source source;
  bool after = false;
  part_builder b;
  const auto x = b.call("cancels", {}, [&](kernel_context& c) {
    CHECK_FALSE(c.environment().cancellation.cancelled());
    source.cancel(status(error_code::cancelled, "the user left"));
    c.set_output(0, scalar(1));
  });
  b.call("after", {x}, [&](kernel_context&) { after = true; });
  const auto e = b.build();
  executor::step_args args = with_feeds({});
  args.cancellation = source.token();
  const status s = run_to_error(*e, std::move(args));
  CHECK(s.text() == "CANCELLED: the user left");
  CHECK_FALSE(after);
}

TEST_CASE("executor: cancellation ends a step whose work waits for a busy pool") {
  event release, busy;
  weft::thread_pool pool(1);
  pool.schedule([&] {
    busy.set();
    release.wait();
  });
  REQUIRE(busy.wait());
  std::atomic<int> ran{0};
  part_builder b;
  b.heavy("one", {}, [&](kernel_context& c) { ++ran; c.set_output(0, scalar(1)); });
  b.heavy("two", {}, [&](kernel_context& c) { ++ran; c.set_output(0, scalar(1)); });
  const auto e = b.build();
  weft::cancellation_source source;
  executor::step_args args = with_feeds({}, &pool);
  args.cancellation = source.token();
  outcome o;
  e->run_async(std::move(args), o.callback());
  CHECK(o.calls == 0);
  source.cancel(status(error_code::deadline_exceeded, "too late"));
  REQUIRE(o.ended.wait());
  CHECK(o.why.code == error_code::deadline_exceeded);
  CHECK(ran == 0);
  release.set();
}

TEST_CASE("executor: asynchronous kernels hold no thread and may answer on any") {
  std::mutex mutex;
  std::vector<std::pair<kernel_context*, weft::kernel_done>> waiting;
  part_builder b;
  const auto x = b.arg(0);
  std::vector<weft::output> ends;
  for (int i = 0; i < 4; ++i)
    ends.push_back(b.affine("after" + std::to_string(i), b.async("wait" + std::to_string(i), {x}, [&](kernel_context& c, weft::kernel_done done) {
      const std::lock_guard<std::mutex> lock(mutex);
      waiting.emplace_back(&c, std::move(done));
    }), 1, 1));
  b.fetch(b.add("Sum", "sum", ends), 0);
  const auto e = b.build();
  weft::thread_pool pool(1);
  for (weft::thread_pool* p : {static_cast<weft::thread_pool*>(nullptr), &pool})
    for (int round = 0; round < 20; ++round) {
      waiting.clear();
      outcome o;
      e->run_async(with_feeds({scalar(10)}, p), o.callback());
      CHECK(o.calls == 0);
      REQUIRE(waiting.size() == 4);
      std::vector<std::thread> threads;
      for (auto& w : waiting)
        threads.emplace_back([&w] {
          w.first->set_output(0, scalar(w.first->input(0).item<float>() * 2));
          w.second(status());
        });
      for (auto& t : threads) t.join();
      REQUIRE(o.ended.wait());
      CHECK(o.fetches.at(0).item<float>() == 84.0f);
    }
}

TEST_CASE("executor: a chain of asynchronous kernels that answer at once does not nest") {
  part_builder b;
  weft::output x = b.arg(0);
  for (int i = 0; i < 20000; ++i)
    x = b.async("n" + std::to_string(i), {x}, [](kernel_context& c, weft::kernel_done done) {
      c.set_output(0, scalar(c.input(0).item<float>() + 1));
      done(status());
    });
  b.fetch(x, 0);
  const auto e = b.build();
  CHECK(run(*e, with_feeds({scalar(0)})).at(0).item<float>() == 20000.0f);
}

TEST_CASE("executor: the caller of run waits for an answer from another thread") {
  std::thread other;
  part_builder b;
  const auto x = b.async("wait", {b.arg(0)}, [&](kernel_context& c, weft::kernel_done done) {
    other = std::thread([&c, done] {
      c.set_output(0, scalar(c.input(0).item<float>() + 1));
      done(status());
    });
  });
  b.fetch(b.heavy("after", {x}, [](kernel_context& c) { c.set_output(0, scalar(c.input(0).item<float>() * 2)); }), 0);
  const auto e = b.build();
  weft::thread_pool pool(1);
  for (int i = 0; i < 50; ++i) {
    CHECK(run(*e, with_feeds({scalar(1)}, &pool)).at(0).item<float>() == 4.0f);
    other.join();
  }
}

TEST_CASE("executor: a kernel that throws instead of answering fails the step") {
  part_builder b;
  b.async("bad", {}, [](kernel_context& c, const weft::kernel_done&) { c.fail("no queue"); });
  CHECK(run_to_error(*b.build(), with_feeds({})).message == "no queue");
}

TEST_CASE("executor: values cross inside a part whether sent or asked for first") {
  for (const bool late : {false, true}) {
    part_builder b;
    const auto x = b.arg(0);
    const auto y = b.affine("y", x, 2, 0);
    b.send("send", y, 3);
    const auto received = late ? b.receive("recv", 3, {b.affine("z", y, 1, 0).from}) : b.receive("recv", 3);
    b.fetch(b.affine("w", received, 1, 1), 0);
    const auto e = b.build();
    for (int i = 0; i < 3; ++i) CHECK(run(*e, with_feeds({scalar(5)})).at(0).item<float>() == 11.0f);
  }
}

TEST_CASE("executor: two parts meet at a rendezvous, in either order") {
  part_builder sender, receiver;
  sender.send("send", sender.affine("y", sender.arg(0), 2, 0), 9);
  receiver.fetch(receiver.affine("w", receiver.receive("recv", 9), 1, 1), 0);
  const auto s = sender.build(), r = receiver.build();
  for (const bool receive_first : {true, false}) {
    weft::local_rendezvous meet;
    outcome sent, got;
    executor::step_args args = with_feeds({scalar(5)}), receiving;
    args.rendezvous = receiving.rendezvous = &meet;
    if (receive_first) r->run_async(std::move(receiving), got.callback());
    s->run_async(std::move(args), sent.callback());
    if (!receive_first) r->run_async(std::move(receiving), got.callback());
    REQUIRE(sent.ended.wait());
    REQUIRE(got.ended.wait());
    CHECK(got.fetches.at(0).item<float>() == 11.0f);
  }
}

TEST_CASE("executor: the first error ends pending receives through the rendezvous") {
  part_builder b;
  const auto never = b.receive("recv", 1);
  b.fetch(never, 0);
  b.call("bad", {b.arg(0)}, [](kernel_context& c) { c.fail("the reason"); });
  const auto e = b.build();
  CHECK(run_to_error(*e, with_feeds({scalar(1)})).message == "the reason");
  CHECK(run_to_error(*e, with_feeds({scalar(1)})).message == "the reason");
}

TEST_CASE("executor: an aborted rendezvous fails the step with its own reason") {
  part_builder b;
  b.fetch(b.receive("recv", 1), 0);
  const auto e = b.build();
  weft::local_rendezvous meet;
  executor::step_args args;
  args.rendezvous = &meet;
  outcome o;
  e->run_async(std::move(args), o.callback());
  CHECK(o.calls == 0);
  status lost(error_code::unavailable, "/job:ps/task:0 (127.0.0.1:33331) closed the connection");
  lost.derived = true;
  meet.abort(lost);
  REQUIRE(o.ended.wait());
  CHECK(o.why.text() == "UNAVAILABLE: /job:ps/task:0 (127.0.0.1:33331) closed the connection");
  CHECK(o.why.derived);
}

TEST_CASE("executor: expensive kernels run side by side, on the caller and the pool") {
  event first, second;
  part_builder b;
  const auto meet = [](event& mine, event& other) {
    return [&mine, &other](kernel_context& c) {
      mine.set();
      if (!other.wait()) c.fail("the other kernel did not start");
      c.set_output(0, scalar(1));
    };
  };
  b.heavy("one", {}, meet(first, second));
  b.heavy("two", {}, meet(second, first));
  const auto e = b.build();
  weft::thread_pool pool(1);
  run(*e, with_feeds({}, &pool));
}

TEST_CASE("executor: a kernel that runs a step itself needs no second thread") {
  weft::thread_pool pool(1);
  const auto inner = chain(10);
  part_builder nested;
  const auto through = [&](kernel_context& c) {
    CHECK(c.pool()->on_pool_thread());
    const weft::thread_pool::blocking elsewhere(c.pool());
    std::vector<tensor_value> fetches;
    outcome o;
    inner->run_async(with_feeds({c.input(0)}, &pool), o.callback());
    if (!o.ended.wait()) c.fail("the inner step did not end");
    c.set_output(0, o.fetches.at(0));
  };
  nested.fetch(nested.heavy("nested", {nested.arg(0)}, through), 0);
  const auto e = nested.build();
  outcome o;
  e->run_async(with_feeds({scalar(1)}, &pool), o.callback());
  REQUIRE(o.ended.wait());
  CHECK(o.why.ok());
  CHECK(o.fetches.at(0).item<float>() == 11.0f);
}

TEST_CASE("executor: a thread that starts a step runs a bounded number of nodes") {
  const auto here = std::this_thread::get_id();
  std::atomic<int> on_caller{0}, elsewhere{0};
  part_builder b;
  weft::output x = b.arg(0);
  for (int i = 0; i < 5000; ++i)
    x = b.call("n" + std::to_string(i), {x}, [&, here](kernel_context& c) {
      ++(std::this_thread::get_id() == here ? on_caller : elsewhere);
      c.set_output(0, c.take_input(0));
    });
  b.fetch(x, 0);
  const auto e = b.build();
  weft::thread_pool pool(1);
  outcome o;
  e->run_async(with_feeds({scalar(1)}, &pool), o.callback());
  REQUIRE(o.ended.wait());
  CHECK(o.fetches.at(0).item<float>() == 1.0f);
  CHECK(on_caller + elsewhere == 5000);
  CHECK(on_caller > 0);
  CHECK(on_caller <= 1000);
}

TEST_CASE("executor: a step that is asked says when its nodes ran") {
  part_builder b;
  const auto x = b.affine("n0", b.affine("n1", b.arg(0), 1, 1), 1, 1);
  b.send("send", b.async("n2", {x}, [](kernel_context& c, const weft::kernel_done& done) {
    c.set_output(0, c.input(0));
    done(status());
  }), 1);
  b.fetch(b.receive("recv", 1), 0);
  const auto e = b.build();
  for (int i = 0; i < 2; ++i) {
    weft::step_statistics asked;
    executor::step_args args = with_feeds({scalar(1)});
    args.statistics = &asked;
    run(*e, std::move(args));
    const auto nodes = asked.take();
    REQUIRE(nodes.size() == 5);
    CHECK(nodes[0].about->name() == "n1");
    CHECK(nodes[1].about->name() == "n0");
    CHECK(nodes[2].about->name() == "n2");
    CHECK(nodes[3].about->name() == "recv");
    CHECK(nodes[4].about->name() == "send");
    for (std::size_t k = 0; k < 5; ++k) CHECK(nodes[k].start <= nodes[k].end);
    CHECK(nodes[0].edge == -1);
    CHECK(nodes[3].edge == 1);
    CHECK(nodes[4].edge == 1);
    CHECK(nodes[3].bytes == 4);
    CHECK(nodes[4].bytes == 4);
    CHECK(nodes[0].end <= nodes[1].start);
    CHECK(nodes[1].end <= nodes[2].start);
    CHECK(nodes[3].start <= nodes[0].start);  // asked for before anything else starts
  }
}

TEST_CASE("executor: a node without a kernel is refused when the plan is made") {
  part_builder b;
  b.add("Mystery", "m");
  try {
    b.build();
    FAIL("expected an error");
  } catch (const weft::error& e) {
    CHECK(e.code() == error_code::unimplemented);
    CHECK(e.node() == "m");
    CHECK(e.task() == "/job:work/task:1 (127.0.0.1:33335)");
    CHECK(e.device() == "/job:work/task:1/device:CPU:0");
  }
}
