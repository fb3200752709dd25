#include "experiments/supervise/restart_log.h"

#include "core/clock.h"
#include "core/error.h"
#include "core/log.h"
#include "io/file.h"

namespace concertina {

std::optional<Fault> first_fault(const std::vector<nlohmann::json>& lines) {
  for (const nlohmann::json& line : lines) try {
      return Fault{line.at("fault"), line.at("ranks"), line.at("what"), line.at("time")};
    } catch (const nlohmann::json::exception&) {
      continue;
    }
  return std::nullopt;
}

void append_restart(const std::string& path, const Restart& restart) {
  nlohmann::ordered_json line = {
      {"time", utc_text()},    {"launch", restart.launch},   {"ranks", restart.ranks},
      {"fault", restart.kind}, {"why", restart.why},         {"reached", restart.reached},
      {"from", restart.from},  {"ended_s", restart.ended_s}, {"waited_s", restart.waited_s}};
  if (!restart.hosts.empty()) line["hosts"] = restart.hosts;
  try {
    File(path, File::Mode::append)
        .append_whole(line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) +
                      "\n");
  } catch (const Error& error) {  // a restart matters more than its record
    log::warn("this restart is not recorded: {}: {}", error.message(), error.where());
  }
}

}  // namespace concertina
