#ifndef WEFT_CLUSTER_TRANSPORT_HPP
#define WEFT_CLUSTER_TRANSPORT_HPP
// What may stand between a connection and its socket: a secured transport. Without one a connection speaks to its socket directly.

#include <weft/core/status.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include <sys/types.h>
#include <sys/uio.h>

namespace weft {

/// One end of a secured connection, over a connected socket that it does not own. No member blocks, and all may be called from any thread; the first thing to do is the
/// handshake, to its end.
class secured_stream {
 public:
  /// How far the handshake is: over, waiting for the socket, or failed (`problem` says why).
  enum class progress : std::uint8_t { done, wants_read, wants_write, failed };

  secured_stream() = default;
  secured_stream(const secured_stream&) = delete;
  secured_stream& operator=(const secured_stream&) = delete;
  virtual ~secured_stream() = default;

  /// Goes on with the handshake as far as the socket allows.
  virtual progress handshake() noexcept = 0;
  /// Like `readv` on a non-blocking socket: the number of bytes, 0 at the end of the connection, or -1 with errno, which is EPROTO when `problem` says why. EAGAIN means that nothing
  /// is left here either: the socket is to be waited for.
  virtual ssize_t read(const iovec* parts, std::size_t count) noexcept = 0;
  /// Like `writev` on a non-blocking socket. After EAGAIN the next call must give the same bytes again, or more of them.
  virtual ssize_t write(const iovec* parts, std::size_t count) noexcept = 0;
  /// Why the handshake, or a read or write with EPROTO, failed.
  virtual status problem() const = 0;
};

/// How the connections of a server or session are secured: made by `weft::tls::with_key_file` and its like of <weft/tls.hpp>, shared, and never changed.
class transport_security {
 public:
  /// Who opened the connection.
  enum class side : std::uint8_t { client, server };

  transport_security() = default;
  transport_security(const transport_security&) = delete;
  transport_security& operator=(const transport_security&) = delete;
  virtual ~transport_security() = default;

  /// Secures a connected socket; `host` is the name or address that was connected to, empty on the server's side.
  virtual std::unique_ptr<secured_stream> secure(int socket, side which, const std::string& host) const = 0;
};

}  // namespace weft

#endif
