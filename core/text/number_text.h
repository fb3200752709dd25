// Human-readable numbers for messages, and numbers in text.
#pragma once

#include <charconv>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>

namespace concertina {

/// Returns the decimal number that is the whole of `text`; nothing if it is not one, or not a T.
template <class T>
std::optional<T> parse_number(std::string_view text) {
  T value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(value)
                                                                  : std::nullopt;
}

/// Returns a number with separators: "440,440".
std::string grouped(std::int64_t value);

/// Returns a count with its noun: "1 rank", "2 leaves", "1,024 microbatches".
std::string counted(std::int64_t count, std::string_view noun);

/// Returns `value` with `decimals` decimals (six digits from 1e9 on), or "NaN", "infinity" or
/// "-infinity". Library formatting of NaN would depend on its sign, which is meaningless.
std::string number_text(double value, int decimals = 4);

/// Returns a duration: "12.3 ms", "850 µs", "1.25 s".
std::string duration_text(double seconds);
/// Returns a size such as "1.25 GiB", always in GiB, so that sizes can be compared.
std::string gib_text(std::size_t bytes);

}  // namespace concertina
