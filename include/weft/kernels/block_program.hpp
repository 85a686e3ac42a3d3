#ifndef WEFT_KERNELS_BLOCK_PROGRAM_HPP
#define WEFT_KERNELS_BLOCK_PROGRAM_HPP
// Several elementwise steps in one pass over arrays: a block of elements goes through all steps while it is in the cache. The steps are the loops
// that the ops themselves run, so results are theirs bit for bit and nothing is compiled for a program.

#include <weft/kernels/element_types.hpp>
#include <weft/kernels/math_table.hpp>
#include <weft/kernels/simd.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#if WEFT_HAS_KERNEL_BODIES
namespace weft::detail {

/// Elementwise steps on values of one dtype (bools between comparisons and logic). Values are numbered in the order in which they are made; the first ones are inputs.
class block_program {
 public:
  /// For arrays of these elements: a floating dtype; 16-bit ones are computed in float from the first input to the last output.
  explicit block_program(dtype type) : type_(type) {}

  /// A new input. All inputs come before everything else.
  int input() {
    ++inputs_;
    return add({nullptr, nullptr, -1, -1, false});
  }
  /// A number, the same for all elements.
  int constant(double number);
  /// The result of an op of the family `math` on one or two values; -1 when it has no loop for them.
  int step(std::string_view op, int a, int b = -1);
  /// Makes a value the next output.
  void output(int value) { outputs_.push_back(value); }

  dtype type() const noexcept { return type_; }
  std::size_t input_count() const noexcept { return inputs_; }
  std::size_t output_count() const noexcept { return outputs_.size(); }
  /// How many steps there are.
  std::size_t size() const noexcept { return values_.size() - inputs_ - constants_.size(); }
  /// Whether a value is bools.
  bool is_bool(int value) const noexcept { return values_[static_cast<std::size_t>(value)].boolean; }

 private:
  friend class block_run;
  // A value: what makes it from which values.
  struct made {
    pair_loop pair;
    single_loop single;
    int a, b;
    bool boolean;
  };
  struct number {
    int value;
    double is;
  };
  int add(made v) {
    values_.push_back(v);
    return static_cast<int>(values_.size()) - 1;
  }
  dtype type_;
  std::vector<made> values_;
  std::vector<number> constants_;
  std::vector<int> outputs_;
  std::size_t inputs_ = 0;
};

inline int block_program::constant(double is) {
  const int value = add({nullptr, nullptr, -1, -1, false});
  constants_.push_back({value, is});
  return value;
}

inline int block_program::step(std::string_view op, int a, int b) {
  const dtype type = is_bool(a) ? dtype::boolean : wide_dtype(type_);
  if (b < 0) {
    const single_op* found = find_single_op(op);
    const single_loop loop = found == nullptr ? nullptr : found->loops.of(type);
    return loop == nullptr ? -1 : add({nullptr, loop, a, -1, found->gives_bool || is_bool(a)});
  }
  const pair_op* found = find_pair_op(op);
  const pair_loop loop = found == nullptr || is_bool(a) != is_bool(b) ? nullptr : found->loops.of(type);
  if (loop == nullptr) return -1;
  if (found->traits & pair_traits::swapped) std::swap(a, b);
  return add({loop, nullptr, a, b, found->traits & pair_traits::gives_bool});
}

/// An array that a program reads: one element for each of the result, or a single one for all.
struct block_input {
  const void* data;
  bool varies;
};

/// A program about to run on arrays: what does not vary is computed once, and every other value has its place.
class block_run {
 public:
  /// For arrays of at most `longest` elements. An output may lie in the storage of an input that varies, element for element; whether it does is the same each time this runs.
  block_run(const block_program& program, const std::vector<block_input>& inputs, const std::vector<void*>& outputs, std::size_t longest);

  /// Runs over `count` elements of each input that varies and of each output.
  void operator()(const void* const* inputs, void* const* outputs, std::size_t count) const;

