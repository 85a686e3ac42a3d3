#include <weft/format/npz.hpp>

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

std::string npy(const std::string& header, const std::string& elements) {
  return std::string("\x93NUMPY\1\0", 8) + static_cast<char>(header.size()) + '\0' + header + elements;
}
std::string head(const std::string& descr, const std::string& sizes, bool fortran = false) {
  return "{'descr': '" + descr + "', 'fortran_order': " + (fortran ? "True" : "False") + ", 'shape': (" + sizes + "), }\n";
}

}  // namespace

TEST_CASE("npy: the bytes are those of numpy.save") {
  const file_test::folder dir;
  weft::write_npy(dir / "a.npy", tensor_value::from<float>({2}, {1, 2}));
  CHECK(file_test::get(dir / "a.npy") == bytes("934e554d50590100 7600") + "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }" + std::string(60, ' ') + "\n" + bytes("0000803f00000040"));
  CHECK(weft::read_npy(dir / "a.npy") == tensor_value::from<float>({2}, {1, 2}));
}

TEST_CASE("npy: other byte order, Fortran order, texts, bfloat16") {
  const file_test::folder dir;
  const auto read = [&](const std::string& file) {
    put(dir / "x.npy", file);
    return weft::read_npy(dir / "x.npy");
  };
  CHECK(read(npy(head(">f4", "2,"), bytes("3f800000 40000000"))) == tensor_value::from<float>({2}, {1, 2}));
  CHECK(read(npy(head(">i2", "2, 2", true), bytes("0001 0002 0003 0004"))) == tensor_value::from<std::int16_t>({2, 2}, {1, 3, 2, 4}));
  CHECK(read(npy(head("|u1", "2, 3", true), bytes("010203040506"))) == tensor_value::from<std::uint8_t>({2, 3}, {1, 3, 5, 2, 4, 6}));
  CHECK(read(npy(head("|S3", "2,"), std::string("ab\0\0\0\0", 6))) == tensor_value::from<std::string>({2}, {"ab", ""}));
  CHECK(read(npy(head("<U2", "1,"), bytes("e9000000 ac200000"))) == tensor_value::from<std::string>({1}, {"\xc3\xa9\xe2\x82\xac"}));
  CHECK(read(npy(head("|V2", "1,"), bytes("803f"))) == tensor_value::from<weft::bfloat16>({1}, {weft::bfloat16(1.f)}));
  CHECK(read(npy(head("|b1", "2,"), bytes("0200"))) == tensor_value::from<bool>({2}, {true, false}));
  CHECK(read(npy(head("<i8", ""), bytes("0500000000000000"))) == tensor_value::scalar(std::int64_t(5)));
  CHECK(read(npy("{\"shape\": (1L, ), 'fortran_order': False, 'descr': '|i1'}", bytes("ff"))) == tensor_value::from<std::int8_t>({1}, {-1}));
}

