#include "parallel/plan/plan_grid.h"

#include <fmt/format.h>

#include <algorithm>

namespace concertina {
namespace {

constexpr int kContext = 3;    // actions on either side of a place
constexpr int kGap = 2;        // a shorter one is not worth leaving out
constexpr int kRowsOfAll = 8;  // up to so many ranks, those without a place are shown too

/// Positions that row `rank` shows: around its places, or, if it has none, around `otherwise`.
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

std::vector<std::string> cells_of(const std::vector<Action>& row, const std::vector<int>& marks,
                                  int otherwise) {
  const std::vector<bool> shown = shown_positions(static_cast<int>(row.size()), marks, otherwise);
  std::vector<std::string> cells;
  for (int i = 0; i < static_cast<int>(row.size()); ++i) {
    if (!shown[i]) {
      if (i + 1 == static_cast<int>(row.size())) cells.push_back("..");
      continue;
    }
    if (i == 0) cells.push_back("0:");
    if (i > 0 && !shown[i - 1]) cells.push_back(fmt::format("..{}:", i));
    const bool marked = std::find(marks.begin(), marks.end(), i) != marks.end();
    const std::string text = to_text(row[i]);
    cells.push_back(marked ? "[" + text + "]" : text);
  }
  return cells;
}

std::string explain(const Plan& plan, const Violation& violation) {
  const std::string grid = grid_around(plan, violation.places);
  return grid.empty() ? violation.text : violation.text + "\n" + grid.substr(0, grid.size() - 1);
}

}  // namespace

std::string grid_around(const Plan& plan, const std::vector<Place>& places) {
  if (places.empty()) return {};
  const int ranks = static_cast<int>(plan.rows.size());
  std::vector<std::vector<int>> marks(ranks);
  for (const Place& place : places) marks[place.rank].push_back(place.position);
  std::vector<std::vector<std::string>> rows(ranks);
  std::vector<std::size_t> widths;
  for (int rank = 0; rank < ranks; ++rank) {
    if (marks[rank].empty() && ranks > kRowsOfAll) continue;
    rows[rank] = cells_of(plan.rows[rank], marks[rank], places[0].position);
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

RefusedPlan::RefusedPlan(Plan plan, Violation violation, const std::string& who, std::string where,
                         std::string fix)
    : Error(Exit::bad_input, who + explain(plan, violation), std::move(where), std::move(fix)),
      plan_(std::move(plan)),
      violation_(std::move(violation)) {}

}  // namespace concertina
