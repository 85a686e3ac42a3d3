#include <weft/train/dataset.hpp>

#include <weft/graph.hpp>
#include <weft/session/local_session.hpp>
#include <weft/tensor/xtensor.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

using weft::dataset_options;
using weft::dtype;
using weft::tensor_value;

namespace {

// The rows 0 to n - 1: row i is [10 i, 10 i + 1], its label is i.
std::vector<tensor_value> rows(std::int64_t n) {
  tensor_value x(dtype::float32, weft::shape{n, 2}), y(dtype::int32, weft::shape{n});
  for (std::int64_t i = 0; i < n; ++i) {
    x.mutable_data<float>()[2 * i] = static_cast<float>(10 * i);
    x.mutable_data<float>()[2 * i + 1] = static_cast<float>(10 * i + 1);
    y.mutable_data<std::int32_t>()[i] = static_cast<std::int32_t>(i);
  }
  return {x, y};
}

// The labels of an epoch; each row must have stayed with its label.
std::vector<int> labels(weft::dataset& data, std::int64_t epoch) {
  std::vector<int> out;
  for (const weft::batch& b : data.epoch(epoch))
    for (std::int64_t i = 0; i < b.size(); ++i) {
      const int label = b[1].data<std::int32_t>()[i];
      CHECK(b[0].data<float>()[2 * i + 1] == static_cast<float>(10 * label + 1));
      out.push_back(label);
    }
  return out;
}

template <class F> std::string fault(F&& call) {
  try {
    call();
  } catch (const weft::error& e) {
    return e.message();
  }
  return "";
}

}  // namespace

TEST_CASE("dataset: batches in order, the last one short or dropped, epochs counted") {
  dataset_options options;
  options.batch_size = 4;
  options.epochs = 2;
  weft::dataset data(rows(10), options);
  CHECK(data.batches() == 3);
  std::vector<std::int64_t> sizes, epochs;
  while (!data.done()) {
    const auto b = data.next();
    sizes.push_back(b.size());
    epochs.push_back(b.epoch);
  }
  CHECK(sizes == std::vector<std::int64_t>{4, 4, 2, 4, 4, 2});
  CHECK(epochs == std::vector<std::int64_t>{0, 0, 0, 1, 1, 1});
  CHECK(fault([&] { (void)data.next(); }) == "the dataset has ended after 2 epochs");
  data.seek(4);
  CHECK(data.next()[1] == tensor_value::from<std::int32_t>({4}, {4, 5, 6, 7}));
  options.remainder = weft::remainder::drop;
  CHECK(weft::dataset(rows(10), options).batches() == 2);
  weft::dataset none(rows(3), options);
  CHECK(none.done());
  CHECK(fault([&] { (void)none.next(); }) == "the dataset has no batch of 4 examples");
}

TEST_CASE("dataset: shuffling is the same for the same seed, another one each epoch") {
  dataset_options options;
  options.batch_size = 7;
  options.order = weft::example_order::shuffled;
  options.seed = 5;
  weft::dataset data(rows(100), options), again(rows(100), options);
  const auto first = labels(data, 0), second = labels(data, 1);
  CHECK(first != second);
  CHECK(labels(again, 1) == second);
  CHECK(labels(data, 0) == first);
  auto sorted = first;
  std::sort(sorted.begin(), sorted.end());
  for (int i = 0; i < 100; ++i) CHECK(sorted[static_cast<std::size_t>(i)] == i);
  options.seed = 6;
  weft::dataset other(rows(100), options);
  CHECK(labels(other, 0) != first);
  // The order is the same on every machine.
  options.seed = 1;
  weft::dataset small(rows(6), options);
  CHECK(labels(small, 0) == std::vector<int>{2, 3, 1, 5, 4, 0});
}

TEST_CASE("dataset: workers share an epoch without overlap") {
  for (const auto rest : {weft::remainder::keep, weft::remainder::drop}) {
    std::vector<int> seen;
    for (std::int64_t worker = 0; worker < 3; ++worker) {
      dataset_options options;
      options.batch_size = 2;
      options.order = weft::example_order::shuffled;
      options.worker = worker;
      options.workers = 3;
      options.remainder = rest;
      weft::dataset data(rows(20), options);
      CHECK(data.batches() == (rest == weft::remainder::drop || worker == 2 ? 3 : 4));
      const auto mine = labels(data, 2);
      seen.insert(seen.end(), mine.begin(), mine.end());
    }
    std::sort(seen.begin(), seen.end());
    CHECK(seen.size() == (rest == weft::remainder::drop ? 18 : 20));
    CHECK(std::unique(seen.begin(), seen.end()) == seen.end());
  }
}

TEST_CASE("dataset: batches are fed to placeholders, strings too; misuse is named") {
  weft::graph graph;
  const auto scope = graph.as_default();
  const auto x = weft::placeholder<float, 2>();
  const auto y = weft::placeholder<std::int32_t, 1>();
  weft::dataset data(rows(5));
  weft::local_session session;
  const auto b = data.next();
  CHECK(session.run(b.feeds(x, y), weft::reduce_sum(y)) == 10);
  CHECK(session.run({{x, b[0]}}, weft::reduce_sum(x)) == 205.f);
  const auto z = weft::placeholder<float, 1>();
  CHECK(fault([&] { (void)b.feeds(x, y, z); }) == "the batch has 2 parts, 3 placeholders are given");
  weft::dataset texts({tensor_value::from<std::string>({2}, {"a", "b"}), tensor_value(dtype::float32, weft::shape{2, 0})});
  CHECK(texts.next()[0] == tensor_value::from<std::string>({2}, {"a", "b"}));

  CHECK(fault([] { weft::dataset({}); }) == "a dataset needs at least one part");
  CHECK(fault([] { weft::dataset({tensor_value::scalar(1.f)}); }) == "part 0 of the dataset has no rows");
  CHECK(fault([] { weft::dataset({rows(2)[0], rows(3)[1]}); }) == "part 1 of the dataset has shape [3], expected 2 rows as in part 0");
  dataset_options options;
  options.batch_size = 0;
  CHECK(fault([&] { weft::dataset(rows(2), options); }) == "a batch has at least one example, asked for 0");
  options.batch_size = 1;
  options.worker = 2;
  options.workers = 2;
  CHECK(fault([&] { weft::dataset(rows(2), options); }) == "there is no worker 2 of 2");
  CHECK(fault([&] { (void)weft::dataset(rows(2)).at(0, 1); }) == "there is no batch 1 of epoch 0; an epoch has 1");
}