TEST_CASE("npy: a damaged array is refused, with the file and the fault") {
  const file_test::folder dir;
  const std::string path = dir / "x.npy";
  const struct {
    std::string bytes, fault;
    error_code code = error_code::data_loss;
  } cases[] = {
      {"abc", "not an .npy array: it has 3 bytes"},
      {"0123456789", "not an .npy array: it does not begin with '\\x93NUMPY'"},
      {std::string("\x93NUMPY\7\0\0\0", 10), "version 7 of the .npy format is not known"},
      {std::string("\x93NUMPY\1\0\xff\xff{", 11), "the header claims 65535 bytes, there are 1"},
      {npy("", ""), "header: expected '{' at character 0"},
      {npy("{'descr': '<f4'}", ""), "header: it needs 'descr', 'fortran_order' and 'shape'"},
      {npy("{'descr': '<f4', 'descr': '<f4'}", ""), "header: the key 'descr' is there twice"},
      {npy("{'other': 1}", ""), "header: there is no key 'other'"},
      {npy(head("<f4", "2,") + "x", ""), "header: there is something behind the '}'"},
      {npy(head("<f4", "-2,"), ""), "header: expected a size at character 51"},
      {npy(head("<f4", "99999999999999999999"), ""), "header: a size of the shape is too large"},
      {npy(head("<f4", "4294967296, 4294967296"), ""), "header: shape [4294967296,4294967296] has more elements than memory can address"},
      {npy(head("<f4", "2,"), bytes("00000000")), "shape [2] needs 8 bytes of elements, found 4"},
      {npy(head("<f4", "1,"), bytes("0000000000")), "shape [1] needs 4 bytes of elements, found 5"},
      {npy(head("|S0", "9999999999,"), ""), "shape [9999999999] of empty strings is too large"},
      {npy(head("|O", "1,"), bytes("00")), "the array has dtype '|O', which cannot be read", error_code::unimplemented},
      {npy(head("<M8[ns]", "1,"), ""), "the array has dtype '<M8[ns]', which cannot be read", error_code::unimplemented},
      {npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}", ""), "the array has dtype 'a record', which cannot be read", error_code::unimplemented},
      {npy(head("<U1", "1,"), bytes("00d80000")), "a text has a character that does not exist"},
  };
  for (const auto& c : cases) {
    put(path, c.bytes);
    const weft::status why = error_of([&] { (void)weft::read_npy(path); });
    CHECK_MESSAGE(why.message == "'" + path + "': " + c.fault, why.message);
    CHECK(why.code == c.code);
  }
  CHECK(error_of([&] { weft::write_npy(path, tensor_value::scalar(std::string("a\0", 2))); }).message ==
        "cannot write '" + path + "': a string of 'the array' ends in a zero byte, which numpy's format does not keep");
  CHECK(error_of([&] { weft::write_npy(path, tensor_value(dtype::resource, shape())); }).code == error_code::unimplemented);
}

TEST_CASE("npz: every dtype comes back, strings too") {
  const file_test::folder dir;
  std::vector<weft::named_tensor> all;
  for (const dtype type : {dtype::boolean, dtype::uint8, dtype::int8, dtype::uint16, dtype::int16, dtype::half, dtype::bfloat16, dtype::uint32, dtype::int32, dtype::float32, dtype::uint64, dtype::int64,
                           dtype::float64, dtype::complex64, dtype::complex128}) {
    tensor_value v(type, shape{3, 2});
    for (std::size_t i = 0; i < v.bytes(); ++i) v.mutable_raw_data()[i] = static_cast<std::byte>(type == dtype::boolean ? i % 2 : i * 7);
    all.push_back({std::string("layer/") + weft::to_text(type), v});
  }
  all.push_back({"scalar", tensor_value::scalar(std::int64_t(-7))});
  all.push_back({"empty", tensor_value(dtype::float32, shape{0, 5})});
  all.push_back({"texts", tensor_value::from<std::string>({2, 2}, {"a", "", "long one", "\xc3\xa9"})});
  weft::write_npz(dir / "all.npz", all);
  const weft::npz_file file(dir / "all.npz");
  CHECK(file.entries().size() == all.size());
  for (const auto& t : all) CHECK_MESSAGE(file.read(t.name) == t.value, t.name);
  // Nothing in it depends on the day or the place.
  weft::write_npz(dir / "again.npz", all);
  CHECK(file_test::get(dir / "all.npz") == file_test::get(dir / "again.npz"));
}

