// What a soak found, as text and as a page.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "core/number_text.h"
#include "core/text_table.h"
#include "experiments/soak/soak.h"
#include "io/figure/page.h"

namespace concertina {
namespace {

using TextRows = std::vector<std::vector<std::string>>;

std::string seconds_text(double seconds) {
  return std::isfinite(seconds) ? fmt::format("{:.2f}", seconds) : "";
}

/// By kind, with a last row of all: counts, and seconds until a fault was seen, and until a new
/// step was done.
TextRows kind_rows(const SoakResult& result) {
  TextRows rows{{"fault", "made", "recovered from", "seen p50, s", "p99", "max", "recovered p50, s",
                 "p99", "max"}};
  std::map<std::string, std::vector<const SoakFault*>> kinds;
  for (const SoakFault& fault : result.faults) {
    kinds[fault.kind].push_back(&fault);
    kinds["~all"].push_back(&fault);  // last in the order of names
  }
  for (const auto& [kind, faults] : kinds) {
    std::vector<double> seen, recovered;
    for (const SoakFault* fault : faults) {
      seen.push_back(fault->seen - fault->at);
      recovered.push_back(fault->recovered - fault->at);
    }
    const Spread see = spread_of(seen), recover = spread_of(recovered);
    rows.push_back({kind == "~all" ? "all" : kind, std::to_string(faults.size()),
                    std::to_string(recover.count), seconds_text(see.p50), seconds_text(see.p99),
                    seconds_text(see.most), seconds_text(recover.p50), seconds_text(recover.p99),
                    seconds_text(recover.most)});
  }
  return rows;
}

std::string bits_text(const SoakResult& result) {
  if (result.disturbed.hash.empty()) return "the disturbed run is not finished";
  if (result.disturbed.hash != result.clean.hash) return "other weights or optimizer state";
  if (result.disturbed.losses != result.clean.losses) return "other losses";
  return "the same bits: state_sha256, and the loss of every step";
}

std::string repeated_text(const SoakResult& result) {
  const Spread steps = spread_of(result.repeated);
  if (steps.count == 0) return "no restart";
  return fmt::format("{}, each with {:g} steps trained twice (p50), {:g} at most",
                     counted(steps.count, "restart"), steps.p50, steps.most);
}

/// The share of faults by the seconds after them within which it had happened.
LineSeries share_within(std::string name, std::vector<double> seconds, std::size_t faults) {
  std::erase_if(seconds, [](double value) { return !std::isfinite(value); });
  std::ranges::sort(seconds);
  LineSeries series{.name = std::move(name), .markers = false};
  double share = 0;
  for (const double value : seconds) {
    series.x.insert(series.x.end(), {value, value});
    series.y.push_back(share);
    share += 100.0 / static_cast<double>(faults);
    series.y.push_back(share);
  }
  return series;
}

/// Faults that passed unseen count in the second line alone.
Drawing recoveries(const SoakResult& result) {
  std::vector<double> seen, recovered;
  for (const SoakFault& fault : result.faults) {
    recovered.push_back(fault.recovered - fault.at);
    if (std::isfinite(fault.seen) || !std::isfinite(fault.recovered))
      seen.push_back(fault.seen - fault.at);
  }
  Lines lines;
  lines.series.push_back(share_within("seen", seen, seen.size()));
  lines.series.push_back(share_within("a new step is done", recovered, recovered.size()));
  return draw({.title = "From a fault to the next new step",
               .x = {.label = "time after the fault", .unit = "s", .from_zero = true},
               .y = {.label = "faults", .unit = "%", .from_zero = true},
               .marks = lines,
               .width_in = html::kWhole,
               .height_in = 3});
}

}  // namespace

std::string soak_text(const SoakOptions& options, const SoakResult& result) {
  std::string text = text_table(kind_rows(result), 1);
  text += fmt::format("{}\nuseful time {:.1f}% of {} ({:.1f}% of {} without faults); {}\n",
                      repeated_text(result), 100 * result.useful(result.disturbed),
                      duration_text(result.disturbed.seconds), 100 * result.useful(result.clean),
                      duration_text(result.clean.seconds), bits_text(result));
  if (!result.why.empty()) text += result.why + "\n";
  return text + fmt::format("page: {}/report.html\n", options.directory);
}

std::string soak_picture(const SoakResult& result) {
  return svg(recoveries(result));
}

std::string soak_page(const SoakOptions& options, const SoakResult& result) {
  std::string body = "<header><h1>Soak</h1></header>\n<div class=\"tiles\">\n";
  body += html::tile(
      std::to_string(result.faults.size()),
      fmt::format("faults, {:g} s apart in the mean (seed {})", options.mean, options.seed));
  body += html::tile(html::share_text(result.useful(result.disturbed)), "of the time was useful");
  body += html::tile(html::share_text(result.useful(result.clean)), "without faults");
  body += html::tile(result.passed() ? "passed" : "failed", bits_text(result));
  body += "</div>\n<p>" + html::escape(repeated_text(result)) + "</p>\n";
  if (!result.why.empty()) body += "<p>" + html::escape(result.why) + "</p>\n";
  body += "<h2>Faults</h2>\n" + html::table(kind_rows(result));
  body += html::figure("recoveries", recoveries(result));
  return html::page("Soak", body);
}

}  // namespace concertina
