#include "io/checkpoint/part_hash.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <new>

namespace concertina {
namespace {

constexpr std::string_view kFast = "xxh3:";
constexpr std::size_t kFastDigits = 32;

std::string fast_text(XXH128_hash_t hash) {
  return fmt::format("{}{:016x}{:016x}", kFast, hash.high64, hash.low64);
}

}  // namespace

void PartHash::Free::operator()(XXH3_state_s* state) const {
  XXH3_freeState(state);
}

PartHash::PartHash(std::string_view like) {
  if (!like.starts_with(kFast)) return;
  fast_.reset(XXH3_createState());
  if (!fast_) throw std::bad_alloc();
  XXH3_128bits_reset(fast_.get());
}

void PartHash::update(std::span<const std::byte> bytes) {
  if (fast_)
    XXH3_128bits_update(fast_.get(), bytes.data(), bytes.size());
  else
    sha256_.update(bytes);
}

std::string PartHash::text() {
  return fast_ ? fast_text(XXH3_128bits_digest(fast_.get())) : sha256_.hex();
}

std::string fast_part_hash(std::span<const std::byte> bytes) {
  return fast_text(XXH3_128bits(bytes.data(), bytes.size()));
}

bool is_part_hash(std::string_view text) {
  if (!text.starts_with(kFast)) return is_sha256_hex(text);
  return is_hex(text.substr(kFast.size()), kFastDigits);
}

}  // namespace concertina
