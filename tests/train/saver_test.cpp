#include <weft/train/saver.hpp>

#include "../format/file_test_support.hpp"
#include "../long_tests.hpp"

#include <weft/cluster/local_cluster.hpp>
#include <weft/cluster/session.hpp>
#include <weft/format/file_kernels.hpp>
#include <weft/graph.hpp>
#include <weft/kernels/standard.hpp>
#include <weft/session/local_session.hpp>
#include <weft/tensor/xtensor.hpp>
#include <weft/train/partitioned_variable.hpp>

#include <doctest/doctest.h>

#include <csignal>
#include <string>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

using file_test::error_of;
using weft::checkpoint_format;
using weft::error_code;
using weft::tensor_value;

namespace {

weft::server_options with_files(const std::string& directory) {
  auto kernels = weft::standard_kernels();
  kernels.add(weft::file_kernels({directory}));
  weft::server_options out;
  out.kernels = std::make_shared<const weft::kernel_registry>(kernels);
  return out;
}

// Variables w0, w1, ... and a step counter over so many parameter servers, each first filled with its number plus `base`.
struct model {
  model(int variables, int tasks, float base, const std::string& job = "ps") {
    const auto scope = graph.as_default();
    for (int i = 0; i < variables; ++i) {
      const auto device = weft::with_device("/job:" + job + "/task:" + std::to_string(i % tasks));
      w.emplace_back(weft::constant<float>({base + static_cast<float>(i), base}), "w" + std::to_string(i));
    }
    const auto device = weft::with_device("/job:" + job + "/task:0");
    step = weft::variable<std::int64_t, 0>(weft::constant(std::int64_t(3)), "step");
    init = weft::global_variables_initializer(graph);
  }
  weft::graph graph;
  std::vector<weft::variable<float, 1>> w;
  weft::variable<std::int64_t, 0> step;
  weft::operation init;
};

}  // namespace

TEST_CASE("saver: gathered, in both formats, the newest noted, older ones removed") {
  for (const auto format : {checkpoint_format::safetensors, checkpoint_format::npz}) {
    const file_test::folder dir;
    weft::graph graph;
    const auto scope = graph.as_default();
    const weft::variable<float, 1> w(weft::constant<float>({1, 2}), "layer/w");
    const weft::variable<std::int64_t, 0> step(weft::constant(std::int64_t(0)), "step");
    const auto init = weft::global_variables_initializer();
    const auto more = w.assign_add(weft::constant<float>({1, 1}));
    weft::saver_options options;
    options.format = format;
    options.max_to_keep = 2;
    weft::saver saver(options);
    weft::local_session session;
    CHECK(error_of([&] { saver.save(session, dir / "m", 0); }).code == error_code::failed_precondition);
    CHECK(!weft::latest_checkpoint(dir.path()));
    session.run(init);
    for (int i = 1; i <= 4; ++i) {
      session.run(more);
      CHECK(saver.save(session, dir / "run/m", i) == dir / ("run/m-" + std::to_string(i)));
    }
    CHECK(saver.checkpoints() == std::vector<std::string>{"m-3", "m-4"});
    CHECK(*weft::latest_checkpoint(dir / "run") == dir / "run/m-4");
    CHECK_FALSE(std::filesystem::exists(dir / ("run/m-2" + std::string(weft::extension_of(format)))));
    const std::string state = file_test::get(dir / "run/checkpoint");
    CHECK(state.find("model_checkpoint_path: \"m-4\"\nall_model_checkpoint_paths: \"m-3\"\nall_model_checkpoint_paths: \"m-4\"\nall_model_checkpoint_timestamps: ") == 0);
    saver.restore(session, dir / "run/m-3");
    CHECK(session.run(w) == xt::xtensor<float, 1>{4, 5});
    saver.restore(session, *weft::latest_checkpoint(dir / "run"));
    CHECK(session.run(w) == xt::xtensor<float, 1>{5, 6});
    // Another process goes on with the list.
    weft::saver again(options);
    again.save(session, dir / "run/m", 5);
    CHECK(again.checkpoints() == std::vector<std::string>{"m-4", "m-5"});
    CHECK_FALSE(std::filesystem::exists(dir / ("run/m-3" + std::string(weft::extension_of(format)))));
    // What is noted but gone does not count.
    weft::detail::remove_checkpoint(dir / "run/m-5");
    CHECK(*weft::latest_checkpoint(dir / "run") == dir / "run/m-4");
  }
}

