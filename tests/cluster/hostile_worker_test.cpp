// What a master must survive: a worker that says anything but what it should. Each time the step ends with an error that names that task, or with its right value.
#include <weft/cluster/master.hpp>

#include "master_with_fake.hpp"
#include "process_counts.hpp"
#include "test_ops.hpp"

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

using fake::with_deaf_worker;
using test_ops::error_of;
using weft::error_code;
using weft::message;
using weft::message_type;
using weft::part_done_message;
using weft::part_registered_message;
using weft::run_part_message;
using weft::status;
using weft::tensor_value;
using namespace std::chrono_literals;
using namespace std::string_literals;

namespace {

const tensor_value two = tensor_value::scalar(2.f);

message done(std::int64_t step, std::vector<tensor_value> values, status result = {}, bool finished = true) { return part_done_message{step, std::move(result), finished}.encode(std::move(values)); }
message registered(std::uint64_t number, status result = {}) { return part_registered_message{number, std::move(result)}.encode(); }
message cut(message m, std::size_t by) {
  m.head.resize(m.head.size() - by);
  return m;
}
message longer(message m) {
  m.head += '\0';
  return m;
}

weft::server_options small(std::chrono::milliseconds timeout) {
  auto out = with_deaf_worker::quiet();
  out.connect_timeout = timeout;
  out.received_bytes = std::size_t{1} << 20;
  return out;
}

// A master, a task that behaves in some way, and a step that fetches 2 from it. The timeout is for what the task never says.
struct scene {
  explicit scene(const std::function<void(fake::deaf_worker&)>& behave, std::chrono::milliseconds timeout = fake::patience) : cluster(behave, small(timeout)) {
    const auto scope = g.as_default();
    weft::with_device("/job:far/task:0", [&] { y = weft::constant(1.f) + 1.f; });
    here = weft::constant(3.f) + 4.f;
    session = std::make_unique<weft::session>(cluster.server->target(), weft::session_options(), g);
    other = std::make_unique<weft::session>(cluster.server->target(), weft::session_options(), g);
  }
  // Runs the step and looks at what is left of it. What the step said.
  status run() {
    float value = 2.f;
    const status why = error_of([&] { value = session->run(weft::run_options{fake::patience}, y); });
    CHECK(value == 2.f);
    CHECK(other->run(here) == 7.f);
    CHECK(session->run(here) == 7.f);
    const auto all = cluster.server->statistics();
    CHECK(all.steps_begun == all.steps_ended);
    CHECK(process_counts::soon([&] { return cluster.server->statistics().received_bytes == 0; }));
    // What a graph says of shapes does not bind, as in TensorFlow; it is the client that expects a rank.
    if (!why.ok() && why.message.find("the handle says float of rank 0") == std::string::npos) {
      const std::string told = why.task + ": " + why.message;
      CHECK(told.find("/job:far/task:0") != std::string::npos);
      CHECK(told.find(cluster.worker.address()) != std::string::npos);
    }
    return why;
  }
  with_deaf_worker cluster;
  weft::graph g;
  weft::tensor<float, 0> y, here;
  std::unique_ptr<weft::session> session, other;
};

}  // namespace

