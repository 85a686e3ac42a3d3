#ifndef WEFT_CLUSTER_TLS_HPP
#define WEFT_CLUSTER_TLS_HPP
// Opt-in: TLS 1.3 by OpenSSL (1.1.1 or later) between tasks, and between clients and tasks. Either all of a cluster know one secret key, or each of them has a certificate of
// the cluster's own authority. What comes out is handed to `server_options::transport` and `session_options::transport`.

#include <weft/cluster/transport.hpp>
#include <weft/core/config.hpp>
#include <weft/core/status.hpp>

#include <memory>
#include <string>
#include <string_view>

namespace weft::tls {

/// The key in a file: one line of 32 to 4096 printable characters, as `head -c 32 /dev/urandom | base64` makes them. Throws NOT_FOUND, INVALID_ARGUMENT for another content, and
/// PERMISSION_DENIED if others than the file's owner may read or write it.
std::shared_ptr<const transport_security> with_key_file(const std::string& path);

/// The key in a variable of the environment, whose name this is. Throws NOT_FOUND if it is not set, INVALID_ARGUMENT as `with_key_file`.
std::shared_ptr<const transport_security> with_key_variable(const std::string& name);

/// The key itself, for programs that keep it elsewhere. Throws INVALID_ARGUMENT as `with_key_file`. Never take a key from a command line: every user of the machine can read those.
std::shared_ptr<const transport_security> with_key(std::string_view key);

/// Whether a client asks for a certificate that is made for the name or address that it connected to.
enum class host_names {
  /// Any certificate of the authority will do: whoever holds one is trusted.
  any,
  /// The certificate must name the host.
  verified
};

/// Files in PEM form.
struct certificate_files {
  /// The authority (or several), whose certificates are accepted: the cluster's own, not a public one, since all that it signs may run graphs.
  std::string authority;
  /// The own certificate, with what leads to the authority.
  std::string certificate;
  /// The own private key; like `with_key_file`'s, nobody but the owner may read it.
  std::string key;
  host_names names = host_names::any;
};

/// A certificate on each side, verified by the other one. Throws NOT_FOUND, PERMISSION_DENIED, INVALID_ARGUMENT with OpenSSL's reason.
std::shared_ptr<const transport_security> with_certificates(const certificate_files& files);

}  // namespace weft::tls

#if WEFT_HAS_CLUSTER_BODIES
#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509_vfy.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <utility>

#include <arpa/inet.h>
#include <sys/socket.h>
#include <sys/stat.h>

