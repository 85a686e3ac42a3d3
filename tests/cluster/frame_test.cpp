#include <weft/cluster/frame.hpp>

#include <weft/cluster/frame_reader.hpp>
#include <weft/cluster/frame_writer.hpp>

#include "../long_tests.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

using namespace std::string_literals;
using weft::dtype;
using weft::error_code;
using weft::message;
using weft::tensor_value;

namespace {

// The frame of a message, taken from the writer in pieces of at most `step` bytes.
std::string frame_of(message m, std::size_t step = std::size_t{1} << 20) {
  weft::frame_writer writer(std::move(m), {});
  std::string out;
  while (writer.remaining() > 0) {
    iovec parts[3] = {};
    const std::size_t count = writer.gather(parts, 3, step);
    std::size_t bytes = 0;
    for (std::size_t i = 0; i < count; ++i) {
      out.append(static_cast<const char*>(parts[i].iov_base), parts[i].iov_len);
      bytes += parts[i].iov_len;
    }
    CHECK(bytes > 0);
    CHECK(bytes <= step);
    writer.advance(bytes);
  }
  return out;
}

weft::connection_options with(const weft::frame_limits& limits, std::shared_ptr<weft::receive_budget> budget = nullptr) {
  weft::connection_options out;
  out.limits = limits;
  out.budget = std::move(budget);
  return out;
}

// Gives bytes to a reader, at most `step` at a time, and returns the messages that come out.
std::vector<message> read(weft::frame_reader& reader, std::string_view bytes, std::size_t step = std::size_t{1} << 20) {
  std::vector<message> out;
  for (message m; reader.next(m);) out.push_back(std::move(m));
  while (!bytes.empty()) {
    iovec parts[weft::frame_reader::max_parts];
    const std::size_t count = reader.space(parts);
    std::size_t taken = 0;
    for (std::size_t i = 0; i < count && taken < step; ++i) {
      const std::size_t n = std::min({parts[i].iov_len, step - taken, bytes.size()});
      std::memcpy(parts[i].iov_base, bytes.data(), n);
      bytes.remove_prefix(n);
      taken += n;
    }
    REQUIRE(taken > 0);
    reader.filled(taken);
    for (message m; reader.next(m);) out.push_back(std::move(m));
  }
  return out;
}

std::vector<message> read(std::string_view bytes, std::size_t step = std::size_t{1} << 20) {
  weft::frame_reader reader({});
  return read(reader, bytes, step);
}

// What the reader says about bad bytes; ok if it takes them.
weft::status verdict(std::string_view bytes, const weft::frame_limits& limits = {}) {
  weft::frame_reader reader(with(limits));
  try {
    read(reader, bytes);
  } catch (const weft::error& e) {
    return e.status();
  }
  return {};
}

std::string number(std::uint64_t value, std::size_t bytes) {
  std::string out;
  for (std::size_t i = 0; i < bytes; ++i) out += static_cast<char>(static_cast<unsigned char>(value >> (8 * i)));
  return out;
}

// A header by hand.
std::string header(std::uint64_t tensors, std::uint64_t table, std::uint64_t head, std::uint64_t body) {
  return "WEFT\x01\x07\x00\x00"s + number(tensors, 4) + number(table, 4) + number(head, 4) + number(0, 4) + number(body, 8);
}

// A row of the tensor table by hand.
std::string row(unsigned type, const std::vector<std::int64_t>& sizes, std::uint64_t bytes) {
  std::string out = number(type, 1) + number(sizes.size(), 1) + number(0, 2) + number(bytes, 8);
  for (std::int64_t size : sizes) out += number(static_cast<std::uint64_t>(size), 8);
  return out;
}

// A whole frame with one tensor.
std::string one(const std::string& entry, const std::string& body) { return header(1, entry.size(), 0, body.size()) + entry + body; }

// A value of every dtype that can be sent, in several shapes.
std::vector<tensor_value> all_values() {
  std::vector<tensor_value> out;
  for (unsigned type = 1; type <= 23; ++type) {
    const auto t = static_cast<dtype>(type);
    if (!weft::is_known_dtype(type) || !weft::is_plain(t)) continue;
    for (const weft::shape& shape : {weft::shape{}, weft::shape{0}, weft::shape{3}, weft::shape{2, 0, 5}, weft::shape{1, 2, 3, 4, 5}}) {
      tensor_value value(t, shape);
      for (std::size_t i = 0; i < value.bytes(); ++i) value.mutable_raw_data()[i] = static_cast<std::byte>((i * 37 + type) & 0x01U);
      out.push_back(std::move(value));
    }
  }
  out.push_back(tensor_value::scalar(std::numeric_limits<float>::quiet_NaN()));
  out.push_back(tensor_value::from<double>({3}, {-0.0, std::numeric_limits<double>::denorm_min(), std::numeric_limits<double>::infinity()}));
  out.push_back(tensor_value::from<std::string>({2, 2}, {"", "a\0b"s, std::string(100000, 'x'), "\xff\xfe"s}));
  out.push_back(tensor_value::from<std::string>({0}, {}));
  out.push_back(tensor_value::from<weft::resource_handle>({}, {{"/job:ps/task:0/device:CPU:0", "", "w", "variable"}}));
  return out;
}

void check_same(const message& a, const message& b) {
  CHECK(a.type == b.type);
  CHECK(a.flags == b.flags);
  CHECK(a.head == b.head);
  REQUIRE(a.tensors.size() == b.tensors.size());
  for (std::size_t i = 0; i < a.tensors.size(); ++i) CHECK(a.tensors[i] == b.tensors[i]);
}

}  // namespace

