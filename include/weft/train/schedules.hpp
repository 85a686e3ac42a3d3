#ifndef WEFT_TRAIN_SCHEDULES_HPP
#define WEFT_TRAIN_SCHEDULES_HPP
// Learning rates that change with the step, as TensorFlow's tf.train.exponential_decay and its relatives: scalars to give to an optimizer. Computed in float, or in the dtype of `<double>`.

#include <weft/core/config.hpp>
#include <weft/graph/tensor.hpp>
#include <weft/ops/random.hpp>
#include <weft/train/formula.hpp>
#include <weft/train/hyper_parameter.hpp>

#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace weft {

/// Whether a rate falls with each step or only after each whole `decay_steps`.
enum class staircase { off, on };
/// Whether polynomial decay starts anew when it has come to its end.
enum class cycle { off, on };

namespace detail {
enum class decay { exponential, natural_exponential, inverse_time };
output add_decay(decay how, dtype type, const hyper_parameter& rate, const hyper_parameter& step, const hyper_parameter& steps,
                 const hyper_parameter& decay_rate, staircase stairs, const op_name& name);
output add_polynomial_decay(dtype type, const hyper_parameter& rate, const hyper_parameter& step, const hyper_parameter& steps, const hyper_parameter& end, const hyper_parameter& power, cycle again,
                            const op_name& name);
output add_cosine_decay(dtype type, const hyper_parameter& rate, const hyper_parameter& step, const hyper_parameter& steps, const hyper_parameter& alpha, const op_name& name);
output add_cosine_decay_restarts(dtype type, const hyper_parameter& rate, const hyper_parameter& step, const hyper_parameter& steps, double t_mul, double m_mul, double alpha, const op_name& name);
output add_linear_cosine_decay(dtype type, const hyper_parameter& rate, const hyper_parameter& step, const hyper_parameter& steps, double periods, double alpha, double beta, const op_name& name);
// How noisy a schedule is: the variance at first, and the power of 1 + step by which it falls.
struct schedule_noise {
  double variance, decay;
};
output add_noisy_linear_cosine_decay(dtype type, const hyper_parameter& rate, const hyper_parameter& step, const hyper_parameter& steps, schedule_noise noise, double periods, double alpha, double beta,
                                     const op_name& name);
output add_piecewise_constant(const output& x, const std::vector<tensor_value>& boundaries, const std::vector<tensor_value>& values, const op_name& name);
}  // namespace detail

