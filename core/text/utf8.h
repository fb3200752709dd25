// Decodes text that may not be valid UTF-8.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace concertina {

/// Returns the character at `at` and advances `at` past it. Returns nullopt for invalid UTF-8 (RFC
/// 3629: shortest form, no surrogates), and advances `at` by one byte.
std::optional<std::uint32_t> next_code(std::string_view text, std::size_t& at);

}  // namespace concertina
