// Characters of a text that may hold anything.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace concertina {

/// The character that begins at `at`, and moves `at` after it. None where the bytes are no UTF-8
/// (RFC 3629: shortest form, no surrogates); `at` then moves by one byte.
std::optional<std::uint32_t> next_code(std::string_view text, std::size_t& at);

}  // namespace concertina
