#ifndef WEFT_PLACEMENT_PLACER_INTERFACE_HPP
#define WEFT_PLACEMENT_PLACER_INTERFACE_HPP
// What decides where nodes go when TensorFlow's rules leave them a choice: a function of a program, or a heuristic.

#include <weft/core/config.hpp>
#include <weft/graph/node.hpp>
#include <weft/placement/device_set.hpp>

#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace weft {

/// Nodes that share a device, be it only one node.
struct placement_group {
  /// In the order of creation.
  std::vector<const node*> nodes;
  /// Positions in the device set that requests, kernels and colocation leave open to them, the best by TensorFlow's rules first. There is at least one.
  const std::vector<int>* open = nullptr;
  /// Where TensorFlow's rules alone would put them, a position too.
  int by_rules = -1;
};

/// What a placer is asked: a device for each group.
struct placement_question {
  const device_set& devices;
  /// The task of the session: `/job:work/task:1`.
  std::string home;
  /// In the order of their first nodes.
  std::vector<placement_group> groups;
  /// By node id: a position in `groups`.
  std::vector<int> group_of;
};

/// A placer's answer for one group.
struct placement_choice {
  /// One of the positions that are open to the group; -1 leaves it to TensorFlow's rules, which see the groups that were chosen for.
  int device = -1;
  /// Why, in a few words: `greedy: 3 of 4 parameter servers hold more bytes`.
  std::string reason{};
};

/// Chooses devices where requests, colocation, resources and kernels leave several. Implementations give the same answer for the same question, and may be asked by several threads at once.
class placer {
 public:
  virtual ~placer() = default;
  /// A word or two for messages: `round robin`.
  virtual std::string name() const = 0;
  /// One choice per group. What it throws ends the placement, and names the placer.
  virtual std::vector<placement_choice> choose(const placement_question& question) const = 0;
};

/// A device for a group of nodes, given by its first one, among the names of the open ones, best first. The answer may name a device in part (`/job:ps/task:1`), which means the first open one that
/// fits; an empty answer leaves the group to TensorFlow's rules.
using placer_function = std::function<std::string(const node& first, const std::vector<std::string>& open)>;

/// A function as a placer. It is asked only about groups that have a choice, in the order of their first nodes.
std::shared_ptr<const placer> place_by(placer_function function, std::string name = "function");

}  // namespace weft

#if WEFT_HAS_BODIES
namespace weft::detail {

// `a, b, c`; of many the first ones and how many there are besides.
WEFT_DECL std::string device_names(const device_set& devices, const std::vector<int>& positions, std::size_t most = 32) {
  std::string out;
  for (std::size_t i = 0; i < positions.size() && i < most; ++i) out += (i ? ", " : "") + devices.devices()[static_cast<std::size_t>(positions[i])].name;
  return positions.size() > most ? out + " and " + std::to_string(positions.size() - most) + " more" : out;
}

class function_placer final : public placer {
 public:
  function_placer(placer_function function, std::string name) : function_(std::move(function)), name_(std::move(name)) {
    if (!function_) fail(error_code::invalid_argument, "place_by: the function of placer '" + name_ + "' is empty");
  }
  std::string name() const override { return name_; }

  std::vector<placement_choice> choose(const placement_question& question) const override {
    std::vector<placement_choice> out(question.groups.size());
    const std::vector<int>* known = nullptr;
    std::vector<std::string> names;
    for (std::size_t i = 0; i < out.size(); ++i) {
      const placement_group& group = question.groups[i];
      if (group.open->size() < 2) continue;
      if (group.open != known) {
        known = group.open;
        names.clear();
        for (const int device : *known) names.push_back(question.devices.devices()[static_cast<std::size_t>(device)].name);
      }
      const std::string answer = ask(*group.nodes[0], names);
      if (answer.empty()) continue;
      out[i] = {meant(answer, group, question.devices), "chosen by '" + name_ + "'"};
    }
    return out;
  }

 private:
  std::string ask(const node& n, const std::vector<std::string>& open) const {
    try {
      return function_(n, open);
    } catch (const error&) {
      throw;
    } catch (const std::exception& e) {
      n.fail_about(error_code::unknown, std::string("when asked for its device: ") + e.what());
    }
  }
  int meant(const std::string& answer, const placement_group& group, const device_set& devices) const {
    std::string why;
    const auto name = try_parse_device_name(answer, &why);
    if (!name) group.nodes[0]->fail_about(error_code::invalid_argument, why);
    for (const int device : *group.open)
      if (matches(*name, devices.names()[static_cast<std::size_t>(device)])) return device;
    group.nodes[0]->fail_about(error_code::invalid_argument, "cannot go to '" + answer + "'; open to it are " + device_names(devices, *group.open));
  }

  const placer_function function_;
  const std::string name_;
};

}  // namespace weft::detail

namespace weft {

WEFT_DECL std::shared_ptr<const placer> place_by(placer_function function, std::string name) {
  return std::make_shared<const detail::function_placer>(std::move(function), std::move(name));
}

}  // namespace weft
#endif

#endif
