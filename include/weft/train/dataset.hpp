#ifndef WEFT_TRAIN_DATASET_HPP
#define WEFT_TRAIN_DATASET_HPP
// Examples in memory, handed out in batches: in order or shuffled, the same for the same seed on every machine, each worker its own share.

#include <weft/core/config.hpp>
#include <weft/core/split_mix.hpp>
#include <weft/session/feed.hpp>
#include <weft/tensor/tensor_value.hpp>

#include <cstddef>
#include <cstdint>
#include <vector>

namespace weft {

/// In which order examples come.
enum class example_order { as_given, shuffled };
/// What becomes of the examples at the end of an epoch that do not fill a batch.
enum class remainder { keep, drop };

/// How a dataset is handed out.
struct dataset_options {
  std::int64_t batch_size = 32;
  example_order order = example_order::as_given;
  /// Where the shuffling begins; each epoch has an order of its own. Workers of one training use the same.
  std::uint64_t seed = 0;
  /// With `drop`, all workers have equally many batches in each epoch.
  weft::remainder remainder = weft::remainder::keep;
  /// This worker, and how many there are: of the epoch's order, worker k gets each `workers`-th example, beginning with number k.
  std::int64_t worker = 0, workers = 1;
  /// How many epochs `next` goes through; 0 means no end.
  std::int64_t epochs = 0;
};

/// Some examples: part i is the rows of the dataset's part i.
struct batch {
  std::vector<tensor_value> parts;
  /// Which epoch it belongs to, and which batch of it it is, both from 0.
  std::int64_t epoch = 0, index = 0;

  const tensor_value& operator[](std::size_t i) const { return parts.at(i); }
  std::int64_t size() const noexcept { return parts.empty() ? 0 : parts[0].shape()[0]; }
  /// `session.run(b.feeds(images, labels), train_op)`: the parts, in their order, for these placeholders. Throws INVALID_ARGUMENT when there are more of them than parts.
  template <class... P> std::vector<feed> feeds(const P&... placeholders) const {
    std::vector<feed> out;
    (out.emplace_back(placeholders.raw(), part(out.size(), sizeof...(P))), ...);
    return out;
  }

 private:
  const tensor_value& part(std::size_t i, std::size_t wanted) const {
    if (wanted > parts.size()) fail(error_code::invalid_argument, "the batch has " + std::to_string(parts.size()) + " parts, " + std::to_string(wanted) + " placeholders are given");
    return parts[i];
  }
};

/// Tensors with one row for each example. Batches are copies. One thread uses it at a time.
class dataset {
 public:
  /// Throws INVALID_ARGUMENT when there is no part, a part has another number of rows, or an option makes no sense.
  explicit dataset(std::vector<tensor_value> parts, const dataset_options& options = {});

  /// How many examples of an epoch this worker gets.
  std::int64_t examples() const noexcept { return mine_; }
  std::int64_t batches() const noexcept;
  const dataset_options& options() const noexcept { return options_; }
  /// This worker's batch of an epoch. Throws OUT_OF_RANGE.
  weft::batch at(std::int64_t epoch, std::int64_t index);
  /// The batches one after another, through all epochs. Throws OUT_OF_RANGE after the last, or at once when an epoch has none.
  weft::batch next();
  /// Whether `next` has another one.
  bool done() const noexcept { return batches() == 0 || (options_.epochs > 0 && at_ >= batches() * options_.epochs); }
  /// Lets `next` go on with this batch, counted over all epochs, as after a restart.
  void seek(std::int64_t batch) noexcept { at_ = batch < 0 ? 0 : batch; }

  /// `for (const weft::batch& b : data.epoch(3))`.
  class epoch_range {
   public:
    class iterator {
     public:
      iterator(dataset* from, std::int64_t epoch, std::int64_t index) : from_(from), epoch_(epoch), index_(index) {}
      weft::batch operator*() const { return from_->at(epoch_, index_); }
      iterator& operator++() {
        ++index_;
        return *this;
      }
      bool operator!=(const iterator& other) const noexcept { return index_ != other.index_; }

     private:
      dataset* from_;
      std::int64_t epoch_, index_;
    };
    epoch_range(dataset* from, std::int64_t epoch) : from_(from), epoch_(epoch) {}
    iterator begin() const { return {from_, epoch_, 0}; }
    iterator end() const { return {from_, epoch_, from_->batches()}; }

   private:
    dataset* from_;
    std::int64_t epoch_;
  };
  epoch_range epoch(std::int64_t number) { return {this, number}; }

 private:
  void prepare(std::int64_t epoch);
  std::vector<tensor_value> parts_;
  dataset_options options_;
  std::int64_t all_ = 0, mine_ = 0, at_ = 0, prepared_ = -1;
  // The order of the epoch that was prepared; empty when it is the given one.
  std::vector<std::int64_t> order_;
};

}  // namespace weft