/// learning_rate * decay_rate ^ (global_step / decay_steps).
template <class T = float>
tensor<T, 0> exponential_decay(hyper_parameter learning_rate, hyper_parameter global_step, hyper_parameter decay_steps,
                               hyper_parameter decay_rate, staircase stairs = staircase::off, op_name name = {}) {
  return tensor<T, 0>(detail::add_decay(detail::decay::exponential, dtype_of<T>, learning_rate, global_step, decay_steps, decay_rate, stairs, name));
}
/// learning_rate * exp(-decay_rate * global_step / decay_steps).
template <class T = float>
tensor<T, 0> natural_exp_decay(hyper_parameter learning_rate, hyper_parameter global_step, hyper_parameter decay_steps,
                               hyper_parameter decay_rate, staircase stairs = staircase::off, op_name name = {}) {
  return tensor<T, 0>(detail::add_decay(detail::decay::natural_exponential, dtype_of<T>, learning_rate, global_step, decay_steps, decay_rate, stairs, name));
}
/// learning_rate / (1 + decay_rate * global_step / decay_steps).
template <class T = float>
tensor<T, 0> inverse_time_decay(hyper_parameter learning_rate, hyper_parameter global_step, hyper_parameter decay_steps,
                                hyper_parameter decay_rate, staircase stairs = staircase::off, op_name name = {}) {
  return tensor<T, 0>(detail::add_decay(detail::decay::inverse_time, dtype_of<T>, learning_rate, global_step, decay_steps, decay_rate, stairs, name));
}
/// From learning_rate to end_learning_rate in decay_steps, along (1 - global_step / decay_steps) ^ power; then stays there, or goes on with the next multiple of decay_steps.
template <class T = float>
tensor<T, 0> polynomial_decay(hyper_parameter learning_rate, hyper_parameter global_step, hyper_parameter decay_steps, hyper_parameter end_learning_rate = 0.0001f, hyper_parameter power = 1.f,
                              cycle again = cycle::off, op_name name = {}) {
  return tensor<T, 0>(detail::add_polynomial_decay(dtype_of<T>, learning_rate, global_step, decay_steps, end_learning_rate, power, again, name));
}
/// From learning_rate along half a cosine to alpha * learning_rate in decay_steps (Loshchilov and Hutter, 2016).
template <class T = float>
tensor<T, 0> cosine_decay(hyper_parameter learning_rate, hyper_parameter global_step, hyper_parameter decay_steps, hyper_parameter alpha = 0.f, op_name name = {}) {
  return tensor<T, 0>(detail::add_cosine_decay(dtype_of<T>, learning_rate, global_step, decay_steps, alpha, name));
}
/// Cosine decay that starts anew after first_decay_steps, each time t_mul as long and m_mul as high.
template <class T = float>
tensor<T, 0> cosine_decay_restarts(hyper_parameter learning_rate, hyper_parameter global_step, hyper_parameter first_decay_steps,
                                   double t_mul = 2, double m_mul = 1, double alpha = 0, op_name name = {}) {
  return tensor<T, 0>(detail::add_cosine_decay_restarts(dtype_of<T>, learning_rate, global_step, first_decay_steps, t_mul, m_mul, alpha, name));
}
/// (alpha + linear decay) * cosine of num_periods waves + beta (Bello et al., 2017).
template <class T = float>
tensor<T, 0> linear_cosine_decay(hyper_parameter learning_rate, hyper_parameter global_step, hyper_parameter decay_steps,
                                 double num_periods = 0.5, double alpha = 0, double beta = 0.001, op_name name = {}) {
  return tensor<T, 0>(detail::add_linear_cosine_decay(dtype_of<T>, learning_rate, global_step, decay_steps, num_periods, alpha, beta, name));
}
/// As linear_cosine_decay, with normal noise on the linear part, of variance initial_variance / (1 + step)^variance_decay, drawn anew at each read (Bello et al., 2017).
template <class T = float>
tensor<T, 0> noisy_linear_cosine_decay(hyper_parameter learning_rate, hyper_parameter global_step, hyper_parameter decay_steps, double initial_variance = 1, double variance_decay = 0.55,
                                       double num_periods = 0.5, double alpha = 0, double beta = 0.001, op_name name = {}) {
  return tensor<T, 0>(detail::add_noisy_linear_cosine_decay(dtype_of<T>, learning_rate, global_step, decay_steps, {initial_variance, variance_decay}, num_periods, alpha, beta, name));
}
/// values[0] up to and including boundaries[0], then values[1] up to and including boundaries[1], and so on; the last value after the last boundary. There is one value more than there are boundaries.
template <class T = float, class I, int N>
tensor<T, N> piecewise_constant(const operand<I, N>& x, const std::vector<std::common_type_t<I>>& boundaries, const std::vector<T>& values, op_name name = {}) {
  std::vector<tensor_value> at, then;
  for (const I& one : boundaries) at.push_back(tensor_value::scalar(one));
  for (const T& one : values) then.push_back(tensor_value::scalar(one));
  return tensor<T, N>(detail::add_piecewise_constant(x.as_input(name.site), at, then, name));
}

}  // namespace weft

#if WEFT_HAS_TRAIN_BODIES
namespace weft::detail {

// The parts that all schedules have, in a name scope of their own.
class schedule {
 public:
  schedule(const char* who, dtype type, const hyper_parameter& rate, const hyper_parameter& step, const hyper_parameter& steps, const op_name& name)
      : type_(type), to_(graph_of_parameter(step, who, "the step", name.site)), site_(name.site), names_(&scope_context::name_scope, claim_name(to_, name, who)), rate_(scalar(rate, "learning_rate")),
        step_(scalar(step, "global_step")), steps_(scalar(steps, "decay_steps")) {}

  term scalar(const hyper_parameter& p, const char* name) const { return scalar_of_parameter(p, type_, to_, site_, name); }
  const term& rate() const { return rate_; }
  const term& step() const { return step_; }
  const term& steps() const { return steps_; }
  // Half a wave of a cosine that goes from 1 to 0 while x goes from 0 to 1.
  term half_wave(const term& x) const { return 0.5 * (1. + apply("Cos", 3.14159265358979323846 * x)); }

