// Handles of variables and queues that a client made up: whatever stands in them, the step ends with an error that says what is wrong, and the server lives.
#include <weft/kernels/state_handle.hpp>

#include "hostile_client.hpp"
#include "test_ops.hpp"

#include <cstdint>
#include <string>
#include <vector>

using hostile::client;
using hostile::one_server;
using weft::error_code;
using weft::resource_handle;
using weft::tensor_value;

namespace {

// Ops on a handle that is fed.
struct handle_graph {
  handle_graph() {
    const auto scope = graph.as_default();
    v = weft::variable<float, 0>(5.f, "v");
    weft::queue_options named;
    named.shared_name = "q";
    queue = weft::fifo_queue<weft::tensor<float, 0>>(4, named, "q");
    put = queue.enqueue(1.f);
    handle = add("VarHandleOp", {}, {{"dtype", weft::dtype::float32}, {"shape", weft::partial_shape()}});
    const weft::output one{&weft::detail::add_node("Const", {}, weft::op_name("one"), {{"dtype", weft::dtype::float32}, {"value", tensor_value::scalar(1.f)}}), 0};
    const weft::attr_map dtype{{"dtype", weft::dtype::float32}};
    read = add("ReadVariableOp", {handle}, dtype);
    assign = add("AssignVariableOp", {handle, one}, dtype).from;
    up = add("AssignAddVariableOp", {handle, one}, dtype).from;
    is_there = add("VarIsInitializedOp", {handle}, {});
    size = add("QueueSizeV2", {handle}, {});
    take = add("QueueDequeueV2", {handle}, {{"component_types", std::vector<weft::dtype>{weft::dtype::float32}}});
    end = add("QueueCloseV2", {handle}, {}).from;
    destroy = add("DestroyResourceOp", {handle}, {{"ignore_lookup_error", false}}).from;
  }
  static weft::output add(const char* op, std::vector<weft::output> inputs, weft::attr_map attrs) { return {&weft::detail::add_node(op, std::move(inputs), weft::op_name(), std::move(attrs)), 0}; }
  weft::graph graph;
  weft::variable<float, 0> v;
  weft::fifo_queue<weft::tensor<float, 0>> queue;
  weft::operation put;
  weft::output handle, read, is_there, size, take;
  const weft::node *assign = nullptr, *up = nullptr, *end = nullptr, *destroy = nullptr;
};

tensor_value handle_of(resource_handle h, const std::vector<std::int64_t>& shape = {}) {
  tensor_value out(weft::dtype::resource, weft::shape(shape.data(), shape.size()));
  for (std::int64_t i = 0; i < out.elements(); ++i) out.mutable_data<resource_handle>()[i] = h;
  return out;
}

const std::string here_device = "/job:work/task:0/device:CPU:0";

}  // namespace

