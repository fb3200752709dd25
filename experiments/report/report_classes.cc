#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/number_text.h"
#include "experiments/report/report_page.h"
#include "io/figure/page.h"

namespace concertina {
namespace {

constexpr std::size_t kMostClasses = 30;  // that a picture can name

/// The shares of each label in percent, from result.json; nothing where it has no such counts.
HeatMap confusion_map(const nlohmann::json& result) {
  HeatMap map;
  map.label = "share";
  map.unit = "%";
  const auto counts = result.at("validation_confusion").get<std::vector<std::vector<double>>>();
  const auto names = result.value("validation_classes", std::vector<std::string>());
  for (std::size_t one = 0; one < counts.size(); ++one) {
    map.columns.push_back(one < names.size() ? names[one] : std::to_string(one));
    double all = 0;
    for (const double count : counts[one]) all += count;
    map.rows.push_back(
        fmt::format("{} ({})", map.columns.back(), grouped(static_cast<std::int64_t>(all))));
    std::vector<double>& shares = map.values.emplace_back();
    for (const double count : counts[one]) shares.push_back(100 * count / all);
  }
  return map;
}

}  // namespace

std::string classes_section(const RunFiles& run) {
  if (!run.result.is_object() || !run.result.contains("validation_confusion")) return "";
  HeatMap map;
  try {
    map = confusion_map(run.result);
  } catch (const nlohmann::json::exception&) {  // of another version of the program
    return "";
  }
  if (map.rows.size() < 2 || map.rows.size() > kMostClasses) return "";
  return "<h2>Classes</h2>\n<p class=\"lead\">What held-out samples of each label were taken for, "
         "at "
         "the end of the run: the share of the label (of how many samples) in percent.</p>\n" +
         html::figure("confusion", draw({.title = "held-out samples by label and prediction",
                                         .x = {.label = "prediction"},
                                         .y = {.label = "label"},
                                         .marks = std::move(map),
                                         .width_in = html::kHalf}));
}

}  // namespace concertina
