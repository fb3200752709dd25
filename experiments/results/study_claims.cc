#include "experiments/results/study_claims.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "experiments/results/figure_names.h"

namespace concertina {
namespace {

using Json = nlohmann::ordered_json;

/// How many times as good each pair's second value is as its first one.
void fill_gain(const TableSource& source, const TrialGroup& base, const TrialGroup& group,
               const MetricColumn& metric, FrontPoint& point) {
  std::vector<std::pair<double, double>> logs = source.comparison.pairs(base, group, metric.name);
  for (auto& [first, second] : logs) first = std::log(first), second = std::log(second);
  const SampleDifference moved =
      compare_pairs(logs, SignificanceTest::paired_t, source.comparison.confidence);
  if (moved.pairs == 0) return;
  const double sign = metric.better == BetterEnd::lower ? -1 : 1;
  point.gain = std::exp(sign * moved.difference);
  if (!moved.half_width) return;
  point.gain_low = std::exp(sign * moved.difference - *moved.half_width);
  point.gain_high = std::exp(sign * moved.difference + *moved.half_width);
}

void fill_change(const TableSource& source, const TrialGroup& base, const TrialGroup& group,
                 const StudyFront& front, FrontPoint& point) {
  const auto pairs = source.comparison.pairs(base, group, front.change.name);
  const SampleDifference moved =
      compare_pairs(pairs, SignificanceTest::paired_t, front.change_confidence);
  point.pairs = moved.pairs;
  if (moved.pairs == 0) return;
  point.change = moved.difference;
  if (moved.half_width) {
    point.change_low = moved.difference - *moved.half_width;
    point.change_high = moved.difference + *moved.half_width;
  }
  if (source.claim && source.claim->metric == front.change.name)
    point.equivalence = test_equivalence(pairs, source.claim->margin, source.claim->alpha);
}

bool loses(const FrontPoint& point, BetterEnd better) {
  if (point.baseline) return false;
  if (point.equivalence) return point.equivalence->verdict != EquivalenceVerdict::equivalent;
  if (!point.change_low) return false;
  return better == BetterEnd::higher ? *point.change_high < 0 : *point.change_low > 0;
}

void mark_front(StudyFront& front) {
  std::vector<Spot> spots;
  std::vector<std::size_t> of_spot;
  for (std::size_t i = 0; i < front.points.size(); ++i)
    if (front.points[i].gain && front.points[i].change) {
      spots.push_back({*front.points[i].gain, *front.points[i].change});
      of_spot.push_back(i);
    }
  for (const std::size_t i : pareto_front(spots, BetterEnd::higher, front.change.better))
    front.points[of_spot[i]].on_front = true;
}

/// "different (worse)".
std::string verdict_text(const Equivalence& result, BetterEnd better) {
  const std::string verdict = name_of(result.verdict);
  if (result.verdict != EquivalenceVerdict::different &&
      result.verdict != EquivalenceVerdict::outside)
    return verdict;
  const bool more = result.difference > 0;
  if (better == BetterEnd::neither) return verdict + (more ? " (more)" : " (less)");
  return verdict + (more == (better == BetterEnd::higher) ? " (better)" : " (worse)");
}

/// Digits for differences of this figure, and the text of one.
class ChangeText {
 public:
  explicit ChangeText(const MetricColumn& metric) : name_(name_of_figure(metric.name)) {}
  void add(double change, std::optional<double> half_width) {
    changes_.push_back(name_.factor * change);
    if (half_width) widths_.push_back(name_.factor * *half_width);
  }
  std::string operator()(double value) const {
    return (value > 0 ? "+" : "") +
           figure_text(name_.factor * value, digits_for(changes_, widths_));
  }
  std::string head() const { return "Δ " + name_.title; }

