#include "io/quality/row_faults.h"

#include <utf8proc.h>

#include <algorithm>
#include <deque>
#include <unordered_map>

#include "io/datasets/content_hash.h"
#include "io/quality/near_duplicates.h"

namespace concertina {
namespace {

bool is_utf8(std::string_view text) {
  const auto* bytes = reinterpret_cast<const utf8proc_uint8_t*>(text.data());
  for (std::size_t at = 0; at < text.size();) {
    utf8proc_int32_t code = 0;
    const auto length =
        utf8proc_iterate(bytes + at, static_cast<utf8proc_ssize_t>(text.size() - at), &code);
    if (length <= 0) return false;
    at += static_cast<std::size_t>(length);
  }
  return true;
}

/// A text of several rows: the first of each split, the first of another label than the first.
struct SharedText {
  std::size_t first_of[3] = {RowFinding::kNone, RowFinding::kNone, RowFinding::kNone};
  std::size_t first = RowFinding::kNone, other_label = RowFinding::kNone;

  std::size_t held_out() const {
    return first_of[1] != RowFinding::kNone ? first_of[1] : first_of[2];
  }
};

class FaultSearch {
 public:
  FaultSearch(std::span<const CheckedRow> rows, const FaultLimits& limits)
      : rows_(rows), limits_(limits), folded_(rows.size()) {}

  std::vector<RowFinding> run() {
    for (std::size_t row = 0; row < rows_.size(); ++row) look_alone(row);
    for (std::size_t row = 0; row < rows_.size(); ++row)
      if (!folded_[row].empty()) note(row);
    for (std::size_t row = 0; row < rows_.size(); ++row)
      if (!folded_[row].empty()) compare(row);
    if (limits_.near <= 1) look_for_near();
    std::ranges::stable_sort(found_, [](const RowFinding& a, const RowFinding& b) {
      return a.row != b.row ? a.row < b.row : a.fault < b.fault;
    });
    return std::move(found_);
  }

 private:
  void add(std::size_t row, RowFault fault, std::size_t other = RowFinding::kNone,
           double similarity = 1) {
    found_.push_back({row, fault, other, similarity});
  }

  /// What a row shows by itself; keeps the texts that can be compared.
  void look_alone(std::size_t row) {
    const CheckedRow& own = rows_[row];
    if (!own.broken.empty()) return add(row, RowFault::broken);
    if (!is_utf8(own.text[0]) || !is_utf8(own.text[1]) || !is_utf8(own.label))
      return add(row, RowFault::undecodable);
    std::string& folded = folded_[row];
    append_folded(own.text[0], folded);
    const bool first_empty = folded.empty();
    append_folded(own.text[1], folded += '\t');
    if (first_empty || (own.text[1].data() != nullptr && folded.ends_with('\t'))) {
      folded.clear();
      return add(row, RowFault::empty);
    }
    if (limits_.tokens > 0 && own.tokens > limits_.tokens) add(row, RowFault::cut);
  }

  void note(std::size_t row) {
    SharedText& shared = texts_[folded_[row]];
    std::size_t& first = shared.first_of[static_cast<std::size_t>(rows_[row].split)];
    if (first == RowFinding::kNone) first = row;
    if (shared.first == RowFinding::kNone) shared.first = row;
    if (shared.other_label == RowFinding::kNone && rows_[row].label != rows_[shared.first].label)
      shared.other_label = row;
  }

  void compare(std::size_t row) {
    const SharedText& shared = texts_.at(folded_[row]);
    const Split split = rows_[row].split;
    if (shared.other_label != RowFinding::kNone)
      add(row, RowFault::conflict,
          rows_[row].label == rows_[shared.first].label ? shared.other_label : shared.first);
    if (split == Split::train && shared.held_out() != RowFinding::kNone)
      add(row, RowFault::overlap, shared.held_out());
    if (const std::size_t first = shared.first_of[static_cast<std::size_t>(split)]; first != row)
      add(row, RowFault::duplicate, first);
    else if (split != Split::train || shared.held_out() == RowFinding::kNone)
      singles_.push_back(row);
  }

  /// Among rows of different texts; what is held out comes first, so that a row to train on is the
  /// one that has the fault.
  void look_for_near() {
    std::ranges::stable_partition(
        singles_, [&](std::size_t row) { return rows_[row].split != Split::train; });
    std::vector<std::string_view> texts;
    for (const std::size_t row : singles_) texts.push_back(folded_[row]);
    for (const NearDuplicate& near : near_duplicates(texts, limits_.near))
      add(singles_[near.item], RowFault::near, singles_[near.of], near.similarity);
  }

  std::span<const CheckedRow> rows_;
  FaultLimits limits_;
  std::vector<std::string> folded_;  // empty: not to be compared
  std::unordered_map<std::string_view, SharedText> texts_;
  std::vector<std::size_t> singles_;
  std::vector<RowFinding> found_;
};

}  // namespace

std::vector<RowFinding> find_faults(std::span<const CheckedRow> rows, const FaultLimits& limits) {
  return FaultSearch(rows, limits).run();
}

}  // namespace concertina
