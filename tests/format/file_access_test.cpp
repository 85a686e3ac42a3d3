#include <weft/format/file_access.hpp>

#include "file_test_support.hpp"

#include <weft/format/npz.hpp>
#include <weft/format/safetensors.hpp>

#include <doctest/doctest.h>

#include <csignal>
#include <cstdio>
#include <string>
#include <vector>

#include <sys/resource.h>
#include <sys/wait.h>

using file_test::error_of;
using file_test::get;
using weft::error_code;
using weft::tensor_value;

namespace {

// Runs `write` in a process that may write files of so many bytes at most; it is killed there by a signal, unless it ignores that. Whether it ended well.
template <class F> bool in_child(std::size_t limit, bool killed, F write) {
  std::fflush(nullptr);  // what is not yet written would be written by the child as well
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit sizes{limit, limit};
    ::setrlimit(RLIMIT_FSIZE, &sizes);
    const rlimit no_core{0, 0};
    ::setrlimit(RLIMIT_CORE, &no_core);
    std::signal(SIGXFSZ, killed ? SIG_DFL : SIG_IGN);
    int code = 0;
    try {
      write();
    } catch (const weft::error&) {
      code = 1;
    }
    ::_exit(code);
  }
  int ended = 0;
  ::waitpid(child, &ended, 0);
  return WIFEXITED(ended) && WEXITSTATUS(ended) == 0;
}

}  // namespace

TEST_CASE("files: a file appears when it is complete, and not before") {
  const file_test::folder dir;
  const std::string path = dir / "a";
  file_test::put(path, "old");
  {
    weft::file_writer out(path);
    out.write("new");
    CHECK(get(path) == "old");
    CHECK(error_of([&] { weft::file_writer second(path); }).message == "somebody else is writing '" + path + "'");
    CHECK_FALSE(weft::remove_unfinished(path + ".tmp"));
  }
  CHECK(get(path) == "old");
  CHECK_FALSE(std::filesystem::exists(path + ".tmp"));
  file_test::put(path + ".tmp", "what a killed writer left");
  weft::write_whole_file(path, "new");
  CHECK(get(path) == "new");
  file_test::put(path + ".tmp", "what a killed writer left");
  CHECK(weft::remove_unfinished(path + ".tmp"));
  CHECK_FALSE(weft::remove_unfinished(path + ".tmp"));
  CHECK(error_of([&] { weft::file_writer out(dir / "none/a"); }).message == "cannot write '" + (dir / "none/a") + "': No such file or directory");
  // Pieces of any size arrive whole and in order.
  std::string expected;
  {
    weft::file_writer out(path);
    for (std::size_t i = 0; i < 40; ++i) {
      const std::string piece(i * i * 2000, static_cast<char>('a' + i % 26));
      out.write(piece);
      expected += piece;
    }
    CHECK(out.position() == expected.size());
    out.commit();
  }
  CHECK(get(path) == expected);
}

TEST_CASE("files: a checkpoint whose writer is killed at any byte leaves the one before it whole") {
  const file_test::folder dir;
  const auto value = [](float v) { return std::vector<weft::named_tensor>{{"w", tensor_value::from<float>({40}, std::vector<float>(40, v))}, {"step", tensor_value::scalar(std::int64_t(3))}}; };
  const struct {
    const char* name;
    void (*write)(const std::string&, const std::vector<weft::named_tensor>&);
  } formats[] = {{"w.npz", [](const std::string& p, const std::vector<weft::named_tensor>& t) { weft::write_npz(p, t); }},
                 {"w.safetensors", [](const std::string& p, const std::vector<weft::named_tensor>& t) { weft::write_safetensors(p, t); }}};
  for (const auto& format : formats) {
    const std::string path = dir / format.name;
    format.write(path, value(1));
    const std::string old = get(path);
    for (const bool killed : {true, false})
      for (std::size_t limit = 0; limit < old.size(); limit += 13) {
        CHECK_FALSE(in_child(limit, killed, [&] { format.write(path, value(2)); }));
        CHECK(get(path) == old);
        CHECK(std::filesystem::exists(path + ".tmp") == killed);
      }
    CHECK(in_child(old.size(), true, [&] { format.write(path, value(2)); }));
    CHECK(get(path) != old);
    CHECK_FALSE(std::filesystem::exists(path + ".tmp"));
  }
}
