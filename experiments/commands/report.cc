// `concertina report`: one page with what a run's step was predicted to be, and what it was.
#include <fmt/format.h>

#include <cmath>

#include "core/error.h"
#include "core/number_text.h"
#include "experiments/commands/command.h"
#include "experiments/commands/report_serve.h"
#include "experiments/record/report_figures.h"
#include "experiments/record/run_course.h"
#include "experiments/report/report_page.h"
#include "io/file.h"
#include "io/run_files.h"

namespace concertina {
namespace {

struct ReportOptions : CommandOptions {
  std::string run, output, beside;
  std::int64_t step = -1;  // at which the trace begins; -1: the last one
  bool serve = false;
  int port = 0;
};

int run_report(const ReportOptions& options) {
  options.needs("--port", "--serve", options.serve);
  for (const char* const option : {"--output", "--beside", "--step", "--json"})
    options.excludes(option, "--serve", options.serve);
  if (options.serve) return serve_report(options.run, static_cast<std::uint16_t>(options.port));
  if (options.run.empty())
    throw_input("no run is named", "command line", "concertina report runs/NAME; or --serve");
  std::string directory = options.run;
  while (directory.size() > 1 && directory.ends_with('/')) directory.pop_back();
  if (!options.output.empty()) require_output(options.output, "--output");
  const RunFiles run = load_run(
      directory, options.step < 0 ? std::nullopt : std::optional<std::int64_t>(options.step));
  const ReportFigures figures = compute_figures(run.trace, run.known);
  const std::string path = options.output.empty() ? run_file(directory, kPageFile) : options.output;
  std::optional<BesideRun> beside;
  if (!options.beside.empty()) beside = {options.beside, read_log(options.beside)};
  if (beside && beside->log.metrics.empty())
    throw_input("this is no directory of a run that has trained", options.beside,
                "--beside runs/NAME, of the same config without freeze.policy");
  atomic_replace(path, report_page(run, figures, beside ? &*beside : nullptr));
  if (options.json) {
    nlohmann::ordered_json json = to_json(run.trace, figures);
    json["all_steps"] = to_json(total(run.metrics));
    json["course"] = to_json(course_of(run));
    json["report"] = path;
    fmt::print("{}\n", json.dump());
    return 0;
  }
  const StepTotals all = total(run.metrics);
  if (all.steps > 0)
    fmt::print("{} steps: median {:.2f} ms{}\n", grouped(all.steps), all.median_seconds * 1e3,
               std::isfinite(all.tokens_per_s)
                   ? fmt::format(", {} tokens/s", grouped(std::llround(all.tokens_per_s)))
                   : "");
  fmt::print("recorded step {}: {:.2f} ms, predicted {:.2f} ms ({:+.1f}%)\n",
             run.trace.steps[figures.typical][0].step, figures.seconds * 1e3,
             figures.predicted_seconds * 1e3, 100 * figures.error());
  if (!figures.costs_missing.empty())
    fmt::print("predicted without the reduction of gradients: {}\n", figures.costs_missing);
  fmt::print("bubble {:.1f}%, predicted {:.1f}%\n{}{}\n", 100 * figures.bubble(),
             100 * figures.predicted_bubble(), course_text(course_of(run)), path);
  return 0;
}

void add_report_options(CLI::App& app, ReportOptions& options) {
  app.add_option(
         "run", options.run,
         "run directory; with --serve also a study's folder, or none: the run in runs/ that "
         "was written last")
      ->type_name("RUN");
  app.add_option("--out,--output", options.output, "the page; RUN/report.html if not given")
      ->type_name("FILE");
  app.add_option("--beside", options.beside,
                 "another run, whose held-out loss is drawn over this one's by seconds of training")
      ->type_name("RUN");
  app.add_option("--step", options.step,
                 "the trace that begins there (log.trace_at, log.trace_every); the last if not "
                 "given")
      ->type_name("N")
      ->check(CLI::NonNegativeNumber);
  app.add_flag("--serve", options.serve,
               "serve a page that follows the run or study, to this machine alone, until Ctrl-C");
  app.add_option("--port", options.port, "of --serve; 0: any that is free")
      ->check(whole_number(0, 65535))
      ->capture_default_str();
  add_json_option(app, options);
}

}  // namespace

Command command_report() {
  return make_command<ReportOptions>(
      "a page on a run: timelines predicted and measured, bubble, memory", add_report_options,
      run_report);
}

}  // namespace concertina
