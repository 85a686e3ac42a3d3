// One task of a cluster: serves until it is told to stop (Ctrl-C or SIGTERM).
//
//   task_server --job_name=work --task_index=2
//   task_server --job_name=ps --task_index=0 --cluster="ps=10.0.0.1:4000;work=10.0.0.2:4000,10.0.0.3:4000" --key_file=/etc/weft/key

#include <weft/weft.hpp>
#ifdef WITH_TLS
#include <weft/tls.hpp>
#endif

#include <CLI/CLI.hpp>

#include <pthread.h>
#include <signal.h>

#include <exception>
#include <iostream>
#include <string>
#include <thread>

int main(int argc, char** argv) {
  std::string job, key_file, cluster_text = "ps=127.0.0.1:33331,127.0.0.1:33332;work=127.0.0.1:33333,127.0.0.1:33334,127.0.0.1:33335";
  int index = 0;
  weft::server_options options;
  CLI::App app("One task of a weft cluster.");
  app.add_option("--job_name", job, "The job that this task belongs to")->required();
  app.add_option("--task_index", index, "The task's number within its job, from 0")->required();
  app.add_option("--cluster", cluster_text, "Every job and the addresses of its tasks")->capture_default_str();
  app.add_option("--listen_address", options.listen_address, "Listen here instead of at the task's address, host:port");
#ifdef WITH_TLS
  app.add_option("--key_file", key_file, "Secure all connections with the key in this file, which every task and client has");
#endif
  app.add_flag("--allow_unauthenticated", options.allow_unauthenticated, "Listen at an address that other machines can reach");
  CLI11_PARSE(app, argc, argv);

  // Signals are blocked in every thread and taken by one that waits for them: stopping a server is no work for a signal handler.
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, SIGINT);
  sigaddset(&signals, SIGTERM);
  pthread_sigmask(SIG_BLOCK, &signals, nullptr);

  try {
#ifdef WITH_TLS
    if (!key_file.empty()) options.transport = weft::tls::with_key_file(key_file);
#endif
    weft::server server(weft::parse_cluster_spec(cluster_text), job, index, options);  // logs its task and address
    std::thread stopper([&] {
      int signal = 0;
      sigwait(&signals, &signal);
      server.stop();
    });
    const weft::status why = server.join();
    stopper.join();
    std::cout << why.message << '\n';
    return 0;
  } catch (const std::exception& e) {
    std::cerr << "task_server: " << e.what() << '\n';
    return 1;
  }
}
