#ifndef WEFT_TESTS_FORMAT_FILE_TEST_SUPPORT_HPP
#define WEFT_TESTS_FORMAT_FILE_TEST_SUPPORT_HPP
// A folder for the files of one test, their bytes, and python where it is.

#include <weft/core/status.hpp>

#include "../error_of.hpp"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <unistd.h>

namespace file_test {

using ::error_of;

/// A new folder, removed at the end.
class folder {
 public:
  folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "weft_XXXXXX").string();
    if (::mkdtemp(pattern.data()) == nullptr) weft::fail(weft::error_code::unavailable, "cannot make a folder");
    path_ = pattern;
  }
  folder(const folder&) = delete;
  folder& operator=(const folder&) = delete;
  ~folder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::string operator/(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

inline void put(const std::string& path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }
inline std::string get(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(in), {});
}

/// The bytes of a text in hexadecimal; blanks do not count.
inline std::string bytes(const std::string& hex) {
  std::string out, digits;
  for (const char c : hex)
    if (c != ' ') digits += c;
  for (std::size_t i = 0; i + 1 < digits.size(); i += 2) out += static_cast<char>(std::stoi(digits.substr(i, 2), nullptr, 16));
  return out;
}

/// A python that has this module, or "" (with a line that says so).
inline std::string python_with(const std::string& module) {
  const char* chosen = std::getenv("WEFT_TEST_PYTHON");
  for (const std::string& python : {std::string(chosen == nullptr ? "python3" : chosen), std::string("/usr/bin/python3")})
    if (std::system((python + " -c 'import " + module + "' >/dev/null 2>&1").c_str()) == 0) return python;
  std::printf("skipped: no python3 that has %s\n", module.c_str());
  return "";
}

/// Whether a program of python ends well.
inline bool run_python(const std::string& python, const folder& where, const std::string& program) {
  put(where / "program.py", program);
  return std::system(("cd " + where.path() + " && " + python + " program.py").c_str()) == 0;
}

}  // namespace file_test

#endif