TEST_CASE("saver: one checkpoint in a time stays for good") {
  const file_test::folder dir;
  weft::graph graph;
  const auto scope = graph.as_default();
  const weft::variable<float, 0> w(weft::constant(1.f), "w");
  weft::local_session session;
  session.run(w.initializer());
  weft::saver_options options;
  options.max_to_keep = 1;
  options.keep_every = std::chrono::hours(1);
  weft::detail::checkpoint_state old;
  old.names = {"m-1", "m-2"};
  old.times = {4000, 4100};
  file_test::put(dir / "checkpoint", weft::detail::to_text(old) + "last_preserved_timestamp: 300\n");
  for (const char* name : {"m-1.safetensors", "m-2.safetensors"}) weft::write_safetensors(dir / name, {{"w", tensor_value::scalar(1.f)}});
  weft::saver(options).save(session, dir / "m", 3);
  CHECK(std::filesystem::exists(dir / "m-1.safetensors"));
  CHECK_FALSE(std::filesystem::exists(dir / "m-2.safetensors"));
  CHECK(std::filesystem::exists(dir / "m-3.safetensors"));
}

TEST_CASE("saver: some variables, under other names, and what does not fit") {
  const file_test::folder dir;
  weft::graph graph;
  const auto scope = graph.as_default();
  const weft::variable<float, 1> a(weft::constant<float>({1, 2}), "a"), b(weft::constant<float>({3, 4, 5}), "b");
  const weft::variable<weft::bfloat16, 1> h(weft::cast<weft::bfloat16>(weft::constant<float>({1, 2})), "h");
  const weft::variable<std::string, 0> s(weft::constant("text"), "s");
  weft::local_session session;
  session.run(weft::global_variables_initializer());
  weft::saver_options npz;
  npz.format = checkpoint_format::npz;
  weft::saver(npz).save(session, dir / "all");
  weft::write_npz(dir / "other.npz", {{"old/a", tensor_value::from<float>({2}, {7, 8})}, {"b", tensor_value::from<float>({2}, {1, 2})}, {"h", tensor_value::scalar(1.0)}});
  weft::saver renamed({{"old/a", a}});
  renamed.restore(session, dir / "other");
  CHECK(session.run(a) == xt::xtensor<float, 1>{7, 8});
  CHECK(error_of([&] { weft::saver({b, h}).restore(session, dir / "other"); }).message ==
        "checkpoint '" + (dir / "other.npz") + "' does not fit: variable 'b' is float[3], the checkpoint has float[2]; variable 'h' is bfloat16[2], the checkpoint has double[]");
  CHECK(error_of([&] { weft::saver({a, {"x", b}}).restore(session, dir / "other"); }).message == "checkpoint '" + (dir / "other.npz") + "' lacks variable 'a', variable 'b' (as 'x')");
  weft::saver(npz).restore(session, dir / "all");
  CHECK(session.run(a) == xt::xtensor<float, 1>{1, 2});
  CHECK(session.run(s) == "text");
  CHECK(error_of([&] { weft::saver().save(session, dir / "all"); }).message ==
        "cannot write '" + (dir / "all.safetensors") + "': safetensors has no dtype for string, which tensor 's' has; write an .npz file instead");
  CHECK(error_of([&] { weft::saver({a, {"a", b}}); }).message == "two variables are saved as 'a'");
  CHECK(error_of([&] { weft::saver(std::vector<weft::saved_variable>()); }).message == "there is no variable to save");
  CHECK(error_of([&] { weft::saver().save(session, dir / "checkpoint"); }).code == error_code::invalid_argument);
  CHECK(error_of([&] { weft::saver().restore(session, dir / "none"); }).code == error_code::not_found);
  // Pieces of one tensor: saved as three rows and two, restored as four and one.
  const weft::variable<float, 2> top(weft::constant<float>({{0, 1}, {2, 3}, {4, 5}}), "p0"), rest(weft::constant<float>({{6, 7}, {8, 9}}), "p1");
  const weft::variable<float, 2> most(weft::constant<float>({{0, 0}, {0, 0}, {0, 0}, {0, 0}}), "q0"), last(weft::constant<float>({{0, 0}}), "q1");
  session.run(top.initializer());
  session.run(rest.initializer());
  weft::saver({{"p", top, "5 2 0,3:-"}, {"p", rest, "5 2 3,2:-"}}).save(session, dir / "pieces");
  weft::saver({{"p", most, "5 2 0,4:-"}, {"p", last, "5 2 4,1:-"}}).restore(session, dir / "pieces");
  CHECK(session.run(most) == xt::xtensor<float, 2>{{0, 1}, {2, 3}, {4, 5}, {6, 7}});
  CHECK(session.run(last) == xt::xtensor<float, 2>{{8, 9}});
}

