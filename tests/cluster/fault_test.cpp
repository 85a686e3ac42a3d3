// Steps over connections that are slow, cut, reset or silent, at every byte of their messages: the right value or a clear error, in time.
#include "fault_proxy.hpp"

#include "../long_tests.hpp"
#include "process_counts.hpp"
#include "test_ops.hpp"

#include <weft/cluster/session.hpp>

#include <xtensor/xmath.hpp>

#include <atomic>
#include <random>
#include <set>
#include <tuple>

using faults::fault;
using faults::proxied_cluster;
using faults::proxy;
using faults::way;
using test_ops::error_of;
using weft::error_code;
using weft::task_id;
using namespace std::chrono_literals;

namespace {

const task_id ps{"ps", 0}, work{"work", 0};
constexpr std::size_t length = 100;

weft::server_options quick() {
  weft::server_options out = test_ops::quiet();
  out.heartbeat = 400ms;
  out.connect_timeout = 1500ms;
  out.handshake_timeout = 1000ms;
  out.abort_grace = 500ms;
  out.kernel_threads = 1;
  out.small_tensor_bytes = 64;  // the vector takes the road of large tensors
  return out;
}
weft::session_options client() {
  weft::session_options out;
  out.heartbeat = 1000ms;
  out.connect_timeout = 1500ms;
  out.abort_grace = 500ms;
  return out;
}

// ps counts the steps in a variable and makes a vector of a feed; work adds one to it. All of them cross.
struct story {
  story() {
    const auto scope = graph.as_default();
    x = weft::placeholder<float, 0>("x");
    weft::tensor<float, 1> made;
    weft::with_device("/job:ps/task:0", [&] {
      v = weft::variable<std::int64_t, 0>(weft::constant(std::int64_t{0}), "v");
      count = v.assign_add(std::int64_t{1});
      made = weft::constant(xt::xtensor<float, 1>(xt::ones<float>({length}))) * x;
    });
    weft::with_device("/job:work/task:0", [&] { y = made + 1.f; });
  }
  weft::graph graph;
  weft::tensor<float, 0> x;
  weft::variable<std::int64_t, 0> v;
  weft::operation count;
  weft::tensor<float, 1> y;
};

struct totals {
  int succeeded = 0, maybe = 0, refused = 0;
  std::vector<std::string> wrong;
  void add(const weft::error& e) {
    ++(e.may_have_run() ? maybe : refused);
    const weft::status& why = e.status();
    const bool known = why.code == error_code::unavailable || why.code == error_code::aborted || why.code == error_code::deadline_exceeded || why.code == error_code::cancelled;
    if (!known || why.message.find("127.0.0.1:") == std::string::npos) wrong.push_back(why.text());
  }
};

// One session with steps until two have succeeded, which they must soon unless there are more faults to come.
void play_steps(const story& told, const std::string& target, totals& sum, int attempts = 0, const weft::session_options& options = client()) {
  std::unique_ptr<weft::session> session;
  int done = 0;
  for (int attempt = 0; attempt < (attempts > 0 ? attempts : 8) && done < 2; ++attempt) {
    try {
      if (session == nullptr) session = std::make_unique<weft::session>(target, options, weft::graph(told.graph.state()));
      const float fed = static_cast<float>(attempt) + 0.5f;
      const xt::xtensor<float, 1> got = session->run({{told.x, fed}}, told.y, told.count);
      ++done;
      ++sum.succeeded;
      bool right = got.size() == length;
      for (const float each : got) right = right && each == fed + 1.f;
      if (!right) sum.wrong.push_back("a wrong value");
    } catch (const weft::error& e) {
      sum.add(e);
    }
  }
  if (attempts == 0 && done < 2) sum.wrong.push_back("no success after the fault");
}

// Servers behind proxies, one more of which stands before the client's master.
struct stage {
  explicit stage(const weft::server_options& options = quick()) : cluster({{"ps", 1}, {"work", 1}}, options), client_door(cluster.real(work)) { weft::session(cluster.target(ps), {}, told.graph).run(told.v.initializer()); }
  proxy& door(int place) { return place == 0 ? client_door : cluster.door(place == 1 ? ps : work); }
  void play(const weft::session_options& options = client()) { play_steps(told, "weft://" + client_door.address(), sum, 0, options); }
  // Every step that succeeded counted, and none that cannot have run.
  void check_count() {
    const std::int64_t found = weft::session(cluster.target(ps), {}, told.graph).run(told.v);
    if (found < sum.succeeded || found > sum.succeeded + sum.maybe)
      sum.wrong.push_back("counted " + std::to_string(found) + " of " + std::to_string(sum.succeeded) + " steps and " + std::to_string(sum.maybe) + " that may have run");
  }
  story told;
  proxied_cluster cluster;
  proxy client_door;
  totals sum;
};

// A direction of one of the connections: of the client, of work to ps, of ps to work; the latter are two each.
struct direction {
  int place, connection;
  way which;
  bool operator<(const direction& o) const { return std::tie(place, connection, which) < std::tie(o.place, o.connection, o.which); }
};

// Where the frames of an undisturbed story end.
std::map<direction, std::vector<std::uint64_t>> borders() {
  std::mutex mutex;
  std::map<direction, std::vector<std::uint64_t>> out;
  stage whole;
  for (int place = 0; place < 3; ++place)
    whole.door(place).watch([&mutex, &out, place](int connection, way which, weft::message_type, std::uint64_t end) {
      const std::lock_guard<std::mutex> lock(mutex);
      out[{place, connection, which}].push_back(end);
    });
  whole.play();
  CHECK(whole.sum.wrong == std::vector<std::string>());
  CHECK(whole.sum.succeeded == 2);
  const std::lock_guard<std::mutex> lock(mutex);
  return out;
}

// The bytes at which a connection is to end: around each frame's end, and of the first ones each, or some in a short run.
std::set<std::uint64_t> points(const std::vector<std::uint64_t>& ends, std::uint64_t shift) {
  std::set<std::uint64_t> out;
  const std::uint64_t step = takes_long() ? 1 : 67;
  for (std::uint64_t k = shift % step; k < 200; k += step) out.insert(k);
  for (const std::uint64_t end : ends)
    if (takes_long() || (end + shift) % 4 == 0) out.insert({end - 1, end, end + 1, end + 20});
  return out;
}

fault only_at(const direction& at, int connection, way which, fault f) { return connection == at.connection && which == at.which ? f : fault(); }

// One story with a fault at one place; what was wrong with it.
std::string trial(const direction& at, const fault& f, totals& sum) {
  stage here;
  here.door(at.place).choose([&at, &f](int connection, way which) { return only_at(at, connection, which, f); });
  const auto begun = std::chrono::steady_clock::now();
  here.play();
  here.check_count();
  const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now() - begun);
  if (took > 60s) here.sum.wrong.push_back("took " + std::to_string(took.count()) + " ms");
  sum.succeeded += here.sum.succeeded;
  sum.maybe += here.sum.maybe;
  sum.refused += here.sum.refused;
  std::string out;
  for (const std::string& wrong : here.sum.wrong)
    out += "place " + std::to_string(at.place) + ", connection " + std::to_string(at.connection) + (at.which == way::up ? " up" : " down") + ", byte " + std::to_string(f.after) + ": " + wrong + "\n";
  return out;
}

