#ifndef WEFT_FORMAT_FILE_KERNELS_HPP
#define WEFT_FORMAT_FILE_KERNELS_HPP
// Kernels of the ops on files. Whoever starts a server or opens a session gives them to it, with the one folder that graphs may read and write.

#include <weft/core/config.hpp>
#include <weft/format/checkpoint.hpp>
#include <weft/runtime/kernel.hpp>

#include <string>

namespace weft {

/// What the kernels of files may use.
struct file_kernel_options {
  /// The folder below which all files lie; a graph names them relative to it. It must exist.
  std::string directory;
  /// The format of files whose prefix does not end in `.npz` or `.safetensors`.
  checkpoint_format format = checkpoint_format::safetensors;
};

/// Kernels of SaveV2, RestoreV2, MergeV2Checkpoints, ShardedFilename and ShardedFilespec: `kernels.add(weft::file_kernels({"/var/checkpoints"}))`. A graph can reach nothing outside the folder: absolute names, `..`
/// and links are refused with PERMISSION_DENIED. Throws NOT_FOUND when there is no such folder.
kernel_registry file_kernels(const file_kernel_options& options);

}  // namespace weft

#if WEFT_HAS_FORMAT_BODIES
#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <utility>

#include <sys/stat.h>
#include <unistd.h>

namespace weft {

namespace detail {

struct file_settings final : kernel_settings {
  std::string root;
  checkpoint_format format = checkpoint_format::safetensors;
};

/// A kernel on files: it blocks, so it never runs where sockets are served.
class file_kernel : public kernel {
 public:
  explicit file_kernel(const kernel_construction& what) : settings_(std::static_pointer_cast<const file_settings>(what.settings)) {}

