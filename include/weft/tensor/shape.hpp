#ifndef WEFT_TENSOR_SHAPE_HPP
#define WEFT_TENSOR_SHAPE_HPP
// Shapes of values (`shape`, all sizes known) and of tensors in a graph (`partial_shape`, sizes or the rank may be unknown).

#include <weft/core/array_view.hpp>
#include <weft/core/config.hpp>
#include <weft/core/status.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace weft {

/// No dimension count is fixed at compile time: the rank of `tensor<T>`.
inline constexpr int dynamic_rank = -1;
/// The most dimensions a tensor may have, as in TensorFlow.
inline constexpr int max_rank = 254;

namespace detail {
void check_rank(std::size_t rank);
}  // namespace detail

/// Sizes of a value's dimensions, outermost first. Up to four dimensions take no allocation.
class shape {
 public:
  shape() noexcept = default;
  shape(std::initializer_list<std::int64_t> sizes) { assign(sizes.begin(), sizes.size()); }
  explicit shape(const std::vector<std::int64_t>& sizes) { assign(sizes.data(), sizes.size()); }
  shape(const std::int64_t* sizes, std::size_t rank) { assign(sizes, rank); }
  shape(const shape& other) { assign(other.data(), static_cast<std::size_t>(other.rank_)); }
  shape(shape&& other) noexcept { take(other); }
  shape& operator=(const shape& other) {
    if (this != &other) {
      release();
      assign(other.data(), static_cast<std::size_t>(other.rank_));
    }
    return *this;
  }
  shape& operator=(shape&& other) noexcept {
    if (this != &other) {
      release();
      take(other);
    }
    return *this;
  }
  ~shape() { release(); }

  /// Number of dimensions.
  int rank() const noexcept { return rank_; }
  const std::int64_t* data() const noexcept { return rank_ <= inline_rank ? sizes_.here : sizes_.heap; }
  const std::int64_t* begin() const noexcept { return data(); }
  const std::int64_t* end() const noexcept { return data() + rank_; }
  std::int64_t operator[](int i) const noexcept { return data()[i]; }
  /// Sets the size of dimension i.
  void set(int i, std::int64_t size) noexcept { (rank_ <= inline_rank ? sizes_.here : sizes_.heap)[i] = size; }

  /// Number of elements: the product of the sizes, 1 for rank 0. The sizes were checked when the value was made.
  std::int64_t elements() const noexcept {
    std::uint64_t n = 1;  // wraps where sizes beside a 0 are huge
    for (std::int64_t size : *this) n *= static_cast<std::uint64_t>(size);
    return static_cast<std::int64_t>(n);
  }

  /// `[2,3]`, `[]` for rank 0.
  std::string text() const {
    std::string out = "[";
    for (int i = 0; i < rank_; ++i) out += (i ? "," : "") + std::to_string((*this)[i]);
    return out + "]";
  }
  std::vector<std::int64_t> vector() const { return {begin(), end()}; }

  friend bool operator==(const shape& a, const shape& b) noexcept { return std::equal(a.begin(), a.end(), b.begin(), b.end()); }
  friend bool operator!=(const shape& a, const shape& b) noexcept { return !(a == b); }

 private:
  static constexpr int inline_rank = 4;
  void assign(const std::int64_t* sizes, std::size_t rank) {
    detail::check_rank(rank);
    std::int64_t* to = sizes_.here;
    if (rank > inline_rank) to = sizes_.heap = new std::int64_t[rank];
    rank_ = static_cast<int>(rank);
    std::copy(sizes, sizes + rank, to);
  }
  void take(shape& other) noexcept {
    sizes_ = other.sizes_;
    rank_ = other.rank_;
    other.rank_ = 0;
  }
  void release() noexcept {
    if (rank_ > inline_rank) delete[] sizes_.heap;
    rank_ = 0;
  }
  union {
    std::int64_t here[inline_rank];
    std::int64_t* heap;
  } sizes_ = {};
  int rank_ = 0;
};

