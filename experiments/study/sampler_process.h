// The program at the other end of a sampler: lines of JSON to its stdin, from its stdout.
// Invariant: each call ends within kPatienceSeconds, or when a signal asks the study to end.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "io/file.h"
#include "io/process.h"

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
  /// Sends `question` and returns the object that the program answers; nothing where a signal asks
  /// the study to end before that. Throws a failure if the answer is something else.
  std::optional<nlohmann::ordered_json> ask(const nlohmann::ordered_json& question);
  /// Throws a failure: the sampler's fault.
  [[noreturn]] void fail(const std::string& why) const;

 private:
  /// Waits until the descriptor is ready; false where the study is to end.
  bool wait(const File& file, short events, double began);
  std::optional<std::string> line();
  [[noreturn]] void fail_ended();

  std::string command_, said_;  // said_: what is not yet taken
  File to_, from_;
  std::optional<Process> process_;
};

}  // namespace concertina
