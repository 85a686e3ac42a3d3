#ifndef WEFT_FORMAT_FILE_ACCESS_HPP
#define WEFT_FORMAT_FILE_ACCESS_HPP
// Files as the readers and writers of formats use them: reads that name the file in every fault, and writes that put a file in its place only when it is whole.

#include <weft/core/config.hpp>
#include <weft/core/status.hpp>

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace weft {

/// An open file, read at any position. Every error names it.
class file_reader {
 public:
  /// Throws NOT_FOUND, PERMISSION_DENIED, INVALID_ARGUMENT for what is not a regular file.
  explicit file_reader(std::string path);
  file_reader(const file_reader&) = delete;
  file_reader& operator=(const file_reader&) = delete;
  ~file_reader();

  const std::string& path() const noexcept { return path_; }
  /// Its size when it was opened.
  std::uint64_t size() const noexcept { return size_; }
  /// Reads n bytes. Throws DATA_LOSS when the file ends before, UNAVAILABLE. Thread-safe.
  void read(std::uint64_t position, void* to, std::size_t n) const;
  std::string text(std::uint64_t position, std::size_t n) const;
  /// Throws DATA_LOSS: `'file': what`.
  [[noreturn]] void damaged(const std::string& what) const { fail(error_code::data_loss, "'" + path_ + "': " + what); }

 private:
  std::string path_;
  int file_ = -1;
  std::uint64_t size_ = 0;
};

/// A file in the making. It grows under the name `path + ".tmp"` and takes its own name, in one step, when it is complete and on the disk; until then whatever had the name stays as it is, also when
/// the process is killed or the disk is full.
class file_writer {
 public:
  /// Throws NOT_FOUND when there is no such folder, UNAVAILABLE when somebody else is writing this file.
  explicit file_writer(std::string path);
  file_writer(const file_writer&) = delete;
  file_writer& operator=(const file_writer&) = delete;
  /// Removes what was not committed.
  ~file_writer();

  /// Appends. Throws RESOURCE_EXHAUSTED when there is no room, UNAVAILABLE.
  void write(const void* data, std::size_t n);
  void write(std::string_view text) { write(text.data(), text.size()); }
  /// How many bytes were appended.
  std::uint64_t position() const noexcept { return position_; }
  /// Syncs the file, gives it its name, and syncs the folder. Nothing can be appended afterwards.
  void commit();

 private:
  void flush();
  std::string path_, temporary_, waiting_;
  int file_ = -1;
  std::uint64_t position_ = 0;
};

namespace detail {
// `a/b` of `a/b/c`, `.` of `c`.
std::string folder_of(const std::string& path);
// `c` of `a/b/c`.
std::string base_name(const std::string& path);
bool ends_with(std::string_view text, std::string_view end);
bool file_exists(const std::string& path);
// Makes the folders before the last '/', as far as they are missing.
void make_folders(const std::string& path);
// Sorted; empty when there is no such folder.
std::vector<std::string> names_in_folder(const std::string& folder);
}  // namespace detail

/// Replaces a file by this text, as `file_writer` does.
void write_whole_file(const std::string& path, std::string_view text);
/// Removes what a killed process left of a file in the making; false when there is nothing, or when its writer is alive.
bool remove_unfinished(const std::string& temporary);

}  // namespace weft

#if WEFT_HAS_FORMAT_BODIES
#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

namespace weft {

namespace detail {

[[noreturn]] inline void fail_file(const char* what, const std::string& path, int number) {
  const error_code code = number == ENOENT || number == ENOTDIR ? error_code::not_found
                          : number == EACCES || number == EPERM || number == EROFS ? error_code::permission_denied
                          : number == ENOSPC || number == EDQUOT || number == EFBIG || number == EMFILE || number == ENFILE ? error_code::resource_exhausted : error_code::unavailable;
  fail(code, std::string("cannot ") + what + " '" + path + "': " + std::strerror(number));
}

inline void put_little(std::string& out, std::uint64_t v, int bytes) {
  for (int i = 0; i < bytes; ++i) out += static_cast<char>(v >> (8 * i) & 0xffU);
}

inline std::uint64_t get_little(const char* from, int bytes) {
  std::uint64_t v = 0;
  for (int i = bytes; i-- > 0;) v = v << 8 | static_cast<unsigned char>(from[i]);
  return v;
}

// The most that one system call is asked to move.
inline constexpr std::size_t file_piece = std::size_t(1) << 20;

WEFT_DECL std::string folder_of(const std::string& path) {
  const auto slash = path.rfind('/');
  return slash == std::string::npos ? "." : slash == 0 ? "/" : path.substr(0, slash);
}
WEFT_DECL std::string base_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }
WEFT_DECL bool ends_with(std::string_view text, std::string_view end) { return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0; }
WEFT_DECL bool file_exists(const std::string& path) { return ::access(path.c_str(), F_OK) == 0; }
WEFT_DECL void make_folders(const std::string& path) {
  for (auto slash = path.find('/', 1); slash != std::string::npos; slash = path.find('/', slash + 1))
    if (const std::string folder = path.substr(0, slash); ::mkdir(folder.c_str(), 0777) != 0 && errno != EEXIST) fail_file("make the folder", folder, errno);
}
WEFT_DECL std::vector<std::string> names_in_folder(const std::string& folder) {
  std::vector<std::string> out;
  DIR* open = ::opendir(folder.c_str());
  if (open == nullptr) return out;
  while (const dirent* entry = ::readdir(open)) out.emplace_back(entry->d_name);
  ::closedir(open);
  std::sort(out.begin(), out.end());
  return out;
}

// Opens a file in the making and locks it: what a killed writer left is taken over, what a living one holds is not.
inline int open_locked(const std::string& temporary, int flags) {
  for (int tries = 0; tries < 100; ++tries) {
    const int file = ::open(temporary.c_str(), flags | O_CLOEXEC | O_NOFOLLOW, 0666);
    if (file < 0) return -1;
    struct stat mine, named;
    const bool locked = ::flock(file, LOCK_EX | LOCK_NB) == 0;
    // Its writer may have given it its name, or removed it, between the two calls.
    if (locked && ::fstat(file, &mine) == 0 && ::stat(temporary.c_str(), &named) == 0 && mine.st_ino == named.st_ino && mine.st_dev == named.st_dev) return file;
    ::close(file);
    if (!locked) break;
  }
  errno = EWOULDBLOCK;
  return -1;
}

}  // namespace detail

