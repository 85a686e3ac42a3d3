#include <weft/core/cluster_spec.hpp>

#include <doctest/doctest.h>

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace {

using weft::cluster_spec;
using sparse_jobs = std::map<std::string, std::map<int, std::string>>;

// The message of the INVALID_ARGUMENT that the call throws.
template <class Call>
std::string refusal(Call call) {
  try {
    call();
  } catch (const weft::error& e) {
    CHECK(e.code() == weft::error_code::invalid_argument);
    return e.message();
  }
  return "no error";
}

std::string bad_address(const std::string& text) {
  return refusal([&] { weft::parse_host_port(text); });
}

std::string text_of_parameter(const cluster_spec& cluster) { return to_text(cluster); }

const char* const expected_form = "; expected host:port, for example '127.0.0.1:2222'";

}  // namespace

TEST_CASE("cluster_spec: jobs with lists of addresses, however few") {
  const cluster_spec cluster{{"ps", {"127.0.0.1:33331", "127.0.0.1:33332"}},
                             {"work", {"127.0.0.1:33333", "127.0.0.1:33334", "127.0.0.1:33335"}}};
  CHECK(to_text(cluster) == "cluster_spec{ps: [127.0.0.1:33331, 127.0.0.1:33332], "
                            "work: [127.0.0.1:33333, 127.0.0.1:33334, 127.0.0.1:33335]}");
  // Two strings in braces must be two addresses, never the two ends of one string.
  const cluster_spec one_job{{"ps", {"127.0.0.1:1", "127.0.0.1:2"}}};
  CHECK(to_text(one_job) == "cluster_spec{ps: [127.0.0.1:1, 127.0.0.1:2]}");
  const cluster_spec in_parentheses({{"ps", {"127.0.0.1:1", "127.0.0.1:2"}}});
  CHECK(in_parentheses == one_job);
  const cluster_spec assigned = {{"ps", {"127.0.0.1:1", "127.0.0.1:2"}}};
  CHECK(assigned == one_job);
  CHECK(text_of_parameter({{"ps", {"a:1", "b:1"}}, {"work", {"c:1", "d:1"}}}) == "cluster_spec{ps: [a:1, b:1], work: [c:1, d:1]}");
  const cluster_spec one_task{{"local", {"localhost:0"}}};
  CHECK(to_text(one_task) == "cluster_spec{local: [localhost:0]}");
  const std::vector<std::string> addresses{"a:1", "b:1"};
  CHECK(to_text(cluster_spec{{"work", addresses}}) == "cluster_spec{work: [a:1, b:1]}");
}

TEST_CASE("cluster_spec: jobs with numbers of tasks, whose addresses are not known") {
  const cluster_spec cluster{{"ps", 1}, {"work", 2}};
  CHECK(to_text(cluster) == "cluster_spec{ps: [?], work: [?, ?]}");
  CHECK(cluster.task_address("work", 1).empty());
  CHECK(text_of_parameter({{"ps", 1}}) == "cluster_spec{ps: [?]}");
  CHECK(to_text(cluster_spec{{"ps", 1}, {"work", {"a:1"}}}) == "cluster_spec{ps: [?], work: [a:1]}");
  CHECK(refusal([] { cluster_spec{{"ps", -1}}; }) == "job 'ps' has -1 tasks; expected 0 or more");
}

TEST_CASE("cluster_spec: a sparse job has only the tasks that are listed") {
  const cluster_spec cluster(sparse_jobs{{"work", {{0, "a:1"}, {3, "b:1"}}}});
  CHECK(to_text(cluster) == "cluster_spec{work: {0: a:1, 3: b:1}}");
  CHECK(cluster.num_tasks("work") == 2);
  CHECK(cluster.task_indices("work") == std::vector<int>{0, 3});
  CHECK(cluster.task_address("work", 3) == "b:1");
  CHECK(cluster.has("work", 3));
  CHECK_FALSE(cluster.has("work", 1));
  CHECK(refusal([] { cluster_spec{sparse_jobs{{"work", {{-1, "a:1"}}}}}; }) == "job 'work' has a task -1; expected 0 or more");
}

