#include <weft/format/safetensors.hpp>

#include "file_test_support.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <string>
#include <vector>

using file_test::bytes;
using file_test::error_of;
using file_test::put;
using weft::dtype;
using weft::error_code;
using weft::shape;
using weft::tensor_value;

namespace {

const std::string golden = bytes("3800000000000000 7b2277223a7b226474797065223a22463332222c227368617065223a5b325d2c22646174615f6f666673657473223a5b302c385d7d7d20 20 0000803f00000040");

// A file of this header and so many bytes of data.
std::string file_of(const std::string& header, std::size_t data) {
  std::string out;
  for (int i = 0; i < 8; ++i) out += static_cast<char>(header.size() >> (8 * i) & 0xffU);
  return out + header + std::string(data, '\1');
}

}  // namespace

TEST_CASE("safetensors: the bytes are those of the format's own library") {
  const file_test::folder dir;
  weft::write_safetensors(dir / "a.safetensors", {{"w", tensor_value::from<float>({2}, {1, 2})}});
  CHECK(file_test::get(dir / "a.safetensors") == golden);
  put(dir / "b.safetensors", golden);
  const weft::safetensors_file file(dir / "b.safetensors");
  REQUIRE(file.entries().size() == 1);
  CHECK(file.read("w") == tensor_value::from<float>({2}, {1, 2}));
  CHECK(error_of([&] { (void)file.read("v"); }).message == "'" + (dir / "b.safetensors") + "' has no tensor 'v'");
}

TEST_CASE("safetensors: every dtype it has, scalars and empty tensors, names of any kind") {
  const file_test::folder dir;
  std::vector<weft::named_tensor> all;
  for (const dtype type : {dtype::boolean, dtype::uint8, dtype::int8, dtype::uint16, dtype::int16, dtype::half, dtype::bfloat16, dtype::uint32, dtype::int32, dtype::float32, dtype::uint64, dtype::int64,
                           dtype::float64, dtype::complex64}) {
    tensor_value v(type, shape{3, 2});
    for (std::size_t i = 0; i < v.bytes(); ++i) v.mutable_raw_data()[i] = static_cast<std::byte>(type == dtype::boolean ? i % 2 : i * 7);
    all.push_back({std::string("layer/") + weft::to_text(type), v});
  }
  all.push_back({"scalar", tensor_value::scalar(std::int64_t(-7))});
  all.push_back({"empty", tensor_value(dtype::float32, shape{0, 5})});
  all.push_back({"\xc3\xa9 \"quoted\"", tensor_value::scalar(2.5)});
  weft::write_safetensors(dir / "all", all, {{"step", "7"}, {"note", "two\nlines"}});
  const weft::safetensors_file file(dir / "all");
  CHECK(file.entries().size() == all.size());
  for (const auto& t : all) CHECK_MESSAGE(file.read(t.name) == t.value, t.name);
  CHECK(file.metadata().at("note") == "two\nlines");

  CHECK(error_of([&] { weft::write_safetensors(dir / "s", {{"t", tensor_value::scalar(std::string("x"))}}); }).message ==
        "cannot write '" + (dir / "s") + "': safetensors has no dtype for string, which tensor 't' has; write an .npz file instead");
  CHECK(error_of([&] { weft::write_safetensors(dir / "s", {{"t", tensor_value::scalar(1.f)}, {"t", tensor_value::scalar(2.f)}}); }).message ==
        "cannot write '" + (dir / "s") + "': there are two tensors 't'");
  CHECK(error_of([&] { weft::write_safetensors(dir / "s", {{"\xff", tensor_value::scalar(1.f)}}); }).code == error_code::invalid_argument);
}

