#undef WEFT_SEPARATE_COMPILATION  // fills are templates, compiled where they are tested
#include <weft/kernels/philox.hpp>

#include <weft/tensor/dtype.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <algorithm>
#include <cstdint>
#include <limits>
#include <set>
#include <thread>
#include <vector>

namespace d = weft::detail;

namespace {

template <class Check>
void for_each_set(Check check) {
  for (d::instruction_set set : d::all_instruction_sets) {
    if (!d::processor_has(set)) continue;
    CAPTURE(d::name_of(set));
    check(set);
  }
}

template <class T>
std::vector<T> uniform(d::philox_random generator, std::size_t count, d::instruction_set set) {
  std::vector<T> out(count);
  d::fill_uniform(out.data(), count, generator, set);
  return out;
}
template <class T>
std::vector<T> integers(d::philox_random generator, std::size_t count, T lowest, T above, d::instruction_set set) {
  std::vector<T> out(count);
  d::fill_uniform_int(out.data(), count, lowest, above, generator, set);
  return out;
}

}  // namespace

TEST_CASE("philox: the known answers of its authors") {
  for_each_set([](d::instruction_set set) {
    std::uint32_t words[4];
    d::philox_random zeros(0, 0);
    d::philox_words(zeros, words, 1, set);
    CHECK((words[0] == 0x6627e8d5U && words[1] == 0xe169c58dU && words[2] == 0xbc57ac4cU && words[3] == 0x9b00dbd8U));
  });
}

// The runs below are what TensorFlow's kernels give for these seeds.
TEST_CASE("uniform: float as TensorFlow, run after run") {
  for_each_set([](d::instruction_set set) {
    d::philox_counter counter(87654321, 42);
    CHECK(uniform<float>(counter.reserve(5), 5, set) == std::vector<float>{0.95227146f, 0.67740774f, 0.79531825f, 0.75578177f, 0.4759556f});
    CHECK(uniform<float>(counter.reserve(5), 5, set) == std::vector<float>{0.81274223f, 0.59748733f, 0.79614735f, 0.5760071f, 0.13790011f});
    d::philox_counter negative(static_cast<std::uint64_t>(-5), 123456789012);
    CHECK(uniform<float>(negative.reserve(4), 4, set) == std::vector<float>{0.25410235f, 0.53191066f, 0.4999839f, 0.9105513f});
    CHECK(uniform<float>(negative.reserve(4), 4, set) == std::vector<float>{0.6620928f, 0.6383623f, 0.94401014f, 0.16908288f});
  });
}

TEST_CASE("uniform: double as TensorFlow") {
  for_each_set([](d::instruction_set set) {
    d::philox_counter counter(87654321, 42);
    CHECK(uniform<double>(counter.reserve(5), 5, set) ==
          std::vector<double>{0.6181726095777149, 0.36254602252651336, 0.8076457653772362, 0.4881631901754211, 0.6897747269334924});
    CHECK(uniform<double>(counter.reserve(5), 5, set) ==
          std::vector<double>{0.5019386589480328, 0.3691790245026483, 0.10320139180478738, 0.9878199457916772, 0.7460118601115813});
  });
}

TEST_CASE("uniform: bfloat16 as TensorFlow, half from the low bits of each word") {
  for_each_set([](d::instruction_set set) {
    const float expected[] = {0.0078125f, 0.53125f, 0.1328125f, 0.203125f, 0.8671875f};
    const std::vector<weft::bfloat16> brain = uniform<weft::bfloat16>(d::philox_random(3, 4), 5, set);
    for (std::size_t i = 0; i < 5; ++i) CHECK(static_cast<float>(brain[i]) == expected[i]);
    std::uint32_t words[8];
    d::philox_random generator(3, 4);
    d::philox_words(generator, words, 2, set);
    const std::vector<weft::half> halves = uniform<weft::half>(d::philox_random(3, 4), 5, set);
    for (std::size_t i = 0; i < 5; ++i) CHECK(static_cast<float>(halves[i]) == static_cast<float>(words[i] & 1023U) / 1024.f);
  });
}

TEST_CASE("uniform: long outputs as TensorFlow") {
  for_each_set([](d::instruction_set set) {
    d::philox_counter counter(3, 4);
    const double means[] = {0.503351375246048, 0.4999525237798691};
    for (double mean : means) {
      double sum = 0;
      for (float value : uniform<float>(counter.reserve(5000), 5000, set)) sum += static_cast<double>(value);
      CHECK(sum / 5000 == doctest::Approx(mean).epsilon(1e-12));
    }
  });
}

