// Sequences of well-formed messages, at any time and in any order, from clients and from tasks, against a real server in this process. After each sequence a client of good
// manners must still be served.
#include <weft/cluster/blocking_connection.hpp>
#include <weft/cluster/part_messages.hpp>
#include <weft/cluster/server.hpp>
#include <weft/cluster/session.hpp>
#include <weft/ops/standard.hpp>
#include <weft/tensor/xtensor.hpp>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace {

using weft::message;
using weft::message_type;
using weft::tensor_value;

const weft::task_id work{"work", 0}, other{"far", 0};

// The server, and the client whose step must always run.
struct world {
  world() : server({{"far", {"127.0.0.1:1"}}, {"work", {"127.0.0.1:0"}}}, "work", 0, options()) {
    const auto scope = graph.as_default();
    sum = weft::constant(1.f) + 2.f;
    session = std::make_unique<weft::session>(server.target(), weft::session_options(), graph);
    address = weft::parse_host_port(server.cluster().task_address(work));
  }
  static weft::server_options options() {
    weft::server_options out;
    out.log = [](const char*, const std::string&) {};
    out.kernel_threads = 1;
    out.connect_timeout = std::chrono::milliseconds(200);
    out.abort_grace = std::chrono::milliseconds(50);
    out.spin_time = std::chrono::microseconds(0);
    out.max_client_requests = 8;
    out.max_registrations = 8;
    out.max_sessions = 8;
    out.received_bytes = 1 << 20;
    out.parked_bytes_per_peer = 1 << 16;
    out.queued_bytes_per_client = 4096;
    return out;
  }
  weft::graph graph;
  weft::tensor<float, 0> sum;
  weft::server server;
  std::unique_ptr<weft::session> session;
  weft::host_port address;
};

// A step of the sequence: what to do, and small numbers to do it with.
class script {
 public:
  script(const std::uint8_t* data, std::size_t size) : at_(data), end_(data + size) {}
  bool done() const { return at_ == end_; }
  unsigned next(unsigned below) { return done() ? 0 : *at_++ % below; }

 private:
  const std::uint8_t *at_, *end_;
};

// x, a variable, and some nodes that follow.
weft::graph some_graph(unsigned nodes) {
  weft::graph g;
  const auto scope = g.as_default();
  const auto x = weft::placeholder<float, 0>("x");
  const auto w = weft::variable<float, 0>(1.f, "w");
  weft::tensor<float, 0> y = x + w;
  for (unsigned i = 0; i < nodes; ++i) y = y * 2.f;
  return g;
}

weft::graph receiving_part() {
  weft::graph g;
  const auto add = [&](const char* op, const char* name, std::vector<weft::output> inputs, weft::attr_map attrs) -> const weft::node& {
    weft::node_spec spec;
    spec.op = op;
    spec.name = name;
    spec.exact_name = true;
    spec.scoped = false;
    spec.inputs = std::move(inputs);
    spec.attrs = std::move(attrs);
    spec.device = "/job:work/task:0/device:CPU:0";
    return g.add(std::move(spec));
  };
  const weft::node& recv = add("_Recv", "x", {}, {{"tensor_type", weft::dtype::float32}, {"tensor_name", "edge_5_x"}, {"send_device", "/job:far/task:0/device:CPU:0"},
                                                   {"recv_device", "/job:work/task:0/device:CPU:0"}, {"send_device_incarnation", 0}, {"_edge", 5}});
  add("_Retval", "y", {{&recv, 0}}, {{"T", weft::dtype::float32}, {"index", 0}});
  return g;
}

struct peer {
  std::unique_ptr<weft::blocking_connection> road;
  bool is_client = true;
  std::uint32_t request = 0;
};

// Reads what is there; a connection that was closed is dropped.
void drain(peer& p) {
  try {
    message m;
    while (p.road && p.road->receive(m, weft::blocking_connection::clock::now()) == weft::receive_result::received) continue;
  } catch (const weft::error&) {
    p.road.reset();
  }
}

