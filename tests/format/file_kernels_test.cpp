#include <weft/format/file_kernels.hpp>

#include "file_test_support.hpp"

#include <weft/graph.hpp>
#include <weft/kernels/standard.hpp>
#include <weft/ops/file.hpp>
#include <weft/session/local_session.hpp>
#include <weft/tensor/xtensor.hpp>

#include <doctest/doctest.h>

#include <string>
#include <vector>

using file_test::error_of;
using weft::dtype;
using weft::error_code;
using weft::tensor_value;

namespace {

weft::session_options with_files(const weft::file_kernel_options& files) {
  auto kernels = weft::standard_kernels();
  kernels.add(weft::file_kernels(files));
  weft::session_options out;
  out.kernels = std::make_shared<const weft::kernel_registry>(kernels);
  return out;
}

std::vector<tensor_value> fetch(weft::session_interface& session, const std::vector<weft::feed>& fed, const std::vector<weft::output>& what, const std::vector<weft::operation>& targets = {}) {
  return session.run(weft::run_options(), fed, what, targets);
}

}  // namespace

TEST_CASE("file kernels: save and restore, with slices, in the format of the name") {
  const file_test::folder dir;
  weft::graph graph;
  const auto scope = graph.as_default();
  const auto prefix = weft::placeholder<std::string, 0>();
  const auto w = weft::constant<float>({{1, 2}, {3, 4}});
  const auto t = weft::constant<std::string>({"a", "bc"});
  const auto save = weft::save_tensors(prefix, {"w", "t"}, {w.raw(), t.raw()});
  const auto pieces = weft::save_tensors(prefix, {"v", "v"}, {w.raw(), w.raw()}, {"4 2 0,2:-", "4 2 2,2:-"});
  const auto read = weft::restore_tensors(prefix, {"w", "t"}, {dtype::float32, dtype::string});
  const auto whole = weft::restore_tensors(prefix, {"v", "v"}, {dtype::float32, dtype::float32}, {"", "4 2 1,2:0,1"});
  weft::local_session session(with_files({dir.path()}));
  session.run({{prefix, "run/1.npz"}}, save);
  CHECK(std::filesystem::exists(dir / "run/1.npz"));
  for (const char* name : {"run/1.npz", "run/1"}) {
    const auto got = fetch(session, {{prefix.raw(), tensor_value::scalar(std::string(name))}}, read);
    CHECK(got[0] == tensor_value::from<float>({2, 2}, {1, 2, 3, 4}));
    CHECK(got[1] == tensor_value::from<std::string>({2}, {"a", "bc"}));
  }
  session.run({{prefix, "p"}}, pieces);
  CHECK(std::filesystem::exists(dir / "p.safetensors"));
  const auto got = fetch(session, {{prefix.raw(), tensor_value::scalar(std::string("p"))}}, whole);
  CHECK(got[0] == tensor_value::from<float>({4, 2}, {1, 2, 3, 4, 1, 2, 3, 4}));
  CHECK(got[1] == tensor_value::from<float>({2, 1}, {3, 1}));

  CHECK(error_of([&] { session.run({{prefix, "p"}}, save); }).message == "cannot write '" + std::filesystem::canonical(dir.path()).string() + "/p.safetensors': safetensors has no dtype for string, which tensor 't' has; write an .npz file instead");
  CHECK(error_of([&] { (void)fetch(session, {{prefix.raw(), tensor_value::scalar(std::string("p"))}}, read); }).message == "'" + std::filesystem::canonical(dir.path()).string() + "/p.safetensors' has no tensor 'w'");
  const auto wrong = weft::restore_tensors(prefix, {"w"}, {dtype::float64});
  CHECK(error_of([&] { (void)fetch(session, {{prefix.raw(), tensor_value::scalar(std::string("run/1"))}}, wrong); }).message ==
        "tensor 'w' of '" + std::filesystem::canonical(dir.path()).string() + "/run/1.npz' is float[2,2], expected double");
}

