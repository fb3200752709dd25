// Options that commands on files of data share: files by themselves, or as a config has them.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "experiments/commands/command.h"

namespace concertina {

struct DataFileOptions : CommandOptions {
  std::vector<std::string> files;  // or globs, or @FILE.toml
  std::vector<std::string> sets;   // "table.key=value"
  std::string format, tokenizer;   // empty: not given
  std::int64_t context = 128;
  double near = 0.8;   // least similarity
  std::string report;  // a page; empty: none
};

/// `files`: what the help says of them.
void add_data_options(CLI::App& app, DataFileOptions& options, const char* files);
/// --near and --report, of a look at the rows of tables.
void add_quality_options(CLI::App& app, DataFileOptions& options);

/// The config that the options mean: as a run has it, but that nothing is held out of files unless
/// somebody says so.
RunConfig data_config(const DataFileOptions& options);

/// Looks for faults in the rows of tables and prints them, or with `words` for it writes a table
/// without them. Tokens are counted where a tokenizer or model.context was given, else bytes would
/// be counted. Returns the exit code.
int look_at_rows(const DataFileOptions& options, const RunConfig& config,
                 std::map<std::string, std::string> words = {});

}  // namespace concertina