TEST_CASE("frame: the bytes of a message") {
  const message m{7, 2, "head", {tensor_value::from<std::int16_t>({2}, {1, -1}), tensor_value::from<std::string>({2}, {"ab", "c"})}};
  CHECK(frame_of(m) == "WEFT\x01\x07\x02\x00"s + number(2, 4) + number(40, 4) + number(4, 4) + number(0, 4) + number(4 + 19, 8) +
                           row(5, {2}, 4) + row(7, {2}, 19) + "head" + "\x01\x00\xff\xff"s + number(2, 8) + number(1, 8) + "abc");
}

TEST_CASE("frame: a message without head and tensors is its header") {
  CHECK(frame_of(message{7, 0, "", {}}) == header(0, 0, 0, 0));
  const std::vector<message> out = read(header(0, 0, 0, 0) + header(0, 0, 0, 0));
  REQUIRE(out.size() == 2);
  check_same(out[1], message{7, 0, "", {}});
}

TEST_CASE("frame: every dtype and shape comes back bit for bit") {
  for (const tensor_value& value : all_values()) {
    CAPTURE(weft::to_text(value.dtype()));
    CAPTURE(value.shape().text());
    const message m{1, 255, "h", {value}};
    const std::vector<message> out = read(frame_of(m));
    REQUIRE(out.size() == 1);
    check_same(out[0], m);
  }
}

TEST_CASE("frame: any number of tensors, in slices of any size") {
  const std::vector<tensor_value> values = all_values();
  for (const std::size_t tensors : {std::size_t{0}, std::size_t{1}, std::size_t{2}, std::size_t{3}, std::size_t{17}, std::size_t{100}}) {
    message m{3, 0, std::string(tensors * 50, 'h'), {}};
    for (std::size_t i = 0; i < tensors; ++i) m.tensors.push_back(values[i % values.size()]);
    const std::string bytes = frame_of(m);
    for (const std::size_t step : {std::size_t{1}, std::size_t{31}, std::size_t{4096}, std::size_t{1} << 20}) {
      if (step == 1 && bytes.size() > 300000) continue;
      const std::vector<message> out = read(bytes + bytes, step);
      REQUIRE(out.size() == 2);
      check_same(out[0], m);
      check_same(out[1], m);
    }
    if (bytes.size() < 300000) CHECK(frame_of(m, 1) == bytes);
  }
}

