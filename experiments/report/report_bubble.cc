#include <fmt/format.h>

#include "experiments/report/report_page.h"
#include "experiments/timeline/timeline_rows.h"
#include "io/figure/page.h"

namespace concertina {
namespace {

std::string cause_table(const ReportFigures& figures) {
  std::string text =
      "<details><summary>Figures by rank</summary><div class=\"wide\"><table><tr>"
      "<th>share of the step</th>";
  for (std::size_t c = 0; c < kCauses; ++c)
    text += fmt::format("<th>{}</th>", name_of(static_cast<Cause>(c)));
  text += "<th>bubble</th><th>predicted</th></tr>\n";
  for (const std::size_t rank : spread_ranks(figures.ranks.size(), kMaxTableRows)) {
    const RankFigures& one = figures.ranks[rank];
    text += fmt::format("<tr><td>rank {}</td>", rank);
    for (const double share : one.causes.by_cause)
      text += fmt::format("<td>{:.2f}%</td>", 100 * share);
    text += fmt::format("<td>{:.2f}%</td><td>{:.2f}%</td></tr>\n", 100 * one.bubble,
                        100 * one.predicted_bubble);
  }
  return text + "</table></div></details>\n";
}

}  // namespace

Drawing draw_causes(const std::vector<CauseBar>& bars, const ChartAxis& axis) {
  Stacks stacks{{"computing and updating", "idle"},
                {},
                {kBlue, kIdle, kGrey, kYellow, kSky, kVermillion, kGreen, kPink, kDark},
                {},
                true};
  for (std::size_t c = 0; c < kCauses; ++c)
    stacks.parts.emplace_back(name_of(static_cast<Cause>(c)));
  for (const CauseBar& bar : bars) {
    StackedBar& stack =
        stacks.groups.emplace_back(StackGroup{bar.name, {StackedBar{}}}).bars.front();
    stack = {{bar.busy, bar.idle}, false, bar.mark, bar.text};
    stack.values.insert(stack.values.end(), bar.causes.by_cause.begin(), bar.causes.by_cause.end());
    if (bar.mark) stacks.mark = "predicted";
  }
  return draw({.x = axis, .marks = stacks, .width_in = html::kWhole});
}

std::string bubble_section(const ReportFigures& figures) {
  std::vector<CauseBar> bars;
  for (const std::size_t rank : spread_ranks(figures.ranks.size(), kMaxBarRows)) {
    const RankFigures& one = figures.ranks[rank];
    CauseBar& bar =
        bars.emplace_back(CauseBar{fmt::format("rank {}", rank), 0, 0, one.causes,
                                   100 * one.predicted_bubble, html::share_text(one.bubble)});
    for (double& share : bar.causes.by_cause) share *= 100;
  }
  std::string text =
      "<h2>Bubble, by cause</h2>\n<p class=\"lead\">The share of a step in which a rank neither "
      "computes nor updates, mean of the recorded steps. Who waits for a rank that is still "
      "computing waits for that computation (schedule, imbalance, variation); from its end on, "
      "for the transfer.</p>\n" +
      html::figure("bubble-by-cause", draw_causes(bars, {.unit = "%"})) + "<p class=\"note\">";
  for (std::size_t c = 0; c < kCauses; ++c)
    text += fmt::format("<b>{}</b>: {}{}", name_of(static_cast<Cause>(c)),
                        meaning_of(static_cast<Cause>(c)), c + 1 < kCauses ? "; " : ".");
  return text + "</p>\n" + cause_table(figures);
}

}  // namespace concertina
