// The first program: a constant on a parameter server, arithmetic on a worker, and the values back here.
//
//   seed                             runs on the cluster of task_server's default
//   seed weft://127.0.0.1:4000       names another server
//   seed weft://127.0.0.1:4000 KEY   shows the server the key in the file KEY
//   seed ""                          runs in this process

#include <weft/weft.hpp>
#ifdef WITH_TLS
#include <weft/tls.hpp>
#endif

#include <cmath>
#include <iostream>
#include <string>

namespace {

/// Runs one step that fetches both tensors; whether every y is x * 0.1 + 0.3.
bool run_and_check(const std::string& target, const std::string& key_file, const weft::tensor<float, 1>& x, const weft::tensor<float, 1>& y) {
  weft::session_options options;
  options.allow_soft_placement = true;
  options.log_device_placement = true;
  if (target.empty()) options.cluster = {{"ps", 2}, {"work", 3}};  // the same tasks, in this process
#ifdef WITH_TLS
  if (!key_file.empty()) options.transport = weft::tls::with_key_file(key_file);
#else
  if (!key_file.empty()) weft::fail(weft::error_code::unimplemented, "this program was built without OpenSSL");
#endif
  weft::session session(target, options);
  const auto [xs, ys] = session.run(x, y);
  std::cout << ys << '\n';
  bool right = ys.size() == 100;
  for (std::size_t i = 0; i < ys.size(); ++i) right = right && xs(i) >= 0.f && xs(i) < 1.f && std::abs(ys(i) - (xs(i) * 0.1f + 0.3f)) < 1e-6f;
  std::cout << (right ? "right" : "WRONG") << ": 100 values of x * 0.1 + 0.3 " << (target.empty() ? "in this process" : "through " + target) << '\n';
  return right;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    weft::tensor<float, 1> x, y;
    {
      auto device = weft::with_device("/job:ps/task:0");
      x = weft::constant(xt::random::rand<float>({100}));
    }
    {
      auto device = weft::with_device("/job:work/task:1");
      y = x * 0.1f + 0.3f;
    }
    return run_and_check(argc > 1 ? argv[1] : "weft://127.0.0.1:33335", argc > 2 ? argv[2] : "", x, y) ? 0 : 1;
  } catch (const std::exception& e) {
    std::cerr << "seed: " << e.what() << '\n';
    return 1;
  }
}