// Each trial by itself, or several at a time where they wait most of the time.
void sweep(fault::end how, std::set<std::uint64_t> (*points)(const std::vector<std::uint64_t>&, std::uint64_t), std::size_t at_a_time) {
  std::vector<std::pair<direction, fault>> all;
  std::uint64_t shift = 0;
  for (const auto& [at, ends] : borders())
    for (const std::uint64_t k : points(ends, ++shift)) {
      fault f;
      f.how = how;
      f.after = k;
      all.emplace_back(at, f);
    }
  totals sum;
  std::mutex mutex;
  std::atomic<std::size_t> next{0};
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < at_a_time; ++t)
    threads.emplace_back([&] {
      for (std::size_t i; (i = next++) < all.size();) {
        totals one;
        const std::string wrong = trial(all[i].first, all[i].second, one);
        const std::lock_guard<std::mutex> lock(mutex);
        sum.succeeded += one.succeeded;
        sum.maybe += one.maybe;
        sum.refused += one.refused;
        if (!wrong.empty()) sum.wrong.push_back(wrong);
      }
    });
  for (std::thread& t : threads) t.join();
  MESSAGE(all.size() << " trials, " << sum.maybe << " steps that may have run, " << sum.refused << " that did not");
  CHECK(sum.wrong == std::vector<std::string>());
  CHECK(sum.maybe + sum.refused > 0);
}

