// Steps on task servers in other processes, each beside a bare program that sends the same messages between the same number of processes
// with blocking sockets: one JSON line per case. The servers are forked before anything else, so the bare peers and weft share the machine.

#include "server_processes.hpp"

#include <weft/graph.hpp>
#include <weft/session/local_session.hpp>
#include <weft/tensor/xtensor.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace {

using clock_type = std::chrono::steady_clock;

struct timing {
  double low, median, high;
};

// Microseconds of one call: `rounds` rounds of `calls` calls each.
timing measure(int rounds, int calls, const std::function<void()>& call) {
  for (int i = 0; i < calls; ++i) call();
  std::vector<double> times;
  for (int r = 0; r < rounds; ++r) {
    const auto begin = clock_type::now();
    for (int i = 0; i < calls; ++i) call();
    times.push_back(std::chrono::duration<double, std::micro>(clock_type::now() - begin).count() / calls);
  }
  std::sort(times.begin(), times.end());
  return {times.front(), times[times.size() / 2], times.back()};
}

void report(const char* work, const char* unit, double weft, double peer, const char* peer_name) {
  std::printf("{\"work\": \"%s\", \"unit\": \"%s\", \"weft\": %.3f, \"peer\": %.3f, \"peer_name\": \"%s\", \"ratio\": %.3f}\n", work, unit, weft, peer, peer_name, weft / peer);
  std::fflush(stdout);
}

// Sizes of the bare messages: what weft's own frames have for the same work.
constexpr std::size_t request = 80, answer = 80, tensor_head = 96, seed_tensor = 400;

// The bare relay of the seed's step: client -> lead -> (source, sink); source -> sink; source, sink -> lead -> client.
class bare_relay {
 public:
  bare_relay() : source_([this] { serve_source(); }), sink_([this] { serve_sink(); }), lead_([this] { serve_lead(); }), client_(connect_to(lead_port_.port)) {}
  void step() {
    char buffer[tensor_head + seed_tensor + answer] = {};
    send_all(client_, buffer, request);
    receive_all(client_, buffer, answer + seed_tensor);
  }

 private:
  void serve_lead() {
    const int source = connect_to(source_port_.port), sink = connect_to(sink_port_.port), client = lead_port_.accept();
    char buffer[tensor_head + seed_tensor + answer] = {};
    for (;;) {
      receive_all(client, buffer, request);
      send_all(source, buffer, request);
      send_all(sink, buffer, request);
      receive_all(source, buffer, answer);
      receive_all(sink, buffer, answer + seed_tensor);
      send_all(client, buffer, answer + seed_tensor);
    }
  }
  void serve_source() {
    const int sink = connect_to(sink_port_.port), lead = source_port_.accept();
    char buffer[tensor_head + seed_tensor + answer] = {};
    for (;;) {
      receive_all(lead, buffer, request);
      send_all(sink, buffer, tensor_head + seed_tensor);
      send_all(lead, buffer, answer);
    }
  }
  // The two connections come in any order; the source's first message is the longer one.
  void serve_sink() {
    const int one = sink_port_.accept(), two = sink_port_.accept();
    char buffer[tensor_head + seed_tensor + answer] = {};
    int source = -1;
    while (source < 0)
      for (const int each : {one, two})
        if (::recv(each, buffer, sizeof buffer, MSG_PEEK | MSG_DONTWAIT) == static_cast<ssize_t>(tensor_head + seed_tensor)) source = each;
    const int lead = source == one ? two : one;
    for (;;) {
      receive_all(lead, buffer, request);
      receive_all(source, buffer, tensor_head + seed_tensor);
      send_all(lead, buffer, answer + seed_tensor);
    }
  }

  listening lead_port_, source_port_, sink_port_;
  process source_, sink_, lead_;
  int client_;
};

class bare_echo {
 public:
  bare_echo() : server_([this] { serve(); }), client_(connect_to(port_.port)) {}
  void step() {
    char buffer[256] = {};
    send_all(client_, buffer, request);
    receive_all(client_, buffer, answer);
  }

 private:
  void serve() {
    const int client = port_.accept();
    char buffer[256] = {};
    for (;;) {
      receive_all(client, buffer, request);
      send_all(client, buffer, answer);
    }
  }
  listening port_;
  process server_;
  int client_;
};