TEST_CASE("uniform integers: as TensorFlow") {
  for_each_set([](d::instruction_set set) {
    d::philox_counter counter(87654321, 42);
    CHECK(integers<std::int32_t>(counter.reserve(5), 5, -3, 2147483647, set) ==
          std::vector<std::int32_t>{838460419, 1985393991, 929418490, 249609586, 146598938});
    CHECK(integers<std::int32_t>(counter.reserve(5), 5, -3, 2147483647, set) ==
          std::vector<std::int32_t>{887621611, 1422686834, 2103830565, 1137293975, 1360111283});
    d::philox_counter wide(1, 2);
    constexpr std::int64_t quarter = std::int64_t{1} << 62;
    CHECK(integers<std::int64_t>(wide.reserve(6), 6, -quarter, quarter, set) ==
          std::vector<std::int64_t>{-3680067806584109873, -3888016201593972938, 1946874808246780275, -3599716461631496303,
                                    1911047637867380309, 4512175627497718854});
  });
}

TEST_CASE("uniform: every part of a stream can be had by itself") {
  for_each_set([](d::instruction_set set) {
    const std::vector<float> whole = uniform<float>(d::philox_random(5, 6), 3000, set);
    for (std::size_t block : {1U, 7U, 255U, 256U, 700U}) {
      d::philox_random later(5, 6);
      later.skip(block);
      CHECK(uniform<float>(later, 21, set) == std::vector<float>(whole.begin() + static_cast<std::ptrdiff_t>(4 * block),
                                                                 whole.begin() + static_cast<std::ptrdiff_t>(4 * block + 21)));
    }
    for (float value : whole) CHECK((value >= 0.f && value < 1.f));
    CHECK(uniform<float>(d::philox_random(5, 6), 0, set).empty());
  });
}

TEST_CASE("philox: the counter carries into its upper half") {
  for_each_set([](d::instruction_set set) {
    d::philox_random generator(5, 6);
    generator.skip(std::numeric_limits<std::uint64_t>::max() - 1);
    std::uint32_t words[16], start[4];
    d::philox_words(generator, words, 4, set);
    CHECK(generator.counter_low() == 2);
    CHECK(generator.counter_high() == 7);
    d::philox_random next(5, 7);
    d::philox_words(next, start, 1, set);
    for (std::size_t i = 0; i < 4; ++i) CHECK(words[8 + i] == start[i]);
  });
}

TEST_CASE("philox counter: concurrent runs take distinct parts") {
  d::philox_counter counter(1, 2);
  std::vector<std::uint64_t> starts(400);
  std::vector<std::thread> threads;
  for (std::size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (std::size_t i = 0; i < 100; ++i) starts[t * 100 + i] = counter.reserve(3).counter_low();
    });
  }
  for (std::thread& thread : threads) thread.join();
  const std::set<std::uint64_t> distinct(starts.begin(), starts.end());
  CHECK(distinct.size() == 400);
  CHECK(*distinct.begin() == 0);
  CHECK(*distinct.rbegin() == 399 * 3 * 256);
}

TEST_CASE("philox: blocks one by one are those of many at once, across the end of the lower counter") {
  weft::detail::philox_random one(0x123456789abcdef0U, 7), many = one;
  one.skip(0xfffffffffffffffdU);
  many.skip(0xfffffffffffffffdU);
  std::uint32_t all[6 * weft::detail::philox_random::block_words], block[weft::detail::philox_random::block_words];
  weft::detail::philox_words(many, all, 6);
  for (std::size_t i = 0; i < 6; ++i) {
    weft::detail::philox_block(one, block);
    CHECK(std::equal(block, block + 4, all + 4 * i));
  }
  CHECK(one.counter_low() == many.counter_low());
  CHECK(one.counter_high() == 8);
}

TEST_CASE("philox: integers of all bits are the words, two to a long one, low first") {
  weft::detail::philox_random words(1, 2);
  std::uint32_t wanted[8];
  weft::detail::philox_words(words, wanted, 2);
  std::uint32_t narrow[5];
  std::uint64_t wide[3];
  weft::detail::fill_all_integers(narrow, 5, weft::detail::philox_random(1, 2));
  weft::detail::fill_all_integers(wide, 3, weft::detail::philox_random(1, 2));
  CHECK(std::equal(narrow, narrow + 5, wanted));
  for (std::size_t i = 0; i < 3; ++i) CHECK(wide[i] == (std::uint64_t{wanted[2 * i + 1]} << 32 | wanted[2 * i]));
}
