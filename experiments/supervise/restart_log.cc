#include "experiments/supervise/restart_log.h"

#include "core/clock.h"
#include "experiments/machine/launch_watch.h"
#include "experiments/machine/output.h"

namespace concertina {

std::optional<Fault> first_fault(const std::vector<nlohmann::json>& lines) {
  for (const nlohmann::json& line : lines) try {
      return Fault{line.at("fault"), line.at("ranks"), line.at("what"), line.at("time"),
                   line.value(kInPlace, false)};
    } catch (const nlohmann::json::exception&) {
      continue;
    }
  return std::nullopt;
}

void append_restart(const std::string& path, const Restart& restart) {
  nlohmann::ordered_json line = {{"time", utc_text()},           {"launch", restart.launch},
                                 {"ranks", restart.ranks},       {"fault", restart.kind},
                                 {"why", restart.why},           {"reached", restart.reached},
                                 {"from", restart.from},         {"ended_s", restart.ended_s},
                                 {"waited_s", restart.waited_s}, {kInPlace, restart.in_place}};
  if (!restart.hosts.empty()) line["hosts"] = restart.hosts;
  append_line(path, line);
}

}  // namespace concertina
