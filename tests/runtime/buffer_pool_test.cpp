#include <weft/runtime/buffer_pool.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <limits>
#include <memory>
#include <thread>
#include <vector>

using weft::buffer_pool;
using weft::buffer_ptr;

namespace {
constexpr std::size_t mib = std::size_t{1} << 20;
}

TEST_CASE("buffer_pool: a freed block serves the next tensor of about its size") {
  const auto pool = std::make_shared<buffer_pool>();
  void* first = nullptr;
  {
    const auto b = buffer_ptr::allocate(4 * mib, pool->for_bytes(4 * mib));
    first = b->data();
    CHECK(reinterpret_cast<std::uintptr_t>(first) % 64 == 0);
    CHECK(b->bytes() == 4 * mib);
    CHECK(b->host());
    CHECK(pool->kept() == 0);
  }
  CHECK(pool->kept() == 4 * mib);
  const auto again = buffer_ptr::allocate(4 * mib - 100, pool->for_bytes(4 * mib - 100));
  CHECK(again->data() == first);
  CHECK(again->bytes() == 4 * mib - 100);
  CHECK(pool->kept() == 0);
}

TEST_CASE("buffer_pool: small tensors are left to malloc") {
  const auto pool = std::make_shared<buffer_pool>();
  CHECK(pool->for_bytes(mib / 16 - 1).get() == nullptr);
  CHECK(pool->for_bytes(mib / 16).get() == pool.get());
  { const auto b = buffer_ptr::allocate(100, pool); }
  CHECK(pool->kept() == 0);
}

TEST_CASE("buffer_pool: it keeps no more than its bound") {
  const auto pool = std::make_shared<buffer_pool>(10 * mib);
  {
    std::vector<buffer_ptr> held;
    for (int i = 0; i < 8; ++i) held.push_back(buffer_ptr::allocate(2 * mib, pool));
    held.push_back(buffer_ptr::allocate(16 * mib, pool));
  }
  CHECK(pool->kept() == 10 * mib);
  pool->trim(5 * mib);
  CHECK(pool->kept() == 4 * mib);
  pool->trim(0);
  CHECK(pool->kept() == 0);
}

TEST_CASE("buffer_pool: a buffer may outlive every other owner of its pool") {
  auto pool = std::make_shared<buffer_pool>();
  auto b = buffer_ptr::allocate(mib, pool);
  pool.reset();
  static_cast<char*>(b->data())[mib - 1] = 1;
  b = buffer_ptr();
}

TEST_CASE("buffer_pool: too many bytes are an error, not an overflow") {
  const auto pool = std::make_shared<buffer_pool>();
  for (const std::size_t bytes : {std::numeric_limits<std::size_t>::max(), std::numeric_limits<std::size_t>::max() / 2})
    try {
      buffer_ptr::allocate(bytes, pool);
      FAIL("expected an error");
    } catch (const weft::error& e) {
      CHECK(e.code() == weft::error_code::resource_exhausted);
    }
}

TEST_CASE("buffer_pool: threads share it") {
  const auto pool = std::make_shared<buffer_pool>(8 * mib);
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < 200; ++i) {
        const auto b = buffer_ptr::allocate(mib + static_cast<std::size_t>(i % 3) * mib, pool);
        static_cast<char*>(b->data())[0] = static_cast<char>(i);
      }
    });
  for (auto& t : threads) t.join();
  CHECK(pool->kept() <= 8 * mib);
}