TEST_CASE("cluster_spec: a list and the same tasks by number are equal, the order of tasks matters, that of jobs does not") {
  CHECK(cluster_spec{{"work", {"a:1"}}} == cluster_spec(sparse_jobs{{"work", {{0, "a:1"}}}}));
  CHECK(cluster_spec{{"ps", {"a:1"}}, {"work", {"b:1"}}} == cluster_spec{{"work", {"b:1"}}, {"ps", {"a:1"}}});
  CHECK(cluster_spec{{"work", {"a:1", "b:1"}}} != cluster_spec{{"work", {"b:1", "a:1"}}});
  CHECK(cluster_spec{{"work", {"a:1"}}} != cluster_spec(sparse_jobs{{"work", {{1, "a:1"}}}}));
  CHECK(cluster_spec{{"work", {"a:1"}}} != cluster_spec{{"ps", {"a:1"}}});
  CHECK(cluster_spec{{"work", {}}} != cluster_spec{});
  CHECK(cluster_spec{{"work", {}}} == cluster_spec(sparse_jobs{{"work", {}}}));
  const cluster_spec original{{"work", {"a:1", "b:1"}}};
  const cluster_spec copy{original};
  CHECK(copy == original);
}

TEST_CASE("cluster_spec: accessors give jobs by name and tasks by index") {
  const cluster_spec cluster(
      sparse_jobs{{"work", {{0, "w0:1"}, {2, "w2:1"}, {10, "w10:1"}}}, {"ps", {{0, "ps0:1"}, {1, "ps1:1"}}}, {"idle", {}}});
  CHECK(cluster.jobs() == std::vector<std::string>{"idle", "ps", "work"});
  CHECK(cluster.num_tasks("ps") == 2);
  CHECK(cluster.num_tasks("idle") == 0);
  CHECK(cluster.task_indices("idle").empty());
  CHECK(cluster.task_address("ps", 1) == "ps1:1");
  CHECK(cluster.task_address({"work", 10}) == "w10:1");
  CHECK(cluster.has_job("idle"));
  CHECK_FALSE(cluster.has_job("nosuch"));
  CHECK_FALSE(cluster.has("nosuch", 0));
  CHECK(cluster.has({"work", 2}));
  CHECK(cluster.tasks() == std::vector<weft::task_id>{{"ps", 0}, {"ps", 1}, {"work", 0}, {"work", 2}, {"work", 10}});
  CHECK_FALSE(cluster.empty());
  CHECK(cluster_spec{}.empty());
  CHECK(cluster_spec{}.tasks().empty());
}

TEST_CASE("cluster_spec: an unknown job or task is an error that names the known ones") {
  const cluster_spec cluster(sparse_jobs{{"ps", {{0, "a:1"}}}, {"work", {{0, "b:1"}, {1, "c:1"}, {2, "d:1"}, {5, "e:1"}}}, {"idle", {}}});
  const std::string no_job = "no job 'worker' in the cluster; its jobs are 'idle', 'ps', 'work'";
  CHECK(refusal([&] { cluster.num_tasks("worker"); }) == no_job);
  CHECK(refusal([&] { cluster.task_indices("worker"); }) == no_job);
  CHECK(refusal([&] { cluster.task_address("worker", 0); }) == no_job);
  CHECK(refusal([&] { cluster.task_address("work", 3); }) == "no task 3 in job 'work'; its tasks are 0-2, 5");
  CHECK(refusal([&] { cluster.task_address("work", -1); }) == "no task -1 in job 'work'; its tasks are 0-2, 5");
  CHECK(refusal([&] { cluster.task_address("ps", 1); }) == "no task 1 in job 'ps'; its tasks are 0");
  CHECK(refusal([&] { cluster.task_address("idle", 0); }) == "no task 0 in job 'idle'; its tasks are none");
  CHECK(refusal([] { cluster_spec{}.num_tasks("ps"); }) == "no job 'ps' in the cluster; it has no jobs");
}

TEST_CASE("cluster_spec: job names are checked when it is made, with the allowed pattern in the error") {
  for (const std::string name : {"0", "my-job", "a.b", "1a", "a b", "_a", "ps/0"}) {
    CAPTURE(name);
    const std::string message = "job name '" + name + "' does not match [A-Za-z][A-Za-z0-9_]*";
    CHECK(refusal([&] { cluster_spec{{name, {"h:1"}}}; }) == message);
    CHECK(refusal([&] { cluster_spec{{name, 1}}; }) == message);
    CHECK(refusal([&] { cluster_spec(sparse_jobs{{name, {{0, "h:1"}}}}); }) == message);
  }
  CHECK(refusal([] { cluster_spec{{"", 1}}; }) == "a job name is empty; job names match [A-Za-z][A-Za-z0-9_]*");
  CHECK(refusal([] { cluster_spec{{"ps", 1}, {"ps", 2}}; }) == "job 'ps' is given twice");
}

