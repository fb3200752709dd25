// `concertina data clean`: a table without its faulty rows, as a new file.
#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "core/number_text.h"
#include "experiments/commands/data_options.h"
#include "experiments/quality/clean_table.h"
#include "io/datasets/split_files.h"
#include "io/file.h"

namespace concertina {
namespace {

struct CleanOptions : DataFileOptions {
  std::string out, dropped;  // the second is empty: `out` and ".dropped.jsonl"
  std::vector<std::string> faults{"broken",   "undecodable", "empty",
                                  "conflict", "overlap",     "duplicate"};
};

std::vector<RowFault> faults_of(const CleanOptions& options) {
  std::vector<RowFault> faults;
  for (const std::string& name : options.faults)
    faults.push_back(static_cast<RowFault>(std::ranges::find(kRowFaultNames, name) -
                                           std::begin(kRowFaultNames)));
  return faults;
}

void print_cleaned(const CleanOptions& options, const CleanedTable& made,
                   const std::string& dropped) {
  nlohmann::ordered_json json{{"path", options.out},
                              {"kept", made.kept},
                              {"dropped", made.dropped},
                              {"dropped_path", dropped},
                              {"because", nlohmann::ordered_json::object()}};
  std::string text = fmt::format("{}: {} kept, {} dropped, listed in {}\n", options.out,
                                 counted(static_cast<std::int64_t>(made.kept), "row"),
                                 grouped(static_cast<std::int64_t>(made.dropped)), dropped);
  for (std::size_t f = 0; f < kRowFaults; ++f) {
    if (made.because[f] == 0) continue;
    json["because"][std::string(kRowFaultNames[f])] = made.because[f];
    text += fmt::format("{:<12}{:>9}  {}\n", kRowFaultNames[f],
                        grouped(static_cast<std::int64_t>(made.because[f])), kRowFaultMeanings[f]);
  }
  print_once(options.json ? json_line(json) : text);
}

int run_data_clean(const CleanOptions& options) {
  const std::string dropped =
      options.dropped.empty() ? options.out + ".dropped.jsonl" : options.dropped;
  for (const std::string& path : {options.out, dropped})
    require_nothing_at(path, "the name of a new file: nothing is replaced");
  require_output(options.out, "--out");
  require_output(dropped, "--dropped");
  const RunConfig config = data_config(options);
  return with_places(config, [&] {
    if (Corpus(config.data.files, "data.files").files().size() != 1)
      throw_input("several files would become one", "data.files", "one file at a time");
    const CheckedFiles files = look_at_rows(options, config);
    const CleanedTable made = clean_table(files, faults_of(options));
    atomic_replace(dropped, made.dropped_rows);
    atomic_replace(options.out, made.table);
    print_cleaned(options, made, dropped);
    return 0;
  });
}

void add_clean_options(CLI::App& app, CleanOptions& options) {
  add_data_options(app, options,
                   "a table, or @FILE.toml that names it; rows of data.validation_files and "
                   "data.test_files are looked at beside it");
  app.add_option("--out", options.out, "the new file")->type_name("FILE")->required();
  app.add_option("--dropped", options.dropped,
                 "the dropped rows and why, as JSON lines; else OUT.dropped.jsonl")
      ->type_name("FILE");
  std::vector<std::string> names(std::begin(kRowFaultNames), std::end(kRowFaultNames));
  app.add_option("--drop", options.faults, "the faults whose rows are dropped")
      ->check(CLI::IsMember(names))
      ->delimiter(',')
      ->capture_default_str();
  add_quality_options(app, options);
}

}  // namespace

Command command_data_clean() {
  return make_command<CleanOptions>("write a table without its faulty rows", add_clean_options,
                                    run_data_clean);
}

}  // namespace concertina