 private:
  dtype type_;
  graph_state& to_;
  call_site site_;
  name_scope_object names_;
  term rate_, step_, steps_;
};

WEFT_DECL output add_decay(decay how, dtype type, const hyper_parameter& rate, const hyper_parameter& step, const hyper_parameter& steps,
                           const hyper_parameter& decay_rate, staircase stairs, const op_name& name) {
  const schedule s(how == decay::exponential ? "ExponentialDecay" : how == decay::natural_exponential ? "NaturalExpDecay" : "InverseTimeDecay", type, rate, step, steps, name);
  const term by = s.scalar(decay_rate, "decay_rate");
  term p = s.step() / s.steps();
  if (stairs == staircase::on) p = apply("Floor", p);
  if (how == decay::exponential) return (s.rate() * power(by, p)).value;
  if (how == decay::natural_exponential) return (s.rate() * apply("Exp", apply("Neg", by) * p)).value;
  return (s.rate() / (1. + by * p)).value;
}

WEFT_DECL output add_polynomial_decay(dtype type, const hyper_parameter& rate, const hyper_parameter& step, const hyper_parameter& steps,
                                      const hyper_parameter& end, const hyper_parameter& exponent, cycle again, const op_name& name) {
  const schedule s("PolynomialDecay", type, rate, step, steps, name);
  const term last = s.scalar(end, "end_learning_rate"), to = s.scalar(exponent, "power");
  // The step within the decay, and how long that is: in a cycle, up to the next multiple.
  term at = s.step(), length = s.steps();
  if (again == cycle::on) {
    const term started = apply("Equal", at, number_like(0, at));
    length = length * select(started, number_like(1, at), apply("Ceil", at / length));
  } else {
    at = minimum(at, length);
  }
  return ((s.rate() - last) * power(1. - at / length, to) + last).value;
}

WEFT_DECL output add_cosine_decay(dtype type, const hyper_parameter& rate, const hyper_parameter& step, const hyper_parameter& steps, const hyper_parameter& alpha, const op_name& name) {
  const schedule s("CosineDecay", type, rate, step, steps, name);
  const term least = s.scalar(alpha, "alpha");
  return (s.rate() * ((1. - least) * s.half_wave(minimum(s.step(), s.steps()) / s.steps()) + least)).value;
}

WEFT_DECL output add_cosine_decay_restarts(dtype type, const hyper_parameter& rate, const hyper_parameter& step,
                                           const hyper_parameter& steps, double t_mul, double m_mul, double alpha, const op_name& name) {
  if (!(t_mul > 0)) throw error(error_code::invalid_argument, "cosine_decay_restarts: t_mul must be positive, found " + std::to_string(t_mul), name.site);
  const schedule s("SGDRDecay", type, rate, step, steps, name);
  // How many restarts there were, and how much of the present period is over.
  term done = s.step() / s.steps(), restarts = done;
  if (t_mul == 1) {
    restarts = apply("Floor", done);
    done = done - restarts;
  } else {
    const term factor = number_like(t_mul, done, "t_mul");
    restarts = apply("Floor", apply("Log", 1. - done * (1. - factor)) / apply("Log", factor));
    const term longer = power(factor, restarts);
    done = (done - (1. - longer) / (1. - factor)) / longer;
  }
  const term height = power(number_like(m_mul, done, "m_mul"), restarts);
  return (s.rate() * (number_like(1 - alpha, done) * (height * s.half_wave(done)) + alpha)).value;
}

WEFT_DECL output add_linear_cosine_decay(dtype type, const hyper_parameter& rate, const hyper_parameter& step, const hyper_parameter& steps,
                                         double periods, double alpha, double beta, const op_name& name) {
  const schedule s("LinearCosineDecay", type, rate, step, steps, name);
  const term at = minimum(s.step(), s.steps());
  const term linear = (s.steps() - at) / s.steps(), waves = 2 * periods * (at / s.steps());
  return (s.rate() * ((alpha + linear) * s.half_wave(waves) + beta)).value;
}

WEFT_DECL output add_noisy_linear_cosine_decay(dtype type, const hyper_parameter& rate, const hyper_parameter& step, const hyper_parameter& steps, schedule_noise noise, double periods, double alpha,
                                               double beta, const op_name& name) {
  const schedule s("NoisyLinearCosineDecay", type, rate, step, steps, name);
  graph_state& to = s.rate().value.from->owner();
  const term at = minimum(s.step(), s.steps());
  const term spread = apply("Sqrt", number_like(noise.variance, at) / power(1. + at, number_like(noise.decay, at)));
  const auto [first, second] = op_seeds(to, std::nullopt);
  const output scalar{&add_const(tensor_value(dtype::int32, shape{0}), op_name(name.site), &to), 0};
  const term drawn = apply("RandomStandardNormal", {scalar}, name.site, {{"dtype", type}, {"seed", first}, {"seed2", second}});
  const term linear = (s.steps() - at) / s.steps() + drawn * spread, waves = 2 * periods * (at / s.steps());
  return (s.rate() * ((alpha + linear) * s.half_wave(waves) + beta)).value;
}

WEFT_DECL output add_piecewise_constant(const output& x, const std::vector<tensor_value>& boundaries, const std::vector<tensor_value>& values, const op_name& name) {
  if (x.from == nullptr) throw error(error_code::invalid_argument, "piecewise_constant: x is an empty tensor, not made by any op", name.site);
  if (values.size() != boundaries.size() + 1)
    throw error(error_code::invalid_argument,
                "piecewise_constant: there must be one value more than there are boundaries, found " + std::to_string(values.size()) +
                    " values and " + std::to_string(boundaries.size()) + " boundaries",
                name.site);
  graph_state& to = x.from->owner();
  const name_scope_object names(&scope_context::name_scope, claim_name(to, name, "PiecewiseConstant"));
  const term at{x, name.site};
  const auto constant = [&](const tensor_value& v) { return term{{&add_const(v, op_name(name.site), &to), 0}, name.site}; };
  term out = constant(values[0]);
  for (std::size_t i = 0; i < boundaries.size(); ++i) out = select(apply("Greater", at, constant(boundaries[i])), constant(values[i + 1]), out);
  return out.value;
}

}  // namespace weft::detail
#endif

#endif
