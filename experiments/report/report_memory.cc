#include <fmt/format.h>

#include <algorithm>

#include "core/number_text.h"
#include "experiments/report/html.h"
#include "experiments/report/report_sections.h"

namespace concertina {
namespace {

constexpr std::size_t kMaxMemoryPlots = 8;
constexpr double kBytesPerMiB = 1024.0 * 1024;

html::Series saved_series(std::string style, std::string name,
                          const std::vector<MemorySample>& samples, double origin) {
  html::Series series{
      .style = std::move(style), .points = {}, .steps = true, .name = std::move(name)};
  for (const MemorySample& sample : samples)
    series.points.push_back(
        {1e3 * (sample.time - origin), static_cast<double>(sample.use.saved_bytes) / kBytesPerMiB});
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
    html::Plot plot{.x_unit = "ms, y in MiB",
                    .low = 0,
                    .high = high * 1.08 / kBytesPerMiB,
                    .left = 0,
                    .right = 1e3 * std::max(figures.seconds, figures.predicted_seconds),
                    .series = {},
                    .height = 120};
    plot.series.push_back(saved_series(
        "expected", "predicted", saved_over_time(trace, rank, figures.predicted.rows[rank]), 0));
    plot.series.back().area = true;
    plot.series.push_back(saved_series("saved", "saved", step[rank].memory, span.start));
    html::Series boundary{.style = "boundary", .points = {}, .steps = true, .name = "boundary"};
    for (const MemorySample& sample : step[rank].memory)
      boundary.points.push_back({1e3 * (sample.time - span.start),
                                 static_cast<double>(sample.use.boundary_bytes) / kBytesPerMiB});
    plot.series.push_back(boundary);
    text +=
        fmt::format("<figure><figcaption>rank {} <span>peak {}</span>{}</figcaption>{}</figure>\n",
                    rank, bytes_text(static_cast<double>(figures.ranks[rank].peak.saved_bytes)),
                    html::save_button(fmt::format("memory-rank-{}", rank)), html::plot(plot));
  }
  text += "</div>\n";
  if (ranks.size() < step.size())
    text += fmt::format("<p class=\"note\">{} of {} ranks are drawn, at equal distances.</p>\n",
                        ranks.size(), step.size());
  return text;
}

/// "6.70 MiB", and on hovering every byte.
std::string exact_bytes(std::size_t bytes) {
  return fmt::format("<span title=\"{} bytes\">{}</span>",
                     grouped(static_cast<std::int64_t>(bytes)),
                     bytes_text(static_cast<double>(bytes)));
}

std::string memory_table(const ReportFigures& figures) {
  std::string text =
      "<details><summary>Peaks by rank</summary><div class=\"wide\"><table><tr>"
      "<th>peak</th><th>microbatch-stages</th><th>predicted</th><th>saved</th>"
      "<th>predicted</th><th>boundary buffers</th><th>reserved</th></tr>\n";
  for (const std::size_t rank : some_ranks(figures.ranks.size(), kMaxTableRows)) {
    const MemoryUse &is = figures.ranks[rank].peak, &was = figures.ranks[rank].predicted_peak;
    text += fmt::format(
        "<tr><td>rank {}</td><td>{}</td><td>{}</td><td>{}</td><td class=\"{}\">{}</td><td>{}</td>"
        "<td>{}</td></tr>\n",
        rank, is.activations, was.activations, exact_bytes(is.saved_bytes),
        is.saved_bytes == was.saved_bytes ? "same" : "differs", exact_bytes(was.saved_bytes),
        bytes_text(static_cast<double>(is.boundary_bytes)),
        bytes_text(static_cast<double>(was.boundary_bytes)));
  }
  return text + "</table></div></details>\n";
}

}  // namespace

std::string memory_section(const RunTrace& trace, const ReportFigures& figures) {
  return "<h2>Memory</h2>\n<p class=\"lead\">Saved activations (with gradients between I and W) "
         "and "
         "buffers between stages in use over the step; weights, optimizer state and gradients "
         "do not change within it.</p>\n<div class=\"bar\">" +
         html::key("f", "saved, measured") + html::key("ke", "saved, predicted") +
         html::key("kb", "boundary buffers, measured") + "</div>\n" + memory_plots(trace, figures) +
         memory_table(figures);
}

}  // namespace concertina
