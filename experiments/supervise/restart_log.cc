#include "experiments/supervise/restart_log.h"

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <utility>

#include "core/clock.h"
#include "core/error.h"
#include "core/log.h"
#include "io/file.h"

namespace concertina {

FaultFollower::FaultFollower(std::string path) : path_(std::move(path)) {
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(path_, error);
  if (!error) read_ = size;
}

std::optional<Fault> FaultFollower::look() {
  std::ifstream file(path_);
  file.seekg(static_cast<std::streamoff>(read_));
  for (std::string line; std::getline(file, line) && !file.eof();) {
    read_ += line.size() + 1;
    const auto json = nlohmann::json::parse(line, nullptr, false);
    if (!json.is_object()) continue;
    try {
      return Fault{json.at("fault"), json.at("ranks"), json.at("what"), json.at("time")};
    } catch (const nlohmann::json::exception&) {
      continue;
    }
  }
  return std::nullopt;
}

void append_restart(const std::string& path, const Restart& restart) {
  const nlohmann::ordered_json line = {
      {"time", utc_text()},    {"launch", restart.launch},   {"ranks", restart.ranks},
      {"fault", restart.kind}, {"why", restart.why},         {"reached", restart.reached},
      {"from", restart.from},  {"ended_s", restart.ended_s}, {"waited_s", restart.waited_s}};
  try {
    File(path, File::Mode::append)
        .append_whole(line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) +
                      "\n");
  } catch (const Error& error) {  // a restart matters more than its record
    log::warn("this restart is not recorded: {}: {}", error.message(), error.where());
  }
}

}  // namespace concertina
