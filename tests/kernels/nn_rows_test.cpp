#undef WEFT_SEPARATE_COMPILATION  // the rows of softmax are a template, compiled where they are tested
#include <weft/kernels/nn.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

TEST_CASE("softmax: every instruction set, every length of rows, against double") {
  std::mt19937 random(7);
  for (const weft::detail::instruction_set set : weft::detail::all_instruction_sets) {
    if (!weft::detail::processor_has(set)) continue;
    for (const std::size_t columns : {1U, 2U, 3U, 15U, 63U, 64U, 65U, 127U, 130U, 1000U}) {
      std::vector<float> in(3 * columns), out(in.size()), log_out(in.size());
      for (float& x : in) x = static_cast<float>(random()) * 0x1p-28f - 8.f;
      weft::detail::dispatch<weft::detail::softmax_body<float>>(set, static_cast<const float*>(in.data()), out.data(), std::size_t{3}, columns, false);
      weft::detail::dispatch<weft::detail::softmax_body<float>>(set, static_cast<const float*>(in.data()), log_out.data(), std::size_t{3}, columns, true);
      double worst = 0, worst_log = 0;
      for (std::size_t r = 0; r < 3; ++r) {
        double sum = 0;
        for (std::size_t i = 0; i < columns; ++i) sum += std::exp(static_cast<double>(in[r * columns + i]));
        for (std::size_t i = 0; i < columns; ++i) {
          const double wanted = std::exp(static_cast<double>(in[r * columns + i])) / sum;
          worst = std::max(worst, std::abs(static_cast<double>(out[r * columns + i]) / wanted - 1));
          worst_log = std::max(worst_log, std::abs(static_cast<double>(log_out[r * columns + i]) - std::log(wanted)));
        }
      }
      CAPTURE(columns);
      CHECK(worst < 2e-6);
      CHECK(worst_log < 4e-6);
    }
  }
}