// After whole frames only, and not after all of them in a short run.
std::set<std::uint64_t> some_ends(const std::vector<std::uint64_t>& ends, std::uint64_t shift) {
  std::set<std::uint64_t> out;
  for (std::size_t i = 0; i < ends.size(); ++i)
    if (takes_long() || (i + shift) % 2 == 0) out.insert(ends[i]);
  return out;
}

}  // namespace

TEST_CASE("fault proxy: what passes in pieces of one byte, slowly, or late is the same") {
  for (const auto& [slice, pause] : {std::pair<std::size_t, std::chrono::microseconds>{1, 0us}, {500, 200us}, {65536, 3ms}}) {
    weft::server_options patient = quick();
    patient.handshake_timeout = patient.connect_timeout = patient.heartbeat = 20000ms;
    stage here(patient);
    for (int place = 0; place < 3; ++place)
      here.door(place).choose([slice = slice, pause = pause](int, way) {
        fault f;
        f.slice = slice;
        f.pause = pause;
        return f;
      });
    here.play({});
    here.check_count();
    CHECK(here.sum.wrong == std::vector<std::string>());
    CHECK(here.sum.succeeded == 2);
    CHECK(here.sum.maybe + here.sum.refused == 0);
  }
}

TEST_CASE("faults: a connection that is cut after any byte costs an error or nothing") { sweep(fault::end::cut, &points, 2); }
TEST_CASE("faults: a connection that is reset after any byte costs an error or nothing") { sweep(fault::end::reset, &points, 2); }
TEST_CASE("faults: a connection that falls silent after any message costs an error or nothing") { sweep(fault::end::black_hole, &some_ends, 12); }

TEST_CASE("faults: whoever repeats what a connection says runs nothing twice") {
  for (const direction& at : {direction{0, 0, way::up}, {1, 0, way::up}, {1, 1, way::up}, {2, 0, way::up}, {2, 1, way::up}}) {
    fault f;
    f.twice = true;
    totals sum;
    CHECK(trial(at, f, sum) == "");
  }
}

TEST_CASE("faults: workers whose connections are cut at random count what they did, and nothing twice") {
  for (unsigned seed = 1; seed <= (takes_long() ? 30U : 2U); ++seed) {
    stage here;
    std::mutex mutex;
    std::mt19937 random(seed);
    for (int place = 0; place < 3; ++place)
      here.door(place).choose([&mutex, &random](int, way) {
        const std::lock_guard<std::mutex> lock(mutex);
        fault f;
        const auto what = random() % 4;
        if (what < 2) return f;
        f.how = what == 2 ? fault::end::cut : fault::end::reset;
        f.after = random() % 60000;
        return f;
      });
    totals of[3];
    std::vector<std::thread> workers;
    for (totals& sum : of)
      workers.emplace_back([&here, &sum] {
        for (int i = 0; i < (takes_long() ? 40 : 10); ++i) play_steps(here.told, "weft://" + here.client_door.address(), sum, 3);
      });
    for (std::thread& worker : workers) worker.join();
    for (const totals& each : of) {
      here.sum.succeeded += each.succeeded;
      here.sum.maybe += each.maybe;
      here.sum.refused += each.refused;
      here.sum.wrong.insert(here.sum.wrong.end(), each.wrong.begin(), each.wrong.end());
    }
    here.check_count();
    CHECK(here.sum.wrong == std::vector<std::string>());
    MESSAGE("seed " << seed << ": " << here.sum.succeeded << " succeeded, " << here.sum.maybe << " may have run, " << here.sum.refused << " did not");
  }
}

