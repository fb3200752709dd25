#include "experiments/machine/fault_log.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "core/clock.h"
#include "core/host_name.h"
#include "experiments/machine/output.h"
#include "io/run_files.h"

namespace concertina {
namespace {

constexpr std::array<std::string_view, 10> kFaultNames{
    "died",     "stopped", "hung",    "unreachable", "lost",
    "launcher", "ended",   "refused", "diverged",    "failed"};
static_assert(kFaultNames[static_cast<std::size_t>(FaultKind::failed)] == "failed");
constexpr const char* kInPlace = "in_place";

void append(const std::string& directory, nlohmann::ordered_json line) {
  line["time"] = utc_text();
  if (!line.contains("host")) line["host"] = host_name();
  append_line(run_file(directory, kFaultsFile), line);
}

}  // namespace

std::string_view name_of(FaultKind kind) {
  return kFaultNames.at(static_cast<std::size_t>(kind));
}

std::string supervised_run() {
  const char* directory = std::getenv(kSupervisedVariable);
  return directory == nullptr ? "" : directory;
}

void append_fault(const std::string& directory, const LaunchFault& fault) {
  nlohmann::ordered_json line{{"fault", name_of(fault.kind)}, {"ranks", fault.ranks}};
  if (fault.by) line["by"] = *fault.by;
  if (!fault.host.empty()) line["host"] = fault.host;
  line["what"] = fault.what;
  if (fault.in_place) line[kInPlace] = *fault.in_place;
  append(directory, std::move(line));
}

void notify_supervisor(const LaunchFault& fault) {
  if (const std::string directory = supervised_run(); !directory.empty())
    append_fault(directory, fault);
}

void report_in_place(int ranks) {
  if (const std::string directory = supervised_run(); !directory.empty())
    append(directory, {{kInPlace, ranks}});
}

std::optional<LaunchFault> fault_in(const nlohmann::json& line) try {
  const auto name = std::ranges::find(kFaultNames, line.at("fault").get<std::string_view>());
  if (name == kFaultNames.end()) return std::nullopt;
  return LaunchFault{.kind = static_cast<FaultKind>(name - kFaultNames.begin()),
                     .ranks = line.at("ranks"),
                     .what = line.at("what"),
                     .in_place = line.value(kInPlace, false)};
} catch (const nlohmann::json::exception&) {
  return std::nullopt;
}

bool is_in_place_report(const nlohmann::json& line) {
  return line.contains(kInPlace);
}

void append_restart(const std::string& path, const Restart& restart) {
  nlohmann::ordered_json line = {{"time", utc_text()},           {"launch", restart.launch},
                                 {"ranks", restart.ranks},       {"fault", name_of(restart.kind)},
                                 {"why", restart.why},           {"reached", restart.reached},
                                 {"from", restart.from},         {"ended_s", restart.ended_s},
                                 {"waited_s", restart.waited_s}, {kInPlace, restart.in_place}};
  if (!restart.hosts.empty()) line["hosts"] = restart.hosts;
  append_line(path, line);
}

}  // namespace concertina
