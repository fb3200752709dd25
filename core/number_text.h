// Numbers as people read them in messages.
#pragma once

#include <cstdint>
#include <string>

namespace concertina {

/// "440,440".
std::string grouped(std::int64_t value);

/// `value` with so many decimals (from 1e9 on, six digits); "NaN", "infinity" or "-infinity" where it is not finite: how a
/// library prints these depends on the sign of a NaN, which means nothing.
std::string number_text(double value, int decimals = 4);

}  // namespace concertina