TEST_CASE("cluster_spec: two tasks cannot have one address, unless its port is 0") {
  CHECK(refusal([] { cluster_spec{{"ps", {"h:1", "h:2"}}, {"work", {"h:3", "h:2"}}}; }) ==
        "/job:ps/task:1 and /job:work/task:1 have the same address 'h:2'; each task needs its own");
  CHECK(refusal([] { cluster_spec{{"ps", {"h:1", "h:01"}}}; }) ==
        "/job:ps/task:0 and /job:ps/task:1 have the same address 'h:01'; each task needs its own");
  CHECK(cluster_spec{{"ps", {"127.0.0.1:0", "127.0.0.1:0"}}}.num_tasks("ps") == 2);
}

TEST_CASE("cluster_spec: a bad address is an error that names the task") {
  CHECK(refusal([] { cluster_spec{{"local", {"localhost"}}}; }) ==
        std::string("/job:local/task:0: address 'localhost': there is no port") + expected_form);
  CHECK(refusal([] { cluster_spec{{"ps", {"h:1", ""}}}; }) == "task 1 of job 'ps' has an empty address");
  CHECK(refusal([] { cluster_spec(sparse_jobs{{"ps", {{7, "h:70000"}}}}); }) ==
        std::string("/job:ps/task:7: address 'h:70000': the port is larger than 65535") + expected_form);
}

TEST_CASE("cluster_spec: a copy with another address") {
  const cluster_spec cluster{{"ps", 1}, {"work", {"a:1"}}};
  CHECK(to_text(cluster.with_address("ps", 0, "b:2")) == "cluster_spec{ps: [b:2], work: [a:1]}");
  CHECK(to_text(cluster.with_address("work", 0, "")) == "cluster_spec{ps: [?], work: [?]}");
  CHECK(to_text(cluster) == "cluster_spec{ps: [?], work: [a:1]}");
  CHECK(refusal([&] { cluster.with_address("ps", 0, "a:1"); }) ==
        "/job:ps/task:0 and /job:work/task:0 have the same address 'a:1'; each task needs its own");
  CHECK(refusal([&] { cluster.with_address("ps", 1, "b:1"); }) == "no task 1 in job 'ps'; its tasks are 0");
}

TEST_CASE("cluster_spec: the hash is FNV-1a of the text, so it is the same everywhere") {
  CHECK(cluster_spec{}.hash() == std::uint64_t{0x3e6db6f3222d08d9});
  CHECK(cluster_spec{{"work", 2}, {"ps", {"127.0.0.1:2222"}}}.hash() == std::uint64_t{0x03b1f074f27ec86e});
  CHECK(cluster_spec(sparse_jobs{{"work", {{3, "c:1"}}}}).hash() == std::uint64_t{0x694828556fae1ad});
}

TEST_CASE("cluster_spec: the first difference is told as a sentence") {
  const cluster_spec base{{"ps", {"a:1", "b:1"}}, {"work", {"c:1"}}};
  CHECK(difference(base, base).empty());
  CHECK(difference(base, cluster_spec{{"ps", {"a:1", "b:2"}}, {"work", {"d:1"}}}) == "/job:ps/task:1 is 'b:1' here and 'b:2' there");
  CHECK(difference(base, cluster_spec{{"ps", {"a:1"}}, {"work", {"c:1"}}}) == "/job:ps/task:1 is 'b:1' here and absent there");
  CHECK(difference(cluster_spec{{"ps", {"a:1"}}}, cluster_spec{{"ps", {"a:1"}}, {"work", {"c:1"}}}) ==
        "/job:work/task:0 is absent here and 'c:1' there");
  CHECK(difference(cluster_spec{{"ps", 1}}, cluster_spec{{"ps", {"a:1"}}}) == "/job:ps/task:0 is unknown here and 'a:1' there");
  CHECK(difference(cluster_spec{{"ps", 1}, {"idle", {}}}, cluster_spec{{"ps", 1}}) == "job 'idle' (without tasks) is here and not there");
  CHECK(difference(cluster_spec{{"ps", 1}}, cluster_spec{{"ps", 1}, {"idle", {}}}) == "job 'idle' (without tasks) is there and not here");
}

