#include <weft/format/checkpoint.hpp>

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
using weft::tensor_value;

namespace {

// Written by TensorFlow 2.21, tf.compat.v1.train.Saver: layer/w, global_step, names, h (bfloat16), flag, and emb in two pieces of 3 and 2 rows.
const char* const tf_index =
    "00000608011a020801000c1300656d620001010280838082080112081202080312020802281835c0db3d17080415838280820801120812020802120208022018281035b2eca282000322656d620801120812020805120208023a080a0210030a0210023a0a"
    "0a04080310020a021002000411666c6167080a12041202080220282802355fb0ce81000b0d676c6f62616c5f7374657008091200202a280835bbd79f1100011168080e12041202080220322804352e4a56f20007156c617965722f7708011208120208021202"
    "080320362818357aebf5ab0005116e616d65730807120412020803204e2810355697199900000000010000000092455a38000000000100000000c0f2a1b00001036f00f7010000000001000000001d3e2425fc010889020f00000000000000000000000000000000"
    "00000000000000000000000000000000000057fb808b247547db";
const char* const tf_data =
    "000000000000803f0000004000004040000080400000a0400000964300809643000097430080974301000700000000000000c03f00c00000803f0000004000004040000080400000a0400000c04001000882c39aa7616c6f6e67206f6e65";

}  // namespace

TEST_CASE("checkpoint: opened by prefix, whatever its format") {
  const file_test::folder dir;
  const auto w = tensor_value::from<float>({2}, {1, 2}), v = tensor_value::from<std::int32_t>({3}, {4, 5, 6});
  weft::write_tensor_file(dir / "a.safetensors", weft::checkpoint_format::safetensors, {{"w", w}});
  weft::write_tensor_file(dir / "b.npz", weft::checkpoint_format::npz, {{"w", w}});
  for (const char* prefix : {"a", "a.safetensors", "b", "b.npz"}) CHECK(weft::open_checkpoint(dir / prefix)->read("w") == w);
  CHECK(error_of([&] { (void)weft::open_checkpoint(dir / "none"); }).message ==
        "there is no checkpoint '" + (dir / "none") + "': no file of that name with .safetensors, .npz, .safetensors.index.json, .npz.index.json or .index");
  // Several files, of either format, and an index as other libraries write it.
  weft::write_npz(dir / "c-00001-of-00002.npz", {{"v", v}});
  const auto first = weft::open_tensor_file(dir / "a.safetensors"), second = weft::open_tensor_file(dir / "c-00001-of-00002.npz");
  const std::string index = weft::checkpoint_index({{"a.safetensors", first.get()}, {"c-00001-of-00002.npz", second.get()}});
  CHECK(index == "{\n  \"metadata\": {\n    \"total_size\": 20\n  },\n  \"weight_map\": {\n    \"v\": \"c-00001-of-00002.npz\",\n    \"w\": \"a.safetensors\"\n  }\n}\n");
  put(dir / "c.safetensors.index.json", index);
  const auto both = weft::open_checkpoint(dir / "c");
  CHECK(both->entries().size() == 2);
  CHECK(both->read("v") == v);
  CHECK(both->read("w") == w);
  CHECK(error_of([&] { (void)weft::checkpoint_index({{"x", first.get()}, {"y", first.get()}}); }).message == "tensor 'w' is in 'x' and in 'y'");
}

TEST_CASE("checkpoint: a damaged index or a missing file is refused, by name") {
  const file_test::folder dir;
  weft::write_safetensors(dir / "a.safetensors", {{"w", tensor_value::scalar(1.f)}});
  const std::string path = dir / "c.npz.index.json";
  const struct {
    std::string text, fault;
    error_code code = error_code::data_loss;
  } cases[] = {
      {"{", "'" + path + "': not JSON at line 1, column 2"},
      {"{}", "'" + path + "': there is no 'weight_map'"},
      {R"({"weight_map":{"w":"../a.safetensors"}})", "'" + path + "': weight_map.w: '../a.safetensors' is not the name of a file beside the index"},
      {R"({"weight_map":{"w":".."}})", "'" + path + "': weight_map.w: '..' is not the name of a file beside the index"},
      {R"({"weight_map":{"v":"a.safetensors"}})", "'" + path + "': '" + (dir / "a.safetensors") + "' has no tensor 'v'"},
      {R"({"weight_map":{"v":"b.safetensors"}})",
       "'" + (dir / "b.safetensors") + "' is missing, one of the files that '" + path + "' names; it was written where this task cannot see it, or it was removed", error_code::not_found},
  };
  for (const auto& c : cases) {
    put(path, c.text);
    const weft::status why = error_of([&] { (void)weft::open_checkpoint(dir / "c"); });
    CHECK(why.message == c.fault);
    CHECK(why.code == c.code);
  }
}