TEST_CASE("frame: a large tensor is received in its own memory, a refused one nowhere") {
  message m{1, 0, "", {tensor_value(dtype::uint8, {8 << 20})}};
  std::memset(m.tensors[0].mutable_raw_data(), 5, 8 << 20);
  const std::string bytes = frame_of(m);
  weft::frame_reader reader({});
  CHECK(read(reader, std::string_view(bytes).substr(0, 100)).empty());
  iovec parts[weft::frame_reader::max_parts];
  CHECK(reader.space(parts) == 1);
  CHECK(parts[0].iov_len == std::size_t{2} << 20);  // straight to the tensor, a bounded piece at a time
  const std::vector<message> out = read(reader, std::string_view(bytes).substr(100));
  REQUIRE(out.size() == 1);
  check_same(out[0], m);
  CHECK_FALSE(reader.inside_frame());
}

TEST_CASE("frame: cut after any byte it is unfinished, nothing else") {
  const std::string bytes = frame_of(message{7, 0, "head", {tensor_value::from<float>({2}, {1, 2}), tensor_value::scalar(std::string("text"))}});
  for (std::size_t k = 0; k < bytes.size(); ++k) {
    weft::frame_reader reader({});
    CHECK(read(reader, std::string_view(bytes).substr(0, k)).empty());
    CHECK(reader.inside_frame() == (k > 0));
    CHECK(read(reader, std::string_view(bytes).substr(k)).size() == 1);
    CHECK_FALSE(reader.inside_frame());
  }
}

TEST_CASE("frame: what is no frame is known by its first bytes") {
  const weft::status http = verdict("GET / HTTP/1.1\r\n\r\n");
  CHECK(http.code == error_code::invalid_argument);
  CHECK(http.message == "not a weft frame: expected 'WEFT' (57 45 46 54), found 47 45 54 20");
  CHECK(verdict("X").code == error_code::invalid_argument);
  CHECK(verdict("WEFX").code == error_code::invalid_argument);
  CHECK(verdict("W").ok());
  std::uint32_t state = 1;
  std::string noise;
  for (int i = 0; i < 1 << 20; ++i) noise += static_cast<char>((state = state * 1664525 + 1013904223) >> 24);
  CHECK(verdict(noise).code == error_code::invalid_argument);
}

TEST_CASE("frame: another version and reserved bytes are refused") {
  for (const char version : {'\0', '\x02', '\xff'}) {
    std::string bytes = header(0, 0, 0, 0);
    bytes[4] = version;
    CHECK(verdict(bytes).code == error_code::unimplemented);
  }
  CHECK(verdict("WEFT\x02").message == "frame of protocol version 2, this program speaks version 1");
  for (const std::size_t reserved : {7U, 20U, 21U, 22U, 23U}) {
    std::string bytes = header(0, 0, 0, 0);
    bytes[reserved] = 1;
    CHECK(verdict(bytes).code == error_code::invalid_argument);
  }
}

TEST_CASE("frame: every type and flag is delivered") {
  std::string bytes = header(0, 0, 0, 0);
  bytes[5] = bytes[6] = '\xff';
  const std::vector<message> out = read(bytes);
  REQUIRE(out.size() == 1);
  CHECK(out[0].type == 255);
  CHECK(out[0].flags == 255);
}