/// The number of elements, or nullopt when a size is negative or the product does not fit into 63 bits.
std::optional<std::int64_t> checked_elements(const std::int64_t* sizes, std::size_t rank) noexcept;

/// What is known of a tensor's shape while the graph is built. A size of -1 is unknown; the rank itself may be unknown. Up to two dimensions take no allocation.
class partial_shape {
 public:
  /// Unknown rank.
  partial_shape() noexcept = default;
  partial_shape(std::initializer_list<std::int64_t> sizes) : partial_shape(sizes.begin(), sizes.size()) {}
  /// A negative size stands for an unknown one. Throws INVALID_ARGUMENT for more than `max_rank` sizes.
  explicit partial_shape(const std::vector<std::int64_t>& sizes) : partial_shape(sizes.data(), sizes.size()) {}
  partial_shape(const shape& s) : partial_shape(s.data(), static_cast<std::size_t>(s.rank())) {}
  partial_shape(const partial_shape& other) : sizes_(other.sizes_), rank_(other.rank_) {
    if (rank_ > inline_rank) std::copy(other.data(), other.data() + rank_, room(rank_));
  }
  partial_shape(partial_shape&& other) noexcept : sizes_(other.sizes_), rank_(std::exchange(other.rank_, static_cast<std::int16_t>(dynamic_rank))) {}
  partial_shape& operator=(const partial_shape& other) {
    if (this != &other) *this = partial_shape(other);
    return *this;
  }
  partial_shape& operator=(partial_shape&& other) noexcept {
    std::swap(sizes_, other.sizes_);
    std::swap(rank_, other.rank_);
    return *this;
  }
  ~partial_shape() {
    if (rank_ > inline_rank) delete[] sizes_.heap;
  }
  /// A shape of this rank with unknown sizes; unknown rank when rank is `dynamic_rank`.
  static partial_shape of_rank(int rank) {
    return rank == dynamic_rank ? partial_shape() : partial_shape(std::vector<std::int64_t>(static_cast<std::size_t>(rank), -1));
  }

  bool known_rank() const noexcept { return rank_ != dynamic_rank; }
  /// The rank, or `dynamic_rank`.
  int rank() const noexcept { return rank_; }
  /// Size of dimension i, -1 when unknown. i < rank().
  std::int64_t operator[](int i) const noexcept { return data()[i]; }
  /// All of them, none when the rank is not known; as long as the shape is there.
  array_view<std::int64_t> sizes() const noexcept { return {data(), known_rank() ? static_cast<std::size_t>(rank_) : 0}; }
  bool fully_known() const noexcept {
    const auto all = sizes();
    return known_rank() && std::find(all.begin(), all.end(), -1) == all.end();
  }
  /// Number of elements; nullopt when not fully known or too large.
  std::optional<std::int64_t> elements() const noexcept {
    return fully_known() ? checked_elements(data(), sizes().size()) : std::nullopt;
  }
  /// The shape itself; only when fully_known().
  shape to_shape() const { return shape(data(), sizes().size()); }

  /// Whether a value of shape s can stand where this is expected.
  bool accepts(const shape& s) const noexcept {
    if (!known_rank()) return true;
    if (s.rank() != rank()) return false;
    for (int i = 0; i < s.rank(); ++i)
      if ((*this)[i] != -1 && (*this)[i] != s[i]) return false;
    return true;
  }

  /// `[2,?]`, `<unknown>` when the rank is not known.
  std::string text() const {
    if (!known_rank()) return "<unknown>";
    std::string out = "[";
    for (int i = 0; i < rank_; ++i) out += (i ? "," : "") + ((*this)[i] < 0 ? std::string("?") : std::to_string((*this)[i]));
    return out + "]";
  }

  friend bool operator==(const partial_shape& a, const partial_shape& b) noexcept { return a.rank_ == b.rank_ && a.sizes() == b.sizes(); }
  friend bool operator!=(const partial_shape& a, const partial_shape& b) noexcept { return !(a == b); }