namespace weft::detail {

template <auto Free> struct openssl_deleter {
  template <class T> void operator()(T* what) const noexcept { Free(what); }
};
using ssl_context = std::unique_ptr<SSL_CTX, openssl_deleter<SSL_CTX_free>>;
using ssl_session = std::unique_ptr<SSL_SESSION, openssl_deleter<SSL_SESSION_free>>;
using ssl_object = std::unique_ptr<SSL, openssl_deleter<SSL_free>>;
using bio_method = std::unique_ptr<BIO_METHOD, openssl_deleter<BIO_meth_free>>;

using tls_key = std::array<unsigned char, 32>;

// The words of OpenSSL for the first error that it noted.
inline std::string openssl_reason() {
  const unsigned long number = ERR_get_error();
  const char* text = number == 0 ? nullptr : ERR_reason_error_string(number);
  ERR_clear_error();
  return text == nullptr ? "unknown reason" : text;
}

// What all connections of one `transport_security` share.
struct tls_setup {
  ssl_context client, server;
  bio_method socket;
  tls_key key{};
  bool has_key = false;
  tls::host_names names = tls::host_names::any;
  ~tls_setup() { OPENSSL_cleanse(key.data(), key.size()); }
};

// OpenSSL's view of a socket: system calls that neither block nor raise a signal.
struct tls_socket {
  int descriptor = -1;
  // What the last call failed with; 0 if it did not.
  int number = 0;
};

inline tls_socket& socket_of(BIO* bio) { return *static_cast<tls_socket*>(BIO_get_data(bio)); }

inline int finish_call(BIO* bio, ssize_t n, int retry) {
  tls_socket& socket = socket_of(bio);
  socket.number = n < 0 ? errno : 0;
  BIO_clear_retry_flags(bio);
  if (n < 0 && (socket.number == EAGAIN || socket.number == EWOULDBLOCK || socket.number == EINTR || socket.number == ENOBUFS)) BIO_set_flags(bio, BIO_FLAGS_SHOULD_RETRY | retry);
  return static_cast<int>(n);
}
inline int bio_write(BIO* bio, const char* from, int bytes) {
  return finish_call(bio, ::send(socket_of(bio).descriptor, from, static_cast<std::size_t>(bytes), MSG_NOSIGNAL | MSG_DONTWAIT), BIO_FLAGS_WRITE);
}
inline int bio_read(BIO* bio, char* to, int bytes) {
  return finish_call(bio, ::recv(socket_of(bio).descriptor, to, static_cast<std::size_t>(bytes), MSG_DONTWAIT), BIO_FLAGS_READ);
}
inline long bio_control(BIO*, int command, long, void*) { return command == BIO_CTRL_FLUSH ? 1 : 0; }

inline bio_method socket_method() {
  bio_method out(BIO_meth_new(BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "weft socket"));
  if (out == nullptr || BIO_meth_set_write(out.get(), bio_write) != 1 || BIO_meth_set_read(out.get(), bio_read) != 1 || BIO_meth_set_ctrl(out.get(), bio_control) != 1)
    fail(error_code::internal, "OpenSSL has no room for a kind of socket: " + openssl_reason());
  return out;
}

// Whether an error means that what came is no TLS.
inline bool is_no_tls(unsigned long number) {
  const int reason = ERR_GET_REASON(number);
  return reason == SSL_R_WRONG_VERSION_NUMBER || reason == SSL_R_HTTP_REQUEST || reason == SSL_R_PACKET_LENGTH_TOO_LONG || reason == SSL_R_RECORD_LENGTH_MISMATCH;
}

// TLS over one socket. OpenSSL's object takes one caller at a time.
class tls_stream final : public secured_stream {
 public:
  tls_stream(std::shared_ptr<const tls_setup> setup, int descriptor, transport_security::side which, const std::string& host);

  WEFT_INLINE progress handshake() noexcept override;
  WEFT_INLINE ssize_t read(const iovec* parts, std::size_t count) noexcept override;
  WEFT_INLINE ssize_t write(const iovec* parts, std::size_t count) noexcept override;
  WEFT_INLINE status problem() const override;

 private:
  // A record's worth of plain bytes.
  static constexpr std::size_t record = std::size_t{16} << 10;
  int outcome(int result) noexcept;
  std::string explain(unsigned long number) const;

  const std::shared_ptr<const tls_setup> setup_;
  const bool is_server_;
  mutable std::mutex mutex_;
  tls_socket socket_;
  ssl_object ssl_;
  // Short pieces are joined here, since each write makes a record.
  std::array<char, record> joined_;
  // Why it failed: OpenSSL's first error, or 0 and the end of the connection.
  unsigned long error_ = 0;
  bool in_handshake_ = true;
};

class tls_security final : public transport_security {
 public:
  explicit tls_security(std::shared_ptr<const tls_setup> setup) : setup_(std::move(setup)) {}
  std::unique_ptr<secured_stream> secure(int socket, side which, const std::string& host) const override { return std::make_unique<tls_stream>(setup_, socket, which, host); }

 private:
  std::shared_ptr<const tls_setup> setup_;
};

WEFT_DECL tls_stream::tls_stream(std::shared_ptr<const tls_setup> setup, int descriptor, transport_security::side which, const std::string& host)
    : setup_(std::move(setup)), is_server_(which == transport_security::side::server), ssl_(SSL_new((is_server_ ? setup_->server : setup_->client).get())) {
  socket_.descriptor = descriptor;
  BIO* bio = ssl_ == nullptr ? nullptr : BIO_new(setup_->socket.get());
  if (bio == nullptr) fail(error_code::resource_exhausted, "OpenSSL cannot make a connection: " + openssl_reason());
  BIO_set_data(bio, &socket_);
  BIO_set_init(bio, 1);
  SSL_set_bio(ssl_.get(), bio, bio);
  if (is_server_) {
    SSL_set_accept_state(ssl_.get());
    return;
  }
  SSL_set_connect_state(ssl_.get());
  if (setup_->names == tls::host_names::any) return;
  unsigned char numeric[16];
  const bool is_numeric = ::inet_pton(AF_INET, host.c_str(), numeric) == 1 || ::inet_pton(AF_INET6, host.c_str(), numeric) == 1;
  const int set = is_numeric ? X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl_.get()), host.c_str()) : SSL_set1_host(ssl_.get(), host.c_str());
  if (set != 1) fail(error_code::invalid_argument, "OpenSSL does not take the host name '" + host + "': " + openssl_reason());
}