 private:
  // Where a value lies: in an input or output array, or in a block of its own.
  enum class kind : unsigned char { input, output, block };
  struct place {
    kind in = kind::block;
    std::uint32_t index = 0;
    std::size_t size = 0;  // of an element
  };
  struct job {
    pair_loop pair;
    single_loop single;
    array_function convert;  // without any, a copy
    place a, b, to;
  };
  void find_last_uses();
  void place_inputs(const std::vector<block_input>& inputs);
  void place_step(std::size_t value, const std::vector<block_input>& inputs, const std::vector<void*>& outputs);
  void store_outputs();
  void compute_uniform(const std::vector<block_input>& inputs);
  bool may_overwrite(std::size_t value, const void* output, const std::vector<block_input>& inputs) const noexcept;
  place take_block(std::size_t value) {
    const std::size_t size = program_.is_bool(static_cast<int>(value)) ? 1 : wide_size_;
    if (free_ == 0 || !values_[value].varies) return {kind::block, blocks_++, size};
    std::uint32_t reused = 0;
    while ((free_ >> reused & 1U) == 0) ++reused;
    free_ &= free_ - 1;
    return {kind::block, reused, size};
  }
  void release(int value, std::size_t after) {
    if (value < 0) return;
    value_state& v = values_[static_cast<std::size_t>(value)];
    if (!v.varies || v.last_use != after || v.lies.in != kind::block || v.lies.index >= 64) return;
    free_ |= std::uint64_t{1} << v.lies.index;
    v.last_use = 0;
  }
  const place& place_of(int value) const noexcept { return values_[static_cast<std::size_t>(value)].lies; }
  unsigned char* block(std::uint32_t i) const noexcept { return blocks_at_ + i * stride_; }
  const void* source(const place& p, std::size_t at, const void* const* inputs, void* const* outputs) const noexcept {
    if (p.in == kind::input) return static_cast<const unsigned char*>(inputs[p.index]) + at * p.size;
    return target(p, at, outputs);
  }
  void* target(const place& p, std::size_t at, void* const* outputs) const noexcept {
    return p.in == kind::block ? block(p.index) : static_cast<unsigned char*>(outputs[p.index]) + at * p.size;
  }

  static constexpr std::size_t used_to_the_end = SIZE_MAX;
  const block_program& program_;
  const array_function widen_, narrow_;
  const std::size_t size_, wide_size_, length_, stride_;
  struct value_state {
    bool varies;
    std::size_t last_use;  // the number of the step
    place lies;
  };
  std::vector<value_state> values_;
  // The blocks that may be used again, by bit.
  std::uint64_t free_ = 0;
  std::uint32_t blocks_ = 0;
  std::unique_ptr<unsigned char[]> storage_;
  unsigned char* blocks_at_ = nullptr;
  // What is done for each block of elements.
  std::vector<job> jobs_;
};

// 1. What varies, and how long each value is needed. 2. Where inputs and steps lie, and what is done for each block. 3. What is the same for all blocks.
inline block_run::block_run(const block_program& program, const std::vector<block_input>& inputs, const std::vector<void*>& outputs, std::size_t longest)
    : program_(program), widen_(widening(program.type())), narrow_(narrowing(program.type())), size_(size_of(program.type())), wide_size_(size_of(wide_dtype(program.type()))),
      length_(std::max<std::size_t>(std::min(longest, block_storage::elements), 1)), stride_((length_ * wide_size_ + 63) / 64 * 64) {
  const std::size_t count = program.values_.size();
  values_.resize(count);
  jobs_.reserve(count + program.outputs_.size());
  const auto varies = [this](int value) { return value >= 0 && values_[static_cast<std::size_t>(value)].varies; };
  for (std::size_t i = 0; i < count; ++i) values_[i].varies = i < inputs.size() ? inputs[i].varies : varies(program.values_[i].a) || varies(program.values_[i].b);
  find_last_uses();
  place_inputs(inputs);
  for (std::size_t i = inputs.size(); i < count; ++i) place_step(i, inputs, outputs);
  store_outputs();
  storage_.reset(new unsigned char[blocks_ * stride_ + 64]);
  const auto begin = reinterpret_cast<std::uintptr_t>(storage_.get());
  blocks_at_ = storage_.get() + ((begin + 63) / 64 * 64 - begin);
  compute_uniform(inputs);
}

inline void block_run::find_last_uses() {
  for (std::size_t i = 0; i < values_.size(); ++i)
    for (const int used : {program_.values_[i].a, program_.values_[i].b})
      if (used >= 0) values_[static_cast<std::size_t>(used)].last_use = i;
}

// Elements that are narrower than they are computed come into a block; so do those that are an output too.
inline void block_run::place_inputs(const std::vector<block_input>& inputs) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    const bool is_output = std::find(program_.outputs_.begin(), program_.outputs_.end(), static_cast<int>(i)) != program_.outputs_.end();
    const place array{kind::input, static_cast<std::uint32_t>(i), size_};
    value_state& v = values_[i];
    v.lies = array;
    if (is_output) v.last_use = used_to_the_end;
    if (v.varies && widen_ == nullptr && !is_output) continue;
    v.lies = take_block(i);
    if (v.varies) jobs_.push_back({nullptr, nullptr, widen_, array, {}, v.lies});
  }
}