TEST_CASE("frame: lengths past the limits are refused by the header alone") {
  // 2^63 + 5, 2^32 + 5 bytes, 2^64 - 1: nothing is cut to fewer bits.
  for (const std::uint64_t body : {(std::uint64_t{1} << 63) + 5, (std::uint64_t{1} << 32) + 5, UINT64_MAX})
    CHECK(verdict(header(1, 12, 0, body)).code == error_code::resource_exhausted);
  CHECK(verdict(header(1, 12, 0, (std::uint64_t{1} << 63) + 5)).message ==
        "frame with 9223372036854775813 bytes of body, at most 4294967296 are accepted (frame_limits::max_body)");
  CHECK(verdict(header(1, 12, 0, std::uint64_t{1} << 32)).ok());
  CHECK(verdict(header(0, 0, UINT32_MAX, 0)).message == "frame with 4294967295 bytes of head, at most 536870912 are accepted (frame_limits::max_head)");
  CHECK(verdict(header(UINT32_MAX, UINT32_MAX, 0, 0)).message == "frame with 4294967295 tensors, at most 1048576 are accepted (frame_limits::max_tensors)");
  weft::frame_limits small;
  small.max_head = 10;
  CHECK(verdict(header(0, 0, 10, 0), small).ok());
  CHECK(verdict(header(0, 0, 11, 0), small).code == error_code::resource_exhausted);
}

TEST_CASE("frame: a table or body without its tensors is refused by the header alone") {
  CHECK(verdict(header(1, 11, 0, 0)).message == "frame with a table of 11 bytes for 1 tensors of at most 32 dimensions, expected 12 to 268");
  CHECK(verdict(header(1, 269, 0, 0)).code == error_code::invalid_argument);
  CHECK(verdict(header(0, 1, 0, 0)).code == error_code::invalid_argument);
  CHECK(verdict(header(0, 0, 0, 1)).message == "frame with a body of 1 bytes and no tensor");
}

TEST_CASE("frame: claimed memory is not taken before it arrives") {
  weft::frame_limits limits;
  limits.max_head = UINT32_MAX;
  limits.max_tensors = UINT32_MAX;
  weft::frame_reader reader(with(limits));
  // A head of 4 GiB of which 100 bytes come; under a sanitizer or a limit on memory taking more would fail.
  CHECK(read(reader, header(0, 0, UINT32_MAX, 0) + std::string(100, 'x')).empty());
  weft::frame_reader tables(with(limits));
  CHECK(read(tables, header(300000000, UINT32_MAX, 0, 0) + std::string(100, 'x')).empty());
}

TEST_CASE("frame: a dtype is one of those that can be sent") {
  for (const unsigned type : {0U, 11U, 12U, 13U, 15U, 16U, 21U, 24U, 101U, 255U}) {
    CAPTURE(type);
    CHECK(verdict(one(row(type, {}, 0), "")).code == error_code::invalid_argument);
    CHECK(verdict(one(row(type, {}, 4), "abcd")).code == error_code::invalid_argument);
  }
  CHECK(verdict(one(row(101, {}, 4), "abcd")).message == "tensor table: tensor 0 has the unknown dtype 101 (before byte 12 of 12)");
  CHECK(verdict(one(row(21, {}, 4), "abcd")).message == "tensor table: tensor 0 has dtype variant, whose values cannot be sent (before byte 12 of 12)");
  std::string bytes = row(1, {}, 4);
  bytes[2] = 1;
  CHECK(verdict(one(bytes, "abcd")).code == error_code::invalid_argument);
}

TEST_CASE("frame: sizes are not negative and their product fits") {
  CHECK(verdict(one(row(1, {-1}, 4), "abcd")).message == "tensor table: tensor 0 has the negative size -1 in dimension 0 (before byte 20 of 20)");
  CHECK(verdict(one(row(1, {std::numeric_limits<std::int64_t>::min()}, 0), "")).code == error_code::invalid_argument);
  CHECK(verdict(one(row(1, {4294967296, 4294967296}, 0), "")).message ==
        "tensor table: tensor 0 has shape [4294967296,4294967296], which has too many elements (before byte 28 of 28)");
  // 2^62 floats: the elements can be counted, their bytes cannot.
  CHECK(verdict(one(row(1, {std::int64_t{1} << 62}, 0), "")).code == error_code::invalid_argument);
  CHECK(verdict(one(row(7, {std::int64_t{1} << 61}, 0), "")).code == error_code::invalid_argument);
  CHECK(verdict(one(row(7, {std::int64_t{1} << 62}, 8), "abcdefgh")).code == error_code::invalid_argument);
  // A zero hides nothing: the product is 0.
  CHECK(verdict(one(row(1, {0, std::numeric_limits<std::int64_t>::max(), std::numeric_limits<std::int64_t>::max()}, 0), "")).ok());
}

