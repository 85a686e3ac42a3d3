// Runs the program weft_status, whose path is the argument: against a server whose resources have names of any bytes, and with arguments that make no sense.
#include <weft/cluster/server.hpp>
#include <weft/cluster/session.hpp>
#include <weft/graph.hpp>
#include <weft/ops/queue.hpp>

#include <nlohmann/json.hpp>

#include <sys/wait.h>

#include <cstdio>
#include <iostream>
#include <string>

namespace {

struct outcome {
  int code = -1;
  std::string text;
};

outcome run(const std::string& command) {
  outcome out;
  FILE* from = ::popen((command + " 2>&1").c_str(), "r");
  char bytes[4096];
  for (std::size_t n; from != nullptr && (n = std::fread(bytes, 1, sizeof bytes, from)) > 0;) out.text.append(bytes, n);
  const int ended = from == nullptr ? -1 : ::pclose(from);
  if (WIFEXITED(ended)) out.code = WEXITSTATUS(ended);
  return out;
}

int failures = 0;
void check(bool right, const std::string& what, const outcome& found) {
  if (right) return;
  ++failures;
  std::cerr << "weft_status: " << what << " (it ended with " << found.code << ")\n" << found.text << '\n';
}

}  // namespace

int main(int, char** argv) {
  const std::string program = argv[1];
  weft::server server({{"work", {"127.0.0.1:0"}}}, "work", 0);
  const weft::graph g;
  const auto scope = g.as_default();
  weft::queue_options named;
  named.shared_name = "\xff\xfe \"q\"\n\\";
  const weft::fifo_queue<weft::tensor<float, 0>> queue(4, named);
  weft::session session(server.target(), {}, g);
  session.run(queue.enqueue(1.f));

  const outcome text = run(program + " " + server.target());
  check(text.code == 0 && text.text.find("resources: 1\n") != std::string::npos, "says what there is", text);
  const outcome as_json = run(program + " --json " + server.target());
  const auto read = nlohmann::json::parse(as_json.text, nullptr, false);
  check(as_json.code == 0 && !read.is_discarded(), "--json writes JSON whatever the names are", as_json);
  if (!read.is_discarded()) check(read["resources"][0]["name"] == "\xef\xbf\xbd\xef\xbf\xbd \"q\"\n\\", "what is not UTF-8 is replaced", as_json);

  const outcome help = run(program + " --help");
  check(help.code == 0 && help.text.find("--json") != std::string::npos, "--help lists the options", help);
  for (const char* bad : {"", "--nosuch 127.0.0.1:1", "127.0.0.1", "127.0.0.1:70000", "--timeout 0 127.0.0.1:1", "127.0.0.1:1", "127.0.0.1:1 127.0.0.1:2"}) {
    const outcome found = run(program + " " + bad);
    check(found.code > 0 && !found.text.empty() && found.text.size() < 500, std::string("ends with an error and says why: '") + bad + "'", found);
  }
  return failures == 0 ? 0 : 1;
}
