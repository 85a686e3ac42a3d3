#undef WEFT_SEPARATE_COMPILATION  // bodies are templates, compiled where they are tested
#include <weft/kernels/simd.hpp>

#include <doctest/doctest.h>

#include <string>

namespace d = weft::detail;

namespace {

WEFT_SIMD_BEGIN
struct report_body {
  template <d::instruction_set S> WEFT_SIMD_INLINE static void run(int* set, double* product) {
    *set = static_cast<int>(S);
    *product = d::multiply_add<S>(3.0, 4.0, 5.0);
  }
};
struct order_body {  // (x + big) - big is 0 for a small x, unless a compiler is allowed to reassociate
  template <d::instruction_set S> WEFT_SIMD_INLINE static void run(const float* in, float* out, int count) {
    for (int i = 0; i < count; ++i) out[i] = (in[i] + 0x1p30f) - 0x1p30f;
  }
};
WEFT_SIMD_END

}  // namespace

TEST_CASE("instruction sets: every processor has the portable one and the best is one that it has") {
  CHECK(d::processor_has(d::instruction_set::portable));
  CHECK(d::processor_has(d::best_instruction_set()));
  CHECK(d::best_instruction_set() == d::best_instruction_set());
  if (d::processor_has(d::instruction_set::avx512)) CHECK(d::processor_has(d::instruction_set::avx2));
}

TEST_CASE("instruction sets: names are those of the processors' manuals") {
  CHECK(std::string(d::name_of(d::instruction_set::portable)) == "portable");
  CHECK(std::string(d::name_of(d::instruction_set::avx2)) == "avx2");
  CHECK(std::string(d::name_of(d::instruction_set::avx512)) == "avx512");
}

TEST_CASE("dispatch: a body is run as compiled for the set asked for") {
  for (d::instruction_set set : d::all_instruction_sets) {
    if (!d::processor_has(set)) continue;
    int found = -1;
    double product = 0;
    d::dispatch<report_body>(set, &found, &product);
    CHECK(found == static_cast<int>(set));
    CHECK(product == 17.0);
  }
}

TEST_CASE("dispatch: sets above the highest one that is compiled fall back to it") {
  int found = -1;
  double product = 0;
  d::dispatch<report_body, d::instruction_set::portable>(d::best_instruction_set(), &found, &product);
  CHECK(found == static_cast<int>(d::instruction_set::portable));
  if (!d::processor_has(d::instruction_set::avx512)) return;
  d::dispatch<report_body, d::instruction_set::avx2>(d::instruction_set::avx512, &found, &product);
  CHECK(found == static_cast<int>(d::instruction_set::avx2));
}

TEST_CASE("bodies: additions keep the order in which they are written, whatever the flags") {
  for (d::instruction_set set : d::all_instruction_sets) {
    if (!d::processor_has(set)) continue;
    float in[19], out[19];
    for (int i = 0; i < 19; ++i) in[i] = static_cast<float>(i) * 0.25f;
    d::dispatch<order_body>(set, static_cast<const float*>(in), static_cast<float*>(out), 19);
    for (float value : out) CHECK(value == 0.0f);
  }
}