TEST_CASE("frame: the rank has a limit") {
  CHECK(verdict(one(row(4, std::vector<std::int64_t>(32, 1), 1), "a")).ok());
  CHECK(verdict(one(row(4, std::vector<std::int64_t>(33, 1), 1), "a")).code == error_code::invalid_argument);
  // A rank of 255 in an entry without dimensions, and one that reaches into the next tensor's entry.
  std::string entry = row(4, {}, 1);
  entry[1] = '\xff';
  CHECK(verdict(one(entry, "a")).message == "tensor table: tensor 0 has 255 dimensions, at most 32 are accepted (before byte 12 of 12)");
  entry[1] = '\x02';
  CHECK(verdict(one(entry, "a")).code == error_code::invalid_argument);
}

TEST_CASE("frame: a tensor has the bytes that its shape needs") {
  for (const std::uint64_t bytes : {0U, 3U, 23U, 25U, 1000U})
    CHECK(verdict(one(row(1, {2, 3}, bytes), std::string(static_cast<std::size_t>(bytes), 'x'))).code == error_code::invalid_argument);
  CHECK(verdict(one(row(1, {2, 3}, 23), std::string(23, 'x'))).message ==
        "tensor table: tensor 0 claims 23 bytes for shape [2,3] of float (before byte 28 of 28)");
  CHECK(verdict(one(row(7, {2}, 15), std::string(15, '\0'))).code == error_code::invalid_argument);
  CHECK(verdict(one(row(7, {0}, 1), "x")).code == error_code::invalid_argument);
  CHECK(verdict(one(row(20, {}, 15), std::string(15, '\0'))).code == error_code::invalid_argument);
}

TEST_CASE("frame: the tensors' bytes add up to the body") {
  const std::string two = row(1, {1}, 4) + row(1, {1}, 4);
  CHECK(verdict(header(2, two.size(), 0, 8) + two + "abcdefgh").ok());
  CHECK(verdict(header(2, two.size(), 0, 9) + two + "abcdefghi").message == "tensor table: the tensors have 8 bytes, the body 9 (before byte 40 of 40)");
  CHECK(verdict(header(2, two.size(), 0, 7) + two + "abcdefg").message == "tensor table: tensor 1 claims 4 bytes, the body has 3 left (before byte 40 of 40)");
  // Two lengths whose sum wraps around to the body's.
  const std::string wrap = row(4, {std::int64_t{1} << 62}, std::uint64_t{1} << 62) + row(7, {1}, UINT64_MAX - (std::uint64_t{1} << 62) + 9);
  CHECK(verdict(header(2, wrap.size(), 0, 8) + wrap + "abcdefgh").code == error_code::invalid_argument);
  // A row too much, a row too few.
  CHECK(verdict(header(1, 32, 0, 4) + row(1, {1}, 4) + std::string(12, '\0') + "abcd").code == error_code::invalid_argument);
  CHECK(verdict(header(2, 24, 0, 4) + row(1, {1}, 4) + "\0\0\0\0abcd"s).code == error_code::invalid_argument);
}

