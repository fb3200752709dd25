#include "experiments/report/report_page.h"

#include <fmt/format.h>

#include <algorithm>

#include "experiments/report/html.h"
#include "experiments/report/report_gantt.h"
#include "experiments/report/report_sections.h"
#include "experiments/report/report_style.h"
#include "experiments/run/run_plan.h"

namespace concertina {
namespace {

using html::escape;

std::string tile(const std::string& value, const std::string& text) {
  return fmt::format("<div class=\"tile\"><b>{}</b><span>{}</span></div>\n", escape(value),
                     escape(text));
}

std::string header(const RunFiles& run, const ReportFigures& figures) {
  const RunTrace& trace = run.trace;
  double tokens = 0;
  std::size_t counted = 0;
  for (const MetricsPoint& point : run.metrics)
    if (point.tokens_per_s > 0) tokens += point.tokens_per_s, ++counted;
  std::size_t peak = 0;
  int activations = 0;
  bool exact = true;
  for (const RankFigures& rank : figures.ranks) {
    peak = std::max(peak, rank.peak.saved_bytes);
    activations = std::max(activations, rank.peak.activations);
    exact &= rank.peak.saved_bytes == rank.predicted_peak.saved_bytes;
  }
  std::string text = fmt::format(
      "<h1>{}</h1>\n<p class=\"sub\">{} on {} rank{}, schedule {}, {} microbatches; {} recorded "
      "step{}</p>\n<div class=\"tiles\">\n",
      escape(trace.run), escape(short_form(trace.layout)), trace.ranks(),
      trace.ranks() == 1 ? "" : "s", escape(trace.schedule),
      trace.layout.pipelines.back().last_microbatch, trace.steps.size(),
      trace.steps.size() == 1 ? "" : "s");
  text += tile(html::duration(figures.seconds),
               fmt::format("a step; predicted {} ({:+.1f}%)",
                           html::duration(figures.predicted_seconds), 100 * figures.error()));
  text += tile(html::share_text(figures.bubble()),
               fmt::format("bubble, mean of ranks; predicted {}",
                           html::share_text(figures.predicted_bubble())));
  if (counted > 0)
    text += tile(fmt::format("{:.0f}", tokens / static_cast<double>(counted)),
                 "tokens a second, mean of the run");
  text += tile(html::bytes(static_cast<double>(peak)),
               fmt::format("saved activations at the peak ({} microbatch-stages); {}", activations,
                           exact ? "as predicted, on every rank" : "not as predicted"));
  return text + "</div>\n";
}

std::string timeline(const RunFiles& run, const ReportFigures& figures) {
  std::string text = fmt::format(
      "<h2>Timeline</h2>\n<p class=\"lead\">The same plan twice on one axis: above, simulated with "
      "what actions took in the mean of the recorded steps{}; below, the recorded step of median "
      "length.</p>\n",
      figures.costs_missing.empty() ? ", and messages as costs.json says" : "");
  if (!figures.costs_missing.empty())
    text += fmt::format(
        "<p class=\"note\">The prediction leaves out the reduction of gradients, and a message "
        "takes the median of the recorded ones: {}.</p>\n",
        escape(figures.costs_missing));
  text += "<div class=\"bar\">";
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
  text += "<span class=\"zoom\">zoom";
  for (const int zoom : {1, 2, 4, 8, 16})
    text +=
        fmt::format(" <button data-z=\"{0}\" aria-pressed=\"{1}\">{0}×</button>", zoom, zoom == 1);
  return text + "</span></div>\n" + gantt(run.trace, figures);
}

std::string metric_figure(const std::vector<MetricsPoint>& metrics, const char* name,
                          double MetricsPoint::*value, bool from_zero) {
  html::Series series{.style = "saved", .points = {}};
  double low = from_zero ? 0 : metrics.front().*value, high = low;
  for (const MetricsPoint& point : metrics) {
    series.points.push_back({point.step, point.*value});
    low = std::min(low, point.*value), high = std::max(high, point.*value);
  }
  const double room = std::max(0.06 * (high - low), 1e-9);
  const html::Plot plot{.x_unit = "step",
                        .low = from_zero ? 0 : low - room,
                        .high = high + room,
                        .left = metrics.front().step,
                        .right = metrics.back().step,
                        .series = {series},
                        .height = 180};
  return fmt::format("<figure><figcaption>{} <span>last {:.5g}</span></figcaption>{}</figure>\n",
                     name, metrics.back().*value, html::plot(plot));
}

std::string training(const RunFiles& run) {
  if (run.metrics.size() < 2) return "";
  return "<h2>Training</h2>\n<div class=\"grid2\">\n" +
         metric_figure(run.metrics, "loss, nats a token", &MetricsPoint::loss, false) +
         metric_figure(run.metrics, "tokens a second", &MetricsPoint::tokens_per_s, true) +
         "</div>\n";
}

std::string setup(const RunFiles& run) {
  std::string text =
      "<h2>Layout and config</h2>\n<div class=\"wide\"><table><tr><th>stage</th><th>rank</th><th>"
      "units</th><th>microbatches</th></tr>\n";
  const Layout& layout = run.trace.layout;
  const int shown = std::min(layout.stage_count(), static_cast<int>(kMaxTableRows));
  for (int s = 0; s < shown; ++s) {
    const StagePlacement& at = layout.stage(s);
    const Pipeline& pipeline = layout.pipelines[static_cast<std::size_t>(layout.pipeline_of(s))];
    text += fmt::format("<tr><td>{}</td><td>{}</td><td>{} to {}</td><td>{} to {}</td></tr>\n", s,
                        at.rank, at.first_unit, at.last_unit - 1, pipeline.first_microbatch,
                        pipeline.last_microbatch - 1);
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
  text += header(run, figures) + timeline(run, figures) + bubble_section(figures) +
          memory_section(run.trace, figures) + training(run) + setup(run);
  text += fmt::format(
      "<p class=\"note\">Ranks' clocks were compared by ping-pong before and behind the recorded "
      "steps; times of different ranks are right to {}. trace.json of the same directory opens in "
      "Perfetto.</p>\n</main>\n<script>{}</script>\n</body></html>\n",
      html::duration(run.trace.clock_error), kReportScript);
  return text;
}

}  // namespace concertina
