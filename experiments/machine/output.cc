#include "experiments/machine/output.h"

#include <cstdio>
#include <cstdlib>

#include "core/log.h"
#include "io/file.h"
#include "parallel/comm/mpi_environment.h"

namespace concertina {

void print_once(const std::string& text) {
  if (launcher_rank() != 0) return;
  if (std::fwrite(text.data(), 1, text.size(), stdout) != text.size()) throw lost_output();
  flush_output();
}

void flush_output() {
  if (std::ferror(stdout) != 0 || std::fflush(stdout) != 0) throw lost_output();
}

Error lost_output() {
  return {Exit::failure, "what was to be printed could not be written", "stdout",
          "the same command with its output to a place that has room for it"};
}

std::string json_line(const nlohmann::ordered_json& json) {
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

void append_line(const std::string& path, const nlohmann::ordered_json& json) {
  try {
    File(path, File::Mode::append).append_whole(json_line(json));
  } catch (const Error& error) {
    log::warn("not recorded: {}: {}", error.message(), error.where());
  }
}

}  // namespace concertina