TEST_CASE("frame: strings and handles fill their bytes exactly") {
  CHECK(verdict(one(row(7, {2}, 19), number(2, 8) + number(1, 8) + "abc")).ok());
  for (const auto& [first, second] : {std::pair<std::uint64_t, std::uint64_t>{3, 1}, {2, 0}, {UINT64_MAX, 4}, {2, UINT64_MAX}, {std::uint64_t{1} << 63, std::uint64_t{1} << 63}}) {
    CHECK(verdict(one(row(7, {2}, 19), number(first, 8) + number(second, 8) + "abc")).code == error_code::invalid_argument);
  }
  CHECK(verdict(one(row(20, {}, 16), std::string(16, '\0'))).ok());
  CHECK(verdict(one(row(20, {}, 17), std::string(17, '\0'))).code == error_code::invalid_argument);
  CHECK(verdict(one(row(20, {}, 16), "\x01" + std::string(15, '\0'))).code == error_code::invalid_argument);
}

TEST_CASE("frame: past the budget the tensors are thrown away and the message says so") {
  auto budget = std::make_shared<weft::receive_budget>(1000000);
  weft::frame_reader reader(with({}, budget));
  const message large{1, 0, "large", {tensor_value(dtype::uint8, {900000}), tensor_value::scalar(std::string("s"))}};
  const message small{2, 0, "small", {tensor_value::scalar(1.0F)}};
  std::memset(const_cast<std::byte*>(large.tensors[0].raw_data()), 1, 900000);
  const std::string bytes = frame_of(large) + frame_of(large) + frame_of(small) + frame_of(message{3, 0, "none", {}});

  std::vector<message> out = read(reader, bytes, 5000);
  REQUIRE(out.size() == 4);
  check_same(out[0], large);
  CHECK(out[0].lease->bytes() > 900000);
  CHECK(budget->used() == out[0].lease->bytes() + out[2].lease->bytes());
  CHECK(out[1].refused);
  CHECK(out[1].type == 1);
  CHECK(out[1].head == "large");
  CHECK(out[1].tensors.empty());
  CHECK(out[1].lease.get() == nullptr);
  check_same(out[2], small);
  CHECK_FALSE(out[2].refused);
  CHECK(out[3].lease.get() == nullptr);

  const message copy = out[0];
  out.clear();
  CHECK(budget->used() == copy.lease->bytes());
}

TEST_CASE("frame: the budget pays for what has come, not for what is claimed") {
  auto budget = std::make_shared<weft::receive_budget>(1000000);
  weft::frame_reader first(with({}, budget)), second(with({}, budget)), third(with({}, budget));
  const std::string large = frame_of(message{1, 0, "large", {tensor_value(dtype::uint8, {900000})}}), head = frame_of(message{2, 0, std::string(900000, 'h'), {}});
  const std::string_view whole(large);
  // 1. Claims cost what is around the elements, and a step for the bytes that have come.
  CHECK(read(first, whole.substr(0, 100)).empty());
  CHECK(read(second, std::string_view(head).substr(0, 100)).empty());
  CHECK(budget->used() < 3 * weft::frame_reader::buffer_bytes);
  // 2. Both of these do not fit: the one that asks for what is not there any more is thrown away, in its middle, and what it had is free.
  CHECK(read(first, whole.substr(100, 599900)).empty());
  CHECK(read(third, whole.substr(0, 600000)).empty());
  CHECK(budget->used() < 730000);
  const auto refused = read(third, whole.substr(600000));
  REQUIRE(refused.size() == 1);
  CHECK(refused[0].refused);
  CHECK(refused[0].head == "large");
  CHECK(refused[0].tensors.empty());
  // 3. The other one is whole, and those that come on the same connections are taken again.
  auto taken = read(first, whole.substr(600000));
  REQUIRE(taken.size() == 1);
  CHECK_FALSE(taken[0].refused);
  CHECK(taken[0].tensors.at(0).bytes() == 900000);
  CHECK(taken[0].lease->bytes() >= 900000);
  taken.clear();
  CHECK(read(third, whole).at(0).refused == false);
  // 4. What does not fit of a head ends its connection.
  const auto held = read(first, whole);
  CHECK_FALSE(held.at(0).refused);
  std::string why;
  try {
    read(second, std::string_view(head).substr(100));
  } catch (const weft::error& e) {
    why = e.status().text();
  }
  CHECK(why.find("RESOURCE_EXHAUSTED: frame with 900000 bytes of head and table does not fit: ") == 0);
}