// What a call of OpenSSL that returned `result` came to: 0 at the end of the connection, -1 with errno.
WEFT_DECL int tls_stream::outcome(int result) noexcept {
  const int how = SSL_get_error(ssl_.get(), result);
  if (how == SSL_ERROR_ZERO_RETURN) return 0;
  errno = EAGAIN;
  if (how == SSL_ERROR_WANT_READ || how == SSL_ERROR_WANT_WRITE) return -1;
  if (how == SSL_ERROR_SYSCALL) {
    ERR_clear_error();
    errno = socket_.number;
    return socket_.number == 0 ? 0 : -1;
  }
  error_ = ERR_get_error();
  ERR_clear_error();
  errno = EPROTO;
  return -1;
}

WEFT_DECL secured_stream::progress tls_stream::handshake() noexcept {
  const std::lock_guard<std::mutex> lock(mutex_);
  ERR_clear_error();
  const int result = SSL_do_handshake(ssl_.get());
  if (result == 1) {
    in_handshake_ = false;
    return progress::done;
  }
  if (outcome(result) == 0 || errno != EAGAIN) {
    // OpenSSL says nothing to whoever does not speak TLS; this is an alert, by which the other end of a plain connection knows what it met.
    constexpr char protocol_version[] = {0x15, 0x03, 0x03, 0x00, 0x02, 0x02, 0x46};
    if (is_server_ && error_ != 0 && is_no_tls(error_)) static_cast<void>(::send(socket_.descriptor, protocol_version, sizeof protocol_version, MSG_NOSIGNAL | MSG_DONTWAIT));
    return progress::failed;
  }
  return SSL_want_write(ssl_.get()) ? progress::wants_write : progress::wants_read;
}

WEFT_DECL ssize_t tls_stream::read(const iovec* parts, std::size_t count) noexcept {
  ssize_t total = 0;
  for (std::size_t i = 0; i < count; ++i)
    for (std::size_t filled = 0; filled < parts[i].iov_len;) {
      const std::lock_guard<std::mutex> lock(mutex_);
      ERR_clear_error();
      const int n = SSL_read(ssl_.get(), static_cast<char*>(parts[i].iov_base) + filled, static_cast<int>(std::min<std::size_t>(parts[i].iov_len - filled, INT_MAX)));
      if (n <= 0) {
        if (total > 0) return total;  // what is wrong comes again
        return outcome(n);
      }
      filled += static_cast<std::size_t>(n);
      total += n;
    }
  return total;
}

WEFT_DECL ssize_t tls_stream::write(const iovec* parts, std::size_t count) noexcept {
  ssize_t total = 0;
  std::size_t at = 0, offset = 0;
  while (at < count) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const char* from = static_cast<const char*>(parts[at].iov_base) + offset;
    std::size_t bytes = parts[at].iov_len - offset;
    if (bytes < record && at + 1 < count) {
      bytes = 0;
      std::size_t skip = offset;
      for (std::size_t i = at; i < count && bytes < record; ++i, skip = 0) {
        const std::size_t step = std::min(parts[i].iov_len - skip, record - bytes);
        std::memcpy(joined_.data() + bytes, static_cast<const char*>(parts[i].iov_base) + skip, step);
        bytes += step;
      }
      from = joined_.data();
    }
    ERR_clear_error();
    const int n = SSL_write(ssl_.get(), from, static_cast<int>(std::min<std::size_t>(bytes, INT_MAX)));
    if (n <= 0) {
      if (total > 0) return total;
      if (outcome(n) == 0) errno = EPIPE;
      return -1;
    }
    total += n;
    for (offset += static_cast<std::size_t>(n); at < count && offset >= parts[at].iov_len; ++at) offset -= parts[at].iov_len;
  }
  return total;
}

