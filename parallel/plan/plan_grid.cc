#include "parallel/plan/plan_grid.h"

#include <fmt/format.h>

#include <algorithm>

namespace concertina {
namespace {

constexpr int kContext = 3;    // actions on either side of a marked one
constexpr int kGap = 2;        // gaps shorter than this are not omitted
constexpr int kRowsOfAll = 8;  // up to this many ranks, rows without a marked action are shown too

/// Positions shown in a row: around its marks, or around `otherwise` if it has none.
std::vector<bool> shown_positions(int length, const std::vector<int>& marks, int otherwise) {
  std::vector<bool> shown(length, false);
  const auto show = [&](int at) {
    const int first = std::max(0, at - kContext), last = std::min(length - 1, at + kContext);
    for (int i = first; i <= last; ++i) shown[i] = true;
  };
  for (const int mark : marks) show(mark);
  if (marks.empty()) show(std::min(otherwise, length - 1));
  int last = -1;
  for (int i = 0; i < length; ++i) {
    if (!shown[i]) continue;
    if (i - last - 1 <= kGap)
      for (int gap = last + 1; gap < i; ++gap) shown[gap] = true;
    last = i;
  }
  if (length - 1 - last <= kGap)
    for (int i = last + 1; i < length; ++i) shown[i] = true;
  return shown;
}

/// A row as drawn, including the missing action if it belongs there.
struct DrawnRow {
  const std::vector<Action>& row;
  std::optional<Gap> gap;
  std::vector<int> marks{};

  int length() const { return static_cast<int>(row.size()) + (gap ? 1 : 0); }
  /// Position in the row of the cell drawn at `i`.
  int position(int i) const { return gap && i > gap->before.position ? i - 1 : i; }
  std::string text(int i) const {
    if (gap && i == gap->before.position) return fmt::format("+{}", to_text(gap->action));
    return to_text(row[position(i)]);
  }
};

DrawnRow draw(const Plan& plan, int rank, const std::vector<Place>& places,
              const std::optional<Gap>& gap) {
  DrawnRow drawn{plan.rows[rank], gap && gap->before.rank == rank ? gap : std::nullopt};
  if (drawn.gap) drawn.marks.push_back(gap->before.position);
  for (const Place& place : places)
    if (place.rank == rank)
      drawn.marks.push_back(place.position +
                            (drawn.gap && place.position >= gap->before.position ? 1 : 0));
  return drawn;
}

std::vector<std::string> cells_of(const DrawnRow& row, int otherwise) {
  const std::vector<bool> shown = shown_positions(row.length(), row.marks, otherwise);
  std::vector<std::string> cells;
  for (int i = 0; i < row.length(); ++i) {
    if (!shown[i]) {
      if (i + 1 == row.length()) cells.push_back("..");
      continue;
    }
    if (i == 0) cells.push_back("0:");
    if (i > 0 && !shown[i - 1]) cells.push_back(fmt::format("..{}:", row.position(i)));
    const bool marked = std::find(row.marks.begin(), row.marks.end(), i) != row.marks.end();
    cells.push_back(marked ? fmt::format("[{}]", row.text(i)) : row.text(i));
  }
  return cells;
}

std::string explain(const Plan& plan, const Violation& violation) {
  const std::string grid = grid_around(plan, violation.places, violation.gap);
  return grid.empty() ? violation.text : violation.text + "\n" + grid.substr(0, grid.size() - 1);
}

}  // namespace

std::string grid_around(const Plan& plan, const std::vector<Place>& places,
                        const std::optional<Gap>& gap) {
  if (places.empty() && !gap) return {};
  const int ranks = static_cast<int>(plan.rows.size());
  const int otherwise = places.empty() ? gap->before.position : places[0].position;
  std::vector<std::vector<std::string>> rows(ranks);
  std::vector<std::size_t> widths;
  for (int rank = 0; rank < ranks; ++rank) {
    const DrawnRow drawn = draw(plan, rank, places, gap);
    if (drawn.marks.empty() && ranks > kRowsOfAll) continue;
    rows[rank] = cells_of(drawn, otherwise);
    widths.resize(std::max(widths.size(), rows[rank].size()), 0);
    for (std::size_t i = 0; i < rows[rank].size(); ++i)
      widths[i] = std::max(widths[i], rows[rank][i].size());
  }
  std::string text;
  for (int rank = 0; rank < ranks; ++rank) {
    if (rows[rank].empty()) continue;
    std::string line = fmt::format("rank {:<4}", rank);
    for (std::size_t i = 0; i < rows[rank].size(); ++i)
      line += fmt::format("  {:<{}}", rows[rank][i], widths[i]);
    text += line.substr(0, line.find_last_not_of(' ') + 1) + "\n";
  }
  return text;
}

RefusedPlan::RefusedPlan(Plan plan, Violation violation, const std::string& who, std::string where)
    : Error(Exit::bad_input, who + explain(plan, violation), std::move(where),
            std::string(advice_of(violation.rule))),
      plan_(std::move(plan)),
      violation_(std::move(violation)) {}

}  // namespace concertina
