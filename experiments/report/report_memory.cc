#include <fmt/format.h>

#include <algorithm>

#include "core/number_text.h"
#include "experiments/report/report_page.h"
#include "experiments/timeline/timeline_rows.h"
#include "io/figure/page.h"

namespace concertina {
namespace {

constexpr std::size_t kMaxMemoryPlots = 8;
constexpr double kBytesPerMiB = 1024.0 * 1024;

/// MiB over milliseconds; an amount holds until the next one.
LineSeries memory_series(const std::string& name, std::size_t look,
                         const std::vector<MemorySample>& samples, double origin,
                         std::size_t MemoryUse::*bytes) {
  LineSeries series{.name = name, .markers = false, .look = look};
  for (const MemorySample& sample : samples) {
    const double at = 1e3 * (sample.time - origin);
    if (!series.y.empty()) series.x.push_back(at), series.y.push_back(series.y.back());
    series.x.push_back(at);
    series.y.push_back(static_cast<double>(sample.use.*bytes) / kBytesPerMiB);
  }
  return series;
}

std::string memory_figure(const RunTrace& trace, const ReportFigures& figures, std::size_t rank,
                          double high) {
  const std::vector<StepRecord>& step = trace.steps[figures.typical];
  const double start = span_of(step).start;
  LineSeries predicted = memory_series("saved, predicted", 1,
                                       saved_over_time(trace, rank, figures.predicted.rows[rank]),
                                       0, &MemoryUse::saved_bytes);
  predicted.band = true;
  predicted.low.assign(predicted.y.size(), 0);
  predicted.high = predicted.y;
  const auto measured = [&](const char* name, std::size_t look, std::size_t MemoryUse::*bytes) {
    return memory_series(name, look, step[rank].memory, start, bytes);
  };
  return html::figure(
      fmt::format("memory-rank-{}", rank),
      draw({.title = fmt::format("rank {}", rank),
            .x = {.label = "ms",
                  .low = 0,
                  .high = 1e3 * std::max(figures.seconds, figures.predicted_seconds)},
            .y = {.label = "MiB", .low = 0, .high = 1.08 * high / kBytesPerMiB},
            .marks = Lines{{predicted, measured("saved, measured", 0, &MemoryUse::saved_bytes),
                            measured("boundary buffers, measured", 2, &MemoryUse::boundary_bytes)}},
            .width_in = html::kHalf,
            .height_in = 1.9,
            .note = fmt::format("peak {}", bytes_text(static_cast<double>(
                                               figures.ranks[rank].peak.saved_bytes)))}));
}

std::string memory_plots(const RunTrace& trace, const ReportFigures& figures) {
  std::size_t high = 0;
  for (const RankFigures& rank : figures.ranks)
    high = std::max(
        {high, rank.peak.saved_bytes, rank.predicted_peak.saved_bytes, rank.peak.boundary_bytes});
  const std::vector<std::size_t> ranks = spread_ranks(figures.ranks.size(), kMaxMemoryPlots);
  std::string text = "<div class=\"grid2\">\n";
  for (const std::size_t rank : ranks)
    text += memory_figure(trace, figures, rank, static_cast<double>(high));
  text += "</div>\n";
  if (ranks.size() < figures.ranks.size())
    text += fmt::format("<p class=\"note\">{} of {} ranks are drawn, at equal distances.</p>\n",
                        ranks.size(), figures.ranks.size());
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
  for (const std::size_t rank : spread_ranks(figures.ranks.size(), kMaxTableRows)) {
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
         "and buffers between stages in use over the step; weights, optimizer state and gradients "
         "do not change within it.</p>\n" +
         memory_plots(trace, figures) + memory_table(figures);
}

}  // namespace concertina