TEST_CASE("file kernels: nothing outside the folder is read or written") {
  const file_test::folder dir, outside;
  std::filesystem::create_directory(dir / "in");
  std::filesystem::create_directory_symlink(outside.path(), dir / "link");
  file_test::put(outside / "x.npz", "secret");
  std::filesystem::create_symlink(outside / "x.npz", dir / "y.npz");
  weft::graph graph;
  const auto scope = graph.as_default();
  const auto prefix = weft::placeholder<std::string, 0>();
  const auto save = weft::save_tensors(prefix, {"w"}, {weft::constant(1.f).raw()});
  const auto read = weft::restore_tensors(prefix, {"w"}, {dtype::float32});
  weft::local_session session(with_files({dir / "in"}));
  std::filesystem::create_directory_symlink(outside.path(), dir / "in/link");
  std::filesystem::create_symlink(outside / "x.npz", dir / "in/y.npz");
  const std::string root = std::filesystem::canonical(dir / "in").string();
  const struct {
    std::string name, fault;
    error_code code = error_code::permission_denied;
  } cases[] = {
      {"/etc/passwd", "'/etc/passwd' is an absolute path; files are named relative to the folder that file_kernels() was given"},
      {"../x.npz", "'../x.npz' has a '..'; files are named relative to the folder that file_kernels() was given"},
      {"a/../../x.npz", "'a/../../x.npz' has a '..'; files are named relative to the folder that file_kernels() was given"},
      {"link/x.npz", "'link/x.npz' goes through the link '" + root + "/link'; links in the folder that file_kernels() was given are not followed"},
      {"y.npz", "'y.npz' goes through the link '" + root + "/y.npz'; links in the folder that file_kernels() was given are not followed"},
      {"", "'' is not the name of a file", error_code::invalid_argument},
      {std::string("a\0b", 3), "'" + std::string("a\0b", 3) + "' is not the name of a file", error_code::invalid_argument},
  };
  for (const auto& c : cases) {
    const std::vector<weft::feed> fed{{prefix.raw(), tensor_value::scalar(c.name)}};
    for (const bool writes : {true, false}) {
      const weft::status why = error_of([&] { (void)fetch(session, fed, writes ? std::vector<weft::output>() : read, writes ? std::vector<weft::operation>{save} : std::vector<weft::operation>()); });
      // What is written gets its extension first.
      if (!writes || c.name.find("npz") != std::string::npos) CHECK(why.message == c.fault);
      if (!c.name.empty()) CHECK(why.code == c.code);
    }
  }
  CHECK(file_test::get(outside / "x.npz") == "secret");
  CHECK(error_of([&] { (void)weft::file_kernels({dir / "none"}); }).message == "'" + (dir / "none") + "' is no folder that file kernels could use");
}

TEST_CASE("file kernels: several tasks' files become one checkpoint with its index") {
  const file_test::folder dir;
  weft::graph graph;
  const auto scope = graph.as_default();
  const auto one = weft::placeholder<std::string, 0>(), two = weft::placeholder<std::string, 0>(), to = weft::placeholder<std::string, 0>();
  const auto name = weft::sharded_filename(one, weft::constant(1), weft::constant(12));
  const auto save_one = weft::save_tensors(one, {"a"}, {weft::constant(1.f).raw()}), save_two = weft::save_tensors(two, {"b"}, {weft::constant(2.f).raw()});
  const auto merge = weft::merge_checkpoints(weft::stack({one, two}, 0), to);
  const auto read = weft::restore_tensors(to, {"a", "b"}, {dtype::float32, dtype::float32});
  weft::local_session session(with_files({dir.path(), weft::checkpoint_format::npz}));
  CHECK(session.run({{one, "model"}}, name) == "model-00001-of-00012");
  const std::vector<weft::feed> fed{{one, "tmp/m-00000-of-00002"}, {two, "m-00001-of-00002"}, {to, "m"}};
  const weft::status why = error_of([&] { session.run(fed, merge); });
  CHECK(why.code == error_code::failed_precondition);
  CHECK(why.message.find("which another task should have written, cannot be seen here") != std::string::npos);
  session.run(fed, save_one);
  session.run(fed, save_two);
  session.run(fed, merge);
  CHECK_FALSE(std::filesystem::exists(dir / "tmp"));
  const auto got = fetch(session, {{to.raw(), tensor_value::scalar(std::string("m"))}}, read);
  CHECK(got[0] == tensor_value::scalar(1.f));
  CHECK(got[1] == tensor_value::scalar(2.f));
  // The next one of this name takes its place, and the files of the old one go.
  const std::vector<weft::feed> next{{one, "n-00000-of-00002"}, {two, "n-00001-of-00002"}, {to, "m"}};
  session.run(next, save_one);
  session.run(next, save_two);
  session.run(next, merge);
  CHECK_FALSE(std::filesystem::exists(dir / "m-00000-of-00002.npz"));
  CHECK(weft::open_checkpoint(dir / "m")->entries().size() == 2);
}