TEST_CASE("hostile worker: whatever it says of a step, the step ends with an error that names it, or with its value") {
  using run = run_part_message;
  const status bad(error_code::internal, "made up");
  status follows = bad, nobody = bad;
  follows.derived = true;
  nobody.code = static_cast<error_code>(99);
  const struct {
    const char* what;
    std::function<std::vector<message>(const run&)> says;
    error_code code;
    const char* why;
  } cases[] = {
      {"the truth", [](const run& r) { return std::vector<message>{done(r.step, {two})}; }, error_code::ok, ""},
      {"the truth twice", [](const run& r) { return std::vector<message>{done(r.step, {two}), done(r.step, {two}), done(r.step, {tensor_value::scalar(5.f)})}; }, error_code::ok, ""},
      {"the truth, then an error", [&](const run& r) { return std::vector<message>{done(r.step, {two}), done(r.step, {}, bad)}; }, error_code::ok, ""},
      {"other steps before", [](const run& r) {
         constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
         return std::vector<message>{done(r.step + 1000, {two}), done(r.step - 1, {}), done(0, {}), done(-1, {}), done(most, {}), done(-most, {}), done(r.step, {two})};
       }, error_code::ok, ""},
      {"registrations that nobody asked for", [&](const run& r) {
         return std::vector<message>{registered(0), registered(r.registration), registered(r.registration, bad), registered(r.registration + 1), registered(UINT64_MAX, bad), done(r.step, {two})};
       }, error_code::ok, ""},
      {"that it is ready", [](const run& r) {
         std::vector<message> out;
         for (const std::uint64_t master : {std::uint64_t{0}, std::uint64_t{5}, UINT64_MAX})
           for (const std::int64_t step : {std::int64_t{-1}, r.step, r.step + 1, std::numeric_limits<std::int64_t>::max()}) out.push_back(weft::encode_ready({master, step}));
         out.push_back(done(r.step, {two}));
         return out;
       }, error_code::ok, ""},
      {"that containers are clear", [](const run& r) { return std::vector<message>{weft::encode_forget(message_type::containers_reset, 7), done(r.step, {two})}; }, error_code::ok, ""},
      {"no value", [](const run& r) { return std::vector<message>{done(r.step, {})}; }, error_code::internal, "returned 0 values, expected 1"},
      {"no value, then the truth", [](const run& r) { return std::vector<message>{done(r.step, {}), done(r.step, {two})}; }, error_code::internal, "returned 0 values, expected 1"},
      {"two values", [](const run& r) { return std::vector<message>{done(r.step, {two, two})}; }, error_code::internal, "returned 2 values, expected 1"},
      {"many values", [](const run& r) { return std::vector<message>{done(r.step, std::vector<tensor_value>(1000, two))}; }, error_code::internal, "returned 1000 values, expected 1"},
      {"another dtype", [](const run& r) { return std::vector<message>{done(r.step, {tensor_value::scalar(2.0)})}; }, error_code::internal, "returned double[], the step fetches float"},
      {"a string", [](const run& r) { return std::vector<message>{done(r.step, {tensor_value::scalar("2"s)})}; }, error_code::internal, "returned string[], the step fetches float"},
      {"another shape", [](const run& r) { return std::vector<message>{done(r.step, {tensor_value::from<float>({2}, {2, 2})})}; }, error_code::invalid_argument, "the fetched value is float[2], the handle says float of rank 0"},
      {"one element in a list", [](const run& r) { return std::vector<message>{done(r.step, {tensor_value::from<float>({1}, {2})})}; }, error_code::invalid_argument, "the fetched value is float[1], the handle says float of rank 0"},
      {"nothing in a list", [](const run& r) { return std::vector<message>{done(r.step, {tensor_value(weft::dtype::float32, {0})})}; }, error_code::invalid_argument, "the fetched value is float[0], the handle says float of rank 0"},
      {"more than fits", [](const run& r) { return std::vector<message>{done(r.step, {tensor_value::from<float>({300000}, std::vector<float>(300000, 2.f))})}; }, error_code::resource_exhausted, "(server_options::received_bytes)"},
      {"a trace that nobody asked for", [](const run& r) { return std::vector<message>{part_done_message{r.step, {}, true, 5}.encode({two, two})}; }, error_code::internal, "returned 2 values, expected 1"},
      {"a value and no end", [](const run& r) { return std::vector<message>(1000, done(r.step, {two}, {}, false)); }, error_code::internal, "says that its part of the step goes on, without an error"},
      {"an error", [&](const run& r) { return std::vector<message>{done(r.step, {}, bad)}; }, error_code::internal, "made up"},
      {"an error and values", [&](const run& r) { return std::vector<message>{done(r.step, {two, two}, bad)}; }, error_code::internal, "made up"},
      {"an error and no end", [&](const run& r) { return std::vector<message>(1000, done(r.step, {}, bad, false)); }, error_code::internal, "made up"},
      {"an error that follows from nothing", [&](const run& r) { return std::vector<message>{done(r.step, {}, follows)}; }, error_code::internal, "made up"},
      {"an error of no known code", [&](const run& r) { return std::vector<message>{done(r.step, {}, nobody)}; }, error_code::invalid_argument, "answer of a part: "},
      {"less than an answer", [](const run& r) { return std::vector<message>{cut(done(r.step, {two}), 1)}; }, error_code::invalid_argument, "answer of a part: expected 1 more bytes, found 0"},
      {"more than an answer", [](const run& r) { return std::vector<message>{longer(done(r.step, {two}))}; }, error_code::invalid_argument, "answer of a part: 1 bytes are left over"},
      {"nothing that is known", [](const run&) {
         return std::vector<message>{weft::detail::make_message(static_cast<message_type>(255), *std::make_unique<weft::wire_writer>())};
       }, error_code::unimplemented, "answered with message type 255, which is not known"},
      {"an order", [](const run& r) { return std::vector<message>{r.encode({})}; }, error_code::unimplemented, "answered with message type 33, which is not known"},
      {"a greeting", [](const run&) { return std::vector<message>{weft::hello_message().encode()}; }, error_code::unimplemented, "answered with message type 1, which is not known"},
  };
  // What keeps the connection leaves the task as good as it was before, for the next step.
  std::function<std::vector<message>(const run&)> says;
  std::optional<scene> with;
  for (const auto& each : cases) {
    INFO(std::string(each.what));
    says = each.says;
    if (!with) with.emplace([&](fake::deaf_worker& worker) { worker.answers = [&](const run& r) { return says(r); }; });
    const status why = with->run();
    if (why.code == error_code::invalid_argument || why.code == error_code::unimplemented) with.reset();
    INFO(why.task, " ", why.text());
    CHECK(why.code == each.code);
    CHECK(why.message.find(each.why) != std::string::npos);
  }
}

