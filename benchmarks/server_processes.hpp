#ifndef WEFT_BENCHMARKS_SERVER_PROCESSES_HPP
#define WEFT_BENCHMARKS_SERVER_PROCESSES_HPP
// Task servers in processes of their own. They are forked, so they must be made before this program has threads.

#include <weft/cluster/server.hpp>
#include <weft/cluster/session.hpp>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <vector>

[[noreturn]] inline void die(const char* what) {
  std::perror(what);
  std::exit(1);
}

// A listening socket on a free port of this machine.
struct listening {
  int socket = ::socket(AF_INET, SOCK_STREAM, 0);
  int port = 0;
  listening() {
    const int on = 1;
    ::setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    if (::bind(socket, reinterpret_cast<sockaddr*>(&at), size) != 0 || ::listen(socket, 8) != 0) die("listen");
    ::getsockname(socket, reinterpret_cast<sockaddr*>(&at), &size);
    port = ntohs(at.sin_port);
  }
  int accept() const {
    const int peer = ::accept(socket, nullptr, nullptr), on = 1;
    ::setsockopt(peer, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    return peer;
  }
};

// A process that runs `body` until this object ends.
class process {
 public:
  explicit process(const std::function<void()>& body) : pid_(::fork()) {
    if (pid_ < 0) die("fork");
    if (pid_ == 0) {
      body();
      std::_Exit(0);
    }
  }
  process(const process&) = delete;
  process& operator=(const process&) = delete;
  ~process() {
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
  }

 private:
  pid_t pid_;
};

// One server for each task of a cluster on this machine.
class task_servers {
 public:
  explicit task_servers(const weft::cluster_spec& jobs) : spec_(jobs) {
    std::vector<std::unique_ptr<listening>> free;
    for (const weft::task_id& task : jobs.tasks()) {
      free.push_back(std::make_unique<listening>());
      spec_ = spec_.with_address(task.job, task.index, "127.0.0.1:" + std::to_string(free.back()->port));
    }
    for (const auto& port : free) ::close(port->socket);
    for (const weft::task_id& task : spec_.tasks())
      all_.push_back(std::make_unique<process>([this, task] {
        weft::server_options options;
        options.log = [](const char*, const std::string&) {};
        weft::server server(spec_, task.job, task.index, options);
        server.join();
      }));
    for (const weft::task_id& task : spec_.tasks()) wait_for(task);
  }
  const weft::cluster_spec& spec() const { return spec_; }
  std::string target(const std::string& job, int index) const { return "weft://" + spec_.task_address(job, index); }

 private:
  void wait_for(const weft::task_id& task) const {
    for (int attempt = 0;; ++attempt) {
      try {
        const weft::graph none;
        weft::session session(target(task.job, task.index), weft::session_options(), none);
        return;
      } catch (const weft::error&) {
        if (attempt == 500) throw;
        ::usleep(10000);
      }
    }
  }

  weft::cluster_spec spec_;
  std::vector<std::unique_ptr<process>> all_;
};

#endif
