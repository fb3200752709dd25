// Another program, run to its end.
// Invariants: no shell reads the words; what runs too long is killed with all that it started;
// nothing of it is left when this returns.
#pragma once

#include <chrono>
#include <string>
#include <vector>

namespace concertina {

struct ConverterResult {
  int status = -1;         // exit status; 128 + the signal that ended it; -1: it did not start
  bool timed_out = false;  // it was killed
  std::string errors;      // the end of what it wrote to stderr
};

/// Runs `words[0]` (a path) with the other words; its input and output are /dev/null, and its
/// stderr goes to the file `log`.
ConverterResult run_converter(const std::vector<std::string>& words, const std::string& log,
                              std::chrono::seconds limit);

}  // namespace concertina
