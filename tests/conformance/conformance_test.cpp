// Every file of the conformance data, where it is there.
#include "runner.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <map>

namespace {

void check_folder(const char* folder) {
  const std::string path = std::string("../shared/conformance/") + folder;
  if (!std::filesystem::exists(path)) {
    MESSAGE("skipped: there is no folder " << path);
    return;
  }
  for (const std::string& file : conformance::files_below(path)) {
    conformance::report results(conformance::differences::read(CONFORMANCE_DIFFERENCES));
    conformance::run_file(file, {}, results);
    CAPTURE(file);
    for (const conformance::case_result& r : results.results())
      if (r.what == conformance::outcome::failed) FAIL_CHECK(r.name << ": " << r.why);
  }
}

}  // namespace

TEST_CASE("conformance: ops") { check_folder("ops"); }
TEST_CASE("conformance: graphs") { check_folder("graph"); }
TEST_CASE("conformance: training") { check_folder("train"); }
