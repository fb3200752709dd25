// Numbers as people read them in messages.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace concertina {

/// "440,440".
std::string grouped(std::int64_t value);

/// A count with its noun: "1 rank", "2 leaves", "1,024 microbatches".
std::string counted(std::int64_t count, std::string_view noun);

/// `value` with so many decimals (from 1e9 on, six digits); "NaN", "infinity" or "-infinity" where
/// it is not finite: how a library prints these depends on the sign of a NaN, which means nothing.
std::string number_text(double value, int decimals = 4);

/// "12.3 ms", "850 µs", "1.25 s".
std::string duration_text(double seconds);
/// "33.7 MiB".
std::string bytes_text(double count);
/// "1.25 GiB", always in GiB: sizes of memory that are compared with each other.
std::string gib_text(std::size_t bytes);

}  // namespace concertina