#if WEFT_HAS_TRAIN_BODIES
#include <algorithm>
#include <cstring>

namespace weft {

WEFT_DECL dataset::dataset(std::vector<tensor_value> parts, const dataset_options& options) : parts_(std::move(parts)), options_(options) {
  if (parts_.empty()) fail(error_code::invalid_argument, "a dataset needs at least one part");
  for (std::size_t i = 0; i < parts_.size(); ++i) {
    const tensor_value& p = parts_[i];
    if (p.empty() || p.shape().rank() == 0) fail(error_code::invalid_argument, "part " + std::to_string(i) + " of the dataset has no rows");
    if (p.shape()[0] != parts_[0].shape()[0])
      fail(error_code::invalid_argument, "part " + std::to_string(i) + " of the dataset has shape " + p.shape().text() + ", expected " + std::to_string(parts_[0].shape()[0]) + " rows as in part 0");
    if (!is_plain(p.dtype()) && p.dtype() != dtype::string) fail(error_code::invalid_argument, "part " + std::to_string(i) + " of the dataset is " + to_text(p.dtype()));
  }
  if (options_.batch_size < 1) fail(error_code::invalid_argument, "a batch has at least one example, asked for " + std::to_string(options_.batch_size));
  if (options_.workers < 1 || options_.worker < 0 || options_.worker >= options_.workers)
    fail(error_code::invalid_argument, "there is no worker " + std::to_string(options_.worker) + " of " + std::to_string(options_.workers));
  all_ = parts_[0].shape()[0];
  mine_ = all_ / options_.workers;
  if (options_.remainder == remainder::keep && options_.worker < all_ % options_.workers) ++mine_;
}

WEFT_DECL std::int64_t dataset::batches() const noexcept {
  return options_.remainder == remainder::keep ? mine_ / options_.batch_size + (mine_ % options_.batch_size != 0 ? 1 : 0) : mine_ / options_.batch_size;
}

// Fisher and Yates' shuffle with a generator whose state is made of the seed and the epoch.
WEFT_DECL void dataset::prepare(std::int64_t epoch) {
  if (options_.order == example_order::as_given || epoch == prepared_) return;
  order_.resize(static_cast<std::size_t>(all_));
  for (std::size_t i = 0; i < order_.size(); ++i) order_[i] = static_cast<std::int64_t>(i);
  detail::split_mix random(options_.seed * 0x9e3779b97f4a7c15ULL ^ static_cast<std::uint64_t>(epoch) * 0xd1342543de82ef95ULL);
  for (std::size_t i = order_.size(); i > 1; --i) std::swap(order_[i - 1], order_[static_cast<std::size_t>(random.next() % i)]);
  prepared_ = epoch;
}

WEFT_DECL batch dataset::at(std::int64_t epoch, std::int64_t index) {
  if (epoch < 0 || index < 0 || index >= batches())
    fail(error_code::out_of_range, "there is no batch " + std::to_string(index) + " of epoch " + std::to_string(epoch) + "; an epoch has " + std::to_string(batches()));
  prepare(epoch);
  weft::batch out;
  out.epoch = epoch;
  out.index = index;
  const std::int64_t first = index * options_.batch_size, count = std::min(options_.batch_size, mine_ - first);
  for (const tensor_value& part : parts_) {
    std::vector<std::int64_t> sizes = part.shape().vector();
    sizes[0] = count;
    tensor_value rows(part.dtype(), weft::shape(sizes));
    const auto per_row = all_ == 0 ? std::size_t(0) : static_cast<std::size_t>(part.elements() / all_);
    for (std::int64_t i = 0; i < count; ++i) {
      const std::int64_t place = (first + i) * options_.workers + options_.worker;
      const auto from = static_cast<std::size_t>(order_.empty() ? place : order_[static_cast<std::size_t>(place)]) * per_row, to = static_cast<std::size_t>(i) * per_row;
      if (part.dtype() == dtype::string) std::copy_n(part.data<std::string>() + from, per_row, rows.mutable_data<std::string>() + to);
      else if (per_row > 0) std::memcpy(rows.mutable_raw_data() + to * size_of(part.dtype()), part.raw_data() + from * size_of(part.dtype()), per_row * size_of(part.dtype()));
    }
    out.parts.push_back(std::move(rows));
  }
  return out;
}

WEFT_DECL batch dataset::next() {
  if (done()) fail(error_code::out_of_range, batches() == 0 ? "the dataset has no batch of " + std::to_string(options_.batch_size) + " examples" : "the dataset has ended after " + std::to_string(options_.epochs) + " epochs");
  weft::batch out = at(at_ / batches(), at_ % batches());
  ++at_;
  return out;
}

}  // namespace weft
#endif

#endif
