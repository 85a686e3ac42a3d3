#ifndef WEFT_TRAIN_HYPER_PARAMETER_HPP
#define WEFT_TRAIN_HYPER_PARAMETER_HPP
// What an optimizer is told: a number, or a scalar of the graph that each step computes anew, such as a learning rate that decays.

#include <weft/graph/operand.hpp>

#include <type_traits>

namespace weft {

/// A number, a scalar tensor or a scalar variable, of any real dtype; it is converted to the dtype of what it is used with.
class hyper_parameter {
 public:
  template <class U, std::enable_if_t<std::is_arithmetic_v<U> && !std::is_same_v<U, bool>, int> = 0> hyper_parameter(U number) : number_(static_cast<double>(number)) {}
  template <class T, int N> hyper_parameter(const operand<T, N>& x) : what_(detail::side_of(x)) {
    static_assert(N == 0 || N == dynamic_rank, "weft: a hyper-parameter must be a scalar");
  }
  hyper_parameter(output tensor) : what_{tensor, false, tensor_value()} {}

  /// Whether it is a number, the same in each step.
  bool is_number() const noexcept { return what_.out.from == nullptr; }
  /// The number, when it is one.
  double number() const noexcept { return number_; }
  /// The tensor or the handle of the variable, when it is not a number.
  const output& out() const noexcept { return what_.out; }
  /// Whether `out()` is a variable to read.
  bool reads_variable() const noexcept { return what_.reads_variable; }

 private:
  double number_ = 0;
  detail::side what_;
};

}  // namespace weft

#endif
