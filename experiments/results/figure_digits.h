// Figures with as many digits as their uncertainty bears.
// Invariant: all figures of a column have the same number of decimals.
#pragma once

#include <string>
#include <vector>

namespace concertina {

/// How the figures of a column are written: so many decimals, or as powers of ten.
struct FigureDigits {
  int decimals = 0;
  bool powers = false;
};

/// Two digits of the median uncertainty (of those above zero), and up to two more where the
/// smallest would otherwise be zero; without any, five digits of the largest value, none after the
/// point if all values are whole. Values that are not finite do not count.
FigureDigits digits_for(const std::vector<double>& values,
                        const std::vector<double>& uncertainties);

/// "26,431.5"; a value that these decimals would round to zero as "1e-17". NaN and infinity by
/// name.
std::string figure_text(double value, const FigureDigits& digits);

}  // namespace concertina
