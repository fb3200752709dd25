#include "parallel/policies/linear_program.h"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "core/error.h"

namespace concertina {
namespace {

constexpr double kZero = 1e-11;
constexpr double kRaise = 1e-8;

/// In [1/2, 3/2), another one for each row: no two rows bind at once.
double spread(std::size_t row) {
  const double golden = 0.6180339887498949 * static_cast<double>(row + 1);
  return 0.5 + golden - std::floor(golden);
}

/// Rows of the program in terms of the basis: columns of x, a slack per row, the limit. The last
/// row has what each column would lose.
class Tableau {
 public:
  explicit Tableau(const LinearProgram& program)
      : rows_(program.rows.size()), columns_(program.gain.size() + rows_) {
    for (std::size_t i = 0; i < rows_; ++i) {
      CONCERTINA_CHECK(program.rows[i].size() == program.gain.size() && program.limit[i] >= 0,
                       "row {} of a linear program", i);
      std::vector<double>& row = cells_.emplace_back(program.rows[i]);
      row.resize(columns_ + 1);
      row[program.gain.size() + i] = 1;
      row[columns_] = program.limit[i] + kRaise * spread(i);
    }
    std::vector<double>& losses = cells_.emplace_back(columns_ + 1);
    for (std::size_t j = 0; j < program.gain.size(); ++j) losses[j] = -program.gain[j];
  }

  /// False if the gain has no bound.
  bool solve() {
    for (;;) {
      const auto losses = cells_[rows_].begin();
      const auto enters = std::min_element(losses, losses + static_cast<std::ptrdiff_t>(columns_));
      if (*enters >= -kZero) return true;
      const auto column = static_cast<std::size_t>(enters - losses);
      const std::size_t leaves = leaving_row(column);
      if (leaves == rows_) return false;
      pivot(leaves, column);
    }
  }

  double price(std::size_t row) const { return cells_[rows_][columns_ - rows_ + row]; }

 private:
  /// The row that binds first as the column enters.
  std::size_t leaving_row(std::size_t enters) const {
    std::size_t best = rows_;
    double least = 0;
    for (std::size_t i = 0; i < rows_; ++i) {
      if (cells_[i][enters] <= kZero) continue;
      const double ratio = cells_[i][columns_] / cells_[i][enters];
      if (best < rows_ && ratio >= least) continue;
      best = i;
      least = ratio;
    }
    return best;
  }

  void pivot(std::size_t leaves, std::size_t enters) {
    std::vector<double>& row = cells_[leaves];
    const double scale = 1 / row[enters];
    for (double& cell : row) cell *= scale;
    for (std::size_t i = 0; i <= rows_; ++i) {
      const double factor = cells_[i][enters];
      if (i == leaves || factor == 0) continue;
      for (std::size_t j = 0; j <= columns_; ++j) cells_[i][j] -= factor * row[j];
      cells_[i][enters] = 0;
    }
  }

  std::size_t rows_, columns_;
  std::vector<std::vector<double>> cells_;
};

}  // namespace

std::optional<std::vector<double>> row_prices(const LinearProgram& program) {
  CONCERTINA_CHECK(program.limit.size() == program.rows.size(), "{} limits of {} rows",
                   program.limit.size(), program.rows.size());
  Tableau tableau(program);
  if (!tableau.solve()) return std::nullopt;
  std::vector<double> prices;
  for (std::size_t i = 0; i < program.rows.size(); ++i)
    prices.push_back(std::max(tableau.price(i), 0.0));
  return prices;
}

}  // namespace concertina
