#include "values.hpp"

#include <array>
#include <cmath>
#include <cstdio>
#include <cstring>

namespace conformance {

using namespace weft::detail;
using weft::dtype;
using weft::tensor_value;

namespace {

template <class T> void put(tensor_value& v, std::size_t i, T x) { std::memcpy(v.mutable_raw_data() + i * sizeof x, &x, sizeof x); }

// A number, in the spelling of protobuf or of Python where it is not finite.
double number_at(const json_at& at) {
  if (at.value.kind == json_kind::string && (at.value.text == "nan" || at.value.text == "inf" || at.value.text == "-inf")) return std::stod(at.value.text);
  return real_at(at);
}

void put_element(tensor_value& v, std::size_t i, const json_at& at, string_form strings) {
  switch (v.dtype()) {
    case dtype::float32: return put(v, i, static_cast<float>(number_at(at)));
    case dtype::float64: return put(v, i, number_at(at));
    case dtype::half: return put(v, i, weft::half(static_cast<float>(number_at(at))));
    case dtype::bfloat16: return put(v, i, weft::bfloat16(static_cast<float>(number_at(at))));
    case dtype::boolean: return put(v, i, bool_at(at));
    case dtype::uint64: return put(v, i, natural_at(at));
    case dtype::string: v.mutable_data<std::string>()[i] = strings == string_form::text ? string_at(at) : bytes_at(at); return;
    case dtype::complex64: case dtype::complex128:
      for (std::size_t part = 0; part < 2; ++part) {
        const double x = real_at(json_at(elements_at(at)[part], at, part));
        if (v.dtype() == dtype::complex64) put(v, 2 * i + part, static_cast<float>(x));
        else put(v, 2 * i + part, x);
      }
      return;
    default: {
      const std::int64_t x = integer_at(at);
      std::memcpy(v.mutable_raw_data() + i * weft::size_of(v.dtype()), &x, weft::size_of(v.dtype()));
    }
  }
}

template <class T> double read(const tensor_value& v, std::int64_t i) {
  T x;
  std::memcpy(&x, v.raw_data() + static_cast<std::size_t>(i) * sizeof x, sizeof x);
  return static_cast<double>(x);
}
template <class T> double read_small(const tensor_value& v, std::int64_t i) {
  T x;
  std::memcpy(&x, v.raw_data() + static_cast<std::size_t>(i) * sizeof x, sizeof x);
  return static_cast<double>(static_cast<float>(x));
}

std::string element_text(const tensor_value& v, std::int64_t i) {
  if (v.dtype() == dtype::string) return "\"" + v.data<std::string>()[i] + "\"";
  if (v.dtype() == dtype::int64) return std::to_string(v.data<std::int64_t>()[i]);
  if (v.dtype() == dtype::uint64) return std::to_string(v.data<std::uint64_t>()[i]);
  char text[40];
  std::snprintf(text, sizeof text, "%.17g", element(v, i));
  return text;
}

std::string place(const weft::shape& s, std::int64_t i) {
  std::string out;
  for (int d = s.rank() - 1; d >= 0; --d) {
    out = std::to_string(i % s[d]) + (out.empty() ? "" : ",") + out;
    i /= s[d];
  }
  return "[" + out + "]";
}

bool close(double expected, double found, const tolerance& tol) {
  if (std::isnan(expected) || std::isnan(found)) return std::isnan(expected) && std::isnan(found);
  if (std::isinf(expected) || std::isinf(found)) return expected == found;
  return std::abs(expected - found) <= tol.absolute + tol.relative * std::abs(expected);
}

}  // namespace

double element(const tensor_value& v, std::int64_t i) {
  switch (v.dtype()) {
    case dtype::float32: return read<float>(v, i);
    case dtype::float64: return read<double>(v, i);
    case dtype::half: return read_small<weft::half>(v, i);
    case dtype::bfloat16: return read_small<weft::bfloat16>(v, i);
    case dtype::int8: return read<std::int8_t>(v, i);
    case dtype::int16: return read<std::int16_t>(v, i);
    case dtype::int32: return read<std::int32_t>(v, i);
    case dtype::int64: return read<std::int64_t>(v, i);
    case dtype::uint8: case dtype::boolean: return read<std::uint8_t>(v, i);
    case dtype::uint16: return read<std::uint16_t>(v, i);
    case dtype::uint32: return read<std::uint32_t>(v, i);
    case dtype::uint64: return read<std::uint64_t>(v, i);
    default: return 0;
  }
}

json_at field(const json_at& record, std::string_view name) {
  const json_value* v = record.value.kind == json_kind::object ? find_field(record, name) : nullptr;
  if (v == nullptr) bad_json(record, "there is no field '" + std::string(name) + "'");
  return json_at(*v, record, name);
}

dtype type_at(const json_at& at) {
  static constexpr struct {
    const char* name;
    dtype type;
  } names[] = {{"float32", dtype::float32}, {"float64", dtype::float64}, {"float16", dtype::half}, {"bfloat16", dtype::bfloat16}, {"bool", dtype::boolean}, {"string", dtype::string},
               {"int8", dtype::int8}, {"int16", dtype::int16}, {"int32", dtype::int32}, {"int64", dtype::int64}, {"uint8", dtype::uint8}, {"uint16", dtype::uint16},
               {"uint32", dtype::uint32}, {"uint64", dtype::uint64}, {"complex64", dtype::complex64}, {"complex128", dtype::complex128}};
  for (const auto& one : names)
    if (string_at(at) == one.name) return one.type;
  return dtype_at(at);
}

tensor_value value_at(const json_at& at, string_form strings) {
  const json_at type = field(at, "dtype"), sizes = field(at, "shape"), list = field(at, "values");
  std::vector<std::int64_t> dims;
  for (std::size_t i = 0; i < elements_at(sizes).size(); ++i) dims.push_back(integer_at(json_at(sizes.value.items[i], sizes, i)));
  tensor_value out(type_at(type), weft::shape(dims));
  const auto& items = elements_at(list);
  const auto count = static_cast<std::size_t>(out.elements());
  // One value may stand for all.
  if (items.size() != count && items.size() != 1) bad_json(list, "expected " + std::to_string(count) + " values, found " + std::to_string(items.size()));
  for (std::size_t i = 0; i < count; ++i) put_element(out, i, json_at(items[items.size() == 1 ? 0 : i], list, i), strings);
  return out;
}

weft::partial_shape partial_shape_at(const json_at& at) {
  if (at.value.kind == json_kind::null) return {};
  std::vector<std::int64_t> sizes;
  for (std::size_t i = 0; i < elements_at(at).size(); ++i)
    sizes.push_back(at.value.items[i].kind == json_kind::null ? -1 : integer_at(json_at(at.value.items[i], at, i)));
  return weft::partial_shape(std::move(sizes));
}

std::optional<tolerance> tolerance_at(const json_at& record) {
  const json_value* v = find_field(record, "tolerance");
  if (v == nullptr) return std::nullopt;
  const json_at at(*v, record, "tolerance");
  return tolerance{real_at(field(at, "rtol")), real_at(field(at, "atol"))};
}

std::string compare(const tensor_value& expected, const tensor_value& found, const std::optional<tolerance>& tol) {
  if (found.empty()) return "expected " + std::string(to_text(expected.dtype())) + expected.shape().text() + ", found no value";
  if (expected.dtype() != found.dtype() || expected.shape() != found.shape())
    return "expected " + std::string(to_text(expected.dtype())) + expected.shape().text() + ", found " + to_text(found.dtype()) + found.shape().text();
  tolerance use;
  if (weft::is_floating(expected.dtype()) && tol) use = *tol;
  else if (expected.dtype() == dtype::float32) use = {1e-5, 1e-6};
  else if (expected.dtype() == dtype::float64) use = {1e-12, 1e-12};
  for (std::int64_t i = 0; i < expected.elements(); ++i) {
    bool same;
    if (expected.dtype() == dtype::string) same = expected.data<std::string>()[i] == found.data<std::string>()[i];
    else if (weft::is_floating(expected.dtype())) same = close(element(expected, i), element(found, i), use);
    else same = std::memcmp(expected.raw_data() + static_cast<std::size_t>(i) * weft::size_of(expected.dtype()), found.raw_data() + static_cast<std::size_t>(i) * weft::size_of(expected.dtype()), weft::size_of(expected.dtype())) == 0;
    if (!same) return "at " + place(expected.shape(), i) + " expected " + element_text(expected, i) + ", found " + element_text(found, i);
  }
  return "";
}

tensor_value unshared(const tensor_value& v) {
  tensor_value out(v.dtype(), v.shape());
  const auto n = static_cast<std::size_t>(v.elements());
  if (n == 0) return out;
  if (v.dtype() == dtype::string) std::copy(v.data<std::string>(), v.data<std::string>() + n, out.mutable_data<std::string>());
  else if (v.dtype() == dtype::resource) std::copy(v.data<weft::resource_handle>(), v.data<weft::resource_handle>() + n, out.mutable_data<weft::resource_handle>());
  else std::memcpy(out.mutable_raw_data(), v.raw_data(), v.bytes());
  return out;
}

namespace {

// The first 32 bits of the fractions of the square and cube roots of the first primes, computed instead of listed.
__extension__ typedef unsigned __int128 wide;
std::uint32_t root_fraction(std::uint32_t prime, bool cube) {
  // The lower 32 bits of the largest r with r^k <= prime * 2^(32 k).
  wide low = 0, high = static_cast<wide>(1) << 40;
  while (high - low > 1) {
    const wide r = (low + high) / 2;
    const bool below = cube ? r * r * r <= (static_cast<wide>(prime) << 96) : r * r <= (static_cast<wide>(prime) << 64);
    (below ? low : high) = r;
  }
  return static_cast<std::uint32_t>(low);
}

std::array<std::uint32_t, 64> first_primes() {
  std::array<std::uint32_t, 64> out{};
  std::size_t n = 0;
  for (std::uint32_t candidate = 2; n < out.size(); ++candidate) {
    bool prime = true;
    for (std::size_t i = 0; i < n && prime; ++i) prime = candidate % out[i] != 0;
    if (prime) out[n++] = candidate;
  }
  return out;
}

std::uint32_t rotated(std::uint32_t x, unsigned by) { return x >> by | x << (32 - by); }

void digest_block(std::array<std::uint32_t, 8>& state, const std::array<std::uint32_t, 64>& constants, const unsigned char* block) {
  std::array<std::uint32_t, 64> w{};
  for (std::size_t i = 0; i < 16; ++i)
    for (std::size_t j = 0; j < 4; ++j) w[i] = w[i] << 8 | block[4 * i + j];
  for (std::size_t i = 16; i < 64; ++i)
    w[i] = w[i - 16] + w[i - 7] + (rotated(w[i - 15], 7) ^ rotated(w[i - 15], 18) ^ w[i - 15] >> 3) + (rotated(w[i - 2], 17) ^ rotated(w[i - 2], 19) ^ w[i - 2] >> 10);
  std::array<std::uint32_t, 8> s = state;
  for (std::size_t i = 0; i < 64; ++i) {
    const std::uint32_t first = s[7] + (rotated(s[4], 6) ^ rotated(s[4], 11) ^ rotated(s[4], 25)) + ((s[4] & s[5]) ^ (~s[4] & s[6])) + constants[i] + w[i];
    const std::uint32_t second = (rotated(s[0], 2) ^ rotated(s[0], 13) ^ rotated(s[0], 22)) + ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
    s = {first + second, s[0], s[1], s[2], s[3] + first, s[4], s[5], s[6]};
  }
  for (std::size_t i = 0; i < 8; ++i) state[i] += s[i];
}

}  // namespace

std::string sha256(const tensor_value& v) {
  static const auto primes = first_primes();
  static const auto constants = [] {
    std::array<std::uint32_t, 64> out{};
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = root_fraction(primes[i], true);
    return out;
  }();
  std::array<std::uint32_t, 8> state{};
  for (std::size_t i = 0; i < state.size(); ++i) state[i] = root_fraction(primes[i], false);
  std::string message(v.elements() == 0 ? "" : std::string(reinterpret_cast<const char*>(v.raw_data()), v.bytes()));
  const std::uint64_t bits = message.size() * 8;
  message += '\x80';
  while (message.size() % 64 != 56) message += '\0';
  for (int i = 7; i >= 0; --i) message += static_cast<char>(bits >> (8 * i) & 0xffU);
  for (std::size_t at = 0; at < message.size(); at += 64) digest_block(state, constants, reinterpret_cast<const unsigned char*>(message.data()) + at);
  std::string out;
  for (const std::uint32_t word : state)
    for (int i = 28; i >= 0; i -= 4) out += "0123456789abcdef"[word >> i & 15U];
  return out;
}

}  // namespace conformance