// TCP has a checksum, and a secured transport a better one; weft adds none. So a bit that is flipped all the same in the values or in the graph that a client sends is not found. In what
// frames say of themselves, and in the control parts of a step, it is an error, or does not matter.
TEST_CASE("faults: a bit that is flipped in a header or a control part ends in an error or the right value") {
  auto options = quick();
  options.frame_timeout = 100ms;
  options.heartbeat = 10min;  // a sign of life before the byte that is meant would move it
  weft::server server({{"work", {"127.0.0.1:0"}}}, "work", 0, options);
  const weft::host_port real = weft::parse_host_port(server.cluster().task_address(work));
  const weft::graph g;
  weft::tensor<float, 0> x, y;
  {
    const auto scope = g.as_default();
    x = weft::placeholder<float, 0>("x");
    y = x + 1.f;
  }
  weft::session_options how = client();
  how.connect_timeout = 200ms;
  how.heartbeat = 500ms;
  how.abort_grace = 50ms;
  const auto run = [&](weft::session& session, float fed) { return session.run(weft::run_options{1000ms}, {{x, fed}}, y); };
  // 1. The frames of an undisturbed story.
  struct frame {
    way which;
    weft::message_type type;
    std::uint64_t begin, end;
  };
  std::vector<frame> frames;
  {
    std::mutex mutex;
    proxy door(real);
    std::uint64_t passed[2] = {};
    door.watch([&](int, way which, weft::message_type type, std::uint64_t end) {
      const std::lock_guard<std::mutex> lock(mutex);
      std::uint64_t& begin = passed[which == way::up ? 0 : 1];
      if (type != weft::message_type::heartbeat) frames.push_back({which, type, begin, end});
      begin = end;
    });
    {
      weft::session session("weft://" + door.address(), how, g);
      CHECK(run(session, 1.f) == 2.f);
    }
    door.watch(nullptr);
  }
  // 2. The bytes to flip: all but the values at the end, of the greeting only what is not about kernels.
  struct place {
    way which;
    std::uint64_t at;
    bool is_graph;
  };
  std::vector<place> places;
  for (const frame& f : frames) {
    const bool is_graph = f.type == weft::message_type::prepare, has_value = is_graph || f.type == weft::message_type::run || (f.type == weft::message_type::reply && f.end - f.begin > 40);
    const std::uint64_t end = std::min(f.type == weft::message_type::welcome ? f.begin + 90 : f.end - (has_value ? sizeof(float) : 0), f.begin + 400);
    for (std::uint64_t at = f.begin; at < end; ++at) places.push_back({f.which, at, is_graph});
  }
  REQUIRE(places.size() > 300);
  // 3. One after the other, by some at once, since a length that has become longer is waited for.
  std::atomic<std::size_t> next{0};
  std::atomic<int> errors{0}, values{0}, wrong{0}, lost{0};
  const std::size_t stride = takes_long() ? 1 : 7;
  const auto play = [&] {
    for (std::size_t i; (i = next.fetch_add(stride)) < places.size();) {
      proxy door(real);
      door.choose([&](int connection, way which) {
        fault out;
        if (connection != 0 || which != places[i].which) return out;
        out.flip = places[i].at;
        out.mask = static_cast<std::uint8_t>(1U << (i % 8));
        return out;
      });
      std::unique_ptr<weft::session> session;
      const auto attempt = [&](float fed) {
        try {
          if (session == nullptr) session = std::make_unique<weft::session>("weft://" + door.address(), how, weft::graph(g.state()));
          return run(*session, fed) == fed + 1.f ? 1 : -1;
        } catch (const weft::error&) {
          return 0;
        }
      };
      const int first = attempt(static_cast<float>(i));
      if (first == 0) ++errors;
      else ++values;
      if (first < 0 && !places[i].is_graph) ++wrong;
      if (places[i].is_graph) session = nullptr;
      int later = 0;
      for (int n = 0; n < 20 && later == 0; ++n) later = attempt(0.5f);
      if (later != 1) ++lost;
    }
  };
  std::vector<std::thread> players;
  for (int i = 0; i < 8; ++i) players.emplace_back(play);
  for (auto& each : players) each.join();
  CHECK(wrong == 0);
  CHECK(lost == 0);
  CHECK(errors > 15);
  CHECK(values > 10);
  INFO(errors.load(), " errors, ", values.load(), " values");
  CHECK(process_counts::soon([&] { return server.statistics().connections == 0; }));
  const auto now = server.statistics();
  CHECK(now.received_bytes == 0);
  CHECK(now.steps_begun == now.steps_ended);
  CHECK(now.sessions == 0);
}