TEST_CASE("npz: cutting or changing any byte of a file never gives other values") {
  const file_test::folder dir;
  const auto w = tensor_value::from<float>({2}, {1, 2});
  weft::write_npz(dir / "good.npz", {{"w", w}, {"b", tensor_value::scalar(true)}});
  const std::string good = file_test::get(dir / "good.npz");
  for (std::size_t i = 0; i < good.size(); ++i)
    for (const int change : {-1, 1, 0x80, 0xff}) {
      std::string bad = good.substr(0, change < 0 ? i : good.size());
      if (change >= 0) bad[i] = static_cast<char>(bad[i] ^ change);
      put(dir / "bad.npz", bad);
      const weft::status why = error_of([&] {
        const weft::npz_file file(dir / "bad.npz");
        if (file.find("w") == nullptr) return;
        const tensor_value got = file.read("w");
        CHECK(got == w);
      });
      if (change < 0) CHECK(why.code == error_code::data_loss);
    }
  put(dir / "bad.npz", "PK");
  CHECK(error_of([&] { (void)weft::npz_file(dir / "bad.npz"); }).message == "'" + (dir / "bad.npz") + "': not an .npz file: it is no zip archive, or its end is missing");
}

TEST_CASE("npz: numpy reads what weft writes, and the other way round") {
  const std::string python = file_test::python_with("numpy");
  if (python.empty()) return;
  const file_test::folder dir;
  weft::write_npz(dir / "a.npz", {{"layer/w", tensor_value::from<float>({2, 2}, {1, 2, 3, 4})}, {"s", tensor_value::scalar(std::int64_t(5))}, {"t", tensor_value::from<std::string>({2}, {"ab", "c"})},
                                  {"none", tensor_value(dtype::float64, shape{0, 3})}});
  CHECK(file_test::run_python(python, dir, R"(
import numpy, zipfile
assert zipfile.ZipFile('a.npz').testzip() is None
a = numpy.load('a.npz')
assert sorted(a.files) == ['layer/w', 'none', 's', 't']
assert a['layer/w'].tolist() == [[1, 2], [3, 4]] and a['layer/w'].dtype == numpy.float32
assert a['s'].shape == () and a['s'] == 5 and a['t'].tolist() == [b'ab', b'c'] and a['none'].shape == (0, 3)
x = numpy.arange(6, dtype='>i4').reshape(2, 3)
numpy.savez('b.npz', x=x, f=numpy.asfortranarray(x.astype(float)), c=numpy.array([1 + 2j], numpy.complex64), u=numpy.array(['h\u00e9', '']))
numpy.savez_compressed('c.npz', x=x)
with zipfile.ZipFile('d.npz', 'w') as z:
    with z.open('x.npy', 'w', force_zip64=True) as f: numpy.lib.format.write_array(f, x)
)"));
  const weft::npz_file file(dir / "b.npz");
  CHECK(file.read("x") == tensor_value::from<std::int32_t>({2, 3}, {0, 1, 2, 3, 4, 5}));
  CHECK(file.read("f") == tensor_value::from<double>({2, 3}, {0, 1, 2, 3, 4, 5}));
  CHECK(file.read("u") == tensor_value::from<std::string>({2}, {"h\xc3\xa9", ""}));
  CHECK(weft::npz_file(dir / "d.npz").read("x") == file.read("x"));
  const weft::status why = error_of([&] { (void)weft::npz_file(dir / "c.npz"); });
  CHECK(why.code == error_code::unimplemented);
  CHECK(why.message == "'" + (dir / "c.npz") + "': member 'x.npy' is compressed; write the file with numpy.savez instead of numpy.savez_compressed");
}

TEST_CASE("npz: above 4 GiB an archive is zip64" * doctest::skip()) {
  const file_test::folder dir;
  const std::int64_t n = std::int64_t(1) << 32;
  tensor_value large(dtype::uint8, shape{n + 7});
  large.mutable_raw_data()[n] = std::byte{9};
  weft::write_npz(dir / "large.npz", {{"large", large}, {"w", tensor_value::from<float>({2}, {1, 2})}});
  const weft::npz_file file(dir / "large.npz");
  CHECK(file.read("w") == tensor_value::from<float>({2}, {1, 2}));
  CHECK(file.read("large").raw_data()[n] == std::byte{9});
  const std::string python = file_test::python_with("numpy");
  if (!python.empty()) CHECK(file_test::run_python(python, dir, "import numpy\na = numpy.load('large.npz')\nassert a['w'].tolist() == [1, 2] and a['large'][1 << 32] == 9\n"));
}
