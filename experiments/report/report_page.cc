#include "experiments/report/report_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/number_text.h"
#include "experiments/report/html.h"
#include "experiments/report/report_gantt.h"
#include "experiments/report/report_sections.h"
#include "experiments/report/report_style.h"
#include "experiments/run/planning.h"

namespace concertina {
namespace {

using html::escape;

std::string tile(const std::string& value, const std::string& text) {
  return fmt::format("<div class=\"tile\"><b>{}</b><span>{}</span></div>\n", escape(value),
                     escape(text));
}

std::string plural(std::int64_t count, const char* what) {
  return fmt::format("{} {}{}", grouped(count), what, count == 1 ? "" : "s");
}

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
  return tile(html::share_text(figures.bubble()),
              fmt::format("bubble of steps {}, mean of ranks; predicted {}{}",
                          recorded_steps(run.trace), html::share_text(figures.predicted_bubble()),
                          all.steps > 0 ? "; of all steps " + html::share_text(all.bubble) : ""));
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

std::string header(const RunFiles& run, const ReportFigures& figures) {
  const RunTrace& trace = run.trace;
  const StepTotals all = total(run.metrics);
  std::string text = fmt::format(
      "<h1>{}</h1>\n<p class=\"sub\">{} on {}, schedule {}, {} microbatches; {} recorded"
      "</p>\n<div class=\"tiles\">\n",
      escape(trace.run), escape(short_form(trace.layout)), plural(trace.ranks(), "rank"),
      escape(trace.schedule), trace.layout.pipelines.back().last_microbatch,
      plural(static_cast<std::int64_t>(trace.steps.size()), "step"));
  text += step_tile(run, figures, all) + bubble_tile(run, figures, all);
  if (all.steps > 0)
    text += tile(grouped(std::llround(std::min(all.tokens_per_s(), 1e18))),
                 "tokens per second: all tokens over the seconds of all steps");
  if (!run.validations.empty()) {
    const ValidationPoint& last = run.validations.back();
    text += tile(number_text(last.loss),
                 fmt::format("held-out loss at step {:.0f}, nats per target{}", last.step,
                             last.tokens > 0 ? ", over " + grouped(last.tokens) + " targets" : ""));
  }
  if (run.result.is_object() && run.result.contains("mfu") && run.result["mfu"].is_number())
    text += tile(html::share_text(run.result["mfu"].get<double>()),
                 "model FLOPs utilization (MFU) of the last launch: three times the products of a "
                 "step's forward pass over its mean time and the devices' peak rate");
  return text + memory_tile(figures) + "</div>\n";
}

/// Most stages that a rank has.
int chunks_of(const RunTrace& trace) {
  std::vector<int> stages(trace.plan.rows.size());
  for (int s = 0; s < trace.layout.stage_count(); ++s)
    ++stages[static_cast<std::size_t>(trace.layout.stage(s).rank)];
  return *std::ranges::max_element(stages);
}

std::string timeline(const RunFiles& run, const ReportFigures& figures) {
  std::string text = fmt::format(
      "<h2>Timeline</h2>\n<p class=\"lead\">The same plan twice on one axis: above, simulated with "
      "what actions took in the mean of the recorded steps{}; below, the recorded step of median "
      "length: it lasts from the first rank's start to the last rank's end.</p>\n",
      figures.costs_missing.empty() ? ", and messages as costs.json says" : "");
  if (!figures.costs_missing.empty())
    text += fmt::format(
        "<p class=\"note\">The prediction leaves out the reduction of gradients, and a message "
        "takes the median of the recorded ones: {}.</p>\n",
        escape(figures.costs_missing));
  text += "<figure><div class=\"bar\">";
  bool fused = false, split = false;
  for (const auto& row : run.trace.plan.rows)
    for (const Action& action : row) {
      fused |= action.kind == Kind::B;
      split |= action.kind == Kind::I || action.kind == Kind::W;
    }
  text += html::key("f", "forward");
  if (fused) text += html::key("b", "backward");
  if (split) text += html::key("i", "input gradient") + html::key("w", "weight gradient");
  text += html::key("o", "optimizer") + html::key("idle", "idle") +
          html::key("wt", "waiting for a transfer") + html::key("wr", "waiting for reduction") +
          html::key("wo", "waiting in the optimizer");
  if (chunks_of(run.trace) > 1)
    text += "<span class=\"key\">" + html::key("f", "") + html::key("f odd", "") +
            "a rank's stages: dark the 1st, 3rd, ..., light the 2nd, 4th, ...</span>";
  text += html::save_button("timeline") + "<span class=\"zoom\">zoom";
  for (const int zoom : {1, 2, 4, 8, 16})
    text +=
        fmt::format(" <button data-z=\"{0}\" aria-pressed=\"{1}\">{0}×</button>", zoom, zoom == 1);
  return text + "</span></div>\n" + gantt(run.trace, figures) + "</figure>\n";
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
  return text + "<details><summary>config.toml</summary><pre>" + escape(run.config) +
         "</pre></details>\n";
}

}  // namespace

std::vector<std::size_t> some_ranks(std::size_t ranks, std::size_t count) {
  std::vector<std::size_t> result;
  const std::size_t shown = std::min(ranks, count);
  for (std::size_t i = 0; i < shown; ++i) result.push_back(i * ranks / shown);
  return result;
}

std::string report_page(const RunFiles& run, const ReportFigures& figures) {
  std::string text = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>\n<meta name=\"viewport\" "
      "content=\"width=device-width, initial-scale=1\"/>\n<title>{} · concertina</title>\n<style>{}"
      "</style></head>\n<body><main>\n",
      escape(run.trace.run), kReportStyle);
  const RunCourse course = course_of(run);
  text += header(run, figures) + timeline(run, figures) + bubble_section(figures) +
          memory_section(run.trace, figures) + training_section(run, course) +
          changes_section(run, course) + about_section(run) + setup(run);
  text += fmt::format(
      "<p class=\"note\">Ranks' clocks were compared by ping-pong before and after the recorded "
      "steps; times of different ranks are right to {}. trace.json of the same directory opens in "
      "Perfetto.</p>\n</main>\n<script>{}</script>\n</body></html>\n",
      duration_text(run.trace.clock_error), kReportScript);
  return text;
}

}  // namespace concertina
