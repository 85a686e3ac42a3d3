#ifndef WEFT_TESTS_CONFORMANCE_REPORT_HPP
#define WEFT_TESTS_CONFORMANCE_REPORT_HPP
// What a run of the conformance data gives: one result per case, counted by op and by file.

#include <weft/core/status.hpp>

#include <map>
#include <set>
#include <string>
#include <vector>

namespace conformance {

enum class outcome { passed, failed, skipped };

/// One case that did not hold or was not run, with what was expected and what was found.
struct case_result {
  std::string file, name, op;
  outcome what = outcome::passed;
  std::string why;
};

struct counts {
  int passed = 0, failed = 0, skipped = 0;
  void add(outcome what) { ++(what == outcome::passed ? passed : what == outcome::failed ? failed : skipped); }
};

/// Cases that are known not to hold, with the reason: exact names, or a beginning followed by '*'.
class differences {
 public:
  /// Reads the files `*differences.json` of a folder: arrays of {"cases": [name, ...], "why": text}.
  static differences read(const std::string& folder);
  /// The reason why this case is not expected to hold; empty when it is.
  std::string find(const std::string& name) const;
  /// Whether the case is listed by its exact name, so that it must go on failing.
  bool listed(const std::string& name) const { return exact_.count(name) != 0; }

 private:
  void read_file(const std::string& path);
  std::map<std::string, std::string> exact_, beginnings_;
};

/// Collects results.
class report {
 public:
  explicit report(differences known) : known_(std::move(known)) {}

  /// The file whose cases follow.
  void begin_file(const std::string& name) { file_ = name; }
  void passed(const std::string& op, const std::string& name);
  void failed(const std::string& op, const std::string& name, const std::string& why);
  void skipped(const std::string& op, const std::string& name, const std::string& why);
  /// A case cannot run because this op has no definition or no kernel.
  void missing(const std::string& op, const std::string& name, const std::string& missing_op, const char* what);

  /// Failures one by one, then counts per op and file, then `N passed, N failed, N skipped`.
  std::string text() const;
  std::string missing_text() const;
  const counts& total() const noexcept { return total_; }
  const std::vector<case_result>& results() const noexcept { return results_; }

 private:
  void add(case_result r);
  differences known_;
  std::string file_;
  std::vector<case_result> results_;
  std::map<std::string, counts> by_op_, by_file_;
  std::map<std::string, std::map<std::string, int>> missing_;
  counts total_;
};

/// Whether an op belongs to what weft does not run yet: loops, queues, accumulators, functions, savers, reference variables.
bool is_later(const std::string& op);

}  // namespace conformance

#endif
