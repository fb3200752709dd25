#include "experiments/config/byte_size.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <system_error>

namespace concertina {
namespace {

struct ByteUnit {
  std::string_view name;
  std::int64_t bytes;
};
constexpr std::int64_t kKi = 1024, kK = 1000;
// Binary units first, in increasing order.
constexpr ByteUnit kByteUnits[] = {{"B", 1},
                                   {"KiB", kKi},
                                   {"MiB", kKi* kKi},
                                   {"GiB", kKi* kKi* kKi},
                                   {"TiB", kKi* kKi* kKi* kKi},
                                   {"kB", kK},
                                   {"KB", kK},
                                   {"MB", kK* kK},
                                   {"GB", kK* kK* kK},
                                   {"TB", kK* kK* kK* kK}};
constexpr std::size_t kBinaryUnits = 5;
constexpr std::int64_t kTooManyBytes = std::int64_t{1} << 62;

const ByteUnit* find_unit(std::string_view name) {
  for (const ByteUnit& unit : kByteUnits)
    if (unit.name == name) return &unit;
  return nullptr;
}

}  // namespace

std::optional<ByteSize> parse_byte_size(std::string_view text) {
  if (text == "0") return ByteSize{0};
  const std::size_t end = text.find_first_not_of("0123456789.");
  if (end == 0 || end == std::string_view::npos || text.front() == '.') return std::nullopt;
  const std::string_view number = text.substr(0, end);
  const std::size_t unit_at = text.find_first_not_of(' ', end);
  if (unit_at == std::string_view::npos) return std::nullopt;
  const ByteUnit* const unit = find_unit(text.substr(unit_at));
  if (unit == nullptr) return std::nullopt;
  const char *const first = number.data(), *const last = first + number.size();
  // Parse whole numbers as integers: a double would lose the low bits of large numbers.
  std::int64_t whole = 0;
  if (const auto [rest, error] = std::from_chars(first, last, whole); rest == last)
    return error == std::errc() && whole < kTooManyBytes / unit->bytes
               ? std::optional(ByteSize{whole * unit->bytes})
               : std::nullopt;
  double value = 0;
  const auto [rest, error] = std::from_chars(first, last, value);
  const double bytes = std::floor(value * static_cast<double>(unit->bytes));
  if (rest != last || error != std::errc() || bytes >= static_cast<double>(kTooManyBytes))
    return std::nullopt;
  return ByteSize{static_cast<std::int64_t>(bytes)};
}

std::string to_text(ByteSize size) {
  if (size.bytes == 0) return "0";
  std::size_t unit = kBinaryUnits - 1;
  while (size.bytes % kByteUnits[unit].bytes != 0) --unit;
  return fmt::format("{} {}", size.bytes / kByteUnits[unit].bytes, kByteUnits[unit].name);
}

}  // namespace concertina