WEFT_DECL file_reader::file_reader(std::string path) : path_(std::move(path)) {
  if (path_.find('\0') != std::string::npos) fail(error_code::invalid_argument, "the name of a file has no zero byte");
  file_ = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file_ < 0) detail::fail_file("open", path_, errno);
  struct stat about;
  if (::fstat(file_, &about) != 0 || !S_ISREG(about.st_mode)) {
    ::close(file_);
    fail(error_code::invalid_argument, "'" + path_ + "' is not a regular file");
  }
  size_ = static_cast<std::uint64_t>(about.st_size);
}

WEFT_DECL file_reader::~file_reader() { ::close(file_); }

WEFT_DECL void file_reader::read(std::uint64_t position, void* to, std::size_t n) const {
  if (position > size_ || n > size_ - position)
    damaged("the file has " + std::to_string(size_) + " bytes, expected " + std::to_string(n) + " more at " + std::to_string(position));
  for (char* next = static_cast<char*>(to); n > 0;) {
    const ssize_t got = ::pread(file_, next, std::min(n, detail::file_piece), static_cast<off_t>(position));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) detail::fail_file("read", path_, errno);
    if (got == 0) damaged("the file was cut while it was read");
    next += got;
    position += static_cast<std::uint64_t>(got);
    n -= static_cast<std::size_t>(got);
  }
}

WEFT_DECL std::string file_reader::text(std::uint64_t position, std::size_t n) const {
  if (position > size_ || n > size_ - position) read(position, nullptr, n);
  std::string out(n, '\0');
  read(position, out.data(), n);
  return out;
}

WEFT_DECL file_writer::file_writer(std::string path) : path_(std::move(path)), temporary_(path_ + ".tmp") {
  if (path_.find('\0') != std::string::npos) fail(error_code::invalid_argument, "the name of a file has no zero byte");
  file_ = detail::open_locked(temporary_, O_WRONLY | O_CREAT);
  if (file_ < 0 && errno == EWOULDBLOCK) fail(error_code::unavailable, "somebody else is writing '" + path_ + "'");
  if (file_ < 0) detail::fail_file("write", path_, errno);
  if (::ftruncate(file_, 0) != 0) {
    const int why = errno;
    ::close(file_);
    detail::fail_file("write", path_, why);
  }
}

WEFT_DECL file_writer::~file_writer() {
  if (file_ < 0) return;
  ::unlink(temporary_.c_str());
  ::close(file_);
}

WEFT_DECL void file_writer::write(const void* data, std::size_t n) {
  position_ += n;
  if (waiting_.size() + n <= detail::file_piece) {
    waiting_.append(static_cast<const char*>(data), n);
    return;
  }
  flush();
  const char* next = static_cast<const char*>(data);
  while (n > 0) {
    const ssize_t put = ::write(file_, next, std::min(n, detail::file_piece));
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) detail::fail_file("write", path_, errno);
    next += put;
    n -= static_cast<std::size_t>(put);
  }
}

WEFT_DECL void file_writer::flush() {
  for (std::size_t done = 0; done < waiting_.size();) {
    const ssize_t put = ::write(file_, waiting_.data() + done, waiting_.size() - done);
    if (put < 0 && errno == EINTR) continue;
    if (put < 0) detail::fail_file("write", path_, errno);
    done += static_cast<std::size_t>(put);
  }
  waiting_.clear();
}

WEFT_DECL void file_writer::commit() {
  flush();
  if (::fsync(file_) != 0) detail::fail_file("write", path_, errno);
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) detail::fail_file("write", path_, errno);
  ::close(file_);
  file_ = -1;
  // Some file systems cannot sync a folder; the name is there all the same.
  const int folder = ::open(detail::folder_of(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return;
  const int failed = ::fsync(folder) == 0 || errno == EINVAL ? 0 : errno;
  ::close(folder);
  if (failed != 0) detail::fail_file("write", path_, failed);
}

WEFT_DECL void write_whole_file(const std::string& path, std::string_view text) {
  file_writer out(path);
  out.write(text);
  out.commit();
}

WEFT_DECL bool remove_unfinished(const std::string& temporary) {
  const int file = detail::open_locked(temporary, O_WRONLY);
  if (file < 0) return false;
  const bool removed = ::unlink(temporary.c_str()) == 0;
  ::close(file);
  return removed;
}

}  // namespace weft
#endif

#endif
