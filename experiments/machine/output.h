// The program's output: on stdout once per launch, with write errors detected; progress on stderr.
#pragma once

#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

#include "core/error.h"

namespace concertina {

/// Writes `text` to stdout on the launch's rank 0; throws lost_output() if that fails.
void print_once(const std::string& text);
/// Throws lost_output() if any previous output to stdout could not be written.
void flush_output();
Error lost_output();

/// The width in columns of the terminal that `stream` writes to; 80 if unknown.
int terminal_columns(std::FILE* stream);

/// A progress line at the bottom of a terminal. Write errors never stop the work.
class StatusLine {
 public:
  explicit StatusLine(std::FILE* stream);
  ~StatusLine() { clear(); }
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;

  bool on_terminal() const { return terminal_; }
  /// Maximum length of a line; one column stays free, as a full line wraps on some terminals.
  int columns() const { return terminal_columns(stream_) - 1; }
  /// Draws `text`, truncated to one line, over the current line; without a terminal, like say().
  void draw(const std::string& text);
  /// Removes the line. Must be called before anything else writes to the terminal.
  void clear();
  /// Writes `text` and a newline; the line stays on the terminal.
  void say(const std::string& text);

 private:
  void put(const std::string& text);

  std::FILE* stream_;
  bool terminal_, drawn_ = false;
};

/// Wraps `text` between words into lines of at most `columns`, indented like an option's
/// description in a help text. Words longer than a line are not split.
std::string wrapped(const std::string& text, int columns);

/// One line of JSON; invalid UTF-8, for example in a file name, is replaced.
std::string json_line(const nlohmann::ordered_json& json);

/// Appends the entire json_line() to the file `path`, or nothing. A write error is only logged,
/// since the event matters more than its record.
void append_line(const std::string& path, const nlohmann::ordered_json& json);

}  // namespace concertina