WEFT_DECL std::string tls_stream::explain(unsigned long number) const {
  const int reason = ERR_GET_REASON(number);
  if (reason == SSL_R_CERTIFICATE_VERIFY_FAILED) return std::string("the certificate of the other end is not accepted: ") + X509_verify_cert_error_string(SSL_get_verify_result(ssl_.get()));
  if (reason == SSL_R_BINDER_DOES_NOT_VERIFY) return "the other end has another key";
  if (reason == SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE) return "the other end has no certificate";
  if (is_no_tls(number))
    return "the other end does not speak TLS; does it have a secured transport (server_options::transport, session_options::transport)?";
  const char* words = ERR_reason_error_string(number);
  std::string text = words == nullptr ? "unknown reason" : words;
  const std::size_t alert = text.find(" alert ");
  if (reason <= SSL_AD_REASON_OFFSET || alert == std::string::npos) {
    if (setup_->has_key && is_server_ && in_handshake_) return "the other end shows no key (" + text + ")";
    return text;
  }
  text = "the other end refused: " + text.substr(alert + 7);
  return setup_->has_key ? text + "; both ends need the same key" : text + "; each end needs a certificate that the other one's authority signed and that is valid now";
}

WEFT_DECL status tls_stream::problem() const {
  const std::lock_guard<std::mutex> lock(mutex_);
  if (error_ != 0) return {error_code::unauthenticated, explain(error_)};
  if (socket_.number != 0) return {error_code::unavailable, std::strerror(socket_.number)};
  const error_code code = is_server_ ? error_code::unauthenticated : error_code::unavailable;
  return {code, "the other end closed the connection; does it have the same transport?"};
}

// The name of the key, of which there is one.
inline constexpr unsigned char key_name[] = {'w', 'e', 'f', 't'};

inline const tls_setup& setup_of(SSL* ssl) { return *static_cast<const tls_setup*>(SSL_CTX_get_app_data(SSL_get_SSL_CTX(ssl))); }

// The key in the form in which OpenSSL takes it: as the secret of an earlier session.
inline SSL_SESSION* session_of(SSL* ssl) {
  const unsigned char aes_128_gcm_sha256[] = {0x13, 0x01};
  const SSL_CIPHER* cipher = SSL_CIPHER_find(ssl, aes_128_gcm_sha256);
  ssl_session out(SSL_SESSION_new());
  const tls_key& key = setup_of(ssl).key;
  if (cipher == nullptr || out == nullptr || SSL_SESSION_set1_master_key(out.get(), key.data(), key.size()) != 1 || SSL_SESSION_set_cipher(out.get(), cipher) != 1 ||
      SSL_SESSION_set_protocol_version(out.get(), TLS1_3_VERSION) != 1)
    return nullptr;
  return out.release();
}
inline int offer_key(SSL* ssl, const EVP_MD* digest, const unsigned char** name, std::size_t* bytes, SSL_SESSION** session) {
  *name = nullptr;
  *bytes = 0;
  *session = nullptr;
  if (digest != nullptr && digest != EVP_sha256() && EVP_MD_type(digest) != EVP_MD_type(EVP_sha256())) return 1;
  *session = session_of(ssl);
  *name = key_name;
  *bytes = sizeof key_name;
  return *session != nullptr ? 1 : 0;
}
inline int find_key(SSL* ssl, const unsigned char* name, std::size_t bytes, SSL_SESSION** session) {
  *session = bytes == sizeof key_name && std::memcmp(name, key_name, bytes) == 0 ? session_of(ssl) : nullptr;
  return 1;
}

inline ssl_context new_context(const tls_setup& setup) {
  ssl_context out(SSL_CTX_new(TLS_method()));
  SSL_CTX* context = out.get();
  if (context == nullptr || SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) != 1 || SSL_CTX_set_ciphersuites(context, "TLS_AES_128_GCM_SHA256") != 1 || SSL_CTX_set_num_tickets(context, 0) != 1)
    fail(error_code::unimplemented, "OpenSSL cannot do TLS 1.3: " + openssl_reason());
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER | SSL_MODE_RELEASE_BUFFERS | SSL_MODE_NO_AUTO_CHAIN);
#ifdef SSL_OP_IGNORE_UNEXPECTED_EOF
  SSL_CTX_set_options(context, SSL_OP_IGNORE_UNEXPECTED_EOF);  // messages have their own ends
#endif
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_read_ahead(context, 1);
  SSL_CTX_set_default_read_buffer_len(context, std::size_t{128} << 10);
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  SSL_CTX_set_app_data(context, const_cast<tls_setup*>(&setup));
  return out;
}