TEST_CASE("frame: what can never fit is refused by its claim") {
  auto budget = std::make_shared<weft::receive_budget>(1000000);
  weft::frame_reader reader(with({}, budget)), other(with({}, budget));
  const auto out = read(reader, frame_of(message{1, 0, "", {tensor_value(dtype::uint8, {1000000})}}), 5000);
  REQUIRE(out.size() == 1);
  CHECK(out[0].refused);
  CHECK_THROWS(read(other, std::string_view(frame_of(message{1, 0, std::string(1000001, 'h'), {}})).substr(0, 40)));
  CHECK(budget->used() == 0);
}

TEST_CASE("frame: the budget has nothing left of messages and of broken frames") {
  auto budget = std::make_shared<weft::receive_budget>(std::uint64_t{1} << 40);
  {
    weft::frame_reader reader(with({}, budget));
    const std::string bytes = frame_of(message{1, 0, "", {tensor_value(dtype::float32, {1000})}});
    CHECK(read(reader, bytes).size() == 1);
    CHECK(read(reader, std::string_view(bytes).substr(0, 500)).empty());
    CHECK(budget->used() > 4000);
  }
  CHECK(budget->used() == 0);
  {
    weft::frame_reader reader(with({}, budget));
    CHECK_THROWS(read(reader, one(row(7, {2}, 19), number(3, 8) + number(1, 8) + "abc")));
  }
  CHECK(budget->used() == 0);
}

// Sanitizers end the program when it asks for so much.
#if !WEFT_TESTS_SANITIZED
TEST_CASE("frame: memory that the machine does not have refuses the message only") {
  weft::frame_limits limits;
  limits.max_body = UINT64_MAX;
  weft::frame_reader reader(with(limits));
  const std::uint64_t bytes = std::uint64_t{1} << 56;
  CHECK(read(reader, header(1, 20, 0, bytes) + row(4, {std::int64_t{1} << 56}, bytes) + "abc").empty());
  CHECK(reader.inside_frame());
}
#endif

TEST_CASE("frame: a budget gives what it has and no more") {
  weft::receive_budget budget(10);
  CHECK(budget.try_take(4));
  CHECK(budget.try_take(6));
  CHECK_FALSE(budget.try_take(1));
  CHECK(budget.try_take(0));
  budget.give_back(3);
  CHECK_FALSE(budget.try_take(UINT64_MAX));
  CHECK(budget.try_take(3));
  CHECK(budget.used() == 10);
}

TEST_CASE("frame: what no receiver accepts is not sent") {
  const auto refusal = [](message m, const weft::frame_limits& limits = {}) {
    try {
      weft::frame_writer writer(std::move(m), limits);
    } catch (const weft::error& e) {
      return e.status();
    }
    return weft::status();
  };
  CHECK(refusal({1, 0, "", {tensor_value()}}).message == "tensor 0 of a message has dtype invalid and cannot be sent");
  CHECK(refusal({1, 0, "", {tensor_value(dtype::uint8, weft::shape(std::vector<std::int64_t>(33, 1)))}}).code == error_code::invalid_argument);
  weft::frame_limits limits;
  limits.max_body = 3;
  limits.max_head = 3;
  CHECK(refusal({1, 0, "", {tensor_value::scalar(1)}}, limits).code == error_code::resource_exhausted);
  CHECK(refusal({1, 0, "head", {}}, limits).code == error_code::resource_exhausted);
  CHECK(refusal({1, 0, "abc", {}}, limits).ok());
}