// Whether a step may write an output at once: nothing that comes later reads an input that lies there.
inline bool block_run::may_overwrite(std::size_t value, const void* output, const std::vector<block_input>& inputs) const noexcept {
  for (std::size_t i = 0; i < inputs.size(); ++i)
    if (inputs[i].varies && inputs[i].data == output && values_[i].lies.in == kind::input && values_[i].last_use > value) return false;
  return true;
}

inline void block_run::place_step(std::size_t value, const std::vector<block_input>& inputs, const std::vector<void*>& outputs) {
  const auto& v = program_.values_[value];
  value_state& state = values_[value];
  const auto found = std::find(program_.outputs_.begin(), program_.outputs_.end(), static_cast<int>(value));
  const auto number = static_cast<std::size_t>(found - program_.outputs_.begin());
  const bool is_output = found != program_.outputs_.end(), is_bool = program_.is_bool(static_cast<int>(value));
  if (is_output && state.varies && (narrow_ == nullptr || is_bool) && may_overwrite(value, outputs[number], inputs)) {
    state.lies = {kind::output, static_cast<std::uint32_t>(number), is_bool ? 1 : size_};
  } else {
    if (is_output) state.last_use = used_to_the_end;
    state.lies = take_block(value);
  }
  if (!state.varies) return;
  jobs_.push_back({v.pair, v.single, nullptr, place_of(v.a), v.b < 0 ? place() : place_of(v.b), state.lies});
  release(v.a, value);
  release(v.b, value);
}

inline void block_run::store_outputs() {
  for (std::size_t o = 0; o < program_.outputs_.size(); ++o) {
    const int value = program_.outputs_[o];
    const place& from = place_of(value);
    if (from.in == kind::output && from.index == o) continue;
    const bool is_bool = program_.is_bool(value);
    jobs_.push_back({nullptr, nullptr, is_bool || from.in == kind::output ? nullptr : narrow_, from, {}, {kind::output, static_cast<std::uint32_t>(o), is_bool ? 1 : size_}});
  }
}

inline void block_run::compute_uniform(const std::vector<block_input>& inputs) {
  const auto spread = [this](std::size_t value, const void* first) {
    unsigned char* to = block(values_[value].lies.index);
    std::memcpy(to, first, wide_size_);
    for (std::size_t filled = 1; filled < length_; filled *= 2) std::memcpy(to + filled * wide_size_, to, std::min(filled, length_ - filled) * wide_size_);
  };
  double wide = 0;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (values_[i].varies) continue;
    if (widen_ == nullptr) std::memcpy(&wide, inputs[i].data, size_);
    else widen_(inputs[i].data, &wide, 1);
    spread(i, &wide);
  }
  for (const auto& constant : program_.constants_) {
    const auto single = static_cast<float>(constant.is);
    spread(static_cast<std::size_t>(constant.value), wide_size_ == sizeof single ? static_cast<const void*>(&single) : &constant.is);
  }
  for (std::size_t i = inputs.size(); i < values_.size(); ++i) {
    const auto& v = program_.values_[i];
    if (values_[i].varies || v.a < 0) continue;
    const unsigned char* a = block(place_of(v.a).index);
    unsigned char* to = block(values_[i].lies.index);
    if (v.pair != nullptr) v.pair(a, block(place_of(v.b).index), to, length_, 0);
    else v.single(a, to, length_, 0);
  }
}

inline void block_run::operator()(const void* const* inputs, void* const* outputs, std::size_t count) const {
  for (std::size_t at = 0; at < count; at += length_) {
    const std::size_t some = std::min(count - at, length_);
    for (const job& j : jobs_) {
      const void* a = source(j.a, at, inputs, outputs);
      void* to = target(j.to, at, outputs);
      if (j.pair != nullptr) j.pair(a, source(j.b, at, inputs, outputs), to, some, 0);
      else if (j.single != nullptr) j.single(a, to, some, 0);
      else if (j.convert != nullptr) j.convert(a, to, some);
      else std::memcpy(to, a, some * j.to.size);
    }
  }
}

}  // namespace weft::detail
#endif

#endif