 protected:
  static const std::string& text(const kernel_context& context, int i, std::int64_t element = 0) {
    const tensor_value& v = context.input(i);
    if (v.dtype() != dtype::string || element >= v.elements()) context.fail("input " + std::to_string(i) + " must hold a string");
    return v.data<std::string>()[element];
  }
  checkpoint_format format_of(const std::string& path) const { return ends_with(path, ".npz") ? checkpoint_format::npz : ends_with(path, ".safetensors") ? checkpoint_format::safetensors : settings_->format; }
  std::string with_extension(const std::string& path) const {
    const char* end = extension_of(format_of(path));
    return ends_with(path, end) ? path : path + end;
  }
  // The path of a file of the folder. Links are not followed, wherever they lead.
  std::string resolve(const kernel_context& context, const std::string& name) const;
  void make_folders(const kernel_context& context, const std::string& path) const {
    for (auto slash = path.find('/', settings_->root.size() + 1); slash != std::string::npos; slash = path.find('/', slash + 1))
      if (::mkdir(path.substr(0, slash).c_str(), 0777) != 0 && errno != EEXIST) context.fail(error_code::unavailable, "cannot make the folder '" + path.substr(0, slash) + "': " + std::strerror(errno));
  }
  static void expect_no_link(const kernel_context& context, const std::string& path, const std::string& name) {
    struct stat about;
    if (::lstat(path.c_str(), &about) == 0 && S_ISLNK(about.st_mode))
      context.fail(error_code::permission_denied, "'" + name.substr(0, 200) + "' goes through the link '" + path + "'; links in the folder that file_kernels() was given are not followed");
  }
  // Runs something on files; its errors get the node's name.
  template <class F> static void about_files(const kernel_context& context, F&& run) {
    try {
      run();
    } catch (const error& e) {
      if (!e.node().empty()) throw;
      context.fail(e.code(), e.message());
    }
  }
  const std::shared_ptr<const file_settings> settings_;
};

WEFT_DECL std::string file_kernel::resolve(const kernel_context& context, const std::string& name) const {
  const auto refuse = [&](const std::string& why) { context.fail(error_code::permission_denied, "'" + name.substr(0, 200) + "' " + why + "; files are named relative to the folder that file_kernels() was given"); };
  if (name.empty() || name.back() == '/' || name.find('\0') != std::string::npos || name.size() > 1024) context.fail("'" + name.substr(0, 200) + "' is not the name of a file");
  if (name[0] == '/') refuse("is an absolute path");
  std::string full = settings_->root;
  for (std::size_t begin = 0; begin < name.size();) {
    const std::size_t end = std::min(name.find('/', begin), name.size());
    const std::string part = name.substr(begin, end - begin);
    begin = end + 1;
    if (part.empty() || part == ".") continue;
    if (part == "..") refuse("has a '..'");
    full += "/" + part;
    expect_no_link(context, full, name);
  }
  if (full.size() == settings_->root.size()) context.fail("'" + name + "' is not the name of a file");
  return full;
}

/// Writes its tensors to a file.
class save_kernel final : public file_kernel {
 public:
  using file_kernel::file_kernel;
  void compute(kernel_context& context) override {
    const std::int64_t count = context.input_count() - 3;
    if (context.input(1).elements() != count || context.input(2).elements() != count)
      context.fail("there are " + std::to_string(count) + " tensors, " + std::to_string(context.input(1).elements()) + " names and " + std::to_string(context.input(2).elements()) + " slices");
    const std::string path = resolve(context, with_extension(text(context, 0)));
    std::vector<named_tensor> tensors;
    for (std::int64_t i = 0; i < count; ++i) {
      const std::string &name = text(context, 1, i), &slice = text(context, 2, i);
      const tensor_value& v = context.input(3 + static_cast<int>(i));
      about_files(context, [&] {
        if (slice.empty()) return;
        const weft::shape expected(parse_slice(slice).size);
        if (expected != v.shape()) fail(error_code::invalid_argument, "the slice '" + slice + "' of '" + name + "' has shape " + expected.text() + ", the tensor has shape " + v.shape().text());
      });
      tensors.push_back({piece_name(name, slice), v});
    }
    make_folders(context, path);
    about_files(context, [&] { write_tensor_file(path, format_of(path), tensors); });
  }
};

/// Reads tensors, or slices of them, from a checkpoint.
class restore_kernel final : public file_kernel {
 public:
  explicit restore_kernel(const kernel_construction& what) : file_kernel(what), types_(what.about.attr<std::vector<dtype>>("dtypes")) {}
  void compute(kernel_context& context) override {
    const auto count = static_cast<std::int64_t>(types_.size());
    if (context.input(1).elements() != count || context.input(2).elements() != count)
      context.fail("there are " + std::to_string(count) + " dtypes, " + std::to_string(context.input(1).elements()) + " names and " + std::to_string(context.input(2).elements()) + " slices");
    const std::string prefix = resolve(context, text(context, 0));
    for (const char* end : {".safetensors", ".npz", ".index.json", ".safetensors.index.json", ".npz.index.json", ".index"}) expect_no_link(context, prefix + end, text(context, 0) + end);
    about_files(context, [&] {
      const auto file = open_checkpoint(prefix);
      for (std::int64_t i = 0; i < count; ++i) {
        const std::string& name = text(context, 1, i);
        const tensor_entry about = find_tensor(*file, name);
        const dtype expected = types_[static_cast<std::size_t>(i)];
        if (about.dtype != dtype::invalid && about.dtype != expected)
          fail(error_code::invalid_argument, "tensor '" + name + "' of '" + file->path() + "' is " + to_text(about.dtype) + about.shape.text() + ", expected " + to_text(expected));
        context.set_output(static_cast<int>(i), read_tensor(*file, name, text(context, 2, i)));
      }
    });
  }

 private:
  const std::vector<dtype> types_;
};

/// Writes the index of the files that several tasks have written.
class merge_kernel final : public file_kernel {
 public:
  explicit merge_kernel(const kernel_construction& what)
      : file_kernel(what), remove_folders_(what.about.attr<bool>("delete_old_dirs")), skip_missing_(what.about.attr<bool>("allow_missing_files")) {}
  void compute(kernel_context& context) override {
    about_files(context, [&] { merge(context); });
  }

