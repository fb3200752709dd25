// RunConfig from TOML files and `--set` words, and back.
// Invariant: read(write(config)) == config, bit for bit; whatever is wrong with an input is said
// with the place where it stands.
#pragma once

#include <string>
#include <string_view>

#include "experiments/config/config.h"
#include "io/toml_text.h"

namespace concertina {

/// Reads one overlay: its keys replace those of `config`. `source` is the file's name for errors.
void read_config(std::string_view toml, const std::string& source, RunConfig& config);
/// The same from a file; Error{bad_input} if it cannot be read.
void read_config_file(const std::string& path, RunConfig& config);
/// A run directory's config.toml, as the run of that name in that place, wherever it was made.
void read_run_directory(const std::string& path, RunConfig& config);
/// One `--set table.key=value`. The value is TOML; text needs no quotes.
void set_config(std::string_view assignment, RunConfig& config);
/// The same of a key and its value from elsewhere; `source`: what that is called in errors.
void set_key(const std::string& name, std::string_view value, const std::string& source,
             RunConfig& config);

/// All keys, also those that are defaults, but for options of entries that are not chosen: a
/// `config.toml` that repeats the run.
std::string write_config(const RunConfig& config);

std::string to_toml(ByteSize size);

}  // namespace concertina