TEST_CASE("saver: a partitioned variable saved in two pieces restores in three, in one, and in TensorFlow's words") {
  const file_test::folder dir;
  const auto make = [](weft::graph& graph, int pieces) {
    const auto scope = graph.as_default();
    return weft::get_partitioned_variable<float>("emb", {5, 2}, weft::fixed_size_partitioner(pieces));
  };
  const xt::xtensor<float, 2> all{{0, 1}, {2, 3}, {4, 5}, {6, 7}, {8, 9}};
  weft::graph two;
  const auto saved = make(two, 2);
  {
    const auto scope = two.as_default();
    weft::local_session session({}, two);
    session.run(saved.assign(weft::constant(all)));
    weft::saver().save(session, dir / "m");
  }
  const auto file = weft::open_checkpoint(dir / "m");
  CHECK(file->find("emb 5 2 0,3:0,2") != nullptr);
  CHECK(file->find("emb 5 2 3,2:0,2") != nullptr);
  for (const int pieces : {3, 1}) {
    weft::graph graph;
    const auto restored = make(graph, pieces);
    const auto scope = graph.as_default();
    weft::local_session session({}, graph);
    weft::saver(weft::saver_options(), graph).restore(session, dir / "m");
    CHECK(session.run(restored.read()) == all);
  }
}

TEST_CASE("saver: a checkpoint sharded over two parameter servers restores on three, on one, and by the client") {
  const file_test::folder dir;
  weft::saver_options options;
  options.files = weft::saver_files::sharded;
  options.directory = dir.path();
  options.max_to_keep = 1;
  {
    weft::local_cluster cluster({{"ps", 2}, {"work", 3}}, with_files(dir.path()));
    model m(5, 2, 10);
    weft::saver saver({m.w[0], m.w[1], m.w[2], m.w[3], m.w[4], m.step}, options);
    weft::session session(cluster.target("work", 2), {}, m.graph);
    session.run(m.init);
    CHECK(saver.save(session, "run/m", 1) == "run/m-1");
    CHECK(saver.save(session, dir / "run/m", 1) == dir / "run/m-1");
    CHECK(saver.save(session, "run/m", 2) == "run/m-2");
    // The index and two files, whose names only they have.
    const auto files = weft::detail::names_in_folder(dir / "run");
    CHECK(files.size() == 6);
    CHECK(std::count_if(files.begin(), files.end(), [](const std::string& f) { return f.compare(0, 4, "m-1.") == 0; }) == 0);
  }
  for (const int tasks : {3, 1}) {
    weft::local_cluster cluster({{"ps", tasks}, {"work", 4}}, with_files(dir.path()));
    model m(5, tasks, 0);
    weft::saver saver({m.w[0], m.w[1], m.w[2], m.w[3], m.w[4], m.step}, options);
    weft::session session(cluster.target("work", 0), {}, m.graph);
    saver.restore(session, *weft::latest_checkpoint(dir / "run"));
    for (int i = 0; i < 5; ++i) CHECK(session.run(m.w[static_cast<std::size_t>(i)]) == xt::xtensor<float, 1>{10 + static_cast<float>(i), 10});
    CHECK(session.run(m.step) == 3);
    CHECK(error_of([&] { saver.restore(session, "run/none"); }).code == error_code::not_found);
  }
  weft::local_cluster cluster({{"ps", 2}, {"work", 1}});
  model m(5, 2, 0);
  weft::saver saver({m.w[3]});
  weft::session session(cluster.target("work", 0), {}, m.graph);
  saver.restore(session, *weft::latest_checkpoint(dir / "run"));
  CHECK(session.run(m.w[3]) == xt::xtensor<float, 1>{13, 10});
  // Tasks without file kernels cannot save.
  weft::saver sharded({m.w[3]}, options);
  const weft::status none = error_of([&] { sharded.save(session, "run/m", 3); });
  CHECK_MESSAGE(none.message.find("no kernel") != std::string::npos, none.message);
}

