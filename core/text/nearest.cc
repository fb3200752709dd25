#include "core/text/nearest.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <numeric>
#include <vector>

namespace concertina {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substitute = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({substitute, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

bool is_slip(std::size_t distance, std::size_t length) {
  return distance <= std::max<std::size_t>(2, length / 3) &&
         distance < std::max<std::size_t>(2, length);
}

static std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

std::string_view nearest_word(std::string_view word, std::span<const std::string_view> words) {
  constexpr std::size_t kBeginning = 3;  // characters
  std::string_view best;
  std::size_t least = std::string_view::npos;
  for (const std::string_view candidate : words) {
    const bool begun = word.size() >= kBeginning && lower(candidate).starts_with(lower(word));
    const std::size_t distance = begun ? 0 : edit_distance(lower(word), lower(candidate));
    if (distance < least) best = candidate, least = distance;
  }
  return is_slip(least, word.size()) ? best : std::string_view();
}

std::string one_of(std::string_view nearest, std::span<const std::string_view> words) {
  if (nearest.empty()) return fmt::format("one of: {}", fmt::join(words, ", "));
  return fmt::format("{} (one of: {})", nearest, fmt::join(words, ", "));
}

}  // namespace concertina
