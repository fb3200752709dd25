#include "experiments/machine/stall_report.h"

#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>

#include "core/clock.h"
#include "core/error.h"
#include "core/host_name.h"
#include "core/log.h"
#include "experiments/machine/launch_watch.h"
#include "experiments/machine/output.h"
#include "parallel/comm/mpi_environment.h"

namespace concertina {
namespace {

nlohmann::ordered_json stall_json(const Stall& stall) {
  nlohmann::ordered_json line = {{"step", stall.step},       {"event", "stall"},
                                 {"rank", stall.rank},       {"host", host_name()},
                                 {"seconds", stall.seconds}, {"why", name_of(stall.silence)},
                                 {"ends", stall.ends},       {"operation", to_text(stall.now)}};
  if (stall.waits_for >= 0) line["waits_for"] = stall.waits_for;
  line["waiting"] = stall.waiting;
  for (const auto& [rank, operations] : stall.last)
    for (const Operation& one : operations)
      line["last"][std::to_string(rank)].push_back(
          {{"operation", to_text(one)}, {"ms", one.seconds * 1e3}});
  line["stack"] = stall.stack;
  line["time"] = utc_text();
  return line;
}

}  // namespace

void tell_of_stall(const Stall& stall, const std::string& events) {
  stall.ends ? log::error("{}", report_of(stall)) : log::warn("{}", report_of(stall));
  if (std::error_code absent; events.empty() || !std::filesystem::exists(events, absent)) return;
  append_line(events, stall_json(stall));
}

void end_hung_launch(int rank, const std::string& report) {
  log::error("{}; this ends all ranks", report);
  record_fault("hung", {rank}, rank,
               Error(Exit::failure, report, host_name(), "the same command again"));
  abort_job(static_cast<int>(Exit::failure));
}

}  // namespace concertina