TEST_CASE("checkpoint: slices are cut from a whole tensor and put together from pieces") {
  const file_test::folder dir;
  std::vector<float> all(20);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<float>(i);
  weft::write_npz(dir / "whole.npz", {{"w", tensor_value::from<float>({5, 4}, all)}});
  weft::write_npz(dir / "pieces.npz", {{"w 5 4 0,3:-", tensor_value::from<float>({3, 4}, {all.begin(), all.begin() + 12})}, {"w 5 4 3,2:0,1", tensor_value::from<float>({2, 1}, {12, 16})},
                                       {"w 5 4 3,2:1,3", tensor_value::from<float>({2, 3}, {13, 14, 15, 17, 18, 19})}, {"w no slice", tensor_value::scalar(1.f)}});
  for (const char* name : {"whole", "pieces"}) {
    const auto file = weft::open_checkpoint(dir / name);
    CHECK(weft::find_tensor(*file, "w").shape == weft::shape{5, 4});
    CHECK(weft::find_tensor(*file, "v").dtype == dtype::invalid);
    CHECK(weft::read_tensor(*file, "w") == tensor_value::from<float>({5, 4}, all));
    CHECK(weft::read_tensor(*file, "w", "5 4 2,2:1,2") == tensor_value::from<float>({2, 2}, {9, 10, 13, 14}));
    CHECK(weft::read_tensor(*file, "w", "5 4 0,5:0,0") == tensor_value(dtype::float32, weft::shape{5, 0}));
    CHECK(error_of([&] { (void)weft::read_tensor(*file, "w", "6 4 0,3:-"); }).message == "tensor 'w' of '" + file->path() + "' has shape [5,4], a slice of a tensor of shape [6,4] was asked for");
  }
  weft::write_npz(dir / "bad.npz", {{"w 4 0,2", tensor_value::from<float>({2}, {1, 2})}, {"v 4 0,3", tensor_value::from<float>({3}, {1, 2, 3})}, {"v 4 2,2", tensor_value::from<float>({2}, {1, 2})}});
  const auto bad = weft::open_checkpoint(dir / "bad");
  CHECK(error_of([&] { (void)weft::read_tensor(*bad, "w"); }).message == "tensor 'w' of '" + (dir / "bad.npz") + "' lacks pieces: 2 of 4 elements are there");
  CHECK(error_of([&] { (void)weft::read_tensor(*bad, "v"); }).message == "tensor 'v' of '" + (dir / "bad.npz") + "' has pieces that overlap");
  for (const char* spec : {"", "4", "4 ", "x 0,1", "4 0,5", "4 3,2", "4 -1,2", "4 0,1:-", "4 5 -", "4 0", "99999999999 99999999999 -:-", "-"})
    CHECK_MESSAGE(error_of([&] { (void)weft::parse_slice(spec); }).code == error_code::invalid_argument, spec);
}

TEST_CASE("tensorflow checkpoint: read without TensorFlow") {
  const file_test::folder dir;
  put(dir / "ckpt-7.index", bytes(tf_index));
  put(dir / "ckpt-7.data-00000-of-00001", bytes(tf_data));
  const auto file = weft::open_checkpoint(dir / "ckpt-7");
  CHECK(file->read("layer/w") == tensor_value::from<float>({2, 3}, {1, 2, 3, 4, 5, 6}));
  CHECK(file->read("global_step") == tensor_value::scalar(std::int64_t(7)));
  CHECK(file->read("names") == tensor_value::from<std::string>({3}, {"a", "", "long one"}));
  CHECK(file->read("h") == tensor_value::from<weft::bfloat16>({2}, {weft::bfloat16(1.5f), weft::bfloat16(-2.f)}));
  CHECK(file->read("flag") == tensor_value::from<bool>({2}, {true, false}));
  CHECK(weft::read_tensor(*file, "emb") == tensor_value::from<float>({5, 2}, {0, 1, 2, 3, 4, 5, 300, 301, 302, 303}));
  CHECK(weft::read_tensor(*file, "emb", "5 2 3,2:0,2") == tensor_value::from<float>({2, 2}, {300, 301, 302, 303}));
  CHECK(file->entries().size() == 7);

  std::filesystem::remove(dir / "ckpt-7.data-00000-of-00001");
  CHECK(error_of([&] { (void)weft::open_checkpoint(dir / "ckpt-7"); }).message == "cannot open '" + (dir / "ckpt-7.data-00000-of-00001") + "': No such file or directory");
}

TEST_CASE("tensorflow checkpoint: cutting or changing any byte never gives other values") {
  const file_test::folder dir;
  for (const bool in_index : {true, false}) {
    const std::string good = bytes(in_index ? tf_index : tf_data);
    put(dir / "c.index", bytes(tf_index));
    put(dir / "c.data-00000-of-00001", bytes(tf_data));
    for (std::size_t i = 0; i < good.size(); ++i)
      for (const int change : {-1, 1, 0x80, 0xff}) {
        std::string bad = good.substr(0, change < 0 ? i : good.size());
        if (change >= 0) bad[i] = static_cast<char>(bad[i] ^ change);
        put(dir / (in_index ? "c.index" : "c.data-00000-of-00001"), bad);
        const weft::status why = error_of([&] {
          const weft::tensorflow_checkpoint file(dir / "c.index");
          for (const auto& e : file.entries()) {
            const tensor_value got = file.read(e);
            if (e.name == "global_step") CHECK(got == tensor_value::scalar(std::int64_t(7)));
          }
        });
        if (change < 0) CHECK(why.code == error_code::data_loss);
      }
  }
}
