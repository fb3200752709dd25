// Table-driven tests of readers: tests/io/readers/FORMAT.cases, whose syntax is described in
// README.md there. Every registered format has a file of valid and invalid cases.
#pragma once

#include <nlohmann/json.hpp>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "io/datasets/dataset.h"
#include "tests/io/reader_files.h"

namespace concertina {

using CaseFile = std::pair<std::string, std::string>;  // its name, and an expression for its bytes

struct ReaderCase {
  std::string format{}, title{};
  std::string place{};   // "tsv.cases:12"
  bool is_base = false;  // starts with the word `case`
  std::vector<CaseFile> files{};
  std::map<std::string, std::string> keys{};         // of [data], with JSON values
  std::vector<std::string> expected{};               // "train 1 label = 0"
  std::vector<std::vector<std::string>> refusals{};  // parts of an error

  /// Returns its place, in characters that GoogleTest allows.
  std::string test_name() const;
};
inline void PrintTo(const ReaderCase& one, std::ostream* out) {
  *out << one.place << ": " << one.title;
}

/// Returns the cases of all files, except formats that need a library missing in this program.
std::vector<ReaderCase> reader_cases();
/// Returns the case with that title. Fails the test if there is none.
ReaderCase reader_case(const std::string& title);

/// Returns the options that read the files of a case in `folder`.
DataOptions options_of(const ReaderCase& one, const Folder& folder);

/// The files of a case in their own folder, and the options that read them.
struct CaseFolder : Folder {
  explicit CaseFolder(const ReaderCase& one);
  std::shared_ptr<const Dataset> open() const { return open_dataset(options); }
  DataOptions options;
};
struct Tsv : CaseFolder {
  Tsv() : CaseFolder(reader_case("A sentence stands between its marks")) {}
};
struct Squad : CaseFolder {
  Squad() : CaseFolder(reader_case("The answer stands where the sample says")) {}
};

/// Evaluates an expression for bytes, such as `be32(0x803, 5) ramp(30) "\n"`.
std::string bytes_of(const std::string& expression);

/// Returns a dataset's answer to a question such as "train 1 label", as text.
std::string answer_of(const Dataset& dataset, const std::string& question);

}  // namespace concertina