TEST_CASE("cluster_spec: one line of text, as on a command line") {
  CHECK(weft::parse_cluster_spec("ps=h:1,h:2;work=[::1]:3") == cluster_spec{{"ps", {"h:1", "h:2"}}, {"work", {"[::1]:3"}}});
  CHECK(weft::parse_cluster_spec("local=localhost:0") == cluster_spec{{"local", {"localhost:0"}}});
  const std::string form = "; expected 'ps=host:port,host:port;work=host:port'";
  CHECK(refusal([] { weft::parse_cluster_spec(""); }) == "cluster '': '' has no '='" + form);
  CHECK(refusal([] { weft::parse_cluster_spec("ps=h:1;"); }) == "cluster 'ps=h:1;': '' has no '='" + form);
  CHECK(refusal([] { weft::parse_cluster_spec("ps:h:1"); }) == "cluster 'ps:h:1': 'ps:h:1' has no '='" + form);
  CHECK(refusal([] { weft::parse_cluster_spec("ps=h:1;ps=h:2"); }) == "cluster 'ps=h:1;ps=h:2': job 'ps' is given twice");
  CHECK(refusal([] { weft::parse_cluster_spec("ps="); }) == "task 0 of job 'ps' has an empty address");
  CHECK(refusal([] { weft::parse_cluster_spec("ps=h:1,,h:2"); }) == "task 1 of job 'ps' has an empty address");
  CHECK(refusal([] { weft::parse_cluster_spec("=h:1"); }) == "a job name is empty; job names match [A-Za-z][A-Za-z0-9_]*");
}

TEST_CASE("host_port: names, IPv4 and bracketed IPv6 addresses with a port") {
  CHECK(weft::parse_host_port("127.0.0.1:2222") == weft::host_port{"127.0.0.1", 2222});
  CHECK(weft::parse_host_port("node-1.my_net.example:65535") == weft::host_port{"node-1.my_net.example", 65535});
  CHECK(weft::parse_host_port("localhost:0") == weft::host_port{"localhost", 0});
  CHECK(weft::parse_host_port("[::1]:1") == weft::host_port{"::1", 1});
  CHECK(weft::parse_host_port("[fe80::1%eth0]:80") == weft::host_port{"fe80::1%eth0", 80});
  CHECK(to_text(weft::host_port{"::1", 1}) == "[::1]:1");
  CHECK(to_text(weft::host_port{"localhost", 2222}) == "localhost:2222");
}

TEST_CASE("host_port: what is wrong with an address is said") {
  const struct {
    const char* text;
    const char* problem;
  } rows[] = {
      {"", "there is no port"},
      {"localhost", "there is no port"},
      {"[::1]", "there is no port"},
      {"localhost:", "the port is empty"},
      {"[::1]:", "the port is empty"},
      {":2222", "the host is empty"},
      {"[]:2222", "the host is empty"},
      {"h:http", "the port is not a decimal number"},
      {"h:-1", "the port is not a decimal number"},
      {"h:+1", "the port is not a decimal number"},
      {"h:1 ", "the port is not a decimal number"},
      {"[::1]:1]:2", "the port is not a decimal number"},
      {"h:65536", "the port is larger than 65535"},
      {"h:99999999999999999999", "the port is larger than 65535"},
      {"::1:2222", "an IPv6 address needs brackets, as in '[::1]:2222'"},
      {"[localhost]:2222", "brackets are for IPv6 addresses, as in '[::1]:2222'"},
      {"my host:1", "the host has a character that hosts cannot have"},
      {"a/b:1", "the host has a character that hosts cannot have"},
      {"a,b:1", "the host has a character that hosts cannot have"},
  };
  for (const auto& row : rows) {
    CAPTURE(std::string(row.text));
    CHECK(bad_address(row.text) == std::string("address '") + row.text + "': " + row.problem + expected_form);
  }
}

TEST_CASE("task_id: text, order by number, and the task of a device name") {
  CHECK(to_text(weft::task_id{"ps", 0}) == "/job:ps/task:0");
  CHECK(weft::task_id{"ps", 2} < weft::task_id{"ps", 10});
  CHECK(weft::task_id{"ps", 10} < weft::task_id{"work", 0});
  CHECK(weft::task_of(weft::parse_device_name("/job:ps/task:1/cpu:0")) == weft::task_id{"ps", 1});
  CHECK(weft::task_of(weft::parse_device_name("/job:ps/replica:0/task:1")) == weft::task_id{"ps", 1});
  CHECK_FALSE(weft::task_of(weft::parse_device_name("/job:ps/replica:1/task:1")).has_value());
  CHECK_FALSE(weft::task_of(weft::parse_device_name("/job:ps")).has_value());
  CHECK_FALSE(weft::task_of(weft::parse_device_name("/task:1")).has_value());
}
