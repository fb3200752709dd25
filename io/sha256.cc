#include "io/sha256.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

#include "core/error.h"

namespace concertina {
namespace {

void start(evp_md_ctx_st* context) {
  if (EVP_DigestInit_ex(context, EVP_sha256(), nullptr) != 1)
    throw_failure("SHA-256 could not be initialized", "EVP_DigestInit_ex",
                  "check the OpenSSL installation and its provider configuration");
}

}  // namespace

void Sha256::Free::operator()(evp_md_ctx_st* context) const {
  EVP_MD_CTX_free(context);
}

Sha256::Sha256() : context_(EVP_MD_CTX_new()) {
  if (context_ == nullptr) throw_failure("out of memory", "EVP_MD_CTX_new");
  start(context_.get());
}

void Sha256::update(std::span<const std::byte> bytes) {
  if (EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) != 1)
    throw_failure("SHA-256 failed", "EVP_DigestUpdate");
}

Sha256 Sha256::copy() const {
  Sha256 other;
  if (EVP_MD_CTX_copy_ex(other.context_.get(), context_.get()) != 1)
    throw_failure("SHA-256 failed", "EVP_MD_CTX_copy_ex");
  return other;
}

Sha256Digest Sha256::digest() {
  Sha256Digest digest{};
  unsigned int length = 0;
  if (EVP_DigestFinal_ex(context_.get(), reinterpret_cast<unsigned char*>(digest.data()),
                         &length) != 1 ||
      length != digest.size())
    throw_failure("SHA-256 failed", "EVP_DigestFinal_ex");
  start(context_.get());
  return digest;
}

std::string Sha256::hex() {
  const Sha256Digest bytes = digest();
  const auto* const first = reinterpret_cast<const unsigned char*>(bytes.data());
  return fmt::format("{:02x}", fmt::join(first, first + bytes.size(), ""));
}

std::string sha256_hex(std::span<const std::byte> bytes) {
  Sha256 hash;
  hash.update(bytes);
  return hash.hex();
}

std::string sha256_hex(std::string_view text) {
  return sha256_hex(std::as_bytes(std::span(text)));
}

Sha256Digest hmac_sha256(std::string_view key, std::string_view text) {
  Sha256Digest digest{};
  if (HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
           reinterpret_cast<const unsigned char*>(text.data()), text.size(),
           reinterpret_cast<unsigned char*>(digest.data()), nullptr) == nullptr)
    throw_failure("HMAC failed", "HMAC");
  return digest;
}

bool is_hex(std::string_view text, std::size_t digits) {
  return text.size() == digits &&
         text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

std::string openssl_version() {
  return OpenSSL_version(OPENSSL_VERSION);
}

}  // namespace concertina
