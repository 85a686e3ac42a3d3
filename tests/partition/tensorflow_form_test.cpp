#include <weft/partition/tensorflow_form.hpp>

#include "letters.hpp"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using letters::all_meet;
using letters::out;
using letters::world;

namespace {

struct tensorflow_world : world {
  tensorflow_world() {
    options.form = weft::partition_form::tensorflow;
    options.master = "/job:b/task:0";
  }
};

}  // namespace

TEST_CASE("TensorFlow's form: feeds and fetches pass through CPU 0 of the master") {
  tensorflow_world w;
  const auto& p = w.add("Placeholder", "A1");
  const auto& y = w.add("Combine", "C1", {out(p), out(p)});
  w.options.feeds = {out(p)};
  w.options.fetches = {out(y)};
  const auto parts = w.parts();
  CHECK(to_text(parts.at("/job:a/task:1")) ==
        "_recv_A1_0_S1 = _Recv()  float<unknown>  /job:a/replica:0/task:1/device:CPU:0  {edge_0__recv_A1_0 from /job:b/replica:0/task:0/device:CPU:0}\n"
        "C1 = Combine(_recv_A1_0_S1, _recv_A1_0_S1)  float<unknown>  /job:a/replica:0/task:1/device:CPU:0\n"
        "C1_S2 = _Send(C1)  /job:a/replica:0/task:1/device:CPU:0  {edge_1_C1 to /job:b/replica:0/task:0/device:CPU:0}\n");
  CHECK(to_text(parts.at("/job:b/task:0")) ==
        "_recv_A1_0 = _Recv()  float<unknown>  /job:b/replica:0/task:0/device:CPU:0  {A1:0 from /job:b/replica:0/task:0/device:CPU:0}\n"
        "_recv_A1_0_S0 = _Send(_recv_A1_0)  /job:b/replica:0/task:0/device:CPU:0  {edge_0__recv_A1_0 to /job:a/replica:0/task:1/device:CPU:0}\n"
        "C1_S3 = _Recv()  float<unknown>  /job:b/replica:0/task:0/device:CPU:0  {edge_1_C1 from /job:a/replica:0/task:1/device:CPU:0}\n"
        "_send_C1_0 = _Send(C1_S3)  /job:b/replica:0/task:0/device:CPU:0  {C1:0 to /job:b/replica:0/task:0/device:CPU:0}\n");
  CHECK(parts.at("/job:b").graph.find("_recv_A1_0")->attr<bool>("client_terminated"));
  CHECK_FALSE(parts.at("/job:b").graph.find("_recv_A1_0_S0")->attr<bool>("client_terminated"));
  CHECK(parts.at("/job:b").feeds == std::vector<std::string>{"A1:0"});
  CHECK(parts.at("/job:b").fetches == std::vector<std::string>{"C1:0"});
  CHECK(parts.transfers().size() == 2);
  CHECK(parts.transfers().feeds()[0].source == "A1");
  CHECK(parts.transfers().fetches()[0].source == "C1");
}

TEST_CASE("TensorFlow's form: a value is passed on between the devices of a task under names of their own") {
  tensorflow_world w;
  const auto& x = w.constant("E1", weft::tensor_value(weft::dtype::float32, weft::shape{20}));
  const auto& y = w.add("NoOp", "C1", {}, {&x});
  const auto& z = w.add("NoOp", "D1", {}, {&x});
  w.options.targets = {&y, &z};
  CHECK(to_text(w.parts().at("/job:a/task:1")) ==
        "E1_S2 = _Recv()  float[0]  /job:a/replica:0/task:1/device:CPU:0  {edge_0_E1 from /job:b/replica:0/task:0/device:CPU:0}\n"
        "E1_S3 = Identity(E1_S2)  float[0]  /job:a/replica:0/task:1/device:CPU:0\n"
        "C1 = NoOp(^E1_S3)  /job:a/replica:0/task:1/device:CPU:0\n"
        "E1_S3/ctrl_G0 = Const(^E1_S3)  float[0]  /job:a/replica:0/task:1/device:CPU:0  {value=[]}\n"
        "E1_S3_G1 = _Send(E1_S3/ctrl_G0)  /job:a/replica:0/task:1/device:CPU:0  {edge_1_E1_S3 to /job:a/replica:0/task:1/device:CPU:1}\n"
        "E1_S3_G2 = _Recv()  float[0]  /job:a/replica:0/task:1/device:CPU:1  {edge_1_E1_S3 from /job:a/replica:0/task:1/device:CPU:0}\n"
        "E1_S3_G3 = Identity(E1_S3_G2)  float[0]  /job:a/replica:0/task:1/device:CPU:1\n"
        "D1 = NoOp(^E1_S3_G3)  /job:a/replica:0/task:1/device:CPU:1\n");
}

TEST_CASE("TensorFlow's form: a constant of at most 16 elements is copied when several devices read it") {
  for (const std::int64_t elements : {16, 17}) {
    tensorflow_world w;
    const auto& x = w.constant("A1", weft::tensor_value(weft::dtype::float32, weft::shape{elements}));
    const auto& y = w.add("Identity", "C1", {out(x)});
    const auto& z = w.add("Identity", "E1", {out(x)});
    w.options.targets = {&y, &z};
    const auto parts = w.parts();
    CHECK(parts.transfers().size() == (elements == 16 ? 0U : 2U));
    CHECK((parts.at("/job:a/task:1").graph.find("A1/replicate/_0") != nullptr) == (elements == 16));
    CHECK(all_meet(parts));
  }
}

TEST_CASE("TensorFlow's form: a small constant that one other device reads is sent") {
  tensorflow_world w;
  const auto& x = w.constant("A1", weft::tensor_value(weft::dtype::float32, weft::shape{2}));
  const auto& y = w.add("Identity", "C1", {out(x)});
  w.options.targets = {&y};
  CHECK(w.parts().transfers().size() == 1);
}

TEST_CASE("TensorFlow's form: a session without a cluster has arguments and results") {
  weft::graph g(letters::ops());
  weft::node_spec spec;
  spec.op = "Placeholder";
  spec.name = "p";
  spec.device = "/cpu:1";
  spec.scoped = false;
  const auto& p = g.add(spec);
  spec = {};
  spec.op = "Identity";
  spec.name = "y";
  spec.inputs = {out(p)};
  spec.device = "/cpu:1";
  spec.scoped = false;
  const auto& y = g.add(spec);
  const auto devices = weft::device_set::of_task(weft::local_task, {{"CPU", 2}});
  weft::partition_options options;
  options.form = weft::partition_form::tensorflow;
  options.feeds = {out(p)};
  options.fetches = {out(y)};
  const auto parts = weft::partition(g, devices, weft::place(g, devices), options);
  std::vector<std::string> names;
  for (const weft::node* n : parts.parts()[0].graph.nodes()) names.push_back(n->name());
  CHECK(names == std::vector<std::string>{"_arg_p_0_0", "_arg_p_0_0/_0", "_arg_p_0_0/_1", "y", "y/_2", "y/_3", "_retval_y_0_0"});
}