TEST_CASE("saver: a variable of three gigabytes is saved and restored, through the client and by its server") {
  if (!may_take(16)) return;
  const file_test::folder dir;
  weft::local_cluster cluster({{"ps", 1}, {"work", 1}}, with_files(dir.path()));
  const weft::graph g;
  const auto scope = g.as_default();
  const auto there = weft::with_device("/job:ps/task:0");
  const weft::variable<float, 1> v(weft::zeros<float>({805306368}) + 1.f, "v");
  const auto other = v.assign(weft::zeros<float>({805306368}) + 2.f);
  const auto least = weft::reduce_min(v), most = weft::reduce_max(v);
  weft::session session(cluster.target("work", 0), {}, g);
  for (const bool sharded : {false, true}) {
    session.run(v.initializer());
    weft::saver_options options;
    options.files = sharded ? weft::saver_files::sharded : weft::saver_files::gathered;
    options.format = sharded ? checkpoint_format::safetensors : checkpoint_format::npz;
    options.directory = dir.path();
    weft::saver saver({v}, options);
    const std::string path = saver.save(session, dir / "m", 1);
    session.run(other);
    CHECK(session.run(least) == 2.f);
    saver.restore(session, path);
    CHECK(session.run(least) == 1.f);
    CHECK(session.run(most) == 1.f);
  }
}

TEST_CASE("saver: a shard that is damaged or gone is an error with its file's name, and the servers serve on") {
  const file_test::folder dir;
  weft::saver_options options;
  options.files = weft::saver_files::sharded;
  options.directory = dir.path();
  weft::local_cluster cluster({{"ps", 2}, {"work", 1}}, with_files(dir.path()));
  model m(4, 2, 10);
  weft::saver saver({m.w[0], m.w[1], m.w[2], m.w[3], m.step}, options);
  weft::session session(cluster.target("work", 0), {}, m.graph);
  session.run(m.init);
  saver.save(session, "run/m", 1);
  std::string shard;  // the larger one of the two with values
  for (const std::string& name : weft::detail::names_in_folder(dir / "run"))
    if (name.find(".data-") != std::string::npos || (name.find("safetensors") != std::string::npos && name.find("index") == std::string::npos)) shard = name;
  REQUIRE(shard != "");
  const std::string path = dir / ("run/" + shard), whole = file_test::get(path);
  REQUIRE(whole.size() > 16);
  const auto restored = [&] { return error_of([&] { saver.restore(session, "run/m-1"); }); };
  for (const std::size_t bytes : {std::size_t{0}, std::size_t{7}, whole.size() / 2, whole.size() - 1}) {
    file_test::put(path, whole.substr(0, bytes));
    const weft::status why = restored();
    INFO(bytes, " of ", whole.size(), " bytes: ", why.text());
    CHECK(why.code == error_code::data_loss);
    CHECK(why.text().find(shard) != std::string::npos);
    CHECK(session.run(m.step) == 3);
  }
  std::filesystem::remove(path);
  const weft::status gone = restored();
  CHECK(gone.code == error_code::not_found);
  CHECK_MESSAGE(gone.text().find(shard) != std::string::npos, gone.text());
  file_test::put(path, whole);
  CHECK(restored().ok());
  CHECK(session.run(m.w[1]) == xt::xtensor<float, 1>{11, 10});
}

