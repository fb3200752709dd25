// The program's output on stdout: once per launch, and never lost in silence.
#pragma once

#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

#include "core/error.h"

namespace concertina {

/// Writes `text` to stdout on the launcher's rank 0; a failure if it could not be written.
void print_once(const std::string& text);
/// Throws lost_output() if anything that was printed to stdout could not be written.
void flush_output();
Error lost_output();

/// Columns of the terminal that `stream` writes to; 80 where that cannot be known.
int terminal_columns(std::FILE* stream);
/// `text` with lines of at most `columns`, broken between words, and indented as the description of
/// an option in a help text is. Words that are longer stay whole.
std::string wrapped(const std::string& text, int columns);

/// One line of JSON; bytes that are no UTF-8 (of a file's name) are replaced.
std::string json_line(const nlohmann::ordered_json& json);

/// Appends json_line() to the file `path`, whole. What cannot be written is a warning: what the
/// line tells of matters more than its record.
void append_line(const std::string& path, const nlohmann::ordered_json& json);

}  // namespace concertina
