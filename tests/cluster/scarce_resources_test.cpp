// Servers in processes that may use little: descriptors, memory.
#include <weft/cluster/server.hpp>

#include "hostile_client.hpp"
#include "server_processes.hpp"

#include <sys/resource.h>

#include <future>
#include <sstream>

using hostile::frame_of;
using hostile::plain_socket;
using server_processes::processes;
using test_ops::error_of;
using weft::error_code;
using weft::task_id;

namespace {

const task_id work{"work", 0};

void limit(int what, rlim_t most) {
  const rlimit both{most, most};
  ::setrlimit(static_cast<decltype(RLIMIT_NOFILE)>(what), &both);
}

// Ticks of the processor, a hundred in a second, that a process has used.
long ticks(pid_t process) {
  std::ifstream file("/proc/" + std::to_string(process) + "/stat");
  std::string text;
  std::getline(file, text);
  std::istringstream fields(text.substr(text.rfind(')') + 2));
  std::string skipped;
  for (int i = 3; i < 14; ++i) fields >> skipped;
  long user = 0, system = 0;
  fields >> user >> system;
  return user + system;
}

}  // namespace

TEST_CASE("scarce: without descriptors for more connections a server waits, serves whom it has, and goes on") {
  processes servers({{"work", 1}}, [] { limit(RLIMIT_NOFILE, 64); });
  const weft::graph g;
  const auto scope = g.as_default();
  const auto x = weft::constant(1.f) + 2.f;
  weft::session before(servers.target(work), {}, g);
  CHECK(before.run(x) == 3.f);
  const std::string hello = frame_of(weft::hello_message().encode());
  std::vector<plain_socket> idle;
  for (int i = 0; i < 200; ++i) {
    idle.emplace_back(servers.target(work));
    REQUIRE(idle.back().connected());
    idle.back().send(hello);
  }
  CHECK(idle[0].receive(4) == "WEFT");
  CHECK(before.run(x) == 3.f);
  // Once it has greeted whom it has, half a second without work costs little: it does not ask for descriptors again and again, which would never be quiet.
  std::promise<void> never;
  const auto time = never.get_future();
  CHECK(process_counts::soon([&] {
    const long used = ticks(servers.id(work));
    time.wait_for(std::chrono::milliseconds(500));
    return ticks(servers.id(work)) - used < 20;
  }));
  const auto report = before.run(x);
  CHECK(report == 3.f);
  idle.clear();
  weft::session after(servers.target(work), {}, g);
  CHECK(after.run(x) == 3.f);
}

TEST_CASE("scarce: without memory a step or a message fails, and the server lives") {
  if (is_sanitized) {
    MESSAGE("skipped: a sanitizer needs the memory itself");
    return;
  }
  processes servers({{"work", 1}}, [] { limit(RLIMIT_AS, rlim_t{1} << 30); });
  const weft::graph g;
  const auto scope = g.as_default();
  const auto size = weft::placeholder<std::int64_t, 1>("size");
  const auto large = weft::reduce_sum(weft::tensor<float, 1>(weft::output{&weft::detail::add_node("Fill", {size.raw(), weft::constant(1.f).raw()}, weft::op_name(), {{"index_type", weft::dtype::int64}}), 0}));
  weft::session session(servers.target(work), {}, g);
  CHECK(session.run({{size, {10}}}, large) == 10.f);
  const auto why = error_of([&] { session.run({{size, {std::int64_t{1} << 30}}}, large); });
  CHECK(why.code == error_code::resource_exhausted);
  // A message that claims 2 GiB is read and thrown away as far as it comes.
  std::string frame = frame_of(weft::run_message().encode({weft::tensor_value(weft::dtype::float32, {4})}));
  const std::uint64_t elements = std::uint64_t{1} << 29;
  weft::detail::store_little_endian(elements * 4, frame.data() + 24);
  weft::detail::store_little_endian(elements * 4, frame.data() + 32 + 4);
  weft::detail::store_little_endian(elements, frame.data() + 32 + 12);
  const plain_socket claims(servers.target(work));
  claims.send(frame_of(weft::hello_message().encode()) + frame + std::string(1 << 20, 'x'));
  CHECK(session.run({{size, {10}}}, large) == 10.f);
}

TEST_CASE("scarce: a server whose threads have stacks of 256 KiB runs deep graphs, long frames and what nobody sends") {
  if (is_sanitized) {
    MESSAGE("skipped: a sanitizer's frames are larger");
    return;
  }
  processes servers({{"ps", 1}, {"work", 1}}, [] { limit(RLIMIT_STACK, rlim_t{256} << 10); });
  const weft::graph g;
  const auto scope = g.as_default();
  // 1. A chain of nodes that crosses tasks at its ends.
  const auto x = weft::placeholder<float, 0>("x");
  auto deep = weft::with_device("/job:ps/task:0", [&] { return x + 1.f; });
  for (int i = 0; i < 10000; ++i) deep = deep + 1.f;
  // 2. A thousand tensors in one frame, both ways.
  std::vector<weft::tensor<float, 0>> many;
  weft::with_device("/job:ps/task:0", [&] {
    for (int i = 0; i < 1000; ++i) many.push_back(x + static_cast<float>(i));
  });
  const auto sum = weft::with_device("/job:work/task:0", [&] { return weft::add_n(many); });
  // 3. A costly kernel, which the pool runs.
  const auto product = weft::reduce_sum(weft::matmul(weft::ones<float>({200, 200}), weft::ones<float>({200, 200})));
  weft::session session(servers.target(work), {}, g);
  CHECK(session.run({{x, 1.f}}, deep) == 10002.f);
  CHECK(session.run({{x, 1.f}}, sum) == 500500.f);
  CHECK(session.run(product) == 8000000.f);
  // 4. Bytes that are no frame, and a frame whose head claims to be nested without end.
  const std::string hello = frame_of(weft::hello_message().encode());
  for (const std::string& bytes : {std::string(1 << 20, '['), frame_of(weft::detail::make_message(weft::message_type::prepare, weft::wire_writer().raw(std::string(1 << 20, '\x7f'))))}) {
    const plain_socket stranger(servers.target(work));
    stranger.send(hello + bytes);
    CHECK(stranger.is_closed());
  }
  CHECK(session.run({{x, 1.f}}, deep) == 10002.f);
}