TEST_CASE("hostile: a handle that a client made up leads nowhere, and its step says why") {
  one_server here;
  const handle_graph g;
  {
    weft::session session(here.target(), {}, g.graph);
    session.run(g.v.initializer());
    session.run(g.put);
  }
  const std::string device = here_device, long_name(1 << 20, 'n');
  const resource_handle variable{device, "work", "v", "variable"}, queue{device, "work", "q", "queue"};
  const auto other = [&](const char* d, const char* c, std::string n, const char* k = "variable") { return handle_of({d, c, std::move(n), k}); };
  client one(here.target());
  const struct {
    const char* what;
    weft::output fetch;
    const weft::node* target;
    tensor_value fed;
    error_code code;
    const char* why;
  } cases[] = {
      // As they are.
      {"read", g.read, nullptr, handle_of(variable), error_code::ok, ""},
      {"size", g.size, nullptr, handle_of(queue), error_code::ok, ""},
      {"no device", g.read, nullptr, other("", "work", "v"), error_code::ok, ""},
      // The server finds them by name; what the handle says of its kind it does not believe.
      {"kind", g.read, nullptr, other("", "work", "v", "queue"), error_code::ok, ""},
      // Not there.
      {"no name", g.read, nullptr, other("", "work", ""), error_code::failed_precondition, "variable '' is not initialized"},
      {"name", g.read, nullptr, other("", "work", "w"), error_code::failed_precondition, "variable 'w' is not initialized"},
      {"long name", g.read, nullptr, other("", "work", long_name), error_code::failed_precondition, "nnn...' is not initialized"},
      {"bytes", g.read, nullptr, other("", "work", "\xff\xfe\n"), error_code::failed_precondition, "is not initialized"},
      {"container", g.read, nullptr, other("", "nowhere", "v"), error_code::failed_precondition, "variable 'v' is not initialized"},
      {"session's", g.read, nullptr, other("", "(session)", "v"), error_code::failed_precondition, "variable 'v' is not initialized"},
      {"update", {}, g.up, other("", "nowhere", "v"), error_code::failed_precondition, "variable 'v' is not initialized"},
      {"no queue", g.size, nullptr, other("", "work", "p", "queue"), error_code::not_found, "there is no queue 'p' in container 'work'"},
      {"no queue of the session", g.take, nullptr, other("", "(session)", "q", "queue"), error_code::not_found, "there is no queue 'q' in this session"},
      {"long queue", g.size, nullptr, other("", "work", long_name, "queue"), error_code::not_found, "nnn...' in container 'work'"},
      {"end of no queue", {}, g.end, other("", "", "p", "queue"), error_code::not_found, "there is no queue 'p'"},
      {"destroy nothing", {}, g.destroy, other("", "nowhere", "v"), error_code::not_found, "there is no resource 'v' in container 'nowhere'"},
      // Of another kind.
      {"read a queue", g.read, nullptr, handle_of(queue), error_code::invalid_argument, "resource 'q' is FIFOQueue 'q', which cannot be used as something else"},
      {"assign a queue", {}, g.assign, handle_of(queue), error_code::invalid_argument, "resource 'q' is FIFOQueue 'q', which cannot be used as something else"},
      {"update a queue", {}, g.up, handle_of(queue), error_code::invalid_argument, "resource 'q' is FIFOQueue 'q', which cannot be used as something else"},
      {"is a queue there", g.is_there, nullptr, handle_of(queue), error_code::invalid_argument, "resource 'q' is FIFOQueue 'q', which cannot be used as something else"},
      {"size of a variable", g.size, nullptr, handle_of(variable), error_code::invalid_argument, "resource 'v' is variable 'v'"},
      {"take from a variable", g.take, nullptr, handle_of(variable), error_code::invalid_argument, "resource 'v' is variable 'v'"},
      {"end a variable", {}, g.end, handle_of(variable), error_code::invalid_argument, "resource 'v' is variable 'v'"},
      // Of another task, which may well have one of that name.
      {"another task's", g.read, nullptr, other("/job:work/task:1/device:CPU:0", "work", "v"), error_code::invalid_argument,
       "the handle of 'v' is of device '/job:work/task:1/device:CPU:0', which is not of the task of /job:work/task:0/device:CPU:0; ops run on the task of their resource"},
      {"another job's", {}, g.assign, other("/job:ps/replica:0/task:0/device:CPU:0", "work", "v"), error_code::invalid_argument, "which is not of the task of"},
      {"another task's queue", g.take, nullptr, other("/job:work/task:1/device:CPU:0", "work", "q", "queue"), error_code::invalid_argument, "which is not of the task of"},
      {"destroy another task's", {}, g.destroy, other("/job:work/task:1/device:CPU:0", "work", "v"), error_code::invalid_argument, "which is not of the task of"},
      {"no device at all", g.read, nullptr, other("//\xff", "work", "v"), error_code::invalid_argument, "which is not of the task of"},
      // No handle, and many.
      {"none", g.read, nullptr, handle_of(variable, {0}), error_code::invalid_argument, ""},
      {"two", g.read, nullptr, handle_of(variable, {2}), error_code::invalid_argument, ""},
      {"two queues", g.take, nullptr, handle_of(queue, {2}), error_code::invalid_argument, ""},
      {"text", g.read, nullptr, tensor_value::scalar(std::string("v")), error_code::invalid_argument, ""},
      {"two texts", g.take, nullptr, tensor_value::from<std::string>({2}, {"work", "q"}), error_code::invalid_argument, ""},
  };
  for (const auto& each : cases) {
    INFO(std::string(each.what));
    const auto ready = one.prepare(g.graph, each.target ? std::vector<weft::output>() : std::vector<weft::output>{each.fetch}, each.target ? std::vector<const weft::node*>{each.target} : std::vector<const weft::node*>(), {g.handle});
    REQUIRE_MESSAGE(ready.result.ok(), ready.result.text());
    const auto answer = one.run({each.fed});
    INFO(answer.result.text().substr(0, 300));
    CHECK(answer.result.code == each.code);
    CHECK(answer.result.text().find(each.why) != std::string::npos);
    CHECK(answer.result.text().size() < 2000);
    one.open();
  }
  // What was there still is, and a report can be made of it.
  weft::session session(here.target(), {}, g.graph);
  CHECK(session.run(g.v) == 5.f);
  CHECK(to_text(weft::ask_server(here.target())).find("FIFOQueue 'q', 1 element,") != std::string::npos);
}

