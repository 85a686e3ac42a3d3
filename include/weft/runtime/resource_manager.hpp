#ifndef WEFT_RUNTIME_RESOURCE_MANAGER_HPP
#define WEFT_RUNTIME_RESOURCE_MANAGER_HPP
// The state of a task that outlives steps and sessions: variables, queues and the like, by container and name.

#include <weft/core/config.hpp>
#include <weft/core/device_name.hpp>
#include <weft/core/status.hpp>
#include <weft/tensor/dtype.hpp>

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <typeinfo>
#include <utility>
#include <vector>

namespace weft {

/// Something that lives in a resource manager: a variable, a queue. What it holds is guarded by itself.
class resource {
 public:
  virtual ~resource() = default;
  /// What it is, for messages: `variable 'w' of float[2,3]`.
  virtual std::string describe() const = 0;
  /// Wakes whoever waits for it, with this reason; called when its container is cleared.
  virtual void close(const status&) {}
};

/// Resources by (container, name). Thread-safe.
class resource_manager {
 public:
  /// `max_name_bytes` bounds the names of what is made, and of containers.
  explicit resource_manager(std::string default_container = "localhost", std::size_t max_name_bytes = SIZE_MAX) : default_container_(std::move(default_container)), max_name_bytes_(max_name_bytes) {}

  /// The resource. nullptr when there is none. Throws INVALID_ARGUMENT when it is of another kind.
  template <class R> std::shared_ptr<R> find(std::string_view container, std::string_view name) const {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto it = resources_.find({std::string(container.empty() ? default_container_ : container), std::string(name)});
    return it == resources_.end() ? nullptr : cast<R>(it->second, name);
  }
  /// The resource, made by `make()` (a shared_ptr<R>) when there is none. Throws RESOURCE_EXHAUSTED for a name that is too long.
  template <class R, class Make> std::shared_ptr<R> find_or_make(std::string_view container, std::string_view name, Make&& make) {
    const std::lock_guard<std::mutex> lock(mutex_);
    key at{std::string(container.empty() ? default_container_ : container), std::string(name)};
    const auto it = resources_.find(at);
    if (it != resources_.end()) return cast<R>(it->second, name);
    check_name("name", name);
    check_name("container", container);
    std::shared_ptr<R> made = std::forward<Make>(make)();  // may throw: then there is nothing
    resources_.emplace(std::move(at), made);
    return made;
  }
  /// Forgets a resource; false when there was none.
  bool erase(std::string_view container, std::string_view name) {
    const std::lock_guard<std::mutex> lock(mutex_);
    return resources_.erase({std::string(container.empty() ? default_container_ : container), std::string(name)}) != 0;
  }
  /// Closes and forgets what is in the containers; all of them when none is named.
  void clear(const std::vector<std::string>& containers, const status& why);
  /// All that there is, by container and name.
  std::vector<std::pair<std::pair<std::string, std::string>, std::shared_ptr<resource>>> list() const {
    const std::lock_guard<std::mutex> lock(mutex_);
    return {resources_.begin(), resources_.end()};
  }
  std::string_view default_container() const noexcept { return default_container_; }

 private:
  using key = std::pair<std::string, std::string>;
  template <class R> static std::shared_ptr<R> cast(const std::shared_ptr<resource>& found, std::string_view name) {
    auto out = std::dynamic_pointer_cast<R>(found);
    if (out == nullptr) fail(error_code::invalid_argument, "resource " + detail::quoted(name) + " is " + found->describe() + ", which cannot be used as something else");
    return out;
  }
  void check_name(const char* what, std::string_view text) const;

  mutable std::mutex mutex_;
  std::string default_container_;
  std::size_t max_name_bytes_;
  std::map<key, std::shared_ptr<resource>> resources_;
};

#if WEFT_HAS_BODIES

WEFT_DECL void resource_manager::check_name(const char* what, std::string_view text) const {
  if (text.size() > max_name_bytes_)
    fail(error_code::resource_exhausted, "the " + std::string(what) + " of a resource has " + std::to_string(text.size()) + " bytes, at most " + std::to_string(max_name_bytes_) +
                                             " are accepted (server_options::max_name_bytes): " + detail::quoted(text));
}

WEFT_DECL void resource_manager::clear(const std::vector<std::string>& containers, const status& why) {
  std::vector<std::shared_ptr<resource>> gone;
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    for (auto it = resources_.begin(); it != resources_.end();) {
      bool named = containers.empty();
      for (const auto& c : containers) named = named || it->first.first == c;
      if (named) {
        gone.push_back(std::move(it->second));
        it = resources_.erase(it);
      } else {
        ++it;
      }
    }
  }
  for (const auto& r : gone) r->close(why);
}

#endif

}  // namespace weft

#endif
