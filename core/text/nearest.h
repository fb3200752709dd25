// "Did you mean": the known word that a mistyped one most likely stands for.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace concertina {

/// Levenshtein distance: the least number of insertions, deletions and substitutions of a
/// character. O(a.size() * b.size()).
std::size_t edit_distance(std::string_view a, std::string_view b);

/// Whether `distance` is small enough for a word of `length` characters to be a slip.
bool is_slip(std::size_t distance, std::size_t length);

/// The first one of `words` that begins with `word`, else the one that is nearest to it, upper and
/// lower case being the same; empty if none is near. Views into `words`.
std::string_view nearest_word(std::string_view word, std::span<const std::string_view> words);

/// Advice for an error: "zb-v (one of: gpipe, 1f1b, zb-v)", without the first part if `nearest` is
/// empty.
std::string one_of(std::string_view nearest, std::span<const std::string_view> words);

}  // namespace concertina
