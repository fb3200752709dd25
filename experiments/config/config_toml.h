// Reads and writes RunConfig as TOML files and `--set` assignments. Invariant: read(write(config))
// == config, bit for bit. Every error names the location in the input.
#pragma once

#include <string>
#include <string_view>

#include "experiments/config/config.h"
#include "io/toml_text.h"

namespace concertina {

/// Reads one overlay, whose keys override those in `config`. `source` is the file name in errors.
void read_config(std::string_view toml, const std::string& source, RunConfig& config);
/// Reads an overlay from a file. Throws Error{bad_input} if it cannot be read.
void read_config_file(const std::string& path, RunConfig& config);
/// Reads the config.toml of a run directory and sets the run's name and location from `path`, since
/// the directory may have been moved.
void read_run_directory(const std::string& path, RunConfig& config);
/// Sets one key from `table.key=value`. The value is TOML; strings need no quotes.
void set_config(std::string_view assignment, RunConfig& config);
/// Sets one key; `source` names the origin of the value in errors.
void set_key(const std::string& name, std::string_view value, const std::string& source,
             RunConfig& config);

/// Writes all keys, including defaults but not the options of entries that are not chosen, as a
/// `config.toml` that reproduces the run.
std::string write_config(const RunConfig& config);

std::string to_toml(ByteSize size);

}  // namespace concertina
