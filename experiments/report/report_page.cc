#include "experiments/report/report_page.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "experiments/report/html.h"
#include "experiments/report/report_gantt.h"
#include "experiments/report/report_style.h"
#include "experiments/run/run_plan.h"

namespace concertina {
namespace {

using html::escape;
using html::percent;

constexpr std::size_t kMaxMemoryPlots = 8, kMaxTableRows = 256;

std::string key(std::string_view style, std::string_view text) {
  return fmt::format(
      "<span class=\"key\"><svg><rect class=\"{}\" width=\"14\" height=\"14\"/></svg>{}</span>",
      style, escape(text));
}

std::string share_text(double share) {
  return fmt::format("{:.1f}%", 100 * share);
}

std::string tile(const std::string& value, const std::string& text) {
  return fmt::format("<div class=\"tile\"><b>{}</b><span>{}</span></div>\n", escape(value),
                     escape(text));
}

/// Ranks at equal distances, at most `count`.
std::vector<std::size_t> some_ranks(std::size_t ranks, std::size_t count) {
  std::vector<std::size_t> result;
  const std::size_t shown = std::min(ranks, count);
  for (std::size_t i = 0; i < shown; ++i) result.push_back(i * ranks / shown);
  return result;
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
  text += tile(share_text(figures.bubble()), fmt::format("bubble, mean of ranks; predicted {}",
                                                         share_text(figures.predicted_bubble())));
  if (counted > 0)
    text += tile(fmt::format("{:.0f}", tokens / static_cast<double>(counted)),
                 "tokens a second, mean of the run");
  text += tile(html::bytes(static_cast<double>(peak)),
               fmt::format("saved activations at the peak ({} microbatches); {}", activations,
                           exact ? "as predicted, on every rank" : "not as predicted"));
  return text + "</div>\n";
}

std::string timeline(const RunFiles& run, const ReportFigures& figures) {
  std::string text =
      "<h2>Timeline</h2>\n<p class=\"lead\">The same plan twice on one axis: above, simulated with "
      "the mean costs that the recorded steps had; below, the recorded step of median "
      "length.</p>\n<div class=\"bar\">";
  bool fused = false, split = false;
  for (const auto& row : run.trace.plan.rows)
    for (const Action& action : row) {
      fused |= action.kind == Kind::B;
      split |= action.kind == Kind::I || action.kind == Kind::W;
    }
  text += key("f", "forward");
  if (fused) text += key("b", "backward");
  if (split) text += key("i", "input gradient") + key("w", "weight gradient");
  text += key("o", "optimizer") + key("idle", "idle") + key("wt", "waiting for a transfer") +
          key("wr", "waiting for reduction") + key("wo", "waiting in the optimizer");
  text += "<span class=\"zoom\">zoom";
  for (const int zoom : {1, 2, 4, 8, 16})
    text +=
        fmt::format(" <button data-z=\"{0}\" aria-pressed=\"{1}\">{0}×</button>", zoom, zoom == 1);
  return text + "</span></div>\n" + gantt(run.trace, figures);
}

/// One bar a rank, on an axis in per cent of the step.
std::string cause_bars(const ReportFigures& figures) {
  double longest = 0.02;
  for (const RankFigures& rank : figures.ranks)
    longest = std::max({longest, 1.02 * rank.bubble, 1.02 * rank.predicted_bubble});
  const std::vector<std::size_t> ranks = some_ranks(figures.ranks.size(), 64);
  const int row = ranks.size() <= 16 ? 26 : 14, top = 22;
  const int height = top + row * static_cast<int>(ranks.size());
  const std::vector<double> marks = html::ticks(0, 100 * longest, 8);
  std::string names, body;
  for (const double mark : marks) {
    const double at = mark / 100 / longest;
    body += fmt::format(
        "<line class=\"grid\" x1=\"{0}\" x2=\"{0}\" y1=\"16\" y2=\"{1}\"/><text class=\"tick {2}\" "
        "x=\"{0}\" y=\"11\">{3}{4}</text>",
        percent(at), height,
        mark == 0   ? "first"
        : at > 0.97 ? "last"
                    : "",
        html::tick_label(mark, marks.size() > 1 ? marks[1] - marks[0] : 1), "%");
  }
  int y = top;
  for (const std::size_t rank : ranks) {
    const RankFigures& one = figures.ranks[rank];
    names +=
        fmt::format("<text class=\"rank\" x=\"56\" y=\"{}\">rank {}</text>", y + row / 2 + 2, rank);
    double at = 0;
    for (std::size_t c = 0; c < kCauses; ++c) {
      const double share = std::max(0.0, one.causes.by_cause[c]);
      body += fmt::format(
          "<rect class=\"c{}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"><title>"
          "rank {}, {}: {}</title></rect>",
          c, percent(at / longest), y, percent(share / longest), row - 6, rank,
          name_of(static_cast<Cause>(c)), share_text(share));
      at += share;
    }
    const std::string mark = percent(one.predicted_bubble / longest);
    body += fmt::format(
        "<line class=\"mark\" x1=\"{0}\" x2=\"{0}\" y1=\"{1}\" y2=\"{2}\"><title>"
        "predicted: {3}</title></line>",
        mark, y - 3, y + row - 3, share_text(one.predicted_bubble));
    y += row;
  }
  return fmt::format(
      "<div class=\"gantt\"><svg class=\"names\" width=\"64\" height=\"{0}\">{1}"
      "</svg><div class=\"scroll\"><svg class=\"chart\" width=\"100%\" "
      "height=\"{0}\">{2}</svg></div></div>\n",
      height, names, body);
}

std::string cause_table(const ReportFigures& figures) {
  std::string text =
      "<details><summary>Figures by rank</summary><div class=\"wide\"><table><tr>"
      "<th>share of the step</th>";
  for (std::size_t c = 0; c < kCauses; ++c)
    text += fmt::format("<th>{}</th>", name_of(static_cast<Cause>(c)));
  text += "<th>bubble</th><th>predicted</th></tr>\n";
  for (const std::size_t rank : some_ranks(figures.ranks.size(), kMaxTableRows)) {
    const RankFigures& one = figures.ranks[rank];
    text += fmt::format("<tr><td>rank {}</td>", rank);
    for (const double share : one.causes.by_cause)
      text += fmt::format("<td>{:.2f}%</td>", 100 * share);
    text += fmt::format("<td>{:.2f}%</td><td>{:.2f}%</td></tr>\n", 100 * one.bubble,
                        100 * one.predicted_bubble);
  }
  return text + "</table></div></details>\n";
}

std::string bubble(const ReportFigures& figures) {
  std::string text =
      "<h2>Bubble, by cause</h2>\n<p class=\"lead\">The share of a step in which a rank neither "
      "computes nor updates, mean of the recorded steps. Who waits for a rank that is still "
      "computing waits for that computation (schedule, imbalance, variation); from its end on, "
      "for the transfer.</p>\n<div class=\"bar\">";
  for (std::size_t c = 0; c < kCauses; ++c)
    text += key(fmt::format("c{}", c), name_of(static_cast<Cause>(c)));
  text +=
      "<span class=\"key\"><svg><line class=\"mark\" x1=\"7\" x2=\"7\" y1=\"0\" "
      "y2=\"14\"/></svg>predicted bubble</span></div>\n";
  text += cause_bars(figures) + "<p class=\"note\">";
  for (std::size_t c = 0; c < kCauses; ++c)
    text += fmt::format("<b>{}</b>: {}{}", name_of(static_cast<Cause>(c)),
                        meaning_of(static_cast<Cause>(c)), c + 1 < kCauses ? "; " : ".");
  return text + "</p>\n" + cause_table(figures);
}

html::Series saved_series(std::string style, const std::vector<MemorySample>& samples,
                          double origin) {
  html::Series series{.style = std::move(style), .points = {}, .steps = true};
  for (const MemorySample& sample : samples)
    series.points.push_back(
        {1e3 * (sample.time - origin), static_cast<double>(sample.use.saved_bytes) / 1e6});
  return series;
}

std::string memory_plots(const RunTrace& trace, const ReportFigures& figures) {
  const std::vector<StepRecord>& step = trace.steps[figures.typical];
  const StepSpan span = span_of(step);
  double high = 0;
  for (const RankFigures& rank : figures.ranks)
    high = std::max({high, static_cast<double>(rank.peak.saved_bytes),
                     static_cast<double>(rank.predicted_peak.saved_bytes),
                     static_cast<double>(rank.peak.boundary_bytes)});
  const std::vector<std::size_t> ranks = some_ranks(step.size(), kMaxMemoryPlots);
  std::string text = "<div class=\"grid2\">\n";
  for (const std::size_t rank : ranks) {
    html::Plot plot{.x_unit = "ms, y in MB",
                    .low = 0,
                    .high = high * 1.08e-6,
                    .left = 0,
                    .right = 1e3 * std::max(figures.seconds, figures.predicted_seconds),
                    .series = {},
                    .height = 120};
    plot.series.push_back(
        saved_series("expected", saved_over_time(trace, rank, figures.predicted.rows[rank]), 0));
    plot.series.back().area = true;
    plot.series.push_back(saved_series("saved", step[rank].memory, span.start));
    html::Series boundary{.style = "boundary", .points = {}, .steps = true};
    for (const MemorySample& sample : step[rank].memory)
      boundary.points.push_back(
          {1e3 * (sample.time - span.start), static_cast<double>(sample.use.boundary_bytes) / 1e6});
    plot.series.push_back(boundary);
    text += fmt::format(
        "<figure><figcaption>rank {} <span>peak {}</span></figcaption>{}</figure>\n", rank,
        html::bytes(static_cast<double>(figures.ranks[rank].peak.saved_bytes)), html::plot(plot));
  }
  text += "</div>\n";
  if (ranks.size() < step.size())
    text += fmt::format("<p class=\"note\">{} of {} ranks are drawn, at equal distances.</p>\n",
                        ranks.size(), step.size());
  return text;
}

std::string memory_table(const ReportFigures& figures) {
  std::string text =
      "<details><summary>Peaks by rank</summary><div class=\"wide\"><table><tr>"
      "<th>peak</th><th>microbatches</th><th>predicted</th><th>saved bytes</th>"
      "<th>predicted</th><th>boundary bytes</th><th>reserved</th></tr>\n";
  for (const std::size_t rank : some_ranks(figures.ranks.size(), kMaxTableRows)) {
    const MemoryUse &is = figures.ranks[rank].peak, &was = figures.ranks[rank].predicted_peak;
    text += fmt::format(
        "<tr><td>rank {}</td><td>{}</td><td>{}</td><td>{}</td><td class=\"{}\">{}</td><td>{}</td>"
        "<td>{}</td></tr>\n",
        rank, is.activations, was.activations, is.saved_bytes,
        is.saved_bytes == was.saved_bytes ? "same" : "differs", was.saved_bytes, is.boundary_bytes,
        was.boundary_bytes);
  }
  return text + "</table></div></details>\n";
}

std::string memory(const RunTrace& trace, const ReportFigures& figures) {
  return "<h2>Memory</h2>\n<p class=\"lead\">Saved activations (with gradients between I and W) "
         "and "
         "buffers between stages in use over the step; weights, optimizer state and gradients "
         "do not change within it.</p>\n<div class=\"bar\">" +
         key("f", "saved, measured") + key("ke", "saved, predicted") +
         key("kb", "boundary buffers, measured") + "</div>\n" + memory_plots(trace, figures) +
         memory_table(figures);
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

std::string report_page(const RunFiles& run, const ReportFigures& figures) {
  std::string text = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>\n<meta name=\"viewport\" "
      "content=\"width=device-width, initial-scale=1\"/>\n<title>{} · concertina</title>\n<style>{}"
      "</style></head>\n<body><main>\n",
      escape(run.trace.run), kReportStyle);
  text += header(run, figures) + timeline(run, figures) + bubble(figures) +
          memory(run.trace, figures) + training(run) + setup(run);
  text += fmt::format(
      "<p class=\"note\">Ranks' clocks were compared by ping-pong before and behind the recorded "
      "steps; times of different ranks are right to {}. trace.json of the same directory opens in "
      "Perfetto.</p>\n</main>\n<script>{}</script>\n</body></html>\n",
      html::duration(run.trace.clock_error), kReportScript);
  return text;
}

}  // namespace concertina
