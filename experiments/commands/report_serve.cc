#include "experiments/commands/report_serve.h"

#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <limits>
#include <optional>

#include "core/error.h"
#include "core/log.h"
#include "experiments/machine/output.h"
#include "experiments/machine/signals.h"
#include "experiments/record/report_figures.h"
#include "experiments/record/run_course.h"
#include "experiments/report/report_page.h"
#include "experiments/results/study_report.h"
#include "experiments/serve/live_page.h"
#include "experiments/serve/live_run.h"
#include "experiments/serve/page_server.h"
#include "experiments/study/study_folder.h"
#include "io/run_files.h"

namespace concertina {
namespace {

namespace fs = std::filesystem;
using Query = std::map<std::string, std::string>;

bool has(const std::string& directory, const char* file) {
  std::error_code error;
  return fs::is_regular_file(run_file(directory, file), error);
}

/// The run in runs/ whose log was written last.
std::string newest_run() {
  std::string newest;
  fs::file_time_type when = fs::file_time_type::min();
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator("runs", error)) {
    const fs::file_time_type written = fs::last_write_time(entry.path() / kMetricsFile, error);
    if (error || written < when) continue;
    when = written;
    newest = entry.path().string();
  }
  if (newest.empty())
    throw_input("there is no run in runs/", "command line",
                "concertina report --serve RUN, or the folder of a study");
  return newest;
}

PageAnswer json_answer(const nlohmann::ordered_json& json) {
  return {200, "application/json",
          json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace)};
}

std::string page_of_run(const std::string& directory) {
  const RunFiles run = load_run(directory);
  return report_page(run, compute_figures(run.trace, run.known));
}

/// A number of the query; nothing where it has none.
std::optional<double> number_of(const Query& query, const char* key) {
  const auto found = query.find(key);
  if (found == query.end()) return std::nullopt;
  char* end = nullptr;
  const double value = std::strtod(found->second.c_str(), &end);
  return end != found->second.c_str() && *end == 0 ? std::optional(value) : std::nullopt;
}

/// What is served of one run, or one study.
class Served {
 public:
  explicit Served(const std::string& directory)
      : directory_(directory),
        is_study_(has(directory, kStudyFile)),
        run_(directory),
        study_(directory) {
    if (!is_study_ && !has(directory, kMetricsFile) && !has(directory, kConfigFile))
      throw_input("this is neither a run nor a study", directory, "runs/NAME or studies/NAME");
  }

  PageAnswer answer(const std::string& path, const Query& query) {
    const std::optional<double> trial = number_of(query, "trial");
    const double after = number_of(query, "after").value_or(-1);
    if (path.empty()) return {200, "text/html; charset=utf-8", live_page(name(), is_study_)};
    if (path == "study" && is_study_) return json_answer(study_.state());
    if (path == "state" && is_study_ && trial)
      return json_answer(study_.run(static_cast<int>(*trial), after));
    if (path == "state" && !is_study_) return json_answer(run_.state(after));
    if (path == "report") return {200, "text/html; charset=utf-8", report(trial)};
    return {404, "text/plain", "not found\n"};
  }

 private:
  std::string name() const { return fs::path(directory_).filename().string(); }

  std::string report(std::optional<double> trial) const {
    if (!is_study_) return page_of_run(directory_);
    if (trial) return page_of_run(fmt::format("{}/{:.0f}/run", directory_, *trial));
    return study_page(
        load_study_page(read_study(directory_), {.mixed = true}, run_file(directory_, kPageFile)));
  }

  const std::string directory_;
  const bool is_study_;
  LiveRun run_;
  LiveStudy study_;
};

}  // namespace

int serve_report(const std::string& directory, std::uint16_t port) {
  std::string chosen = directory.empty() ? newest_run() : directory;
  while (chosen.size() > 1 && chosen.ends_with('/')) chosen.pop_back();
  Served served(chosen);
  hold_stop_signals();
  PageServer server(port);
  log::info(
      "{} is at the address below, for this machine alone; from another one: ssh -L "
      "{}:127.0.0.1:{} HOST; Ctrl-C ends it",
      chosen, server.port(), server.port());
  print_once(server.address() + "\n");
  server.run(
      [&](const std::string& path, const Query& query) { return served.answer(path, query); },
      [] { return stop_signal() != 0; });
  return 0;
}

}  // namespace concertina
