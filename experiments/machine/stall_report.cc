#include "experiments/machine/stall_report.h"

#include <nlohmann/json.hpp>
#include <system_error>

#include "core/error.h"
#include "core/host_name.h"
#include "core/log.h"
#include "experiments/machine/fault_log.h"
#include "experiments/machine/output.h"
#include "io/file.h"
#include "io/metrics.h"
#include "parallel/comm/mpi_environment.h"

namespace concertina {
namespace {

nlohmann::ordered_json stall_json(const Stall& stall) {
  nlohmann::ordered_json line = {{"rank", stall.rank},       {"host", host_name()},
                                 {"seconds", stall.seconds}, {"why", name_of(stall.silence)},
                                 {"ends", stall.ends},       {"operation", to_text(stall.now)}};
  if (stall.waits_for >= 0) line["waits_for"] = stall.waits_for;
  line["waiting"] = stall.waiting;
  for (const auto& [rank, operations] : stall.last)
    for (const Operation& one : operations)
      line["last"][std::to_string(rank)].push_back(
          {{"operation", to_text(one)}, {"ms", one.seconds * 1e3}});
  line["stack"] = stall.stack;
  return event_line(stall.step, EventKind::stall, line);
}

}  // namespace

void report_stall(const Stall& stall, const std::string& events) {
  stall.ends ? log::error("{}", report_of(stall)) : log::warn("{}", report_of(stall));
  if (events.empty() || !exists_at(events)) return;
  append_line(events, stall_json(stall));
}

void end_hung_launch(int rank, const std::string& report) {
  log::error("{}; aborting all ranks", report);
  notify_supervisor({.kind = FaultKind::hung, .ranks = {rank}, .by = rank, .what = report});
  abort_job(static_cast<int>(Exit::failure));
}

}  // namespace concertina