TEST_CASE("saver: a task that does not see the others' folder is told so when saving") {
  const file_test::folder shared;
  const file_test::folder own;
  weft::saver_options options;
  options.files = weft::saver_files::sharded;
  options.directory = own.path();
  weft::local_cluster cluster({{"ps", 2}}, with_files(shared.path()));
  model m(2, 2, 0);
  weft::saver saver({m.w[0], m.w[1]}, options);
  weft::session session(cluster.target("ps", 0), {}, m.graph);
  session.run(m.init);
  const auto why = error_of([&] { saver.save(session, "m", 1); });
  CHECK(why.code == error_code::failed_precondition);
  CHECK(why.message == "the tasks wrote 'm-1.safetensors' to their folder, but it is not in '" + own.path() + "', where saver_options::directory says that this process sees that folder");
  CHECK(error_of([&] { weft::saver({m.w[0]}, [] {
    weft::saver_options o;
    o.files = weft::saver_files::sharded;
    return o;
  }()); }).message == "a sharded saver needs saver_options::directory, where this process sees the folder of the tasks' file_kernels()");
}

TEST_CASE("saver: killed at any time, the newest noted checkpoint is whole") {
  const file_test::folder dir;
  for (int round = 0; round < 12; ++round) {
    int ends[2];
    REQUIRE(::pipe(ends) == 0);
    const pid_t child = ::fork();
    if (child == 0) {
      // Only files here: the threads of the test's process are not in its copy.
      weft::detail::checkpoint_state state;
      for (int i = 0;; ++i) {
        const std::string name = "m-" + std::to_string(i % 3);
        try {
          weft::write_npz(dir / (name + ".npz"), {{"w", tensor_value::from<float>({50000}, std::vector<float>(50000, static_cast<float>(i)))}});
          state.names = {name};
          state.times = {0};
          weft::write_whole_file(dir / "checkpoint", weft::detail::to_text(state));
          weft::detail::remove_leftovers(dir / "m");
          if (::write(ends[1], "", 1) != 1) ::_exit(1);
        } catch (const weft::error&) {
          ::_exit(1);
        }
      }
    }
    char done = 0;
    for (int i = 0; i < round; ++i) CHECK(::read(ends[0], &done, 1) == 1);
    ::kill(child, SIGKILL);
    for (const int end : ends) ::close(end);
    int ended = 0;
    ::waitpid(child, &ended, 0);
    CHECK(WIFSIGNALED(ended));
    const auto latest = weft::latest_checkpoint(dir.path());
    if (!latest) continue;
    const auto w = weft::open_checkpoint(*latest)->read("w");
    CHECK(w.data<float>()[0] == w.data<float>()[49999]);
  }
}

TEST_CASE("checkpoint state: TensorFlow's text, read and written") {
  const file_test::folder dir;
  file_test::put(dir / "checkpoint", "model_checkpoint_path: \"b\\\"\\303\\251\"\nall_model_checkpoint_paths: \"a\"\nall_model_checkpoint_paths: \"b\\\"\\303\\251\"\nall_model_checkpoint_timestamps: 1500000000.5\nall_model_checkpoint_timestamps: 1500000001\n");
  const auto state = weft::detail::read_checkpoint_state(dir / "checkpoint");
  CHECK(state.names == std::vector<std::string>{"a", "b\"\xc3\xa9"});
  CHECK(state.times == std::vector<double>{1500000000.5, 1500000001});
  CHECK(weft::detail::to_text(state) ==
        "model_checkpoint_path: \"b\\\"\\303\\251\"\nall_model_checkpoint_paths: \"a\"\nall_model_checkpoint_paths: \"b\\\"\\303\\251\"\nall_model_checkpoint_timestamps: 1500000000.500000\n"
        "all_model_checkpoint_timestamps: 1500000001.000000\nlast_preserved_timestamp: 0.000000\n");
  for (const char* bad : {"x", "model_checkpoint_path: \"a", "model_checkpoint_path: \"a\\\"", "model_checkpoint_path: a"}) {
    file_test::put(dir / "checkpoint", bad);
    CHECK(error_of([&] { (void)weft::latest_checkpoint(dir.path()); }).code == error_code::data_loss);
  }
}
