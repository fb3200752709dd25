#include <fmt/format.h>

#include <algorithm>

#include "experiments/report/html.h"
#include "experiments/report/report_sections.h"

namespace concertina {
namespace {

using html::percent;

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
          name_of(static_cast<Cause>(c)), html::share_text(share));
      at += share;
    }
    const std::string mark = percent(one.predicted_bubble / longest);
    body += fmt::format(
        "<line class=\"mark\" x1=\"{0}\" x2=\"{0}\" y1=\"{1}\" y2=\"{2}\"><title>"
        "predicted: {3}</title></line>",
        mark, y - 3, y + row - 3, html::share_text(one.predicted_bubble));
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

}  // namespace

std::string bubble_section(const ReportFigures& figures) {
  std::string text =
      "<h2>Bubble, by cause</h2>\n<p class=\"lead\">The share of a step in which a rank neither "
      "computes nor updates, mean of the recorded steps. Who waits for a rank that is still "
      "computing waits for that computation (schedule, imbalance, variation); from its end on, "
      "for the transfer.</p>\n<figure><div class=\"bar\">";
  for (std::size_t c = 0; c < kCauses; ++c)
    text += html::key(fmt::format("c{}", c), name_of(static_cast<Cause>(c)));
  text +=
      "<span class=\"key\"><svg><line class=\"mark\" x1=\"7\" x2=\"7\" y1=\"0\" "
      "y2=\"14\"/></svg>predicted bubble</span>" +
      html::save_button("bubble-by-cause") + "</div>\n";
  text += cause_bars(figures) + "</figure>\n<p class=\"note\">";
  for (std::size_t c = 0; c < kCauses; ++c)
    text += fmt::format("<b>{}</b>: {}{}", name_of(static_cast<Cause>(c)),
                        meaning_of(static_cast<Cause>(c)), c + 1 < kCauses ? "; " : ".");
  return text + "</p>\n" + cause_table(figures);
}

}  // namespace concertina