TEST_CASE("hostile worker: whatever it says of a registration, the step ends with an error that names it, or with its value") {
  const status bad(error_code::internal, "made up"), full(error_code::resource_exhausted, "no room");
  const struct {
    const char* what;
    std::function<std::vector<message>(std::uint64_t)> says;
    error_code code;
    const char* why;
  } cases[] = {
      {"twice", [](std::uint64_t n) { return std::vector<message>{registered(n), registered(n)}; }, error_code::ok, ""},
      {"done, then an error", [&](std::uint64_t n) { return std::vector<message>{registered(n), registered(n, bad)}; }, error_code::ok, ""},
      {"others before", [&](std::uint64_t n) { return std::vector<message>{registered(n - 1, bad), registered(n + 1), registered(UINT64_MAX, bad), done(1, {}), registered(n)}; }, error_code::ok, ""},
      {"an error", [&](std::uint64_t n) { return std::vector<message>{registered(n, bad)}; }, error_code::internal, "made up"},
      {"that there is no room, each time", [&](std::uint64_t n) { return std::vector<message>{registered(n, full)}; }, error_code::resource_exhausted, "no room"},
      {"another one", [](std::uint64_t n) { return std::vector<message>{registered(n + 1)}; }, error_code::deadline_exceeded, "did not register its part of the graph within 3"},
      {"less than an answer", [](std::uint64_t n) { return std::vector<message>{cut(registered(n), 1)}; }, error_code::invalid_argument, "registration's answer: "},
      {"more than an answer", [](std::uint64_t n) { return std::vector<message>{longer(registered(n))}; }, error_code::invalid_argument, "registration's answer: "},
  };
  for (const auto& each : cases) {
    INFO(std::string(each.what));
    const auto behave = [&](fake::deaf_worker& worker) {
      worker.registers = each.says;
      worker.answers = [](const run_part_message& r) { return std::vector<message>{done(r.step, {two})}; };
    };
    scene with(behave, each.code == error_code::deadline_exceeded ? 300ms : std::chrono::milliseconds(fake::patience));
    const status why = with.run();
    INFO(why.task, " ", why.text());
    CHECK(why.code == each.code);
    CHECK(why.message.find(each.why) != std::string::npos);
  }
}
