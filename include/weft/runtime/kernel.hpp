#ifndef WEFT_RUNTIME_KERNEL_HPP
#define WEFT_RUNTIME_KERNEL_HPP
// The interface between the executor and kernels: what a kernel is made from, what it sees of a step, and how it answers.

#include <weft/core/config.hpp>
#include <weft/core/status.hpp>
#include <weft/graph/kernel_catalogue.hpp>
#include <weft/graph/node.hpp>
#include <weft/runtime/buffer_pool.hpp>
#include <weft/runtime/cancellation.hpp>
#include <weft/runtime/rendezvous.hpp>
#include <weft/runtime/resource_manager.hpp>
#include <weft/runtime/thread_pool.hpp>
#include <weft/tensor/tensor_value.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace weft {

/// What every kernel of a step can reach: the task's resources and threads, the step's rendezvous and cancellation.
struct step_environment {
  weft::resource_manager* resources = nullptr;
  /// State of kernels that belongs to (session, node), such as a random counter, by node name.
  weft::resource_manager* session_state = nullptr;
  weft::thread_pool* pool = nullptr;
  weft::rendezvous* rendezvous = nullptr;
  /// Where large outputs get their storage; without it, from malloc.
  buffer_pool* buffers = nullptr;
  cancellation_token cancellation;
  std::int64_t step = 0;
  /// Values fed to the step, by the index of `_Arg`.
  const std::vector<tensor_value>* feeds = nullptr;
  /// Values fetched from the step, by the index of `_Retval`.
  std::vector<tensor_value>* fetches = nullptr;
};

/// One execution of one node. Inputs are values (shared, never written unless forwarded); outputs are set by the kernel.
class kernel_context {
 public:
  /// Bit i of `kept` says that input i belongs to the caller, so that a kernel gets a share of it instead of the value itself.
  kernel_context(const node& n, step_environment& environment, tensor_value* inputs, std::size_t input_count, tensor_value* outputs, std::uint64_t kept = 0)
      : node_(&n), environment_(&environment), inputs_(inputs), outputs_(outputs), input_count_(input_count), kept_(kept) {}

  const node& about() const noexcept { return *node_; }
  int input_count() const noexcept { return static_cast<int>(input_count_); }
  const tensor_value& input(int i) const noexcept { return inputs_[i]; }
  /// Gives up input i, for a kernel that keeps or passes on the value.
  tensor_value take_input(int i) noexcept {
    if ((kept_ >> std::min(i, 63) & 1U) != 0) return inputs_[i];
    return std::move(inputs_[i]);
  }
  void set_output(int i, tensor_value&& v) noexcept { outputs_[i] = std::move(v); }
  void set_output(int i, const tensor_value& v) { outputs_[i] = v; }
  tensor_value& output(int i) noexcept { return outputs_[i]; }

  /// A new value, not initialised, for an output or for the kernel's own use.
  tensor_value allocate(dtype type, shape s) const {
    buffer_pool* pool = environment_->buffers;
    if (pool == nullptr || s.rank() == 0 || !is_plain(type)) return tensor_value(type, std::move(s));
    const auto n = checked_elements(s.data(), static_cast<std::size_t>(s.rank()));
    const bool large = n && static_cast<std::uint64_t>(*n) >= buffer_pool::smallest / size_of(type);
    return tensor_value(type, std::move(s), large ? pool->shared() : nullptr);
  }
  /// A new value for output i.
  tensor_value& allocate_output(int i, dtype type, shape s) {
    outputs_[i] = allocate(type, std::move(s));
    return outputs_[i];
  }
  /// Output i in the storage of `input` when nobody else holds it and it has as many bytes; else a new value. The input's elements stay readable.
  tensor_value& forward_or_allocate(int input, int i, dtype type, const shape& s) {
    tensor_value& in = inputs_[input];
    if (in.writable() && size_of(in.dtype()) == size_of(type) && is_plain(type) && in.shape() == s)
      outputs_[i] = tensor_value(type, s, in.buffer());
    else
      outputs_[i] = allocate(type, s);
    return outputs_[i];
  }
  /// Like `forward_or_allocate`, but gives the input up where it can, which is cheaper: read pointers to its elements before, and the input not again.
  tensor_value& take_or_allocate(int input, int i, dtype type, const shape& s) {
    tensor_value& in = inputs_[input];
    if (in.dtype() != type || !in.writable() || in.shape() != s) return forward_or_allocate(input, i, type, s);
    outputs_[i] = std::move(in);
    return outputs_[i];
  }

  step_environment& environment() noexcept { return *environment_; }
  resource_manager& resources() const noexcept { return *environment_->resources; }
  thread_pool* pool() const noexcept { return environment_->pool; }

  [[noreturn]] void fail(error_code code, std::string message) const { node_->fail_about(code, std::move(message)); }
  /// Stops the kernel with INVALID_ARGUMENT.
  [[noreturn]] void fail(std::string message) const { fail(error_code::invalid_argument, std::move(message)); }

