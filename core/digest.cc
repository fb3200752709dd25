#include "core/digest.h"

#include <xxhash.h>

#include <algorithm>

namespace concertina {

namespace {
constexpr std::size_t kPiece = std::size_t{4} << 20;
}  // namespace

std::uint64_t digest_of(Memory& memory, View tensor, std::vector<std::byte>& scratch) {
  std::uint64_t digest = tensor.bytes();
  for (std::size_t at = 0; at < tensor.bytes(); at += kPiece) {
    const std::size_t bytes = std::min(kPiece, tensor.bytes() - at);
    const std::byte* piece = static_cast<const std::byte*>(tensor.data) + at;
    if (!memory.on_host()) {
      memory.copy(piece, scratch.data(), bytes);
      piece = scratch.data();
    }
    digest = XXH3_64bits_withSeed(piece, bytes, digest);
  }
  return digest;
}

std::vector<std::byte> digest_scratch(const Memory& memory) {
  return std::vector<std::byte>(memory.on_host() ? 0 : kPiece);
}

}  // namespace concertina
