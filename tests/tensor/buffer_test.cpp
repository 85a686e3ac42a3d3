#include <weft/tensor/buffer.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <cstdlib>
#include <memory>
#include <string>
#include <utility>

using weft::buffer_ptr;

namespace {

// A memory that the host may not touch, with room for 100 bytes.
class far_memory : public weft::memory {
 public:
  void* allocate(std::size_t bytes) override {
    if (bytes > 100) return nullptr;
    ++held;
    return std::malloc(bytes);
  }
  void deallocate(void* data, std::size_t) noexcept override {
    --held;
    std::free(data);
  }
  bool host() const noexcept override { return false; }
  std::string_view name() const noexcept override { return "FAR:0"; }
  int held = 0;
};

struct counted {
  counted() { ++alive; }
  ~counted() { --alive; }
  static inline int alive = 0;
};

}  // namespace

TEST_CASE("buffer: aligned to 64 bytes, also when empty") {
  for (const std::size_t bytes : {0U, 1U, 63U, 64U, 65U, 1000U, 100000U}) {
    const buffer_ptr b = buffer_ptr::allocate(bytes);
    CHECK(b->bytes() == bytes);
    CHECK(reinterpret_cast<std::uintptr_t>(b->data()) % 64 == 0);
    CHECK(b->host());
    CHECK(b->memory() == nullptr);
  }
}

TEST_CASE("buffer: unique as long as one holder is left") {
  buffer_ptr a = buffer_ptr::allocate(8);
  CHECK(a->unique());
  {
    const buffer_ptr b = a;
    CHECK_FALSE(a->unique());
    CHECK(b.get() == a.get());
  }
  CHECK(a->unique());
  const buffer_ptr c = std::move(a);
  CHECK(c->unique());
  CHECK_FALSE(static_cast<bool>(a));
  buffer_ptr d;
  d = c;
  CHECK_FALSE(c->unique());
  const buffer_ptr& same = d;
  d = same;
  CHECK(d.get() == c.get());
  d = buffer_ptr();
  CHECK(c->unique());
}

TEST_CASE("buffer: objects are constructed, and destroyed with the last holder") {
  {
    const buffer_ptr a = buffer_ptr::of_objects<counted>(5);
    const buffer_ptr b = a;
    CHECK(counted::alive == 5);
  }
  CHECK(counted::alive == 0);
  const buffer_ptr text = buffer_ptr::of_objects<std::string>(3);
  static_cast<std::string*>(text->data())[2] = std::string(100, 'x');
  CHECK(static_cast<std::string*>(text->data())[1].empty());
}

TEST_CASE("buffer: wrapped bytes are used in place and their owner is kept") {
  auto owner = std::make_shared<int>(7);
  {
    buffer_ptr b = buffer_ptr::wrap(owner.get(), sizeof(int), owner);
    CHECK(b->data() == owner.get());
    CHECK(b->bytes() == sizeof(int));
    CHECK(owner.use_count() == 2);
    const buffer_ptr second = b;
    b = buffer_ptr();
    CHECK(owner.use_count() == 2);
  }
  CHECK(owner.use_count() == 1);
}

TEST_CASE("buffer: more than there can be is RESOURCE_EXHAUSTED") {
  CHECK_THROWS_WITH_AS(buffer_ptr::allocate(SIZE_MAX), "RESOURCE_EXHAUSTED: cannot allocate 18446744073709551615 bytes for a tensor", weft::error);
  // The system would give it, and end the process when it is written.
  CHECK_THROWS_WITH_AS(buffer_ptr::allocate(std::size_t{1} << 46), "RESOURCE_EXHAUSTED: cannot allocate 70368744177728 bytes for a tensor", weft::error);
  CHECK_THROWS_WITH_AS(buffer_ptr::of_objects<std::string>(SIZE_MAX / 8), "RESOURCE_EXHAUSTED: cannot allocate 2305843009213693951 elements", weft::error);
}

TEST_CASE("buffer: another memory is named, asked, and given back to") {
  const auto far = std::make_shared<far_memory>();
  {
    const buffer_ptr b = buffer_ptr::allocate(100, far);
    CHECK(b->memory() == far.get());
    CHECK_FALSE(b->host());
    CHECK(far->held == 1);
    CHECK_THROWS_WITH_AS(buffer_ptr::allocate(101, far), "RESOURCE_EXHAUSTED: cannot allocate 101 bytes of FAR:0 memory", weft::error);
  }
  CHECK(far->held == 0);
}
