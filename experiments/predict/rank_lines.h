// Lines of a table that are equal but for the ranks they speak of are printed once.
// Invariant: pure; lines come in the order of their first rank.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace concertina {

/// "3", "0-7", "0,32,...,480": numbers ascend.
std::string list_text(const std::vector<int>& numbers);

class RankLines {
 public:
  /// Ranks come in ascending order.
  void add(int rank, const std::string& line);
  /// The ranks, 16 columns wide, and the line.
  std::string text() const;

 private:
  std::map<std::string, std::size_t> index_;  // of a line in what follows
  std::vector<std::vector<int>> ranks_;
  std::vector<const std::string*> lines_;  // keys of index_
};

}  // namespace concertina
