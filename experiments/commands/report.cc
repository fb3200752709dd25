// `concertina report`: declares the options, and computes the data about recorded steps that only
// this program can compute (--data); Python writes the page.
#include "core/log.h"
#include "experiments/commands/python_command.h"
#include "experiments/report/recorded_metrics.h"

namespace concertina {
namespace {

struct ReportOptions : CommandOptions {
  std::string run, output;
  std::optional<std::int64_t> step;
  bool serve = false, metrics = false;
};

int run_report(const ReportOptions& options) {
  options.needs("--port", "--serve", options.serve);
  for (const char* const option : {"--output", "--step", "--json", "--data", "--figures"})
    options.excludes(option, "--serve", options.serve);
  if (!options.output.empty()) require_output(options.output, "--output");
  if (!options.metrics) return run_in_python(*options.app);
  for (const char* const option : {"--output", "--json"}) options.excludes(option, "--data", true);
  print_once(json_line(recorded_metrics(options.run, options.step)));
  return 0;
}

void add_report_options(CLI::App& app, ReportOptions& options) {
  app.add_option("run", options.run,
                 "run directory, or a folder of runs to list on an index page; with --serve, also "
                 "a study's folder (default: runs)")
      ->type_name("RUN");
  app.add_option("--output,--out", options.output,
                 "file to write: a page, or a picture of the timelines (.svg, .pdf or .png) "
                 "(default: RUN/report.html)")
      ->type_name("FILE");
  app.add_option("--step", options.step,
                 "first step of the trace to show (see log.trace_at and log.trace_every; default: "
                 "the last trace)")
      ->check(whole_number(0, std::numeric_limits<std::int64_t>::max()));
  app.add_flag("--serve", options.serve,
               "serve a live page about the run or study to this machine only, until Ctrl-C");
  add_text_option(app, "--port", "INT", "port for --serve; 0: any free port")
      ->check(whole_number(0, 65535))
      ->default_str("0");
  app.add_flag("--data", options.metrics,
               "print the recorded steps and their predictions as JSON instead of writing a page");
  app.add_flag_callback("--figures",
                        [&] {
                          log::warn("--figures is now --data");
                          options.metrics = true;
                        })
      ->group("");  // hidden from the help
  add_json_option(app, options);
}

}  // namespace

Command command_report() {
  return make_command<ReportOptions>(
      "write a page about a run: predicted and measured timelines, bubble, memory, curves",
      add_report_options, run_report);
}

}  // namespace concertina
