#include "core/text/number_text.h"

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

std::string duration_text(double seconds) {
  const double size = std::abs(seconds);
  if (size < 1e-9) return "0";
  if (size < 1e-3) return fmt::format("{:.3g} µs", seconds * 1e6);
  if (size < 1) return fmt::format("{:.3g} ms", seconds * 1e3);
  return fmt::format("{:.3g} s", seconds);
}

std::string gib_text(std::size_t bytes) {
  return fmt::format("{:.2f} GiB", static_cast<double>(bytes) / (1024.0 * 1024 * 1024));
}

}  // namespace concertina
