// A small dense linear program.
// Invariant: pure; the same input gives the same bits.
#pragma once

#include <optional>
#include <vector>

namespace concertina {

/// Maximise sum_j gain[j] x[j] where sum_j row[i][j] x[j] <= limit[i] for each i, and x >= 0.
/// Limits are >= 0, so x = 0 is allowed.
struct LinearProgram {
  std::vector<std::vector<double>> rows;  // each as long as `gain`
  std::vector<double> limit, gain;
};

/// The price of each row at the optimum: what one more of its limit would gain. They solve the dual
/// program: minimise limit . y where, for each column, rows . y >= gain, and y >= 0. Nothing if the
/// gain has no bound. For dense programs of some hundred rows and columns with numbers around 1: a
/// simplex that raises each limit by another 1e-8 or so, since rows that bind at the same place
/// make it cycle, or divide by rounding errors. So limit . y is off its least value by 1e-8 sum y.
std::optional<std::vector<double>> row_prices(const LinearProgram& program);

}  // namespace concertina
