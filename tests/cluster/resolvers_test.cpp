#include <weft/cluster/resolvers.hpp>

#include "../error_of.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using weft::batch_jobs;
using weft::cluster_spec;
using weft::environment_variables;
using weft::error_code;
using weft::resolve_mpi;
using weft::resolve_slurm;
using weft::resolve_tf_config;
using weft::task_id;

namespace {
environment_variables tf_config(const std::string& text) { return {{"TF_CONFIG", text}}; }
}  // namespace

TEST_CASE("TF_CONFIG: what it says") {
  struct row {
    const char* text;
    cluster_spec cluster;
    std::optional<task_id> task;
    const char* target;
    bool chief;
  };
  const row rows[] = {
      {R"({"cluster": {"worker": ["a:1", "b:2"]}, "task": {"type": "worker", "index": 1}})", {{"worker", {"a:1", "b:2"}}}, task_id{"worker", 1}, "weft://b:2", false},
      {R"({"cluster": {"worker": ["a:1", "b:2"]}, "task": {"type": "worker", "index": 0}})", {{"worker", {"a:1", "b:2"}}}, task_id{"worker", 0}, "weft://a:1", true},
      {R"({"cluster": {"chief": ["h:1"], "ps": ["h:2"], "worker": []}, "task": {"type": "ps", "index": 0}})",
       {{"chief", {"h:1"}}, {"ps", {"h:2"}}, {"worker", std::vector<std::string>()}}, task_id{"ps", 0}, "weft://h:2", false},
      {R"({"cluster": {"chief": ["[::1]:1"], "worker": ["[fe80::2]:1"]}, "task": {"type": "chief", "index": 0}})",
       {{"chief", {"[::1]:1"}}, {"worker", {"[fe80::2]:1"}}}, task_id{"chief", 0}, "weft://[::1]:1", true},
      {R"({"cluster": {"worker": {"3": "a:1", "7": "b:2"}}, "task": {"type": "worker", "index": 7}})",
       cluster_spec(std::map<std::string, std::map<int, std::string>>{{"worker", {{3, "a:1"}, {7, "b:2"}}}}), task_id{"worker", 7}, "weft://b:2", false},
      // An evaluator stands outside; a program without a task only opens sessions.
      {R"({"cluster": {"chief": ["a:1"]}, "task": {"type": "evaluator", "index": 0}})", {{"chief", {"a:1"}}}, task_id{"evaluator", 0}, "", false},
      {R"({"cluster": {"chief": ["a:1"]}})", {{"chief", {"a:1"}}}, std::nullopt, "", false},
      {R"({"cluster": {"chief": ["a:1"]}, "session_master": "weft://c:3", "rpc_layer": "grpc", "environment": "cloud", "job": "{}"})", {{"chief", {"a:1"}}}, std::nullopt, "weft://c:3", false},
      // No cluster: the program runs by itself.
      {"", {}, std::nullopt, "", true},
      {"{}", {}, std::nullopt, "", true},
      {R"({"task": {"type": "worker", "index": 0}})", {}, task_id{"worker", 0}, "", true},
      {R"({"task": {}})", {}, std::nullopt, "", true},
  };
  for (const row& r : rows) {
    CAPTURE(r.text);
    const weft::resolved_cluster found = resolve_tf_config(tf_config(r.text));
    CHECK(found.cluster == r.cluster);
    CHECK(found.task == r.task);
    CHECK(found.target == r.target);
    if (r.task || r.cluster.empty()) CHECK(found.is_chief() == r.chief);
  }
  CHECK(resolve_tf_config(environment_variables()).cluster.empty());
}

TEST_CASE("TF_CONFIG: what is wrong with it") {
  struct row {
    const char *text, *message;
  };
  const row rows[] = {
      {"worker", "not JSON at line 1, column 1"},
      {"{\"cluster\": {\"worker\": [\"a:1\"]}", "not JSON at line 1, column 32"},
      {"[]", "expected an object"},
      {R"({"cluster": []})", "cluster: expected an object of jobs"},
      {R"({"cluster": {"worker": "a:1"}})", "cluster.worker: expected an array of addresses"},
      {R"({"cluster": {"worker": ["a:1", 2]}})", "cluster.worker[1]: expected a string, found a number"},
      {R"({"cluster": {"worker": ["a"]}})", "cluster.worker[0]: address 'a': there is no port; expected host:port, for example '127.0.0.1:2222'"},
      {R"({"cluster": {"worker": ["a:0"]}})", "cluster.worker[0]: address 'a:0': port 0 is no port that others can connect to"},
      {R"({"cluster": {"worker": ["a:70000"]}})", "cluster.worker[0]: address 'a:70000': the port is larger than 65535; expected host:port, for example '127.0.0.1:2222'"},
      {R"({"cluster": {"worker": ["a:http"]}})", "cluster.worker[0]: address 'a:http': the port is not a decimal number; expected host:port, for example '127.0.0.1:2222'"},
      {R"({"cluster": {"worker": ["::1:1"]}})", "cluster.worker[0]: address '::1:1': an IPv6 address needs brackets, as in '[::1]:2222'; expected host:port, for example '127.0.0.1:2222'"},
      {R"({"cluster": {"worker": ["a:1", "a:1"]}})", "cluster: /job:worker/task:0 and /job:worker/task:1 have the same address 'a:1'; each task needs its own"},
      {R"({"cluster": {"my-job": ["a:1"]}})", "cluster: job name 'my-job' does not match [A-Za-z][A-Za-z0-9_]*"},
      {R"({"cluster": {"worker": {"x": "a:1"}}})", "cluster.worker.x: expected the index of a task, found \"x\""},
      {R"({"cluster": {"worker": {"1": "a:1", "01": "b:1"}}})", "cluster.worker.01: task 1 is given twice"},
      {R"({"cluster": {"worker": ["a:1"]}, "task": "worker"})", "task: expected an object"},
      {R"({"cluster": {"worker": ["a:1"]}, "task": {"type": "worker", "index": "0"}})", "task.index: expected a number, found \"0\" in quotes"},
      {R"({"cluster": {"worker": ["a:1"]}, "task": {"type": "worker", "index": 1}})", "task.index: no task 1 in job 'worker'; its tasks are 0"},
      {R"({"cluster": {"worker": ["a:1"]}, "task": {"type": "worker", "index": -1}})", "task.index: expected an integer from 0 to 2147483647, found -1"},
      {R"({"cluster": {"worker": ["a:1"]}, "task": {"type": "worker"}})", "task: there is no \"index\""},
      {R"({"cluster": {"worker": ["a:1"]}, "task": {"index": 0}})", "task: there is no \"type\""},
      {R"({"cluster": {"worker": ["a:1"]}, "task": {"type": 3, "index": 0}})", "task.type: expected a string, found a number"},
      // A task that the cluster does not have; a chief without a cluster; two chiefs; an evaluator inside.
      {R"({"cluster": {"worker": ["a:1", "b:2"]}, "task": {"type": "chief", "index": 0}})", "task.type: 'chief' is no job of \"cluster\", whose jobs are 'worker'"},
      {R"({"task": {"type": "chief", "index": 0}})", "task.type: expected \"worker\" where there is no \"cluster\", found 'chief'"},
      {R"({"cluster": {"chief": ["a:1", "b:2"]}, "task": {"type": "chief", "index": 0}})", "cluster.chief: expected one address, found 2"},
      {R"({"cluster": {"chief": []}, "task": {"type": "worker", "index": 0}})", "cluster.chief: expected one address, found 0"},
      {R"({"cluster": {"chief": ["a:1"], "evaluator": ["b:1"]}})", "cluster.evaluator: an evaluator is no part of the cluster; name it in \"task\" only"},
      {R"({"cluster": {"chief": ["a:1"], "master": ["b:1"]}})", "cluster: there is a \"chief\" and a \"master\"; expected one of them"},
      {R"({"cluster": {"worker": ["a:1"], "worker": ["b:1"]}})", "an object has two members 'worker'"},
  };
  for (const row& r : rows) CHECK(error_of([&] { (void)resolve_tf_config(tf_config(r.text)); }).text() == std::string("INVALID_ARGUMENT: TF_CONFIG: ") + r.message);
  CHECK(error_of([&] { (void)resolve_tf_config(tf_config(std::string(100000, '['))); }).message == "TF_CONFIG: nested more than 64 levels deep");
}

TEST_CASE("host lists: brackets, ranges, leading zeros, several in one name") {
  using names = std::vector<std::string>;
  CHECK(weft::expand_host_list("node[01-03,07],gpu-a[1-2]b") == names{"node01", "node02", "node03", "node07", "gpu-a1b", "gpu-a2b"});
  CHECK(weft::expand_host_list("a,b.example.org") == names{"a", "b.example.org"});
  CHECK(weft::expand_host_list("r[1-2]n[8-10]") == names{"r1n8", "r1n9", "r1n10", "r2n8", "r2n9", "r2n10"});
  CHECK(weft::expand_host_list("n[098-101]") == names{"n098", "n099", "n100", "n101"});
  CHECK(weft::expand_host_list("[7]") == names{"7"});
  CHECK(weft::expand_host_list("n[1-65536]").size() == 65536);
  struct row {
    const char *text, *message;
  };
  const row rows[] = {
      {"", "'', character 1: expected the name of a host, found the end"},
      {"a,,b", "'a,,b', character 3: expected the name of a host, found ','"},
      {"a,", "'a,', character 3: expected the name of a host, found the end"},
      {"node[01-03", "'node[01-03', character 11: expected ']', found the end"},
      {"node[]", "'node[]', character 6: expected a number, found ']'"},
      {"node[1-]", "'node[1-]', character 8: expected a number, found ']'"},
      {"node[3-1]", "'node[3-1]', character 6: the range ends before it begins"},
      {"node[x]", "'node[x]', character 6: expected a number, found 'x'"},
      {"node[1[2]]", "'node[1[2]]', character 7: expected ']', found '['"},
      {"node1]", "'node1]', character 6: ']' without a '[' before it"},
      {"n[0-999999999]", "'n[0-999999999]', character 3: more than 65536 hosts"},
      {"n[0-9999999999]", "'n[0-9999999999]', character 5: a number of 10 digits"},
      {"n[1-300][1-300]", "'n[1-300][1-300]', character 1: more than 65536 hosts"},
  };
  for (const row& r : rows) CHECK(error_of([&] { (void)weft::expand_host_list(r.text); }).message == r.message);
}

TEST_CASE("Slurm: ranks are dealt out to the jobs as srun places them") {
  const batch_jobs jobs{{{"ps", 1}, {"worker", 4}}, 9000, {}};
  environment_variables variables{{"SLURM_JOB_NODELIST", "node[01-02]"}, {"SLURM_TASKS_PER_NODE", "3,2"}, {"SLURM_PROCID", "3"}, {"SLURM_NODEID", "1"}};
  const weft::resolved_cluster block = resolve_slurm(jobs, variables);
  CHECK(block.cluster == cluster_spec{{"ps", {"node01:9000"}}, {"worker", {"node01:9001", "node01:9002", "node02:9000", "node02:9001"}}});
  CHECK(block.task == task_id{"worker", 2});
  CHECK(block.target == "weft://node02:9000");

  variables["SLURM_DISTRIBUTION"] = "cyclic:block";
  const weft::resolved_cluster cyclic = resolve_slurm(jobs, variables);
  CHECK(cyclic.cluster == cluster_spec{{"ps", {"node01:9000"}}, {"worker", {"node02:9000", "node01:9001", "node02:9001", "node01:9002"}}});

  // The step's own variables come first.
  variables = {{"SLURM_JOB_NODELIST", "x[1-9]"}, {"SLURM_STEP_NODELIST", "n[1-3]"}, {"SLURM_TASKS_PER_NODE", "9(x9)"}, {"SLURM_STEP_TASKS_PER_NODE", "2(x2),1"}, {"SLURM_PROCID", "0"}};
  CHECK(resolve_slurm(jobs, variables).cluster == cluster_spec{{"ps", {"n1:9000"}}, {"worker", {"n1:9001", "n2:9000", "n2:9001", "n3:9000"}}});

  struct row {
    const char *variable, *value, *message;
  };
  const row rows[] = {
      {"SLURM_PROCID", "x", "SLURM_PROCID: 'x', character 1: expected a number, found 'x'"},
      {"SLURM_PROCID", "1,2", "SLURM_PROCID: '1,2', character 2: expected a number alone, found ','"},
      {"SLURM_PROCID", "5", "SLURM_PROCID is 5, but there are 5 tasks"},
      {"SLURM_STEP_NODELIST", "n[1-", "SLURM_STEP_NODELIST: 'n[1-', character 5: expected a number, found the end"},
      {"SLURM_STEP_NODELIST", "n[1-2]", "SLURM_STEP_NODELIST names 2 nodes, SLURM_STEP_TASKS_PER_NODE 3"},
      {"SLURM_STEP_TASKS_PER_NODE", "2(3),1", "SLURM_STEP_TASKS_PER_NODE: '2(3),1', character 3: expected 'x', found '3'"},
      {"SLURM_STEP_TASKS_PER_NODE", "2(x2)1", "SLURM_STEP_TASKS_PER_NODE: '2(x2)1', character 6: expected ',', found '1'"},
      {"SLURM_STEP_TASKS_PER_NODE", "1(x999999999)", "SLURM_STEP_TASKS_PER_NODE: '1(x999999999)', character 1: more than 65536 nodes"},
      {"SLURM_STEP_TASKS_PER_NODE", "2,2,2", "the jobs have 5 tasks, the batch system started 6"},
      {"SLURM_STEP_TASKS_PER_NODE", "999999999,2,2", "1000000003 tasks, at most 65536"},
      {"SLURM_DISTRIBUTION", "plane=2", "SLURM_DISTRIBUTION: 'plane=2', character 1: expected block or cyclic"},
      {"SLURM_NODEID", "2", "SLURM_NODEID is 2, but rank 0 should be on node 0; expected ranks in the order that SLURM_DISTRIBUTION says"},
  };
  for (const row& r : rows) {
    environment_variables changed = variables;
    changed[r.variable] = r.value;
    CHECK(error_of([&] { (void)resolve_slurm(jobs, changed); }).text() == std::string("INVALID_ARGUMENT: ") + r.message);
  }
  CHECK(error_of([&] { (void)resolve_slurm(jobs, environment_variables()); }).message ==
        "SLURM_STEP_NODELIST or SLURM_JOB_NODELIST or SLURM_NODELIST is not set; is this process started by the batch system?");
}

TEST_CASE("MPI: ranks fill the hosts one after the other") {
  const environment_variables open{{"OMPI_COMM_WORLD_RANK", "4"}, {"OMPI_COMM_WORLD_SIZE", "5"}, {"OMPI_COMM_WORLD_LOCAL_RANK", "0"}, {"OMPI_COMM_WORLD_LOCAL_SIZE", "1"}};
  const weft::resolved_cluster spread = resolve_mpi({{{"ps", 2}, {"worker", 3}}, 9000, {"a", "b"}}, open);
  CHECK(spread.cluster == cluster_spec{{"ps", {"a:9000", "a:9001"}}, {"worker", {"a:9002", "a:9003", "b:9000"}}});
  CHECK(spread.task == task_id{"worker", 2});

  const environment_variables mpich{{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}};
  const weft::resolved_cluster here = resolve_mpi({{{"ps", 1}, {"worker", 1}}}, mpich);
  CHECK(here.cluster == cluster_spec{{"ps", {"127.0.0.1:8888"}}, {"worker", {"127.0.0.1:8889"}}});
  CHECK(here.target == "weft://127.0.0.1:8889");

  const auto message = [](const environment_variables& variables, std::vector<std::string> hosts = {}) {
    return error_of([&] { (void)resolve_mpi({{{"ps", 1}, {"worker", 1}}, 8888, std::move(hosts)}, variables); }).message;
  };
  CHECK(message({}) == "OMPI_COMM_WORLD_RANK or PMI_RANK is not set; is this process started by the batch system?");
  CHECK(message({{"PMI_RANK", "0"}}) == "PMI_SIZE is not set; is this process started by the batch system?");
  CHECK(message({{"PMI_RANK", "-1"}, {"PMI_SIZE", "2"}}) == "PMI_RANK: '-1', character 1: expected a number, found '-'");
  CHECK(message({{"PMI_RANK", "2"}, {"PMI_SIZE", "2"}}) == "PMI_RANK is 2, but there are 2 tasks");
  CHECK(message({{"PMI_RANK", "0"}, {"PMI_SIZE", "0"}}) == "PMI_SIZE is 0; expected 1 to 65536");
  CHECK(message({{"PMI_RANK", "0"}, {"PMI_SIZE", "3"}}) == "the jobs have 2 tasks, the batch system started 3");
  CHECK(message({{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}, {"MPI_LOCALRANKID", "0"}, {"MPI_LOCALNRANKS", "1"}}) ==
        "2 ranks on 1 hosts: rank 1 is number 0 of 1 on its machine, which cannot be where each machine but the last has equally many; give the hosts in batch_jobs::hosts, in the order of the ranks");
}

TEST_CASE("process_environment: the variables of this process") { CHECK(weft::process_environment().count("PATH") == 1); }
