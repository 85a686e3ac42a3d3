// A network of two layers trained on small images: losses, norms of gradients and parameters of all steps.
#include "runner.hpp"

#include <weft/gradients.hpp>
#include <weft/ops/standard.hpp>
#include <weft/session/local_session.hpp>
#include <weft/tensor/xtensor.hpp>
#include <weft/train/clip.hpp>
#include <weft/train/optimizer.hpp>
#include <weft/train/replicate.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>

namespace conformance {

using namespace weft::detail;

namespace {

constexpr std::size_t images = 500, pixels = 64, batch = 50;

template <class T> struct digits {
  explicit digits(const std::string& path) : pictures(std::array<std::size_t, 2>{images, pixels}), labels(std::array<std::size_t, 1>{images}) {
    std::ifstream file(path);
    std::string line, number;
    for (std::size_t row = 0; row < images && std::getline(file, line); ++row) {
      std::istringstream cells(line);
      for (std::size_t i = 0; i <= pixels && std::getline(cells, number, ','); ++i) {
        if (i < pixels) pictures(row, i) = static_cast<T>(std::stod(number) / 16);
        else labels(row) = std::stoll(number);
      }
    }
  }
  xt::xtensor<T, 2> pictures;
  xt::xtensor<std::int64_t, 1> labels;
};

template <class T> weft::variable<T, 2> waves(std::size_t rows, std::size_t columns, std::size_t from, const char* name) {
  xt::xtensor<T, 2> out(std::array<std::size_t, 2>{rows, columns});
  for (std::size_t i = 0; i < rows; ++i)
    for (std::size_t j = 0; j < columns; ++j) out(i, j) = static_cast<T>(0.1 * std::sin(static_cast<double>(columns * i + j + 1 + from)));
  return weft::variable<T, 2>(out, name);
}
template <class T> weft::variable<T, 1> zeros(std::size_t size, const char* name) { return weft::variable<T, 1>(xt::xtensor<T, 1>(xt::zeros<T>({size})), name); }

// Compares numbers and keeps the first difference.
class differing {
 public:
  explicit differing(double relative, double absolute) : relative_(relative), absolute_(absolute) {}
  template <class U> void check(const std::string& what, double expected, U found) {
    if (why_.empty() && !(std::abs(expected - static_cast<double>(found)) <= absolute_ + relative_ * std::abs(expected))) {
      std::ostringstream text;
      text.precision(17);
      text << what << ": expected " << expected << ", found " << found;
      why_ = text.str();
    }
  }
  const std::string& why() const { return why_; }

