#include <fmt/format.h>

#include <algorithm>

#include "core/number_text.h"
#include "experiments/study/scaling.h"

namespace concertina {
namespace {

using Json = nlohmann::ordered_json;

Json parts_json(const StepParts& parts) {
  const double total = parts.total();
  const double values[] = {parts.compute,   parts.bubble, parts.imbalance, parts.transfer,
                           parts.reduction, parts.update, parts.variation, parts.cores};
  Json json;
  for (std::size_t i = 0; i < std::size(values); ++i)
    json[kStepParts[i]] = total > 0 ? values[i] / total : 0;
  return json;
}

/// Samples a second of `point` over those of the first one, and that over the ranks.
void add_scaling(Json& json, const char* prefix, double seconds, const ScalingPoint& point,
                 double first_seconds, const ScalingPoint& first) {
  const double speedup = point.global / seconds / (first.global / first_seconds);
  json[fmt::format("{}speedup", prefix)] = speedup;
  json[fmt::format("{}efficiency", prefix)] = speedup * first.ranks / point.ranks;
}

Json result_json(const ScalingResult& result, const ScalingResult& first) {
  const ScalingPoint& point = result.point;
  Json json = {{"ranks", point.ranks},
               {"layout", result.layout},
               {"batch", point.global},
               {"microbatches", point.microbatches}};
  const double predicted = result.predicted.total();
  json["measured_ms"] = result.measured ? Json(result.measured->median * 1e3) : Json();
  json["predicted_ms"] = predicted * 1e3;
  json["error"] = result.measured ? Json(predicted / result.measured->median - 1) : Json();
  if (result.measured) {
    Json rounds = Json::array();
    for (const double seconds : result.measured->steps) rounds.push_back(seconds * 1e3);
    json["rounds_ms"] = rounds;
    json["load"] = result.measured->load;
    json["measured_parts"] = parts_json(result.measured->parts);
    if (first.measured)
      add_scaling(json, "measured_", result.measured->median, point, first.measured->median,
                  first.point);
  }
  json["predicted_from"] = result.predicted_from;
  json["predicted_parts"] = parts_json(result.predicted);
  // Over the first point's own prediction: what is off there is off everywhere.
  add_scaling(json, "predicted_", predicted, point, first.predicted.total(), first.point);
  const double seconds = result.measured ? result.measured->median : predicted;
  if (result.flops > 0)
    json["model_tflops_per_rank"] = result.flops / seconds / point.ranks * 1e-12;
  return json;
}

std::string percent(const Json& share, int decimals = 1) {
  return share.is_null() ? "" : fmt::format("{:.{}f}%", 100 * share.get<double>(), decimals);
}

/// How far measurements can be believed.
std::string spread_text(const Json& report) {
  double spread = 0, load = 0;
  std::size_t rounds = 0;
  for (const Json& one : report["results"]) {
    if (!one.contains("rounds_ms")) continue;
    const auto steps = one["rounds_ms"].get<std::vector<double>>();
    const auto [least, most] = std::ranges::minmax(steps);
    spread = std::max(spread, most / least - 1);
    load = std::max(load, one["load"].get<double>());
    rounds = std::max(rounds, steps.size());
  }
  const std::string differ =
      rounds > 1 ? fmt::format("rounds of one line differ by up to {:.0f}%", 100 * spread)
                 : std::string("one round: nothing says how far it would be from another");
  return fmt::format(
      "{}; load of the host before a launch up to {:.1f}, earlier launches included\n", differ,
      load);
}

}  // namespace

Json scaling_json(const std::vector<ScalingResult>& results, const ScalingOptions& options) {
  Json json = {{"mode", options.weak ? "weak" : "strong"},
               {"threads", options.threads},
               {"cores", options.cores},
               {"measured_up_to", options.measured},
               {"rounds", options.rounds},
               {"results", Json::array()}};
  for (const ScalingResult& result : results)
    json["results"].push_back(result_json(result, results.front()));
  json["fits"] = Json::array();
  for (const StepFit& fit : step_fits(results))
    json["fits"].push_back({{"ranks", fit.ranks},
                            {"measured", fit.measured},
                            {"a_ms", fit.a * 1e3},
                            {"b_ms", fit.b * 1e3},
                            {"largest_residual", fit.error}});
  return json;
}

std::string scaling_text(const Json& report) {
  std::string text =
      fmt::format("{} scaling\n{:>6} {:<12} {:>6} {:>5} {:>12} {:>13} {:>7} {:>9} {:>10}",
                  report["mode"].get<std::string>(), "ranks", "layout", "batch", "m",
                  "measured, ms", "predicted, ms", "error", "speed-up", "efficiency");
  for (const char* part : kStepParts) text += fmt::format(" {:>10}", part);
  text += "\n";
  for (const Json& one : report["results"]) {
    const bool measured = !one["measured_ms"].is_null();
    const std::string of = measured ? "measured_" : "predicted_";
    text += fmt::format(
        "{:>6} {:<12} {:>6} {:>5} {:>12} {:>13.2f} {:>7} {:>9.2f} {:>10}", one["ranks"].get<int>(),
        one["layout"].get<std::string>(), one["batch"].get<int>(), one["microbatches"].get<int>(),
        measured ? fmt::format("{:.2f}", one["measured_ms"].get<double>()) : "",
        one["predicted_ms"].get<double>(), percent(one["error"]), one.value(of + "speedup", 0.0),
        percent(one.value(of + "efficiency", Json())));
    for (const char* part : kStepParts)
      text += fmt::format(" {:>10}", percent(one[of + "parts"][part]));
    text += "\n";
  }
  text +=
      "speed-up and efficiency are over the first row, of predictions over its prediction; the "
      "shares of a step are of the recorded\n"
      "steps where it was measured, else of the prediction; a prediction stands on the measurement "
      "of the next smaller number of ranks\n";
  text += fmt::format(
      "each rank has {}; up to {} ranks share a host with cores for {}, beyond each has its own\n",
      counted(report["threads"].get<int>(), "thread"), report["measured_up_to"].get<int>(),
      report["cores"].get<int>());
  text += spread_text(report);
  for (const Json& fit : report["fits"])
    text += fmt::format(
        "{} ranks, {}: step = {:.3f} ms + {:.3f} ms x microbatches, off by {} at most\n",
        fit["ranks"].get<int>(), fit["measured"].get<bool>() ? "measured" : "predicted",
        fit["a_ms"].get<double>(), fit["b_ms"].get<double>(), percent(fit["largest_residual"]));
  return text;
}

}  // namespace concertina
