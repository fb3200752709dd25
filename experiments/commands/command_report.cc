#include "experiments/commands/command_report.h"

#include <fmt/format.h>

#include "experiments/report/report_figures.h"
#include "experiments/report/report_page.h"
#include "io/file.h"

namespace concertina {
namespace {

struct ReportOptions {
  std::string run, output;
  bool json = false;
};

int run_report(const ReportOptions& options) {
  std::string directory = options.run;
  while (directory.size() > 1 && directory.ends_with('/')) directory.pop_back();
  const RunFiles run = load_run(directory);
  const ReportFigures figures = compute_figures(run.trace, run.known);
  const std::string path = options.output.empty() ? directory + "/report.html" : options.output;
  atomic_replace(path, report_page(run, figures));
  if (options.json) {
    nlohmann::ordered_json json = to_json(run.trace, figures);
    json["report"] = path;
    fmt::print("{}\n", json.dump());
    return 0;
  }
  fmt::print("step {:.2f} ms, predicted {:.2f} ms ({:+.1f}%)\n", figures.seconds * 1e3,
             figures.predicted_seconds * 1e3, 100 * figures.error());
  if (!figures.costs_missing.empty())
    fmt::print("predicted without the reduction of gradients: {}\n", figures.costs_missing);
  fmt::print("bubble {:.1f}%, predicted {:.1f}%\n{}\n", 100 * figures.bubble(),
             100 * figures.predicted_bubble(), path);
  return 0;
}

}  // namespace

Runner add_report(CLI::App& app) {
  auto options = std::make_shared<ReportOptions>();
  app.add_option("run", options->run, "run directory")->type_name("RUN")->required();
  app.add_option("--output", options->output, "the page; RUN/report.html if not given")
      ->type_name("FILE");
  app.add_flag("--json", options->json, "print the figures as one JSON object, nothing else");
  return [options](MpiEnvironment&) { return launcher_rank() == 0 ? run_report(*options) : 0; };
}

}  // namespace concertina
