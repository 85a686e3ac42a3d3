// Nothing that a session does to a graph goes as deep as the graph is long.
#include <weft/session/local_session.hpp>

#include "../long_tests.hpp"

#include <weft/gradients.hpp>
#include <weft/graph.hpp>
#include <weft/tensor/xtensor.hpp>

#include <doctest/doctest.h>

#include <cstddef>
#include <tuple>

#include <pthread.h>

namespace {

struct answer {
  int length;
  float value = 0, gradient = 0;
};

void* run_chain(void* to) {
  answer& out = *static_cast<answer*>(to);
  const weft::graph g;
  const auto scope = g.as_default();
  const auto x = weft::placeholder<float, 0>("x");
  weft::tensor<float, 0> y = x;
  for (int i = 0; i < out.length; ++i) {
    const auto device = weft::with_device(i / 500 % 2 == 0 ? "/job:ps/task:0" : "/job:work/task:0");
    y = -y;
  }
  const auto [gradient] = weft::gradients(y, std::tie(x));
  // Fused, the chain would be one node; then written as it is.
  for (const bool fuse : {true, false}) {
    weft::session_options options;
    options.kernel_threads = 1;
    options.optimizer.fuse_elementwise = fuse;
    weft::local_session session(weft::cluster_spec{{"ps", 1}, {"work", 1}}, options, g);
    const auto [value, slope] = session.run({{x, 3.f}}, y, gradient);
    out.value = value;
    out.gradient = slope;
  }
  return nullptr;
}

}  // namespace

TEST_CASE("local_session: a long chain is built, differentiated, cut, run and dropped on a small stack") {
  answer got{takes_long() && !is_sanitized ? 1000000 : 5000};
  pthread_attr_t small;
  REQUIRE(pthread_attr_init(&small) == 0);
  REQUIRE(pthread_attr_setstacksize(&small, std::size_t{512} << 10) == 0);
  pthread_t thread;
  REQUIRE(pthread_create(&thread, &small, run_chain, &got) == 0);
  REQUIRE(pthread_join(thread, nullptr) == 0);
  pthread_attr_destroy(&small);
  CHECK(got.value == 3.f);
  CHECK(got.gradient == 1.f);
}
