#include "experiments/study/results_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <sstream>

#include "core/error.h"
#include "core/log.h"
#include "io/csv.h"
#include "io/file.h"

namespace concertina {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMostResultBytes = 256 << 20;

std::string line_of(const TrialRecord& trial, const std::vector<std::string>& columns) {
  std::vector<std::string> row;
  for (const std::string& column : columns) row.push_back(cell_text(cell_of(trial, column)));
  return csv_line(row);
}

std::string digest_line(std::size_t bytes, const Sha256& hash) {
  return fmt::format("{} {}\n", bytes, hash.copy().hex());
}

void append_durably(const std::string& path, const std::string& text) {
  File file(path, File::Mode::append);
  file.append_whole(text);
  file.sync();
}

/// How many bytes at the beginning of `text` are as the study wrote them. Of `digests` the newest
/// line counts; the first two are of the text before it was last written as a whole, and after.
std::optional<std::size_t> known_bytes(const std::string& text, const std::string& digests) {
  std::vector<std::pair<std::size_t, std::string>> lines;
  std::istringstream stream(digests);
  std::size_t bytes = 0;
  for (std::string digest; stream >> bytes >> digest;) lines.emplace_back(bytes, digest);
  std::optional<std::size_t> most;
  for (std::size_t i = lines.size() > 2 ? lines.size() - 1 : 0; i < lines.size(); ++i)
    if (lines[i].first <= text.size() &&
        sha256_hex(text.substr(0, lines[i].first)) == lines[i].second)
      most = std::max(most.value_or(0), lines[i].first);
  return most;
}

[[noreturn]] void refuse_edited(const std::string& path, const std::string& what) {
  throw_input(fmt::format("results.csv is not as the study wrote it: {}", what), path,
              "move it elsewhere: the records of the trials are whole, and `study run` writes it "
              "again");
}

using ResultLines = std::vector<std::vector<std::string>>;

const TrialRecord* trial_in_line(const StudyResults& results, const std::vector<std::string>& row) {
  const auto found = std::ranges::find_if(results.trials, [&](const TrialRecord& one) {
    return !row.empty() && std::to_string(one.number) == row[0];
  });
  return found == results.trials.end() ? nullptr : &*found;
}

/// Throws if a cell is not what the records say. Lines may be missing.
void require_cells(const std::string& path, const ResultLines& rows, const StudyResults& results) {
  const std::vector<std::string>& columns = rows.front();
  for (std::size_t i = 1; i < rows.size(); ++i) {
    const std::vector<std::string>& row = rows[i];
    const TrialRecord* trial = trial_in_line(results, row);
    if (trial == nullptr || row.size() != columns.size())
      refuse_edited(path, fmt::format("line {} is of no trial", i + 1));
    if (trial->state == TrialState::open) continue;  // its record was taken back
    for (std::size_t c = 0; c < columns.size(); ++c)
      if (const std::string cell = cell_text(cell_of(*trial, columns[c])); row[c] != cell)
        refuse_edited(path, fmt::format("{} of trial {} is '{}', the trial's record has '{}'",
                                        columns[c], row[0], row[c], cell));
  }
}

/// Whether `text`, which stands in the file after `rows`, is of lines of other records alone, the
/// last one whole or cut short.
bool is_appended(std::string_view text, const ResultLines& rows, const StudyResults& results) {
  std::map<std::string, const TrialRecord*, std::less<>> trials;  // by the first cell of its line
  for (const TrialRecord& trial : results.trials)
    if (trial.state != TrialState::open) trials.emplace(fmt::format("{},", trial.number), &trial);
  for (const std::vector<std::string>& row : rows)
    if (!row.empty()) trials.erase(row[0] + ",");
  while (!text.empty()) {
    const std::string_view number = text.substr(0, text.find(','));
    if (number.size() == text.size())  // cut in the number
      return std::ranges::any_of(trials,
                                 [&](const auto& one) { return one.first.starts_with(text); });
    const auto trial = trials.find(text.substr(0, number.size() + 1));
    if (trial == trials.end()) return false;
    const std::string line = line_of(*trial->second, rows.front());
    if (text.size() < line.size()) return line.starts_with(text);
    if (!text.starts_with(line)) return false;
    text.remove_prefix(line.size());
    trials.erase(trial);
  }
  return true;
}

/// The results as CSV (RFC 4180), a line a trial that has ended.
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
  if (known) {
    const std::optional<std::size_t> bytes =
        known_bytes(text, read_file(digests(), kMostResultBytes));
    const auto rows = parse_csv(text.substr(0, bytes.value_or(0)));
    if (rows && !rows->empty() &&
        is_appended(std::string_view(text).substr(*bytes), *rows, results))
      return;
  }
  const std::optional<ResultLines> rows = parse_csv(text);
  if (!rows || rows->empty() || rows->front().empty() || rows->front()[0] != "trial")
    refuse_edited(path_, "it has no line of columns");
  require_cells(path_, *rows, results);
  if (known) refuse_edited(path_, "lines or columns are missing, doubled or moved");
}

void ResultsFile::write(const StudyResults& results) {
  if (edited(/*by_bytes=*/true)) return;
  const std::string text = results_csv(results);
  if (!written_ && fs::exists(path_)) know(read_file(path_, kMostResultBytes));
  const std::string before = digest_;
  const bool same = written_ == text && fs::exists(path_);
  know(text);
  // Whichever of the two files a kill leaves is known.
  atomic_replace(digests(), (before.empty() ? digest_ : before) + digest_);
  if (!same) atomic_replace(path_, text);
  columns_ = columns_of(results);
  numbers_.clear();
  for (const TrialRecord& trial : results.trials)
    if (trial.state != TrialState::open) numbers_.push_back(trial.number);
}

bool ResultsFile::append(const TrialRecord& trial) {
  if (trial.state == TrialState::open && !std::ranges::binary_search(numbers_, trial.number))
    return true;
  if (!written_ || columns_.empty() || std::ranges::binary_search(numbers_, trial.number))
    return false;
  const auto there = [&](const std::string& name) {
    return std::ranges::find(columns_, name) != columns_.end();
  };
  for (const auto& [name, value] : trial.settings)
    if (!there(name)) return false;
  for (const auto& [name, value] : trial.figures)
    if (!there(name)) return false;
  for (const auto& [name, text] : trial.facts)
    if (!there(name)) return false;
  if (!fs::exists(path_)) return false;
  if (edited(/*by_bytes=*/false)) return true;
  const std::string line = line_of(trial, columns_);
  append_durably(path_, line);
  *written_ += line;
  numbers_.insert(std::ranges::upper_bound(numbers_, trial.number), trial.number);
  hash_.update(line);
  digest_ = digest_line(written_->size(), hash_);
  append_durably(digests(), digest_);
  return true;
}

void ResultsFile::know(const std::string& text) {
  hash_ = Sha256();
  hash_.update(text);
  digest_ = digest_line(text.size(), hash_);
  written_ = text;
}

bool ResultsFile::edited(bool by_bytes) {
  std::error_code error;
  if (!fs::exists(path_, error)) edited_ = false;  // it was moved elsewhere
  if (edited_ || !written_ || !fs::exists(path_, error)) return edited_;
  edited_ = fs::file_size(path_) != written_->size() ||
            (by_bytes && read_file(path_, kMostResultBytes) != *written_);
  if (edited_)
    log::warn("{} was edited while the study runs: it is left as it is, the records have all",
              path_);
  return edited_;
}

void ResultsFile::require_untouched() {
  if (edited(/*by_bytes=*/true)) refuse_edited(path_, "it was edited while the study ran");
}

}  // namespace concertina