TEST_CASE("hostile: a variable that a client made up by its handle is one as any other") {
  one_server here;
  const handle_graph g;
  client one(here.target());
  REQUIRE(one.prepare(g.graph, {}, {g.assign}, {g.handle}).result.ok());
  const std::string names[] = {"", "\xff\xfe", std::string(1024, 'n'), std::string("a\0b", 3), "(session)"};
  for (const std::string& name : names) CHECK(one.run({handle_of({here_device, name.substr(0, 100), name, "variable"})}).result.ok());
  CHECK(weft::ask_server(here.target()).resources.size() == 5);
  CHECK(to_text(weft::ask_server(here.target())).find("5") != std::string::npos);
  one.open();
  REQUIRE(one.prepare(g.graph, {}, {g.destroy}, {g.handle}).result.ok());
  for (const std::string& name : names) CHECK(one.run({handle_of({here_device, name.substr(0, 100), name, "variable"})}).result.ok());
  CHECK(weft::ask_server(here.target()).resources.empty());
}

TEST_CASE("hostile: names of variables, queues and containers have a length, past which nothing is made") {
  auto options = test_ops::options();
  options.max_name_bytes = 30;
  one_server here(options);
  const handle_graph g;
  const std::string good(30, 'n'), bad(31, 'n');
  const auto refused = [&](const char* what) { return "the " + std::string(what) + " of a resource has 31 bytes, at most 30 are accepted (server_options::max_name_bytes): '" + bad + "'"; };
  // 1. By the handle that a client made up.
  client one(here.target());
  REQUIRE(one.prepare(g.graph, {}, {g.assign}, {g.handle}).result.ok());
  const auto assign = [&](const std::string& container, const std::string& name) { return one.run({handle_of({here_device, container, name, "variable"})}).result; };
  CHECK(assign(good, good).ok());
  const weft::status of_name = assign(good, bad), of_container = assign(bad, good);
  CHECK(of_name.code == error_code::resource_exhausted);
  CHECK_MESSAGE(of_name.message.find(refused("name")) != std::string::npos, of_name.text());
  CHECK(of_container.code == error_code::resource_exhausted);
  CHECK_MESSAGE(of_container.message.find(refused("container")) != std::string::npos, of_container.text());
  // 2. By what a graph asks for.
  const weft::graph asks;
  const auto scope = asks.as_default();
  const auto queue = [](const std::string& container, const std::string& name) {
    const auto in = weft::with_container(container);
    weft::queue_options named;
    named.shared_name = name;
    return weft::fifo_queue<weft::tensor<float, 0>>(4, named, "q").size();
  };
  const auto fits = queue(good, std::string(30, 'q')), long_name = queue("", bad), long_container = queue(bad, "q");
  weft::session session(here.target(), {}, asks);
  CHECK(session.run(fits) == 0);
  CHECK(error_of([&] { session.run(long_name); }).message.find(refused("name")) != std::string::npos);
  CHECK(error_of([&] { session.run(long_container); }).message.find(refused("container")) != std::string::npos);
  CHECK(weft::ask_server(here.target()).resources.size() == 2);
}
