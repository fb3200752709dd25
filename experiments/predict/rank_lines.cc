#include "experiments/predict/rank_lines.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace concertina {

std::string list_text(const std::vector<int>& numbers) {
  const int stride = numbers.size() > 1 ? numbers[1] - numbers[0] : 1;
  bool even = true;
  for (std::size_t i = 1; i < numbers.size(); ++i)
    even = even && numbers[i] - numbers[i - 1] == stride;
  if (even && stride == 1 && numbers.size() > 2)
    return fmt::format("{}-{}", numbers.front(), numbers.back());
  if (numbers.size() <= 4) return fmt::format("{}", fmt::join(numbers, ","));
  if (even) return fmt::format("{},{},...,{}", numbers[0], numbers[1], numbers.back());
  return fmt::format("{},{},... ({})", numbers[0], numbers[1], numbers.size());
}

void RankLines::add(int rank, const std::string& line) {
  const auto [entry, fresh] = index_.try_emplace(line, lines_.size());
  if (fresh) {
    lines_.push_back(&entry->first);
    ranks_.emplace_back();
  }
  ranks_[entry->second].push_back(rank);
}

std::string RankLines::text() const {
  std::string all;
  for (std::size_t i = 0; i < lines_.size(); ++i)
    all += fmt::format("{:<16}{}\n", list_text(ranks_[i]), *lines_[i]);
  return all;
}

}  // namespace concertina
