// conformance_runner [--only OP,OP] [--file NAME] [--list-missing] [--without-passes] FOLDER-OR-FILE...
#include "runner.hpp"

#include <cstdio>
#include <cstring>
#include <exception>

int main(int argc, char** argv) {
  conformance::options asked;
  std::vector<std::string> paths;
  std::string file;
  bool list_missing = false;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    if (argument == "--list-missing") {
      list_missing = true;
    } else if (argument == "--without-passes") {
      conformance::passes() = weft::optimizer_options::none();
    } else if ((argument == "--only" || argument == "--file") && i + 1 < argc) {
      std::string value = argv[++i];
      if (argument == "--file") {
        file = value;
        continue;
      }
      for (std::size_t comma; (comma = value.find(',')) != std::string::npos; value.erase(0, comma + 1)) asked.only.insert(value.substr(0, comma));
      asked.only.insert(value);
    } else if (argument.compare(0, 2, "--") == 0) {
      std::fprintf(stderr, "usage: conformance_runner [--only OP,OP] [--file NAME] [--list-missing] [--without-passes] FOLDER-OR-FILE...\n");
      return 2;
    } else {
      paths.push_back(argument);
    }
  }
  try {
    conformance::report results(conformance::differences::read(CONFORMANCE_DIFFERENCES));
    std::size_t files = 0;
    for (const std::string& path : paths)
      for (const std::string& one : conformance::files_below(path))
        if (file.empty() || one.find(file) != std::string::npos) {
          conformance::run_file(one, asked, results);
          ++files;
        }
    if (files == 0) {
      std::fprintf(stderr, "no JSON files found\n");
      return 2;
    }
    std::fputs(list_missing ? results.missing_text().c_str() : results.text().c_str(), stdout);
    return results.total().failed == 0 ? 0 : 1;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 2;
  }
}