 private:
  const node* node_;
  step_environment* environment_;
  tensor_value* inputs_;
  tensor_value* outputs_;
  std::size_t input_count_;
  std::uint64_t kept_;
};

/// How an asynchronous kernel says that its outputs are set, or why they are not. Called exactly once, from any thread.
using kernel_done = std::function<void(const status&)>;

/// The code of one node on one device. One object serves all steps, possibly at once: what it changes must be thread-safe.
class kernel {
 public:
  virtual ~kernel() = default;
  /// Computes the outputs from the inputs, or throws.
  virtual void compute(kernel_context& context) = 0;
  /// Like `compute`, but may finish later; `context` lives until `done` is called. Only for kernels whose `asynchronous()` is true.
  virtual void compute_async(kernel_context& context, kernel_done done) {
    compute(context);
    done(status());
  }
  virtual bool asynchronous() const noexcept { return false; }
  /// Whether, where it finishes later, only what other nodes do can end its wait, as with a queue; else it is taken to answer by itself.
  virtual bool waits_for_others() const noexcept { return false; }
  /// Whether this execution may take longer than some microseconds (or block), so that it belongs on a thread of the pool. A kernel that does
  /// not say counts as one that may: on a server, a cheap one runs on the thread that serves the sockets.
  virtual bool expensive(const kernel_context&) const noexcept { return !asynchronous(); }
};

/// A kernel that takes some microseconds at most and never blocks.
class cheap_kernel : public kernel {
 public:
  bool expensive(const kernel_context&) const noexcept final { return false; }
};

/// What whoever registers a kernel gives to all kernels of that kind, such as a folder: derive from it.
struct kernel_settings {
  virtual ~kernel_settings() = default;
};

/// What a kernel is made from: its node, the device it will run on, and the settings it was registered with. The node lives as long as the kernel.
struct kernel_construction {
  const node& about;
  std::string device;
  std::shared_ptr<const kernel_settings> settings = nullptr;
};

/// Makes the kernel of a node; throws about the node when the attributes cannot be served.
using kernel_factory = std::unique_ptr<kernel> (*)(const kernel_construction&);

/// Kernels by op and device type: a value that a user copies and extends with own kernels.
class kernel_registry {
 public:
  kernel_registry& add(kernel_entry entry, kernel_factory factory, std::shared_ptr<const kernel_settings> settings = nullptr) {
    factories_[entry.op].push_back({factory, std::move(settings)});
    catalogue_.add(std::move(entry));
    return *this;
  }
  /// Adds all kernels of another registry.
  kernel_registry& add(const kernel_registry& others);
  /// The kernel for a node on a device of this type. Throws UNIMPLEMENTED, listing the kernels there are.
  std::unique_ptr<kernel> make(const kernel_construction& what, std::string_view device_type) const;
  /// What `make` would call for a node, or nullptr.
  kernel_factory find(const node& n, std::string_view device_type) const noexcept {
    const source* found = source_of(n, device_type);
    return found == nullptr ? nullptr : found->factory;
  }
  const kernel_catalogue& catalogue() const noexcept { return catalogue_; }

 private:
  struct source {
    kernel_factory factory;
    std::shared_ptr<const kernel_settings> settings;
  };
  const source* source_of(const node& n, std::string_view device_type) const noexcept {
    const kernel_entry* best = catalogue_.find(n.op(), device_type, n.attrs());
    return best == nullptr ? nullptr : &factories_.find(n.op())->second[static_cast<std::size_t>(best - catalogue_.kernels_of(n.op()).data())];
  }
  kernel_catalogue catalogue_;
  std::map<std::string, std::vector<source>, std::less<>> factories_;
};

#if WEFT_HAS_BODIES

WEFT_DECL kernel_registry& kernel_registry::add(const kernel_registry& others) {
  for (const auto& [op, entries] : others.catalogue_.entries())
    for (std::size_t i = 0; i < entries.size(); ++i) {
      const source from = others.factories_.find(op)->second[i];
      add(entries[i], from.factory, from.settings);
    }
  return *this;
}

WEFT_DECL std::unique_ptr<kernel> kernel_registry::make(const kernel_construction& what, std::string_view device_type) const {
  const node& n = what.about;
  if (const source* found = source_of(n, device_type)) return found->factory(found->settings == nullptr ? what : kernel_construction{n, what.device, found->settings});
  std::string known;
  for (const auto& entry : catalogue_.kernels_of(n.op())) {
    known += (known.empty() ? "" : "; ") + entry.device_type;
    for (const auto& [attr, types] : entry.constraints) known += " " + attr + " in " + to_text(attr_value(types));
  }
  n.fail_about(error_code::unimplemented, "no kernel of this op runs on " + std::string(device_type) + " with these attributes; there is " + (known.empty() ? "none" : known));
}

#endif

}  // namespace weft

#endif
