#include "experiments/report/report_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/number_text.h"
#include "experiments/run/planning.h"
#include "io/figure/page.h"
#include "io/run_files.h"

namespace concertina {
namespace {

using html::escape, html::tile;

/// "3 to 6".
std::string recorded_steps(const RunTrace& trace) {
  const std::int64_t first = trace.steps.front()[0].step, last = trace.steps.back()[0].step;
  return first == last ? grouped(first) : grouped(first) + " to " + grouped(last);
}

/// The time of a step: of all of them, and how the recorded one that is drawn compares.
std::string step_tile(const RunFiles& run, const ReportFigures& figures, const StepTotals& all) {
  const std::string recorded =
      fmt::format("step {}, the median of those recorded ({}), {}predicted {} ({:+.1f}%)",
                  grouped(run.trace.steps[figures.typical][0].step), recorded_steps(run.trace),
                  all.steps > 0 ? "took " + duration_text(figures.seconds) + "; " : "",
                  duration_text(figures.predicted_seconds), 100 * figures.error());
  if (all.steps == 0) return tile(duration_text(figures.seconds), recorded);
  return tile(duration_text(all.median_seconds),
              fmt::format("per step, median of all {}; {}", grouped(all.steps), recorded));
}

std::string bubble_tile(const RunFiles& run, const ReportFigures& figures, const StepTotals& all) {
  return tile(
      html::share_text(figures.bubble()),
      fmt::format(
          "bubble of steps {}, mean of ranks; predicted {}{}", recorded_steps(run.trace),
          html::share_text(figures.predicted_bubble()),
          std::isfinite(all.bubble) ? "; of all steps " + html::share_text(all.bubble) : ""));
}

std::string memory_tile(const ReportFigures& figures) {
  std::size_t peak = 0;
  int activations = 0;
  bool exact = true;
  for (const RankFigures& rank : figures.ranks) {
    peak = std::max(peak, rank.peak.saved_bytes);
    activations = std::max(activations, rank.peak.activations);
    exact &= rank.peak.saved_bytes == rank.predicted_peak.saved_bytes;
  }
  return tile(bytes_text(static_cast<double>(peak)),
              fmt::format("saved activations at the peak ({} microbatch-stages); {}", activations,
                          exact ? "as predicted, on every rank" : "not as predicted"));
}

/// The best evaluation of a run that goes by them, and why it ended.
std::string best_tile(const RunFiles& run) {
  const double step = number_in(run.result, "best_step"),
               best = number_in(run.result, "best_figure");
  if (std::isnan(step) || std::isnan(best)) return "";
  const bool early = text_in(run.result, "ended_by") == "run.patience";
  return tile(number_text(best),
              fmt::format("best {}, at step {:.0f}{}", escape(text_in(run.result, "best_by")), step,
                          early ? "; without a better one the run ended (run.patience)" : ""));
}

std::string header(const RunFiles& run, const ReportFigures& figures) {
  const RunTrace& trace = run.trace;
  const StepTotals all = total(run.metrics);
  std::string text = fmt::format(
      "<h1>{}</h1>\n<p class=\"sub\">{} on {}, schedule {}, {} microbatches; {} recorded"
      "</p>\n<div class=\"tiles\">\n",
      escape(trace.run), escape(short_form(trace.layout)), counted(trace.ranks(), "rank"),
      escape(trace.schedule), trace.layout.pipelines.back().last_microbatch,
      counted(std::ssize(trace.steps), "step"));
  text += step_tile(run, figures, all) + bubble_tile(run, figures, all);
  if (std::isfinite(all.tokens_per_s))
    text += tile(grouped(std::llround(std::min(all.tokens_per_s, 1e18))),
                 "tokens per second: all tokens over the seconds of all steps");
  if (!run.validations.empty() && std::isfinite(run.validations.back().loss)) {
    const ValidationPoint& last = run.validations.back();
    text += tile(number_text(last.loss),
                 fmt::format("held-out loss at step {:.0f}, per target{}", last.step,
                             last.tokens > 0 ? ", over " + grouped(last.tokens) + " targets" : ""));
  }
  text += best_tile(run);
  if (run.result.is_object() && run.result.contains("mfu") && run.result["mfu"].is_number())
    text += tile(html::share_text(run.result["mfu"].get<double>()),
                 "model FLOPs utilization (MFU) of the last launch: three times the products of a "
                 "step's forward pass over its mean time and the devices' peak rate");
  return text + memory_tile(figures) + "</div>\n";
}

std::string setup(const RunFiles& run) {
  std::string text =
      "<h2>Layout and config</h2>\n<div "
      "class=\"wide\"><table><tr><th>pipeline</th><th>stage</th><th>"
      "rank</th><th>units</th><th>microbatches</th></tr>\n";
  const Layout& layout = run.trace.layout;
  const int shown = std::min(layout.stage_count(), static_cast<int>(kMaxTableRows));
  for (int s = 0; s < shown; ++s) {
    const StagePlacement& at = layout.stage(s);
    const auto p = static_cast<std::size_t>(layout.pipeline_of(s));
    const Pipeline& pipeline = layout.pipelines[p];
    text += fmt::format(
        "<tr><td>{}</td><td>{}</td><td>{}</td><td>{} to {}</td><td>{} to {}</td></tr>\n", p,
        stage_in_pipeline(layout, s), at.rank, at.first_unit, at.last_unit - 1,
        pipeline.first_microbatch, pipeline.last_microbatch - 1);
  }
  text += "</table></div>\n";
  if (shown < layout.stage_count())
    text += fmt::format("<p class=\"note\">The first {} of {} stages.</p>\n", shown,
                        layout.stage_count());
  return text + html::folded(kConfigFile, run.config);
}

}  // namespace

std::string report_page(const RunFiles& run, const ReportFigures& figures,
                        const BesideRun* beside) {
  const RunCourse course = course_of(run);
  return html::page(
      run.trace.run,
      header(run, figures) + beside_section(run, course, beside) +
          timeline_section(run.trace, figures) + bubble_section(figures) +
          memory_section(run.trace, figures) + training_section(run, course) +
          classes_section(run) + changes_section(run, course) + about_section(run) + setup(run) +
          fmt::format(
              "<p class=\"note\">Ranks' clocks were compared by ping-pong before and after the "
              "recorded steps; times of different ranks are right to {}. trace.json of the same "
              "directory opens in Perfetto.</p>\n",
              duration_text(run.trace.clock_error)));
}

}  // namespace concertina