 private:
  static constexpr int inline_rank = 2;
  partial_shape(const std::int64_t* sizes, std::size_t rank) {
    detail::check_rank(rank);
    std::int64_t* const to = room(static_cast<int>(rank));
    for (std::size_t i = 0; i < rank; ++i) to[i] = sizes[i] < 0 ? -1 : sizes[i];
  }
  // Room for a first rank, 0 or more.
  std::int64_t* room(int rank) {
    if (rank > inline_rank) sizes_.heap = new std::int64_t[static_cast<std::size_t>(rank)];
    rank_ = static_cast<std::int16_t>(rank);
    return rank > inline_rank ? sizes_.heap : sizes_.here;
  }
  const std::int64_t* data() const noexcept { return rank_ <= inline_rank ? sizes_.here : sizes_.heap; }
  union {
    std::int64_t here[inline_rank];
    std::int64_t* heap;
  } sizes_ = {};
  std::int16_t rank_ = dynamic_rank;
};

/// What both say together; nullopt when they contradict each other.
std::optional<partial_shape> merge_shapes(const partial_shape& a, const partial_shape& b);

/// Shape of an elementwise result under NumPy's broadcasting; nullopt when the shapes cannot be broadcast.
std::optional<partial_shape> broadcast_shapes(const partial_shape& a, const partial_shape& b);

}  // namespace weft

#if WEFT_HAS_BODIES
namespace weft::detail {

WEFT_DECL void check_rank(std::size_t rank) {
  if (rank > static_cast<std::size_t>(max_rank))
    fail(error_code::invalid_argument, "a shape has " + std::to_string(rank) + " dimensions, at most " + std::to_string(max_rank));
}

}  // namespace weft::detail

namespace weft {

WEFT_DECL std::optional<std::int64_t> checked_elements(const std::int64_t* sizes, std::size_t rank) noexcept {
  std::int64_t n = 1;
  bool empty = false;
  for (std::size_t i = 0; i < rank; ++i) {
    if (sizes[i] < 0) return std::nullopt;
    if (sizes[i] == 0) empty = true;
  }
  if (empty) return 0;
  for (std::size_t i = 0; i < rank; ++i) {
    if (sizes[i] > std::numeric_limits<std::int64_t>::max() / n) return std::nullopt;
    n *= sizes[i];
  }
  return n;
}

WEFT_DECL std::optional<partial_shape> merge_shapes(const partial_shape& a, const partial_shape& b) {
  if (!a.known_rank()) return b;
  if (!b.known_rank()) return a;
  if (a.rank() != b.rank()) return std::nullopt;
  std::vector<std::int64_t> sizes = a.sizes();
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const std::int64_t other = b.sizes()[i];
    if (sizes[i] == -1) sizes[i] = other;
    else if (other != -1 && other != sizes[i]) return std::nullopt;
  }
  return partial_shape(std::move(sizes));
}

WEFT_DECL std::optional<partial_shape> broadcast_shapes(const partial_shape& a, const partial_shape& b) {
  if (!a.known_rank() || !b.known_rank()) return partial_shape();
  const auto longer = a.rank() >= b.rank() ? a.sizes() : b.sizes(), shorter = a.rank() >= b.rank() ? b.sizes() : a.sizes();
  std::vector<std::int64_t> sizes = longer;
  const std::size_t offset = longer.size() - shorter.size();
  for (std::size_t i = 0; i < shorter.size(); ++i) {
    std::int64_t& x = sizes[offset + i];
    const std::int64_t y = shorter[i];
    if (x == y || y == 1) continue;
    if (x == 1) x = y;
    else if (x == -1) x = y > 1 ? y : -1;  // a size above 1 decides, as in TensorFlow
    else if (y == -1) x = x > 1 ? x : -1;
    else return std::nullopt;
  }
  return partial_shape(std::move(sizes));
}

}  // namespace weft
#endif

#endif