void connect(world& here, peer& p, unsigned as) {
  p.road = weft::blocking_connection::connect(here.address, std::chrono::seconds(5));
  p.is_client = as == 0;
  weft::hello_message hello;
  hello.as = static_cast<weft::hello_message::role>(as);
  if (!p.is_client) {
    hello.incarnation = 11;
    hello.task = other;
    hello.to = work;
    hello.cluster = here.server.cluster().hash();
  }
  p.road->send(hello.encode());
}

tensor_value value(unsigned kind) {
  switch (kind) {
    case 0: return tensor_value::scalar(1.f);
    case 1: return tensor_value::from<float>({3}, {1, 2, 3});
    case 2: return tensor_value::from<std::string>({1}, {"text"});
    default: return tensor_value(weft::dtype::float32, {1 << 17});
  }
}

message client_message(script& s, peer& p) {
  const std::uint32_t request = s.next(8) == 0 ? p.request : ++p.request;
  const std::uint64_t session = 1 + s.next(4), handle = 1 + s.next(6);
  switch (s.next(8)) {
    case 0: return weft::open_session_message{request, s.next(2) == 1, weft::placement_order::session_task, {}}.encode();
    case 1: return weft::session_request{request, session, handle}.encode(message_type::close_session);
    case 2: return weft::session_request{request, session, handle}.encode(message_type::describe);
    case 3: return weft::session_request{request, session, handle}.encode(s.next(2) == 0 ? message_type::report : message_type::list_devices);
    case 4: {
      std::vector<tensor_value> feeds;
      for (unsigned n = s.next(3); n > 0; --n) feeds.push_back(value(s.next(4)));
      return weft::run_message{request, session, handle, s.next(50)}.encode(std::move(feeds));
    }
    default: {
      const weft::graph g = some_graph(s.next(5));
      weft::prepare_message what;
      what.request = request;
      what.session = session;
      what.wants_placement = s.next(2) == 1;
      if (s.next(2) == 1) what.signature.feeds.push_back({0, 0});
      what.signature.fetches.push_back({s.next(12), 0});
      if (s.next(3) == 0) what.signature.targets.push_back(s.next(12));
      return what.encode(g.nodes(), s.next(4) == 0 ? s.next(6) : 0);
    }
  }
}

message task_message(script& s) {
  const std::uint64_t number = 1 + s.next(4);
  const auto step = static_cast<std::int64_t>(1 + s.next(8));
  const weft::step_id id{s.next(8) == 0 ? 12U : 11U, step};
  switch (s.next(9)) {
    case 0:
    case 1: {
      weft::register_part_message what;
      what.registration = number;
      what.session = 1 + s.next(3);
      what.edges.push_back({5, s.next(6) == 0 ? weft::part_edge::direction::outgoing : weft::part_edge::direction::incoming, other, weft::dtype::float32, s.next(2) == 1});
      return what.encode(receiving_part());
    }
    case 2: return weft::encode_forget(message_type::unregister_part, number);
    case 3: return weft::encode_forget(message_type::forget_session, number);
    case 4: return weft::run_part_message{step, number, s.next(4) == 0}.encode({});
    case 5: return weft::encode_part_feeds(step, {value(s.next(4))});
    case 6: return weft::abort_part_message{step, weft::status(weft::error_code::cancelled, "no more")}.encode();
    case 7: return weft::encode_ready(id);
    default: return weft::tensor_message{id, {s.next(6) == 0 ? 6 : 5, s.next(6) == 0 ? 1 : 0}, false}.encode(value(s.next(4)));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static world here;
  if (size > 400) return 0;
  script s(data, size);
  std::array<peer, 4> peers;
  while (!s.done()) {
    peer& p = peers[s.next(peers.size())];
    try {
      if (!p.road) connect(here, p, s.next(3));
      else if (const unsigned what = s.next(12); what == 0) p.road.reset();
      else if (what < 3) drain(p);
      else p.road->send(p.is_client ? client_message(s, p) : task_message(s));
    } catch (const weft::error&) {
      p.road.reset();
    }
  }
  if (here.session->run(here.sum) != 3.f) std::abort();
  const auto now = here.server.statistics();
  if (now.steps_ended > now.steps_begun || now.parts_ended > now.parts_begun || now.sessions > 100 || now.connections > 1000) std::abort();
  return 0;
}
