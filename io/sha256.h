// SHA-256 (FIPS 180-4), computed by OpenSSL's libcrypto, which uses the CPU's SHA instructions.
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

struct evp_md_ctx_st;

namespace concertina {

using Sha256Digest = std::array<std::byte, 32>;

/// Incremental hash; move-only.
class Sha256 {
 public:
  Sha256();
  void update(std::span<const std::byte> bytes);
  void update(std::string_view text) { update(std::as_bytes(std::span(text))); }
  /// Returns an independent hash with the same state.
  Sha256 copy() const;
  /// Returns the digest of all updates and resets the hash.
  Sha256Digest digest();
  /// Returns the digest of all updates as 64 lower-case hex digits and resets the hash.
  std::string hex();

 private:
  struct Free {
    void operator()(evp_md_ctx_st* context) const;
  };
  std::unique_ptr<evp_md_ctx_st, Free> context_;
};

std::string sha256_hex(std::span<const std::byte> bytes);
std::string sha256_hex(std::string_view text);

/// Returns the HMAC (RFC 2104) of `text`, which cannot be computed without `key`.
Sha256Digest hmac_sha256(std::string_view key, std::string_view text);

/// Whether `text` is this number of lower-case hex digits.
bool is_hex(std::string_view text, std::size_t digits);
inline bool is_sha256_hex(std::string_view text) {
  return is_hex(text, 64);
}

/// Returns OpenSSL's version string: "OpenSSL 3.0.17 1 Jul 2025".
std::string openssl_version();

}  // namespace concertina