 private:
  // 1. every file must be there; 2. each gets its place beside the destination; 3. the index, which makes the checkpoint; 4. what an earlier index of this name named is removed.
  void merge(const kernel_context& context) const {
    const std::string destination = resolve(context, with_extension(text(context, 1))), folder = folder_of(destination);
    std::vector<std::string> sources;
    for (std::int64_t i = 0; i < context.input(0).elements(); ++i) {
      const std::string path = resolve(context, with_extension(text(context, 0, i)));
      if (file_exists(path)) sources.push_back(path);
      else if (!skip_missing_)
        fail(error_code::failed_precondition, "'" + path + "', which another task should have written, cannot be seen here: the tasks of a sharded checkpoint need one folder that all of them see; "
                                              "without it, let the saver gather the values");
    }
    if (sources.empty()) fail(error_code::not_found, "there is no file to make '" + destination + "' of");
    make_folders(context, destination);
    std::vector<std::unique_ptr<tensor_file>> files;
    std::vector<std::pair<std::string, const tensor_file*>> named;
    for (const std::string& source : sources) {
      std::string name = base_name(source);
      for (const auto& other : named)
        if (other.first == name) name = std::to_string(named.size()) + "-" + name;
      const std::string target = folder + "/" + name;
      if (target != source && std::rename(source.c_str(), target.c_str()) != 0) fail_file("move", source, errno);
      files.push_back(open_tensor_file(target));
      named.emplace_back(std::move(name), files.back().get());
    }
    const std::string index = destination + ".index.json";
    const auto before = named_files(index);
    write_whole_file(index, checkpoint_index(named));
    for (const std::string& old : before)
      if (std::none_of(named.begin(), named.end(), [&old](const auto& f) { return f.first == old; })) std::remove((folder + "/" + old).c_str());
    // Folders that held nothing else.
    for (const std::string& source : sources)
      if (remove_folders_ && folder_of(source) != folder) ::rmdir(folder_of(source).c_str());
  }
  static std::vector<std::string> named_files(const std::string& index) {
    std::vector<std::string> out;
    if (!file_exists(index)) return out;
    try {
      const file_reader file(index);
      const json_value top = parse_json(file.text(0, static_cast<std::size_t>(std::min(file.size(), max_safetensors_header))));
      for (const json_value& part : top.items)
        for (const json_value& member : part.items)
          if (part.key == "weight_map" && member.text.find('/') == std::string::npos && member.text.find("-of-") != std::string::npos && std::find(out.begin(), out.end(), member.text) == out.end()) out.push_back(member.text);
    } catch (const error&) {
      // A damaged index is replaced.
    }
    return out;
  }
  const bool remove_folders_, skip_missing_;
};

/// Names one of several files, or all of them as a pattern.
class sharded_filename_kernel final : public file_kernel {
 public:
  using file_kernel::file_kernel;
  bool expensive(const kernel_context&) const noexcept override { return false; }
  void compute(kernel_context& context) override {
    const auto number = [&context](int i) {
      if (context.input(i).dtype() != dtype::int32) context.fail("input " + std::to_string(i) + " must be int32, found " + to_text(context.input(i).dtype()));
      std::string out = std::to_string(context.input(i).item<std::int32_t>());
      return std::string(out.size() < 5 ? 5 - out.size() : 0, '0') + out;
    };
    const bool all = context.input_count() == 2;
    context.set_output(0, tensor_value::scalar(text(context, 0) + "-" + (all ? std::string("?????") : number(1)) + "-of-" + number(all ? 1 : 2)));
  }
};

template <class K> std::unique_ptr<kernel> make_file_kernel(const kernel_construction& what) { return std::unique_ptr<kernel>(new K(what)); }

}  // namespace detail

WEFT_DECL kernel_registry file_kernels(const file_kernel_options& options) {
  auto settings = std::make_shared<detail::file_settings>();
  char* root = ::realpath(options.directory.c_str(), nullptr);
  struct stat about;
  const bool folder = root != nullptr && ::stat(root, &about) == 0 && S_ISDIR(about.st_mode);
  if (root != nullptr) settings->root = root;
  std::free(root);
  if (!folder) fail(error_code::not_found, "'" + options.directory + "' is no folder that file kernels could use");
  if (settings->root == "/") settings->root.clear();
  settings->format = options.format;
  kernel_registry out;
  out.add({"SaveV2", "CPU", {}, 0}, detail::make_file_kernel<detail::save_kernel>, settings);
  out.add({"RestoreV2", "CPU", {}, 0}, detail::make_file_kernel<detail::restore_kernel>, settings);
  out.add({"MergeV2Checkpoints", "CPU", {}, 0}, detail::make_file_kernel<detail::merge_kernel>, settings);
  for (const char* op : {"ShardedFilename", "ShardedFilespec"}) out.add({op, "CPU", {}, 0}, detail::make_file_kernel<detail::sharded_filename_kernel>, settings);
  return out;
}

}  // namespace weft
#endif

#endif
