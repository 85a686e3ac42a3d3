// Asks a task server what it is, has and does.
//
//   weft_status 127.0.0.1:33333
//   weft_status --json 127.0.0.1:33333

#include <weft/cluster/server_status.hpp>
#ifdef WITH_TLS
#include <weft/tls.hpp>
#endif

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include <chrono>
#include <exception>
#include <iostream>
#include <memory>
#include <string>

namespace {

using json = nlohmann::ordered_json;

json to_json(const weft::server_report& r) {
  json devices = json::array(), sessions = json::array(), graphs = json::array(), resources = json::array(), numbers = json::object();
  for (const weft::device& d : r.devices) devices.push_back({{"name", d.name}, {"type", d.type}, {"memory", d.memory}});
  for (const weft::session_report& s : r.sessions) sessions.push_back({{"id", s.id}, {"client", s.client}, {"nodes", s.nodes}, {"prepared_steps", s.prepared}, {"running_steps", s.steps}});
  for (const weft::registration_report& g : r.registrations)
    graphs.push_back({{"number", g.number}, {"master", g.master}, {"nodes", g.nodes}, {"edges", g.edges}, {"running_steps", g.steps}});
  for (const weft::resource_report& e : r.resources) {
    json entry{{"container", e.container}, {"name", e.name}, {"what", e.what}};
    if (!e.dtype.empty()) entry.update({{"dtype", e.dtype}, {"shape", e.shape}, {"bytes", e.bytes}});
    if (!e.contents.empty()) entry["contents"] = e.contents;
    resources.push_back(std::move(entry));
  }
  for (const auto& [name, value] : r.statistics) numbers[name] = value;
  return {{"task", to_text(r.task)}, {"address", r.address}, {"version", r.version}, {"uptime_ms", r.uptime.count()}, {"incarnation", r.incarnation}, {"devices", std::move(devices)},
          {"sessions", std::move(sessions)}, {"registered_graphs", std::move(graphs)}, {"resources", std::move(resources)}, {"statistics", std::move(numbers)}};
}

}  // namespace

int main(int argc, char** argv) {
  std::string address, key_file;
  std::shared_ptr<const weft::transport_security> transport;
  bool as_json = false;
  int timeout = 5000;
  CLI::App app("What a weft task server is, has and does.");
  app.add_option("address", address, "The server's address, HOST:PORT or weft://HOST:PORT")->required();
  app.add_flag("--json", as_json, "Write JSON");
  app.add_option("--timeout", timeout, "Milliseconds to wait for the answer")->capture_default_str()->check(CLI::Range(1, 3600000));
#ifdef WITH_TLS
  app.add_option("--key_file", key_file, "The file with the cluster's key, where its connections are secured with one");
#endif
  CLI11_PARSE(app, argc, argv);
  try {
#ifdef WITH_TLS
    if (!key_file.empty()) transport = weft::tls::with_key_file(key_file);
#endif
    const weft::server_report report = weft::ask_server(address, std::chrono::milliseconds(timeout), transport);
    // A name may hold any bytes.
    if (as_json) std::cout << to_json(report).dump(2, ' ', false, json::error_handler_t::replace) << '\n';
    else std::cout << report;
    return 0;
  } catch (const std::exception& e) {
    std::cerr << "weft_status: " << e.what() << '\n';
    return 1;
  }
}
