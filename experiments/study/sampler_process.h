// The program at the other end of a sampler: lines of JSON to its stdin, from its stdout.
// Invariant: whatever the program does (says nothing, reads nothing, never ends a line, dies), each
// call ends, within kPatienceSeconds or when a signal asks the study to end, and keeps at most
// kMostLineBytes of what it says.
#pragma once

#include <sys/types.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "io/file.h"

namespace concertina {

class SamplerProcess {
 public:
  /// Throws Error{bad_input} if there is no such program.
  explicit SamplerProcess(const std::string& command);
  /// Ends its input, waits two seconds, then kills it with what it has started.
  ~SamplerProcess();
  SamplerProcess(const SamplerProcess&) = delete;
  SamplerProcess& operator=(const SamplerProcess&) = delete;

  void send(const nlohmann::ordered_json& json);
  /// The object that it says once it was sent `question`. Nothing where a signal asks the study to
  /// end before there is an answer. Throws a failure if it says something else.
  std::optional<nlohmann::ordered_json> ask(const nlohmann::ordered_json& question);
  /// Throws a failure: the sampler's fault.
  [[noreturn]] void fail(const std::string& why) const;

 private:
  void start(const std::string& program, std::vector<std::string>& words, int in, int out);
  std::optional<std::string> line();
  /// Waits a tenth of a second at most until it says something, or can be told more.
  void wait(bool to_write);
  void require_silence();
  bool has_ended();
  [[noreturn]] void fail_ended(const std::string& what);

  std::string command_, said_;  // said_: what is not yet taken
  File to_, from_;
  pid_t pid_ = -1;
  std::optional<int> status_;  // of waitpid, once it has ended
};

}  // namespace concertina