 private:
  double relative_, absolute_;
  std::string why_;
};

// The values of a list of [step, value].
std::map<int, double> by_step(const json_at& expected, const char* name) {
  std::map<int, double> out;
  const json_at list = field(expected, name);
  for (std::size_t i = 0; i < elements_at(list).size(); ++i) {
    const json_at one(list.value.items[i], list, i);
    out[static_cast<int>(integer_at(json_at(elements_at(one).at(0), one, 0)))] = real_at(json_at(elements_at(one).at(1), one, 1));
  }
  return out;
}
double number_in(const json_at& map, const char* group, const char* name) { return real_at(field(field(map, group), name)); }

template <class T> class curve {
 public:
  curve(const json_at& record, const digits<T>& data, weft::gradient_averaging averaging)
      : record_(record), data_(data), differing_(std::is_same_v<T, double> ? 1e-10 : 1e-5, std::is_same_v<T, double> ? 1e-13 : 2e-7) {
    const auto scope = graph_.as_default();
    w1_ = waves<T>(pixels, 32, 0, "w1");
    b1_ = zeros<T>(32, "b1");
    w2_ = waves<T>(32, 10, 5000, "w2");
    b2_ = zeros<T>(10, "b2");
    pictures_ = weft::placeholder<T, 2>();
    labels_ = weft::placeholder<std::int64_t, 1>();
    relu_ = text_field_of(record, "activation") == "relu";
    const auto towers = static_cast<int>(integer_at(field(record, "towers"), 1, 100));
    const auto shards = weft::split(pictures_, towers);
    const auto shard_labels = weft::split(labels_, towers);
    weft::replicate_options options;
    options.averaging = averaging;
    const auto built = weft::replicate(towers, {"/device:CPU:0"}, [&](int i) {
      const auto at = static_cast<std::size_t>(i);
      return loss_of(shards[at], shard_labels[at]);
    }, options);
    loss_ = built.loss;
    norm_ = weft::global_norm<T>(built.gradients);
    std::vector<weft::grad_and_variable> gradients = built.gradients;
    if (find_field(record, "clip_global_norm") != nullptr) gradients = weft::clip_by_global_norm<T>(gradients, static_cast<float>(real_at(field(record, "clip_global_norm"))), norm_).first;
    optimizer_ = optimizer_at(record);
    step_ = optimizer_->apply_gradients(gradients);
    full_loss_ = loss_of(pictures_, labels_);
    logits_ = logits_of(pictures_);
  }

  std::string play() {
    const json_at expected = field(record_, "expect"), parameters = field(expected, "parameters");
    const auto losses = by_step(expected, "losses"), norms = by_step(expected, "gradient_norms");
    std::map<int, const json_value*> states;
    for (const json_value& one : elements_at(parameters)) states[static_cast<int>(integer_at(field(json_at(one, parameters, "step"), "step")))] = &one;
    weft::session_options options;
    options.kernel_threads = 1;
    options.optimizer = passes();
    weft::local_session session(options, graph_);
    {
      const auto scope = graph_.as_default();
      session.run(weft::global_variables_initializer());
    }
    const auto steps = static_cast<int>(integer_at(field(record_, "steps"), 1, 1000));
    for (int step = 1; step <= steps && differing_.why().empty(); ++step) {
      const std::size_t from = static_cast<std::size_t>(step - 1) * batch % images;
      xt::xtensor<T, 2> rows(std::array<std::size_t, 2>{batch, pixels});
      xt::xtensor<std::int64_t, 1> labels(std::array<std::size_t, 1>{batch});
      std::copy_n(data_.pictures.begin() + static_cast<std::ptrdiff_t>(from * pixels), batch * pixels, rows.begin());
      std::copy_n(data_.labels.begin() + static_cast<std::ptrdiff_t>(from), batch, labels.begin());
      const auto [loss, norm] = session.run({{pictures_, rows}, {labels_, labels}}, loss_, norm_, step_);
      const std::string at = "step " + std::to_string(step);
      if (const auto it = losses.find(step); it != losses.end()) differing_.check("loss of " + at, it->second, loss);
      if (const auto it = norms.find(step); it != norms.end()) differing_.check("norm of the gradients of " + at, it->second, norm);
      if (const auto it = states.find(step); it != states.end()) check_parameters(session, json_at(*it->second, parameters, "step"), at);
    }
    const auto [loss, logits] = session.run({{pictures_, data_.pictures}, {labels_, data_.labels}}, full_loss_, logits_);
    int right = 0;
    for (std::size_t row = 0; row < images; ++row) {
      std::size_t best = 0;
      for (std::size_t c = 1; c < 10; ++c)
        if (logits(row, c) > logits(row, best)) best = c;
      if (static_cast<std::int64_t>(best) == data_.labels(row)) ++right;
    }
    differing_.check("accuracy", real_at(field(expected, "accuracy")), right / static_cast<double>(images));
    differing_.check("loss of all images", real_at(field(expected, "full_loss")), loss);
    const json_at first = field(expected, "logits_of_row_0");
    for (std::size_t c = 0; c < elements_at(first).size(); ++c) differing_.check("logit " + std::to_string(c) + " of the first image", real_at(json_at(first.value.items[c], first, c)), logits(0, c));
    return differing_.why();
  }

 private:
  weft::tensor<T, 2> logits_of(const weft::tensor<T, 2>& x) const {
    const auto before = weft::matmul(x, w1_) + b1_;
    const weft::tensor<T, 2> hidden = relu_ ? weft::relu(before) : weft::tanh(before);
    return weft::matmul(hidden, w2_) + b2_;
  }
  weft::tensor<T, 0> loss_of(const weft::tensor<T, 2>& x, const weft::tensor<std::int64_t, 1>& labels) const {
    return weft::reduce_mean(weft::sparse_softmax_cross_entropy_with_logits(labels, logits_of(x)));
  }
  void check_parameters(weft::session_interface& session, const json_at& state, const std::string& at) {
    const auto [w1, b1, w2, b2] = session.run(w1_, b1_, w2_, b2_);
    const auto check = [&](const char* name, const auto& v) {
      double sum = 0, squares = 0;
      for (const T x : v) {
        sum += static_cast<double>(x);
        squares += static_cast<double>(x) * static_cast<double>(x);
      }
      const std::string what = std::string(name) + " at " + at;
      // Elements cancel in the sum: it is as exact as they are.
      const double scale = std::sqrt(squares * static_cast<double>(v.size()));
      if (std::abs(sum - number_in(state, "sum", name)) > 1e-6 * scale + (std::is_same_v<T, double> ? 0 : 1e-6)) differing_.check("sum of " + what, number_in(state, "sum", name), sum);
      differing_.check("sum of squares of " + what, number_in(state, "sum_of_squares", name), squares);
      const json_at first = field(field(state, "first"), name);
      for (std::size_t i = 0; i < elements_at(first).size(); ++i)
        differing_.check("element " + std::to_string(i) + " of " + what, real_at(json_at(first.value.items[i], first, i)),
                         *(v.begin() + static_cast<std::ptrdiff_t>(i)));
    };
    check("w1", w1);
    check("b1", b1);
    check("w2", w2);
    check("b2", b2);
  }

  const json_at& record_;
  const digits<T>& data_;
  differing differing_;
  weft::graph graph_;
  bool relu_ = true;
  weft::variable<T, 2> w1_, w2_;
  weft::variable<T, 1> b1_, b2_;
  weft::tensor<T, 2> pictures_, logits_;
  weft::tensor<std::int64_t, 1> labels_;
  weft::tensor<T, 0> loss_, norm_, full_loss_;
  std::unique_ptr<weft::optimizer> optimizer_;
  weft::operation step_;
};

template <class T> std::string check_curve(const json_at& record, const std::string& folder) {
  const digits<T> data(folder + "/digits_500.csv");
  std::string why = curve<T>(record, data, weft::gradient_averaging::on_variables).play();
  if (why.empty() && integer_at(field(record, "towers")) > 1) why = curve<T>(record, data, weft::gradient_averaging::ring).play();
  return why;
}

}  // namespace

void run_curve_record(const json_at& record, const options& asked, report& into) {
  const std::string name = text_field_of(record, "name"), op = "curve";
  if (!asked.wants(op)) return;
  try {
    const std::string why = text_field_of(record, "dtype") == "float64" ? check_curve<double>(record, asked.folder) : check_curve<float>(record, asked.folder);
    if (why.empty()) into.passed(op, name);
    else into.failed(op, name, why);
  } catch (const weft::error& e) {
    into.failed(op, name, std::string("found ") + e.what());
  }
}

}  // namespace conformance
