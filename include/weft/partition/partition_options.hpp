#ifndef WEFT_PARTITION_PARTITION_OPTIONS_HPP
#define WEFT_PARTITION_PARTITION_OPTIONS_HPP
// What a step is given and asked for, and how its graph is to be cut.

#include <weft/graph/node.hpp>
#include <weft/placement/placement.hpp>

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace weft {

/// How a cut graph is written.
enum class partition_form {
  /// Feeds enter and fetches leave where they are used (`_Arg`, `_Retval`); short device names.
  weft,
  /// As TensorFlow's master and workers cut it: feeds and fetches pass through CPU:0 of the session's task as `_Recv` and `_Send` of the
  /// client, small constants are copied instead of sent, new nodes are named `x_S0` and `x_G0`, device names carry `/replica:0`.
  tensorflow
};

/// What a step is given and asked for, and how its graph is placed when `partition` does that too.
struct partition_options {
  std::vector<output> feeds{}, fetches{};
  std::vector<const node*> targets{};
  /// The task of the session, where feeds come from and fetches go: `/job:work/task:1`. Empty means the first task of the first job.
  std::string master{};
  bool allow_soft_placement = false;
  placement_order order = placement_order::session_task;
  /// What chooses where the rules leave a choice; see `placement_options::placer`.
  std::shared_ptr<const weft::placer> placer{};
  /// Devices of every task, by type.
  std::map<std::string, int> devices{{"CPU", 1}};
  partition_form form = partition_form::weft;
  /// Sends floats between tasks as bfloat16, which drops the lower half of their bits, and receives them as floats again.
  bool bfloat16_sendrecv = false;
  /// Runs one of several equal nodes of a device for all, and reads through identities (not in TensorFlow's form).
  bool merge_equal_nodes = false, skip_identities = false;
  /// Receives wait, by control edges, until shortly before their value is needed: a `_Recv` of epoch e (of 100) waits for a `ControlTrigger` named `synch_<e - 6>`. No value changes.
  bool schedule_recvs = false;
  /// For that: how long a node of a part takes, from 0 to 1e9 seconds. Empty: all take equally long.
  std::function<double(const node&)> node_seconds{};
};

}  // namespace weft

#endif
