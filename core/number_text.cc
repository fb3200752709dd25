#include "core/number_text.h"

#include <fmt/format.h>

#include <cmath>

namespace concertina {

std::string grouped(std::int64_t value) {
  std::string text = fmt::format("{}", value);
  const std::size_t first = text.front() == '-' ? 1 : 0;
  for (std::size_t at = text.size(); at > first + 3; at -= 3) text.insert(at - 3, 1, ',');
  return text;
}

std::string counted(std::int64_t count, std::string_view noun) {
  if (count == 1) return fmt::format("1 {}", noun);
  if (noun == "leaf") return fmt::format("{} leaves", grouped(count));
  return fmt::format("{} {}{}", grouped(count), noun, noun.ends_with("ch") ? "es" : "s");
}

std::string number_text(double value, int decimals) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "infinity" : "-infinity";
  if (std::abs(value) >= 1e9) return fmt::format("{:.6g}", value);
  return fmt::format("{:.{}f}", value, decimals);
}

}  // namespace concertina
