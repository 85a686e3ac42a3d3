#ifndef WEFT_TESTS_TLS_CERTIFICATES_HPP
#define WEFT_TESTS_TLS_CERTIFICATES_HPP
// Authorities and certificates for tests, made when they are needed.

#include <openssl/bio.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <doctest/doctest.h>

#include <arpa/inet.h>

#include <memory>
#include <string>
#include <vector>

namespace test_certificates {

using key_ptr = std::shared_ptr<EVP_PKEY>;
using certificate_ptr = std::shared_ptr<X509>;

inline key_ptr new_key() {
  const std::unique_ptr<EVP_PKEY_CTX, void (*)(EVP_PKEY_CTX*)> context(EVP_PKEY_CTX_new_id(EVP_PKEY_EC, nullptr), EVP_PKEY_CTX_free);
  EVP_PKEY* made = nullptr;
  REQUIRE(EVP_PKEY_keygen_init(context.get()) == 1);
  REQUIRE(EVP_PKEY_CTX_set_ec_paramgen_curve_nid(context.get(), NID_X9_62_prime256v1) == 1);
  REQUIRE(EVP_PKEY_keygen(context.get(), &made) == 1);
  return key_ptr(made, EVP_PKEY_free);
}

inline void extend(X509* certificate, X509* issuer, int kind, const std::string& value) {
  X509V3_CTX context;
  X509V3_set_ctx(&context, issuer, certificate, nullptr, nullptr, 0);
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, &context, kind, value.c_str());
  REQUIRE(extension != nullptr);
  X509_add_ext(certificate, extension, -1);
  X509_EXTENSION_free(extension);
}

inline certificate_ptr new_certificate(const std::string& name, EVP_PKEY* key, long first_day, long last_day) {
  certificate_ptr out(X509_new(), X509_free);
  static long serial = 0;
  constexpr long day = 24 * 3600;
  X509_set_version(out.get(), 2);
  ASN1_INTEGER_set(X509_get_serialNumber(out.get()), ++serial);
  X509_gmtime_adj(X509_getm_notBefore(out.get()), first_day * day);
  X509_gmtime_adj(X509_getm_notAfter(out.get()), last_day * day);
  X509_set_pubkey(out.get(), key);
  X509_NAME_add_entry_by_txt(X509_get_subject_name(out.get()), "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1, 0);
  return out;
}

template <class Write> std::string as_pem(Write&& write) {
  const std::unique_ptr<BIO, int (*)(BIO*)> memory(BIO_new(BIO_s_mem()), BIO_free);
  REQUIRE(write(memory.get()) == 1);
  char* data = nullptr;
  const long bytes = BIO_get_mem_data(memory.get(), &data);
  return std::string(data, static_cast<std::size_t>(bytes));
}

/// A certificate and its key, in PEM form.
struct identity {
  std::string certificate, key;
};

/// Signs certificates, its own among them.
class authority {
 public:
  explicit authority(const std::string& name) : key_(new_key()), own_(new_certificate(name, key_.get(), -2, 365)) {
    X509_set_issuer_name(own_.get(), X509_get_subject_name(own_.get()));
    extend(own_.get(), own_.get(), NID_basic_constraints, "critical,CA:TRUE");
    REQUIRE(X509_sign(own_.get(), key_.get(), EVP_sha256()) != 0);
  }
  std::string pem() const {
    return as_pem([this](BIO* to) { return PEM_write_bio_X509(to, own_.get()); });
  }
  /// For a host's names and addresses; valid until so many days from now.
  identity issue(const std::string& name, const std::vector<std::string>& hosts, long last_day = 365) const {
    const key_ptr key = new_key();
    const certificate_ptr made = new_certificate(name, key.get(), -2, last_day);
    X509_set_issuer_name(made.get(), X509_get_subject_name(own_.get()));
    std::string names;
    unsigned char numeric[16];
    for (const std::string& host : hosts)
      names += (names.empty() ? "" : ",") + std::string(::inet_pton(AF_INET, host.c_str(), numeric) == 1 ? "IP:" : "DNS:") + host;
    extend(made.get(), own_.get(), NID_subject_alt_name, names);
    REQUIRE(X509_sign(made.get(), key_.get(), EVP_sha256()) != 0);
    return {as_pem([&](BIO* to) { return PEM_write_bio_X509(to, made.get()); }),
            as_pem([&](BIO* to) { return PEM_write_bio_PrivateKey(to, key.get(), nullptr, nullptr, 0, nullptr, nullptr); })};
  }

 private:
  key_ptr key_;
  certificate_ptr own_;
};

}  // namespace test_certificates

#endif
