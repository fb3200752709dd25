#include "experiments/study/scaling.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "core/error.h"
#include "core/text/number_text.h"
#include "experiments/config/config_keys.h"
#include "experiments/config/config_toml.h"

namespace concertina {
namespace {

[[noreturn]] void refuse_ranks(int ranks, const std::string& why, const std::string& fix) {
  throw_input(fmt::format("{} ranks: {}", ranks, why), "--ranks", fix);
}

/// pp and dp of so many ranks: the one that does not grow is the config's.
ScalingPoint grid_of(const RunConfig& config, const ScalingOptions& options, int ranks) {
  const ParallelSection& parallel = config.parallel;
  const int fixed = std::max(1, options.grows_pipeline ? parallel.dp : parallel.pp);
  if (ranks % fixed != 0)
    refuse_ranks(ranks,
                 fmt::format("not a multiple of parallel.{} = {}",
                             options.grows_pipeline ? "dp" : "pp", fixed),
                 "other numbers of ranks, or another parallel.pp and parallel.dp");
  ScalingPoint point{.ranks = ranks, .pp = fixed, .dp = ranks / fixed};
  if (options.grows_pipeline) std::swap(point.pp, point.dp);
  return point;
}

/// The config's samples of a microbatch stay: what grows is their number.
ScalingPoint with_microbatches(const RunConfig& config, ScalingPoint point, int microbatches) {
  point.microbatches = microbatches;
  point.global = config.batch.global / config.batch.microbatches * microbatches;
  return point;
}

/// Keys that the study itself varies, or that belong to a run.
bool is_own(std::string_view key) {
  constexpr std::string_view kVaried[] = {"run.seed", "parallel.pp", "parallel.dp", "batch.global",
                                          "batch.microbatches"};
  return is_studys_own(key) || std::ranges::find(kVaried, key) != std::end(kVaried);
}

template <class Value>
std::string list_of(const std::vector<ScalingPoint>& points, Value value) {
  std::vector<int> values;
  for (const ScalingPoint& point : points) values.push_back(value(point));
  return fmt::format("[{}]", fmt::join(values, ", "));
}

using Json = nlohmann::ordered_json;

Json parts_json(const StepParts& parts) {
  const double total = parts.total();
  Json json;
  for (const auto& [name, seconds] : kStepParts)
    json[name] = total > 0 ? parts.*seconds / total : 0;
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

std::vector<ScalingPoint> scaling_points(const RunConfig& config, const ScalingOptions& options) {
  std::vector<int> counts = {config.batch.microbatches};
  for (const int count : options.microbatches)
    if (count != config.batch.microbatches) counts.push_back(count);
  std::vector<ScalingPoint> points;
  for (const int ranks : options.ranks) {
    const ScalingPoint grid = grid_of(config, options, ranks);
    const int grown = options.weak ? ranks / options.ranks.front() : 1;
    if (options.weak && ranks % options.ranks.front() != 0)
      refuse_ranks(
          ranks, "the batch cannot grow in proportion",
          fmt::format("multiples of {}, the smallest number of ranks", options.ranks.front()));
    for (const int count : counts) points.push_back(with_microbatches(config, grid, count * grown));
  }
  return points;
}

RunConfig config_at(RunConfig config, const ScalingPoint& point) {
  config.parallel.pp = point.pp;
  config.parallel.dp = point.dp;
  config.batch.global = point.global;
  config.batch.microbatches = point.microbatches;
  return config;
}

std::string scaling_toml(const RunConfig& config, const ScalingOptions& options) {
  std::vector<ScalingPoint> points = scaling_points(config, options);
  std::erase_if(points, [&](const ScalingPoint& point) { return point.ranks > options.measured; });
  // A round is a seed: it changes what is trained, but not what a step does. Rounds go by turns.
  std::vector<int> rounds(static_cast<std::size_t>(options.rounds));
  std::iota(rounds.begin(), rounds.end(), 1);
  std::string text =
      fmt::format("name = {}\nseeds = [{}]\n", to_toml(options.name), fmt::join(rounds, ", "));
  std::string section;
  for (const Key& key : config_keys()) {
    if (!applies(key, config) || is_default(key, config) || is_own(key.name)) continue;
    if (key.section() != section) {
      section = key.section();
      text += fmt::format("\n[set.{}]\n", section);
    }
    text += fmt::format("{} = {}\n", key.within(), value_text(key, config));
  }
  text += fmt::format(
      "\n[[zip]]\nranks = {}\nparallel.pp = {}\nparallel.dp = {}\nbatch.global = "
      "{}\nbatch.microbatches = {}\n",
      list_of(points, [](const ScalingPoint& p) { return p.ranks; }),
      list_of(points, [](const ScalingPoint& p) { return p.pp; }),
      list_of(points, [](const ScalingPoint& p) { return p.dp; }),
      list_of(points, [](const ScalingPoint& p) { return p.global; }),
      list_of(points, [](const ScalingPoint& p) { return p.microbatches; }));
  return text;
}

double StepParts::total() const {
  double sum = 0;
  for (const StepPart& part : kStepParts) sum += this->*part.seconds;
  return sum;
}

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
      fmt::format("{} scaling\n{:>6} {:<12} {:>6} {:>5} {:>12} {:>13} {:>7}  {:<9} {:>9} {:>10}",
                  report["mode"].get<std::string>(), "ranks", "layout", "batch", "m",
                  "measured, ms", "predicted, ms", "error", "from here", "speed-up", "efficiency");
  for (const StepPart& part : kStepParts) text += fmt::format(" {:>10}", part.name);
  text += "\n";
  for (const Json& one : report["results"]) {
    const bool measured = !one["measured_ms"].is_null();
    const std::string of = measured ? "measured_" : "predicted_";
    text += fmt::format("{:>6} {:<12} {:>6} {:>5} {:>12} {:>13.2f} {:>7}  {:<9} {:>9.2f} {:>10}",
                        one["ranks"].get<int>(), one["layout"].get<std::string>(),
                        one["batch"].get<int>(), one["microbatches"].get<int>(),
                        measured ? fmt::format("{:.2f}", one["measured_ms"].get<double>()) : "",
                        one["predicted_ms"].get<double>(), percent(one["error"]),
                        measured ? "measured" : "predicted", one.value(of + "speedup", 0.0),
                        percent(one.value(of + "efficiency", Json())));
    for (const StepPart& part : kStepParts)
      text += fmt::format(" {:>10}", percent(one[of + "parts"][part.name]));
    text += "\n";
  }
  text +=
      "from here: whether speed-up, efficiency and the shares of a step are measured, over the "
      "measured first row, or predicted,\n"
      "over its prediction: do not compare one with the other; a prediction stands on the "
      "measurement "
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