void local_one_op() {
  const weft::graph g;
  const auto scope = g.as_default();
  const auto x = weft::placeholder<float, 0>("x");
  const auto y = x + 1.f;
  weft::local_session session({}, weft::graph(g.state()));
  const auto step = session.make_callable(weft::feeds(x), y);
  const timing time = measure(15, 20000, [&] { (void)step(1.f); });
  std::printf("{\"work\": \"one-op run through a prepared callable\", \"unit\": \"us\", \"weft\": %.3f}\n", time.median);
}

void remote_noop(const task_servers& tasks) {
  const weft::graph g;
  const auto scope = g.as_default();
  const auto nothing = weft::with_device("/job:work/task:1", [] { return weft::no_op(); });
  weft::session session(tasks.target("work", 1), weft::session_options(), g);
  const auto step = session.make_callable(nothing);
  bare_echo echo;
  std::vector<double> ours, bare;
  for (int i = 0; i < 7; ++i) {
    ours.push_back(measure(3, 2000, [&] { step(); }).median);
    bare.push_back(measure(3, 2000, [&] { echo.step(); }).median);
  }
  std::sort(ours.begin(), ours.end());
  std::sort(bare.begin(), bare.end());
  report("no-op on one task", "us", ours[3], bare[3], "blocking ping-pong of frames of the same size");
}

void seed_step(const task_servers& tasks) {
  const weft::graph g;
  const auto scope = g.as_default();
  weft::tensor<float, 1> x, y;
  weft::with_device("/job:ps/task:0", [&] { x = weft::random_uniform({100}); });
  weft::with_device("/job:work/task:0", [&] { y = x * 0.1f + 0.3f; });
  weft::session session(tasks.target("work", 1), weft::session_options(), g);
  const auto parts = session.partitions({{}, {y.raw()}, {}});
  if (parts.transfers().size() != 1 || parts.transfers()[0].bytes != 400) {
    std::fprintf(stderr, "the seed's step must send 400 bytes once\n");
    std::exit(1);
  }
  const auto step = session.make_callable(y);
  bare_relay relay;
  std::vector<double> ours, bare;
  for (int i = 0; i < 7; ++i) {
    ours.push_back(measure(3, 1000, [&] { (void)step(); }).median);
    bare.push_back(measure(3, 1000, [&] { relay.step(); }).median);
  }
  std::sort(ours.begin(), ours.end());
  std::sort(bare.begin(), bare.end());
  report("the seed's step over three tasks", "us", ours[3], bare[3], "blocking relay of the same seven messages");
}

// A tensor of `bytes` from ps:0 to work:0, of which one element comes back.
void transfer(const task_servers& tasks, std::size_t bytes, int calls) {
  const weft::graph g;
  const auto scope = g.as_default();
  weft::variable<float, 1> v;
  const auto elements = static_cast<std::int64_t>(bytes / sizeof(float));
  weft::with_device("/job:ps/task:0", [&] { v = weft::variable<float, 1>(weft::fill({elements}, 1.f), "sent_" + std::to_string(bytes)); });
  const auto arrived = weft::with_device("/job:work/task:0", [&] { return weft::identity(v); });
  weft::operation done;
  {
    const auto device = weft::with_device("/job:work/task:0");
    const auto after = weft::control_dependencies({arrived});
    done = weft::no_op();
  }
  weft::session session(tasks.target("work", 1), weft::session_options(), g);
  session.run(weft::global_variables_initializer());
  const auto step = session.make_callable(done);
  bare_stream stream(bytes);
  std::vector<double> ours, bare;
  for (int i = 0; i < 5; ++i) {
    ours.push_back(measure(3, calls, [&] { step(); }).median);
    bare.push_back(measure(3, calls, [&] { stream.step(); }).median);
  }
  std::sort(ours.begin(), ours.end());
  std::sort(bare.begin(), bare.end());
  const std::string work = "transfer of " + (bytes >= mebibyte ? std::to_string(bytes / mebibyte) + " MiB" : std::to_string(bytes / 1024) + " KiB") + " between two tasks";
  report(work.c_str(), "us", ours[2], bare[2], "raw TCP on request, writes of 1 MiB");
}

}  // namespace

int main() {
  const task_servers tasks({{"ps", 1}, {"work", 2}});  // work:1 leads
  local_one_op();
  remote_noop(tasks);
  seed_step(tasks);
  transfer(tasks, 1024, 500);
  transfer(tasks, 64 * 1024, 300);
  transfer(tasks, mebibyte, 100);
  transfer(tasks, 16 * mebibyte, 10);
  transfer(tasks, 64 * mebibyte, 4);
  transfer(tasks, 256 * mebibyte, 1);
}
