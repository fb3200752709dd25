#include "experiments/supervise/restart_log.h"

#include "core/clock.h"
#include "core/error.h"
#include "core/log.h"
#include "experiments/machine/launch_watch.h"
#include "io/file.h"

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

namespace {

/// What was done matters more than its record.
void append(const std::string& path, const nlohmann::ordered_json& line) {
  try {
    File(path, File::Mode::append)
        .append_whole(line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) +
                      "\n");
  } catch (const Error& error) {
    log::warn("not recorded: {}: {}", error.message(), error.where());
  }
}

}  // namespace

void append_fault(const std::string& path, const std::string& kind, const std::string& host,
                  const std::string& what) {
  append(path, {{"time", utc_text()},
                {"fault", kind},
                {"ranks", nlohmann::json::array()},
                {"host", host},
                {"what", what}});
}

void append_restart(const std::string& path, const Restart& restart) {
  nlohmann::ordered_json line = {{"time", utc_text()},           {"launch", restart.launch},
                                 {"ranks", restart.ranks},       {"fault", restart.kind},
                                 {"why", restart.why},           {"reached", restart.reached},
                                 {"from", restart.from},         {"ended_s", restart.ended_s},
                                 {"waited_s", restart.waited_s}, {kInPlace, restart.in_place}};
  if (!restart.hosts.empty()) line["hosts"] = restart.hosts;
  append(path, line);
}

}  // namespace concertina