inline std::shared_ptr<tls_setup> new_setup() {
  auto out = std::make_shared<tls_setup>();
  out->socket = socket_method();
  out->client = new_context(*out);
  out->server = new_context(*out);
  // A key is a session to OpenSSL, and a server takes none without this.
  SSL_CTX_set_session_id_context(out->server.get(), key_name, sizeof key_name);
  return out;
}

// The content of a file that only its owner may read.
inline std::string read_secret(const std::string& path) {
  const std::unique_ptr<std::FILE, int (*)(std::FILE*)> file(std::fopen(path.c_str(), "rb"), std::fclose);
  struct stat about {};
  if (file == nullptr || ::fstat(::fileno(file.get()), &about) != 0) fail(error_code::not_found, "cannot open '" + path + "': " + std::strerror(errno));
  if ((about.st_mode & 077) != 0) {
    char mode[8];
    std::snprintf(mode, sizeof mode, "%03o", static_cast<unsigned>(about.st_mode & 0777));
    fail(error_code::permission_denied, "'" + path + "' holds a secret and may be used by others than its owner (mode " + mode + "); run: chmod 600 '" + path + "'");
  }
  std::string out(4200, '\0');
  out.resize(std::fread(out.data(), 1, out.size(), file.get()));
  return out;
}

inline std::shared_ptr<const transport_security> secured_by_key(std::string_view text, const std::string& source) {
  while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' ')) text.remove_suffix(1);
  const bool printable = std::all_of(text.begin(), text.end(), [](char c) { return c > ' ' && c < 127; });
  if (text.size() < 32 || text.size() > 4096 || !printable)
    fail(error_code::invalid_argument, source + ": expected a key of 32 to 4096 printable characters in one line, found " + std::to_string(text.size()) + " bytes" + (printable ? "" : " with others among them") +
                                           "; make one with: head -c 32 /dev/urandom | base64");
  const auto setup = new_setup();
  const std::string all = "weft key 1 " + std::string(text);
  if (EVP_Digest(all.data(), all.size(), setup->key.data(), nullptr, EVP_sha256(), nullptr) != 1) fail(error_code::internal, "OpenSSL has no SHA-256: " + openssl_reason());
  setup->has_key = true;
  SSL_CTX_set_psk_use_session_callback(setup->client.get(), offer_key);
  SSL_CTX_set_psk_find_session_callback(setup->server.get(), find_key);
  return std::make_shared<tls_security>(setup);
}

inline void use_certificates(SSL_CTX* context, const tls::certificate_files& files) {
  const auto need = [](int result, const char* what, const std::string& path) {
    if (result != 1) fail(error_code::invalid_argument, std::string("cannot use ") + what + " '" + path + "': " + openssl_reason());
  };
  ERR_clear_error();
  need(SSL_CTX_load_verify_locations(context, files.authority.c_str(), nullptr), "the authority", files.authority);
  need(SSL_CTX_use_certificate_chain_file(context, files.certificate.c_str()), "the certificate", files.certificate);
  need(SSL_CTX_use_PrivateKey_file(context, files.key.c_str(), SSL_FILETYPE_PEM), "the key", files.key);
  need(SSL_CTX_check_private_key(context), "the key", files.key);
}

}  // namespace weft::detail

namespace weft::tls {

WEFT_DECL std::shared_ptr<const transport_security> with_key(std::string_view key) { return detail::secured_by_key(key, "the key"); }

WEFT_DECL std::shared_ptr<const transport_security> with_key_file(const std::string& path) { return detail::secured_by_key(detail::read_secret(path), "key file '" + path + "'"); }

WEFT_DECL std::shared_ptr<const transport_security> with_key_variable(const std::string& name) {
  const char* value = std::getenv(name.c_str());
  if (value == nullptr) fail(error_code::not_found, "the variable " + name + ", which should hold the key of the cluster, is not set");
  return detail::secured_by_key(value, "the key in the variable " + name);
}

WEFT_DECL std::shared_ptr<const transport_security> with_certificates(const certificate_files& files) {
  (void)detail::read_secret(files.key);
  const auto setup = detail::new_setup();
  setup->names = files.names;
  detail::use_certificates(setup->client.get(), files);
  detail::use_certificates(setup->server.get(), files);
  return std::make_shared<detail::tls_security>(setup);
}

}  // namespace weft::tls

#endif
#endif
