#ifndef WEFT_TESTS_CLUSTER_CHILD_PROCESS_HPP
#define WEFT_TESTS_CLUSTER_CHILD_PROCESS_HPP
// This test program, started again as another process: with a variable set that says what it is to be.

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <doctest/doctest.h>

#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

extern char** environ;

/// A process whose standard output the test reads. It ends with its object.
class child_process {
 public:
  using variables = std::map<std::string, std::string>;

  /// `in_child` is called before the program starts there, to limit what it may use. Signals do what they do by default, whatever the test's own do.
  explicit child_process(const variables& added, const std::function<void()>& in_child = nullptr) {
    std::vector<std::string> lines;
    for (char** line = environ; *line != nullptr; ++line)
      if (added.count(std::string(*line).substr(0, std::string(*line).find('='))) == 0) lines.emplace_back(*line);
    for (const auto& [name, value] : added) lines.push_back(name + "=" + value);
    std::vector<char*> all;
    for (std::string& line : lines) all.push_back(line.data());
    all.push_back(nullptr);
    int ends[2];
    REQUIRE(::pipe(ends) == 0);
    id_ = ::fork();
    if (id_ == 0) {
      ::dup2(ends[1], STDOUT_FILENO);
      for (int number = STDERR_FILENO + 1; number < 1024; ++number) ::close(number);  // connections of the test end when it ends them
      sigset_t none;
      sigemptyset(&none);
      ::sigprocmask(SIG_SETMASK, &none, nullptr);
      ::signal(SIGINT, SIG_DFL);
      if (in_child) in_child();
      char name[] = "child";
      char* const arguments[] = {name, nullptr};
      ::execve("/proc/self/exe", arguments, all.data());
      ::_exit(127);
    }
    ::close(ends[1]);
    out_ = ends[0];
  }
  child_process(child_process&& other) noexcept : id_(std::exchange(other.id_, -1)), out_(std::exchange(other.out_, -1)) {}
  child_process& operator=(child_process&&) = delete;
  ~child_process() {
    if (id_ > 0) {
      signal(SIGKILL);
      (void)wait();
    }
    if (out_ >= 0) ::close(out_);
  }

  pid_t id() const noexcept { return id_; }
  void signal(int number) const { ::kill(id_, number); }
  /// How the process ended, as `waitpid` says it.
  int wait() {
    int how = 0;
    ::waitpid(std::exchange(id_, -1), &how, 0);
    return how;
  }
  /// So many bytes of what it writes, fewer when that ends.
  std::string read(std::size_t bytes) const {
    std::string out(bytes, '\0');
    std::size_t got = 0;
    for (ssize_t n = 1; n > 0 && got < bytes; got += n > 0 ? static_cast<std::size_t>(n) : 0) n = ::read(out_, out.data() + got, bytes - got);
    out.resize(got);
    return out;
  }

 private:
  pid_t id_ = -1;
  int out_ = -1;
};

#endif
