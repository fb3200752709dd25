// Options shared by commands that read data files, named directly or in a config.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "experiments/commands/command.h"

namespace concertina {

struct DataFileOptions : CommandOptions {
  std::vector<std::string> files;  // or globs, or @FILE.toml
  std::vector<std::string> sets;   // "table.key=value"
  std::string format, tokenizer;   // empty: default
  std::int64_t context = 128;
  double near = 0.8;   // minimum similarity
  std::string report;  // HTML page; empty: none
};

/// `files` is the help text for the positional files.
void add_data_options(CLI::App& app, DataFileOptions& options, const char* files);
/// Adds --near and --report, for checking table rows.
void add_quality_options(CLI::App& app, DataFileOptions& options);

/// The config that results from the options: like a run's, but without held-out data unless
/// explicitly requested.
RunConfig data_config(const DataFileOptions& options);

/// Finds faulty table rows and prints them or, with `words`, writes a table without them. Counts
/// tokens if a tokenizer or model.context was given, otherwise bytes. Returns the exit code.
int look_at_rows(const DataFileOptions& options, const RunConfig& config,
                 std::map<std::string, std::string> words = {});

}  // namespace concertina
