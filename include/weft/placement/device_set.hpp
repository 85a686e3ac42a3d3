#ifndef WEFT_PLACEMENT_DEVICE_SET_HPP
#define WEFT_PLACEMENT_DEVICE_SET_HPP
// The devices that nodes may be placed on, by task, and which kernels each task has. A value.

#include <weft/core/config.hpp>
#include <weft/core/cluster_spec.hpp>
#include <weft/core/device_name.hpp>
#include <weft/graph/kernel_catalogue.hpp>

#include <algorithm>
#include <cstdint>
#include <map>
#include <memory>
#include <ostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weft {

/// One device of one task.
struct device {
  /// Short complete name: `/job:ps/task:0/device:CPU:0`.
  std::string name;
  /// `CPU`, `GPU`, or a type that a program invents.
  std::string type;
  /// The memory that its values live in.
  std::string memory = "host";
  /// Differs each time the task starts.
  std::uint64_t incarnation = 0;

  friend bool operator==(const device& a, const device& b) {
    return a.name == b.name && a.type == b.type && a.memory == b.memory && a.incarnation == b.incarnation;
  }
  friend bool operator!=(const device& a, const device& b) { return !(a == b); }
};

inline std::ostream& operator<<(std::ostream& out, const device& d) { return out << d.name; }

/// The task of a session that has no cluster.
inline constexpr const char* local_task = "/job:localhost/task:0";

/// Devices in the order in which they were added, and the kernels of each task.
class device_set {
 public:
  using shared_catalogue = std::shared_ptr<const kernel_catalogue>;

  /// The same devices on every task of a cluster (`{{"CPU", 1}, {"GPU", 2}}`). Without a catalogue every op has a kernel on every device.
  static device_set of_cluster(const cluster_spec& cluster, const std::map<std::string, int>& per_task = {{"CPU", 1}},
                               const shared_catalogue& kernels = nullptr);
  /// The devices of one task, by default those of a session without a cluster.
  static device_set of_task(std::string_view task = local_task, const std::map<std::string, int>& devices = {{"CPU", 1}},
                            const shared_catalogue& kernels = nullptr);

  /// Adds a device; its name may be written in any form and is kept short, its type is that of the name.
  /// Throws INVALID_ARGUMENT for a name that is not complete, ALREADY_EXISTS for one that is there.
  void add(device d);
  /// Says which kernels a task has; nullptr stands for all of them.
  void set_catalogue(std::string_view task, shared_catalogue kernels);
  /// Device types from the most to the least preferred. Types that are not named come first, by name; the default is `{"CPU"}`.
  void set_type_order(std::vector<std::string> order) { type_order_ = std::move(order); }

  /// All devices, in the order in which they were added.
  const std::vector<device>& devices() const noexcept { return devices_; }
  /// Their parsed names, in the same order.
  const std::vector<device_name>& names() const noexcept { return names_; }
  bool empty() const noexcept { return devices_.empty(); }
  std::size_t size() const noexcept { return devices_.size(); }
  /// The device of this name, in any form; nullptr when there is none.
  const device* find(std::string_view name) const;
  /// Tasks that have a device, in the order in which they were added: `/job:ps/task:0`.
  const std::vector<std::string>& tasks() const noexcept { return tasks_; }
  /// Whether every device belongs to a session without a cluster.
  bool is_local() const noexcept { return tasks_.size() == 1 && tasks_[0] == local_task; }
  /// The kernels of a task; nullptr when it has all of them.
  const shared_catalogue& catalogue_of(std::string_view task) const;
  /// Place of a device type in the order of preference: the smaller, the better.
  std::pair<int, std::string> rank_of(const std::string& type) const;

  /// Whether devices, their order, the order of types and the kernels of every task are the same; kernels are where they are one catalogue.
  friend bool operator==(const device_set& a, const device_set& b) { return a.names_ == b.names_ && a.catalogues_ == b.catalogues_ && a.type_order_ == b.type_order_; }
  friend bool operator!=(const device_set& a, const device_set& b) { return !(a == b); }

 private:
  std::vector<device> devices_;
  std::vector<device_name> names_;
  std::vector<std::string> tasks_;
  std::map<std::string, shared_catalogue, std::less<>> catalogues_;
  std::vector<std::string> type_order_{"CPU"};
};

}  // namespace weft

#if WEFT_HAS_BODIES
namespace weft {

WEFT_DECL device_set device_set::of_task(std::string_view task, const std::map<std::string, int>& devices, const shared_catalogue& kernels) {
  device_set out;
  for (const auto& [type, count] : devices)
    for (int i = 0; i < count; ++i) out.add({std::string(task) + "/device:" + type + ":" + std::to_string(i), type});
  out.set_catalogue(task, kernels);
  return out;
}

WEFT_DECL device_set device_set::of_cluster(const cluster_spec& cluster, const std::map<std::string, int>& per_task, const shared_catalogue& kernels) {
  device_set out;
  for (const task_id& task : cluster.tasks()) {
    for (const auto& [type, count] : per_task)
      for (int i = 0; i < count; ++i) out.add({to_text(task) + "/device:" + type + ":" + std::to_string(i), type});
    out.set_catalogue(to_text(task), kernels);
  }
  return out;
}

WEFT_DECL void device_set::add(device d) {
  device_name name = parse_device_name(d.name);
  if (!name.is_complete())
    fail(error_code::invalid_argument, "device '" + d.name + "' must name job, task, type and number, as in '/job:ps/task:0/device:CPU:0'");
  d.name = to_text(name);
  if (find(d.name) != nullptr) fail(error_code::already_exists, "device '" + d.name + "' is given twice");
  d.type = *name.type;
  const std::string task = task_text(name);
  if (std::find(tasks_.begin(), tasks_.end(), task) == tasks_.end()) tasks_.push_back(task);
  devices_.push_back(std::move(d));
  names_.push_back(std::move(name));
}

WEFT_DECL void device_set::set_catalogue(std::string_view task, shared_catalogue kernels) {
  catalogues_[task_text(parse_device_name(task))] = std::move(kernels);
}

WEFT_DECL const device* device_set::find(std::string_view name) const {
  const auto parsed = try_parse_device_name(name);
  if (!parsed) return nullptr;
  const std::string text = to_text(*parsed);
  for (const device& d : devices_)
    if (d.name == text) return &d;
  return nullptr;
}

WEFT_DECL const device_set::shared_catalogue& device_set::catalogue_of(std::string_view task) const {
  static const shared_catalogue all;
  const auto it = catalogues_.find(task);
  return it == catalogues_.end() ? all : it->second;
}

WEFT_DECL std::pair<int, std::string> device_set::rank_of(const std::string& type) const {
  const auto it = std::find(type_order_.begin(), type_order_.end(), type);
  return {it == type_order_.end() ? -1 : static_cast<int>(it - type_order_.begin()), type};
}

}  // namespace weft
#endif

#endif
