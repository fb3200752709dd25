// `concertina data clean`: copies a table to a new file without its faulty rows, which are found
// in Python.
#include <fmt/ranges.h>

#include "core/error.h"
#include "experiments/commands/data/data_options.h"
#include "io/corpus.h"

namespace concertina {
namespace {

struct CleanOptions : DataFileOptions {
  std::string out, dropped;  // the second defaults to `out` + ".dropped.jsonl"
  std::vector<std::string> faults{"broken",   "undecodable", "empty",
                                  "conflict", "overlap",     "duplicate"};
};

int run_data_clean(const CleanOptions& options) {
  const std::string dropped =
      options.dropped.empty() ? options.out + ".dropped.jsonl" : options.dropped;
  for (const std::string& path : {options.out, dropped})
    require_nothing_at(path, "the name of a new file");
  require_output(options.out, "--out");
  require_output(dropped, "--dropped");
  const RunConfig config = data_config(options);
  return with_places(config, [&] {
    if (Corpus(config.data.files, "data.files").files().size() != 1)
      throw_input("several files cannot be written to one", "data.files", "one file at a time");
    return look_at_rows(options, config,
                        {{"out", options.out},
                         {"dropped", dropped},
                         {"drop", fmt::format("{}", fmt::join(options.faults, ","))}});
  });
}

void add_clean_options(CLI::App& app, CleanOptions& options) {
  add_data_options(app, options,
                   "a table, or @FILE.toml that names it; rows of data.validation_files and "
                   "data.test_files are checked as well");
  app.add_option("--out", options.out, "new file to write")->type_name("FILE")->required();
  app.add_option("--dropped", options.dropped,
                 "file for dropped rows and reasons, as JSON lines (default: OUT.dropped.jsonl)")
      ->type_name("FILE");
  add_default_option(app, "--drop", options.faults, "kinds of faulty rows to drop")
      ->check(CLI::IsMember(
          {"broken", "undecodable", "empty", "conflict", "overlap", "duplicate", "near", "cut"}))
      ->delimiter(',');
  add_quality_options(app, options);
}

}  // namespace

Command command_data_clean() {
  return make_command<CleanOptions>("copy a table without its faulty rows", add_clean_options,
                                    run_data_clean);
}

}  // namespace concertina
