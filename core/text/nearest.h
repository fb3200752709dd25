// "Did you mean" suggestions for mistyped words.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace concertina {

/// Returns the Levenshtein distance: the minimum number of character insertions, deletions and
/// substitutions. O(a.size() * b.size()).
std::size_t edit_distance(std::string_view a, std::string_view b);

/// Whether `distance` is small enough for a typo in a word of `length` characters.
bool is_slip(std::size_t distance, std::size_t length);

/// Returns the first of `words` that starts with `word`, or else the nearest one, ignoring case;
/// empty if none is near. The result is a view into `words`.
std::string_view nearest_word(std::string_view word, std::span<const std::string_view> words);

/// Returns advice for an error: "zb-v (one of: gpipe, 1f1b, zb-v)", or only "one of: ..." if
/// `nearest` is empty.
std::string one_of(std::string_view nearest, std::span<const std::string_view> words);

}  // namespace concertina