TEST_CASE("safetensors: a damaged file is refused, with its name and the fault") {
  const file_test::folder dir;
  const std::string path = dir / "bad";
  const struct {
    std::string bytes, fault;
    error_code code = error_code::data_loss;
  } cases[] = {
      {"", "not a safetensors file: it has 0 bytes"},
      {std::string(8, '\xff'), "the header claims 18446744073709551615 bytes, at most 100000000 are allowed"},
      {bytes("1000000000000000 7b7d"), "the header claims 16 bytes, the file has 2 behind its length"},
      {file_of("", 0), "the header does not begin with '{'"},
      {file_of(" {}", 0), "the header does not begin with '{'"},
      {file_of("{} {}", 0), "header: not JSON at line 1, column 4"},
      {file_of("{\"a\":" + std::string(70, '[') + std::string(70, ']') + "}", 0), "header: nested more than 64 levels deep"},
      {file_of(R"({"a":1})", 0), "header: a: expected an object"},
      {file_of(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", 8), "header: an object has two members 'a'"},
      {file_of(R"({"a":{"dtype":"F32","shape":[1]}})", 4), "header: a: there is no 'data_offsets'"},
      {file_of(R"({"a":{"dtype":"F32","shape":[1],"offsets":[0,4]}})", 4), "header: a: there is no field 'offsets' here"},
      {file_of(R"({"a":{"dtype":"X9","shape":[1],"data_offsets":[0,4]}})", 4), "header: a.dtype: there is no dtype 'X9'"},
      {file_of(R"({"a":{"dtype":"F8_E5M2","shape":[4],"data_offsets":[0,4]}})", 4), "tensor 'a' has dtype F8_E5M2, which is not supported", error_code::unimplemented},
      {file_of(R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", 4), "header: a.shape[0]: expected an integer from 0 to 9223372036854775807, found -1"},
      {file_of(R"({"a":{"dtype":"F32","shape":["1"],"data_offsets":[0,4]}})", 4), "header: a.shape[0]: expected an integer"},
      {file_of(R"({"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,4]}})", 4), "tensor 'a' has a shape with more elements than memory can address"},
      {file_of(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4,8]}})", 4), "header: a.data_offsets: expected 2 numbers, found 3"},
      {file_of(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})", 4), "header: a.data_offsets: [4,0] is not within the 4 bytes of data"},
      {file_of(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 4), "header: a.data_offsets: [0,8] is not within the 4 bytes of data"},
      {file_of(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4), "header: a.data_offsets: shape [2] of F32 needs 8 bytes, found 4"},
      {file_of(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})", 12),
       "tensor 'b' begins at 4 of the data, within the one before it, which ends at 8"},
      {file_of(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"U8","shape":[1],"data_offsets":[2,3]}})", 3), "tensor 'b' begins at 2 of the data, behind a gap from 1"},
      {file_of(R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]}})", 3), "the tensors take 1 bytes, the file has 3 bytes of data"},
      {file_of(R"({"__metadata__":{"a":1}})", 0), "header: __metadata__.a: expected a string, found a number"},
  };
  for (const auto& c : cases) {
    put(path, c.bytes);
    const weft::status why = error_of([&] { (void)weft::safetensors_file(path); });
    CHECK_MESSAGE(why.message == "'" + path + "': " + c.fault, why.message);
    CHECK(why.code == c.code);
  }
  CHECK(error_of([&] { (void)weft::safetensors_file(dir / "none"); }).message == "cannot open '" + (dir / "none") + "': No such file or directory");
  CHECK(error_of([&] { (void)weft::safetensors_file(dir.path()); }).message == "'" + dir.path() + "' is not a regular file");
  // A bool of any other byte is true.
  put(path, file_of(R"({"a":{"dtype":"BOOL","shape":[2],"data_offsets":[0,2]}})", 0) + "\x02" + std::string(1, '\0'));
  CHECK(weft::safetensors_file(path).read("a") == tensor_value::from<bool>({2}, {true, false}));
}

TEST_CASE("safetensors: cutting or changing any byte of a file never does more than throw") {
  const file_test::folder dir;
  weft::write_safetensors(dir / "good", {{"w", tensor_value::from<float>({2}, {1, 2})}, {"b", tensor_value::scalar(true)}});
  const std::string good = file_test::get(dir / "good");
  for (std::size_t i = 0; i < good.size(); ++i)
    for (const int change : {-1, 1, 0x80, 0xff}) {
      std::string bad = good.substr(0, change < 0 ? i : good.size());
      if (change >= 0) bad[i] = static_cast<char>(bad[i] ^ change);
      put(dir / "bad", bad);
      const weft::status why = error_of([&] {
        const weft::safetensors_file file(dir / "bad");
        for (const auto& e : file.entries()) (void)file.read(e);
      });
      if (change < 0) CHECK(why.code == error_code::data_loss);
    }
}

TEST_CASE("safetensors: the format's own library reads what weft writes, and the other way round") {
  const std::string python = file_test::python_with("safetensors.numpy");
  if (python.empty()) return;
  const file_test::folder dir;
  weft::write_safetensors(dir / "a.safetensors", {{"b", tensor_value::from<bool>({3}, {true, false, true})}, {"w", tensor_value::from<double>({2, 2}, {1, 2, 3, 4})}, {"s", tensor_value::scalar(std::int64_t(5))}},
                          {{"step", "5"}});
  CHECK(file_test::run_python(python, dir, R"(
import numpy, safetensors, safetensors.numpy
a = safetensors.numpy.load_file('a.safetensors')
assert a['b'].tolist() == [True, False, True] and a['w'].tolist() == [[1, 2], [3, 4]] and a['w'].dtype == numpy.float64 and a['s'].shape == () and a['s'] == 5
assert safetensors.safe_open('a.safetensors', 'numpy').metadata() == {'step': '5'}
safetensors.numpy.save_file({'x': numpy.arange(6, dtype=numpy.int16).reshape(2, 3), 'h': numpy.array([1.5], numpy.float16)}, 'b.safetensors', {'by': 'python'})
)"));
  const weft::safetensors_file file(dir / "b.safetensors");
  CHECK(file.read("x") == tensor_value::from<std::int16_t>({2, 3}, {0, 1, 2, 3, 4, 5}));
  CHECK(file.read("h") == tensor_value::from<weft::half>({1}, {weft::half(1.5f)}));
  CHECK(file.metadata().at("by") == "python");
}
