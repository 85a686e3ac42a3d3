#ifndef WEFT_TRAIN_PARTITIONER_HPP
#define WEFT_TRAIN_PARTITIONER_HPP
// How a variable is split into pieces, one parameter server for each.

#include <weft/core/config.hpp>
#include <weft/tensor/dtype.hpp>
#include <weft/tensor/shape.hpp>

#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>
#include <vector>

namespace weft {

namespace detail {
class partitioner_base {
 public:
  virtual ~partitioner_base() = default;
  virtual std::vector<std::int64_t> partitions(const shape& s, dtype type) const = 0;
};
template <class Make> class partitions_by final : public partitioner_base {
 public:
  explicit partitions_by(Make make) : make_(std::move(make)) {}
  std::vector<std::int64_t> partitions(const shape& s, dtype type) const override { return make_(s, type); }

 private:
  Make make_;
};
}  // namespace detail

/// Says of a shape and a dtype into how many pieces each dimension is split: one number for each, at most one of them above 1. A value; copies share what they do.
class partitioner {
 public:
  /// None.
  partitioner() = default;
  /// One of your own: a callable that takes a `shape` and a `dtype` and returns the numbers.
  template <class Make, class = std::enable_if_t<std::is_invocable_r_v<std::vector<std::int64_t>, const Make&, const shape&, dtype>>>
  partitioner(Make make) : what_(std::make_shared<detail::partitions_by<Make>>(std::move(make))) {}

  bool empty() const noexcept { return what_ == nullptr; }
  /// The numbers of pieces. Throws INVALID_ARGUMENT when they are none for this shape.
  std::vector<std::int64_t> operator()(const shape& s, dtype type) const;

 private:
  std::shared_ptr<const detail::partitioner_base> what_;
};

/// `pieces` along one axis, fewer where the axis is shorter.
partitioner fixed_size_partitioner(std::int64_t pieces, int axis = 0);
/// As many pieces along an axis as keep each at `max_bytes` (TensorFlow's default is 64 MiB less one), and no more than `max_pieces` unless that is 0.
partitioner variable_axis_size_partitioner(std::int64_t max_bytes = (64 << 20) - 1, int axis = 0, std::int64_t max_pieces = 0, std::int64_t bytes_per_string = 16);
/// At most `max_pieces` along an axis, none of them (on average) smaller than `min_bytes`.
partitioner min_max_variable_partitioner(std::int64_t max_pieces = 1, int axis = 0, std::int64_t min_bytes = 256 << 10, std::int64_t bytes_per_string = 16);

}  // namespace weft

#if WEFT_HAS_TRAIN_BODIES
#include <weft/core/status.hpp>

#include <algorithm>
#include <cmath>
#include <string>

namespace weft {

namespace detail {
WEFT_DECL std::string list_text(const std::vector<std::int64_t>& list) {
  std::string out;
  for (const std::int64_t n : list) out += (out.empty() ? "" : ",") + std::to_string(n);
  return "[" + out + "]";
}
WEFT_DECL std::size_t axis_of(const shape& s, int axis, const char* who) {
  const int at = axis < 0 ? axis + s.rank() : axis;
  if (at < 0 || at >= s.rank()) fail(error_code::invalid_argument, std::string(who) + ": a variable of shape " + s.text() + " has no axis " + std::to_string(axis));
  return static_cast<std::size_t>(at);
}
WEFT_DECL std::int64_t element_bytes(dtype type, std::int64_t bytes_per_string) { return type == dtype::string ? bytes_per_string : static_cast<std::int64_t>(size_of(type)); }
WEFT_DECL void expect_positive(std::int64_t n, const char* who, const char* what) {
  if (n < 1) fail(error_code::invalid_argument, std::string(who) + ": " + what + " must be positive, found " + std::to_string(n));
}
WEFT_DECL std::vector<std::int64_t> pieces_along(const shape& s, std::size_t axis, std::int64_t pieces) {
  std::vector<std::int64_t> out(static_cast<std::size_t>(s.rank()), 1);
  out[axis] = std::max<std::int64_t>(1, std::min(pieces, s[static_cast<int>(axis)]));
  return out;
}
}  // namespace detail

WEFT_DECL std::vector<std::int64_t> partitioner::operator()(const shape& s, dtype type) const {
  if (what_ == nullptr) fail(error_code::invalid_argument, "the partitioner is empty");
  std::vector<std::int64_t> out = what_->partitions(s, type);
  bool right = out.size() == static_cast<std::size_t>(s.rank());
  int split = 0;
  for (std::size_t i = 0; right && i < out.size(); ++i) {
    right = out[i] >= 1 && (out[i] == 1 || out[i] <= s[static_cast<int>(i)]);
    split += out[i] > 1;
  }
  if (!right) fail(error_code::invalid_argument, "a variable of shape " + s.text() + " cannot be split into " + detail::list_text(out) + " pieces");
  if (split > 1) fail(error_code::invalid_argument, "a variable is split along one axis, " + detail::list_text(out) + " are several");
  return out;
}

WEFT_DECL partitioner fixed_size_partitioner(std::int64_t pieces, int axis) {
  detail::expect_positive(pieces, "fixed_size_partitioner", "the number of pieces");
  return partitioner([=](const shape& s, dtype) { return detail::pieces_along(s, detail::axis_of(s, axis, "fixed_size_partitioner"), pieces); });
}

WEFT_DECL partitioner variable_axis_size_partitioner(std::int64_t max_bytes, int axis, std::int64_t max_pieces, std::int64_t bytes_per_string) {
  detail::expect_positive(max_bytes, "variable_axis_size_partitioner", "the number of bytes");
  detail::expect_positive(bytes_per_string, "variable_axis_size_partitioner", "the number of bytes of a string");
  if (max_pieces < 0) detail::expect_positive(max_pieces, "variable_axis_size_partitioner", "the number of pieces");
  return partitioner([=](const shape& s, dtype type) {
    const std::size_t at = detail::axis_of(s, axis, "variable_axis_size_partitioner");
    const std::int64_t length = s[static_cast<int>(at)], bytes = detail::element_bytes(type, bytes_per_string), slice = length == 0 ? 0 : s.elements() / length * bytes;
    if (slice == 0) return detail::pieces_along(s, at, 1);
    // A piece holds whole slices, one at least.
    const std::int64_t slices = std::max<std::int64_t>(1, max_bytes / slice);
    const std::int64_t wanted = (length + slices - 1) / slices;
    return detail::pieces_along(s, at, max_pieces > 0 ? std::min(wanted, max_pieces) : wanted);
  });
}

WEFT_DECL partitioner min_max_variable_partitioner(std::int64_t max_pieces, int axis, std::int64_t min_bytes, std::int64_t bytes_per_string) {
  detail::expect_positive(max_pieces, "min_max_variable_partitioner", "the number of pieces");
  detail::expect_positive(min_bytes, "min_max_variable_partitioner", "the number of bytes");
  detail::expect_positive(bytes_per_string, "min_max_variable_partitioner", "the number of bytes of a string");
  return partitioner([=](const shape& s, dtype type) {
    const std::size_t at = detail::axis_of(s, axis, "min_max_variable_partitioner");
    const double total = static_cast<double>(s.elements()) * static_cast<double>(detail::element_bytes(type, bytes_per_string));
    const double wanted = std::max(1., std::ceil(total / static_cast<double>(min_bytes)));
    return detail::pieces_along(s, at, std::min(max_pieces, static_cast<std::int64_t>(std::min(wanted, 9e18))));
  });
}

}  // namespace weft
#endif

#endif
