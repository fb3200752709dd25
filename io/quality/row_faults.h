// What is wrong with rows of text and labels, before a model is trained on them.
// Invariants: pure; a fault is that of one row, which would be gone if the row were.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/datasets/dataset.h"

namespace concertina {

/// Worse ones first: what a cleaned row is said to have been.
enum class RowFault : std::uint8_t {
  broken,       // its format cannot be read
  undecodable,  // not UTF-8
  empty,        // no text
  conflict,     // rows of the same text have other labels
  overlap,      // to train on, and held out too
  duplicate,    // an earlier row of its split has the same text
  near,         // or nearly
  cut           // more tokens than a sample has
};
inline constexpr std::string_view kRowFaultNames[] = {"broken",  "undecodable", "empty", "conflict",
                                                      "overlap", "duplicate",   "near",  "cut"};
inline constexpr std::string_view kRowFaultMeanings[] = {
    "cannot be read",
    "is not UTF-8",
    "has no text",
    "has another label than another row of the same text",
    "is to train on, and held out too",
    "has the text of an earlier row",
    "has nearly the text of an earlier row",
    "has more tokens than a sample"};
inline constexpr std::size_t kRowFaults = std::size(kRowFaultNames);

/// A row as its reader has it. Texts are the same that are so but for case and space.
struct CheckedRow {
  std::string_view text[2]{};
  std::string_view label{};
  Split split = Split::train;
  std::string broken{};    // why it cannot be read; empty: it can
  std::size_t tokens = 0;  // of a sample with it
};

struct RowFinding {
  static constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

  std::size_t row = 0;
  RowFault fault = RowFault::broken;
  std::size_t other = kNone;  // the row that it is compared with
  double similarity = 1;      // of near
};

struct FaultLimits {
  double near = 0.8;       // least similarity; above 1: nothing is near
  std::size_t tokens = 0;  // of a sample
};

/// All faults, by row, then as RowFault has them.
std::vector<RowFinding> find_faults(std::span<const CheckedRow> rows, const FaultLimits& limits);

}  // namespace concertina
