// The program's output: on stdout once per launch, and never lost in silence; progress on stderr.
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

/// A line about work that goes on, at the bottom of a terminal. A stream that takes no more, such
/// as a log on a full disk, never ends the work.
class StatusLine {
 public:
  explicit StatusLine(std::FILE* stream);
  ~StatusLine() { clear(); }
  StatusLine(const StatusLine&) = delete;
  StatusLine& operator=(const StatusLine&) = delete;

  bool on_terminal() const { return terminal_; }
  /// How long a line may be; one column stays free, as a full line would wrap on some terminals.
  int columns() const { return terminal_columns(stream_) - 1; }
  /// Draws `text`, cut to one line, in place of the line that is there; where there is no terminal,
  /// the same as say().
  void draw(const std::string& text);
  /// Removes the line. Call it before anything else writes to the terminal.
  void clear();
  /// Writes `text`, which stays, and a newline.
  void say(const std::string& text);

 private:
  void put(const std::string& text);

  std::FILE* stream_;
  bool terminal_, drawn_ = false;
};

/// `text` with lines of at most `columns`, broken between words, and indented as the description of
/// an option in a help text is. Words that are longer stay whole.
std::string wrapped(const std::string& text, int columns);

/// One line of JSON; bytes that are no UTF-8 (of a file's name) are replaced.
std::string json_line(const nlohmann::ordered_json& json);

/// Appends json_line() to the file `path`, whole. What cannot be written is a warning: what the
/// line tells of matters more than its record.
void append_line(const std::string& path, const nlohmann::ordered_json& json);

}  // namespace concertina
