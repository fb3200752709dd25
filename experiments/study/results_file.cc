#include "experiments/study/results_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <optional>

#include "core/clock.h"
#include "core/error.h"
#include "core/log.h"
#include "io/csv.h"
#include "io/file.h"
#include "io/sha256.h"

namespace concertina {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMostResultBytes = 256 << 20;
constexpr double kPause = 50;  // in multiples of a write's duration: writing takes 2% of the time

std::string line_of(const TrialRecord& trial, const std::vector<std::string>& columns) {
  std::vector<std::string> row;
  for (const std::string& column : columns) row.push_back(cell_text(cell_of(trial, column)));
  return csv_line(row);
}

[[noreturn]] void refuse_edited(const std::string& path, const std::string& what) {
  throw_input(fmt::format("results.csv was edited: {}", what), path,
              "move it elsewhere; `study run` rewrites it from the trials' records");
}

using ResultLines = std::vector<std::vector<std::string>>;

const TrialRecord* trial_in_line(const StudyResults& results, const std::vector<std::string>& row) {
  const auto found = std::ranges::find_if(results.trials, [&](const TrialRecord& one) {
    return !row.empty() && std::to_string(one.number) == row[0];
  });
  return found == results.trials.end() ? nullptr : &*found;
}

/// Throws Error{bad_input} if a cell contradicts the records. Lines may be missing.
void require_cells(const std::string& path, const ResultLines& rows, const StudyResults& results) {
  const std::vector<std::string>& columns = rows.front();
  for (std::size_t i = 1; i < rows.size(); ++i) {
    const std::vector<std::string>& row = rows[i];
    const TrialRecord* trial = trial_in_line(results, row);
    if (trial == nullptr || row.size() != columns.size())
      refuse_edited(path, fmt::format("line {} does not belong to a trial", i + 1));
    if (trial->state == TrialState::open) continue;  // its record was removed
    for (std::size_t c = 0; c < columns.size(); ++c)
      if (const std::string cell = cell_text(cell_of(*trial, columns[c])); row[c] != cell)
        refuse_edited(path, fmt::format("{} of trial {} is '{}' but the record has '{}'",
                                        columns[c], row[0], row[c], cell));
  }
}

/// The results as CSV (RFC 4180), with a line per finished trial.
std::string results_csv(const StudyResults& results) {
  const std::vector<std::string> columns = columns_of(results);
  std::string text = csv_line(columns);
  for (const TrialRecord& trial : results.trials)
    if (trial.state != TrialState::open) text += line_of(trial, columns);
  return text;
}

}  // namespace

void ResultsFile::require_own(const StudyResults& results) const {
  if (!fs::exists(path_)) return;
  const std::string text = read_file(path_, kMostResultBytes);
  const bool known = fs::exists(digests());
  if (known && read_file(digests(), kMostResultBytes).find(sha256_hex(text)) != std::string::npos)
    return;
  const std::optional<ResultLines> rows = parse_csv(text);
  if (!rows || rows->empty() || rows->front().empty() || rows->front()[0] != "trial")
    refuse_edited(path_, "the header line is missing");
  require_cells(path_, *rows, results);
  if (known) refuse_edited(path_, "lines or columns are missing, repeated or moved");
}

void ResultsFile::write(const StudyResults& results) {
  if (edited()) return;
  const double began = now();
  const std::string before = fs::exists(path_) ? read_file(path_, kMostResultBytes) : "";
  const std::string text = results_csv(results);
  digest_ = sha256_hex(text);
  // Whichever of the two contents a kill leaves behind, its digest is known.
  atomic_replace(digests(), sha256_hex(before) + "\n" + digest_ + "\n");
  if (before != text) atomic_replace(path_, text);
  due_ = now() + kPause * (now() - began);
}

bool ResultsFile::edited() {
  if (!fs::exists(path_)) edited_ = false;  // it was moved elsewhere
  if (edited_ || digest_.empty() || !fs::exists(path_)) return edited_;
  edited_ = sha256_hex(read_file(path_, kMostResultBytes)) != digest_;
  if (edited_)
    log::warn("{} was edited during the study and is left unchanged; the records are complete",
              path_);
  return edited_;
}

void ResultsFile::require_untouched() {
  if (edited()) refuse_edited(path_, "edited while the study ran");
}

}  // namespace concertina