 private:
  FigureName name_;
  std::vector<double> changes_, widths_;
};

std::string interval_head(double confidence) {
  return fmt::format("{:.4g}% interval", 100 * confidence);
}

/// Rows of the table that the claim was tested for.
std::vector<std::pair<const TableRow*, const TableCell*>> tested(const StudyTable& table) {
  std::vector<std::pair<const TableRow*, const TableCell*>> rows;
  for (const TableRow& row : table.rows)
    for (const TableCell& cell : row.cells)
      if (cell.equivalence) rows.emplace_back(&row, &cell);
  return rows;
}

std::string range_text(const std::optional<double>& low, const std::optional<double>& high,
                       const auto& text_of) {
  return low && high ? fmt::format("{} to {}", text_of(*low), text_of(*high)) : "-";
}

bool is_claimed(const StudyFront& front) {
  return std::ranges::any_of(front.points,
                             [](const FrontPoint& point) { return point.equivalence.has_value(); });
}

std::string p_of_test(double p) {
  return p < 0.001 ? "< 0.001" : fmt::format("{:.2g}", p);
}

std::vector<std::string> front_lines(const StudyFront& front) {
  const std::string metric = short_title(front.change);
  std::vector<std::string> lines = {fmt::format(
      "front of {} against {}: >: no other group is as good in both and better in one; {} is the "
      "geometric mean of the ratios of pairs, Δ the mean of their differences",
      short_title(front.gain), metric,
      front.gain.better == BetterEnd::lower ? "speed-up" : "the gain")};
  const std::string by = is_claimed(front)
                             ? "the first group that is not shown to be equivalent"
                             : "the first group whose interval is on the worse side of zero";
  lines.push_back(front.loss_begins ? fmt::format("loss of {} begins at {}: {}", metric,
                                                  front.points[*front.loss_begins].name, by)
                                    : fmt::format("no group begins to lose {}", metric));
  return lines;
}

}  // namespace

std::vector<std::vector<std::string>> equivalence_rows(const StudyTable& table) {
  const auto rows_of = tested(table);
  if (rows_of.empty()) return {};
  const auto metric = std::ranges::find(table.metrics, table.claim->metric, &MetricColumn::name);
  ChangeText change_text(*metric);
  for (const auto& [row, cell] : rows_of)
    if (cell->equivalence->pairs > 0)
      change_text.add(cell->equivalence->difference, cell->equivalence->half_width);
  std::vector<std::vector<std::string>> rows = {{"Group", "Pairs", change_text.head(),
                                                 interval_head(1 - 2 * table.claim->alpha), "p",
                                                 "Verdict"}};
  for (const auto& [row, cell] : rows_of) {
    const Equivalence& result = *cell->equivalence;
    std::optional<double> low, high;
    if (result.half_width) {
      low = result.difference - *result.half_width;
      high = result.difference + *result.half_width;
    }
    rows.push_back({group_label(table.by, row->group), fmt::format("{}", result.pairs),
                    result.pairs > 0 ? change_text(result.difference) : "-",
                    range_text(low, high, change_text), result.p ? p_of_test(*result.p) : "-",
                    verdict_text(result, metric->better)});
  }
  return rows;
}

StudyFront make_front(const TableSource& source, StudyTable& table) {
  const std::vector<std::string>& words = source.options.front;
  if (words.size() != 2)
    throw_input(fmt::format("a front is of two figures, not of {}", words.size()), "--front",
                "--front train_s,validation_loss");
  StudyFront front{.gain = metric_column(source.results, words[0]),
                   .change = metric_column(source.results, words[1]),
                   .confidence = source.comparison.confidence,
                   .change_confidence = source.comparison.confidence};
  for (const MetricColumn& metric : {front.gain, front.change})
    if (metric.better == BetterEnd::neither)
      throw_input(fmt::format("nothing says which way {} is better", metric.name), "--front",
                  fmt::format("{0}:min or {0}:max", metric.name));
  if (source.claim && source.claim->metric == front.change.name)
    front.change_confidence = 1 - 2 * source.claim->alpha;
  const Baselines baselines = find_baselines(source, table);
  for (std::size_t r = 0; r < table.rows.size(); ++r) {
    FrontPoint point{.name = group_label(table.by, table.rows[r].group),
                     .baseline = table.rows[r].baseline};
    if (point.baseline && !source.groups[r].done.empty()) {
      point.gain = 1;
      point.change = 0;
    } else if (baselines.of_row[r]) {
      const TrialGroup& base = source.groups[*baselines.of_row[r]];
      fill_gain(source, base, source.groups[r], front.gain, point);
      fill_change(source, base, source.groups[r], front, point);
    }
    if (!front.loss_begins && loses(point, front.change.better))
      front.loss_begins = front.points.size();
    front.points.push_back(std::move(point));
  }
  mark_front(front);
  return front;
}

std::vector<std::vector<std::string>> front_rows(const StudyFront& front) {
  ChangeText change_text(front.change);
  for (const FrontPoint& point : front.points)
    if (point.change)
      change_text.add(*point.change, point.change_low
                                         ? std::optional(*point.change - *point.change_low)
                                         : std::nullopt);
  const auto gain_text = [](double value) { return fmt::format("{:.3f}", value); };
  const bool claimed = is_claimed(front);
  std::vector<std::vector<std::string>> rows = {
      {"Front", "Group", "Pairs",
       front.gain.better == BetterEnd::lower ? "Speed-up" : "Times as much",
       interval_head(front.confidence), change_text.head(),
       interval_head(front.change_confidence)}};
  if (claimed) rows[0].emplace_back("Verdict");
  for (const FrontPoint& point : front.points) {
    rows.push_back({point.on_front ? ">" : "", point.name,
                    point.baseline ? "baseline" : fmt::format("{}", point.pairs),
                    point.gain ? gain_text(*point.gain) : "-",
                    range_text(point.gain_low, point.gain_high, gain_text),
                    point.change ? change_text(*point.change) : "-",
                    range_text(point.change_low, point.change_high, change_text)});
    if (claimed)
      rows.back().push_back(
          point.equivalence ? verdict_text(*point.equivalence, front.change.better) : "-");
  }
  return rows;
}

std::vector<std::string> claim_lines(const StudyTable& table) {
  std::vector<std::string> lines;
  if (const auto rows = tested(table); !rows.empty()) {
    const EquivalenceClaim& claim = *table.claim;
    const FigureName name = name_of_figure(claim.metric);
    lines.push_back(fmt::format(
        "equivalence of {} to {} within ±{:.6g}{}: two one-sided paired t tests, p: the larger "
        "one, "
        "below alpha = {:.4g} equivalent; different: by the two-sided test; not equivalent: the "
        "interval is beyond the margin{}{}",
        name.short_title(), table.baseline, name.factor * claim.margin,
        name.unit.empty() ? "" : " " + name.unit, claim.alpha,
        rows.size() > 1 ? fmt::format("; no correction for {} comparisons", rows.size()) : "",
        table.claim_in_file ? "; margin, alpha and baseline stand in the study's file" : ""));
    if (std::ranges::any_of(rows, [](const auto& row) {
          return row.second->equivalence->verdict == EquivalenceVerdict::too_few;
        }))
      lines.emplace_back("a test of equivalence takes two pairs at least");
  }
  if (table.front) std::ranges::copy(front_lines(*table.front), std::back_inserter(lines));
  return lines;
}

Chart front_chart(const StudyTable& table) {
  const StudyFront& front = *table.front;
  const FigureName name = name_of_figure(front.change.name);
  const auto scaled = [&](std::optional<double> value) {
    if (value) *value *= name.factor;
    return value;
  };
  Scatter scatter{.series = {{}}, .x = BetterEnd::higher, .y = front.change.better, .levels = {0}};
  if (is_claimed(front))
    for (const double sign : {-1, 1})
      scatter.levels.push_back(sign * name.factor * table.claim->margin);
  for (const FrontPoint& point : front.points)
    if (point.gain && point.change)
      scatter.series[0].points.push_back({.x = *point.gain,
                                          .y = *scaled(point.change),
                                          .name = point.name,
                                          .x_low = point.gain_low,
                                          .x_high = point.gain_high,
                                          .y_low = scaled(point.change_low),
                                          .y_high = scaled(point.change_high)});
  const bool time = front.gain.better == BetterEnd::lower;
  return {.x = {.label = fmt::format("{} of {}, {}s", time ? "speed-up" : "gain",
                                     name_of_figure(front.gain.name).label,
                                     interval_head(front.confidence))},
          .y = {.label = fmt::format("change of {}, {}s", name.label,
                                     interval_head(front.change_confidence)),
                .unit = name.unit},
          .marks = std::move(scatter)};
}

nlohmann::ordered_json to_json(const Equivalence& result) {
  Json json = {{"pairs", result.pairs}, {"verdict", name_of(result.verdict)}};
  if (result.pairs > 0) json["difference"] = result.difference;
  if (!result.p) return json;
  json.update({{"ci_low", result.difference - *result.half_width},
               {"ci_high", result.difference + *result.half_width},
               {"deviation", *result.deviation},
               {"p", *result.p}});
  return json;
}

nlohmann::ordered_json to_json(const StudyFront& front) {
  Json json = {{"gain", front.gain.name},
               {"change", front.change.name},
               {"confidence", front.confidence},
               {"change_confidence", front.change_confidence},
               {"points", Json::array()}};
  const auto number = [](const std::optional<double>& value) {
    return value ? Json(*value) : Json();
  };
  for (const FrontPoint& point : front.points) {
    json["points"].push_back({{"name", point.name},
                              {"baseline", point.baseline},
                              {"pairs", point.pairs},
                              {"gain", number(point.gain)},
                              {"gain_ci_low", number(point.gain_low)},
                              {"gain_ci_high", number(point.gain_high)},
                              {"change", number(point.change)},
                              {"change_ci_low", number(point.change_low)},
                              {"change_ci_high", number(point.change_high)},
                              {"on_front", point.on_front}});
    if (point.equivalence) json["points"].back()["equivalence"] = to_json(*point.equivalence);
  }
  json["loss_begins"] = front.loss_begins ? Json(front.points[*front.loss_begins].name) : Json();
  return json;
}

}  // namespace concertina
