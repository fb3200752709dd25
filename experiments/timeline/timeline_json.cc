#include "experiments/timeline/timeline_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/index.h"

namespace concertina {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kMostBoxes = 8000, kMostRows = 64;

const char* name_of(WorkKind work) {
  constexpr std::array<const char*, kWorkKinds> kNames{"forward",  "backward",  "input",
                                                       "weight",   "optimizer", "idle",
                                                       "transfer", "reduction", "exchange"};
  return kNames[static_cast<std::size_t>(work)];
}

Json box_json(const TimelinePanel& panel, const WorkBox& box) {
  Json json{name_of(box.work), box.start, box.end};
  if (box.microbatch < 0) {
    json.push_back(is_wait(box.work) ? box.what : "optimizer");
    return json;
  }
  const Layout& layout = panel.layout;
  json.push_back(fmt::format("{} {} stage {}", letter_of(box.work), box.microbatch,
                             box.stage - layout.first_stage(layout.pipeline_of(box.stage))));
  for (const int value : {box.microbatch, box.chunk, box.part}) json.push_back(value);
  return json;
}

/// Merges neighboring columns with the same work into one box.
Json columns_json(const std::vector<WorkBox>& boxes, double column, std::size_t count) {
  const std::vector<std::optional<WorkKind>> work = main_work(boxes, column, count);
  Json json = Json::array();
  for (std::size_t begin = 0, end = 0; begin < count; begin = end) {
    while (end < count && work[end] == work[begin]) ++end;
    if (work[begin])
      json.push_back({name_of(*work[begin]), static_cast<double>(begin) * column,
                      static_cast<double>(end) * column});
  }
  return json;
}

Json path_json(const TimelinePanel& panel) {
  Json json = Json::array();
  for (const PathStep& step : panel.timeline.critical_path) {
    const Interval& time = panel.timeline.rows[at(step.rank)][at(step.position)];
    if (is_compute(panel.plan.rows[at(step.rank)][at(step.position)].kind) && time.end > time.start)
      json.push_back({step.rank, time.start, time.end});
  }
  return json;
}

}  // namespace

Json timelines_json(const std::vector<TimelinePanel>& panels, double inches) {
  const auto columns = static_cast<std::size_t>(144 * inches);
  std::size_t count = 0;
  double longest = 0;
  for (const TimelinePanel& panel : panels) {
    longest = std::max(longest, panel.timeline.makespan);
    for (const std::size_t rank : spread_ranks(panel.ranks(), kMostRows))
      count += work_boxes(panel, rank).size();
  }
  const bool by_column = count > kMostBoxes;
  Json json{{"inches", inches}, {"panels", Json::array()}};
  if (by_column) json["columns"] = columns;
  for (const TimelinePanel& panel : panels) {
    Json rows = Json::array();
    for (const std::size_t rank : spread_ranks(panel.ranks(), kMostRows)) {
      const std::vector<WorkBox> boxes = work_boxes(panel, rank);
      Json drawn = Json::array();
      if (by_column)
        drawn = columns_json(boxes, longest / static_cast<double>(columns), columns);
      else
        for (const WorkBox& box : boxes) drawn.push_back(box_json(panel, box));
      rows.push_back({{"rank", rank}, {"boxes", std::move(drawn)}});
    }
    json["panels"].push_back({{"name", panel.name},
                              {"ranks", panel.ranks()},
                              {"microbatches", panel.microbatches()},
                              {"chunks", chunks_of(panel)},
                              {"makespan", panel.timeline.makespan},
                              {"bubble", panel.timeline.mean_bubble},
                              {"rows", std::move(rows)},
                              {"critical_path", path_json(panel)}});
  }
  return json;
}

Json most_saved_json(const TimelinePanel& panel, bool bytes) {
  std::size_t most = 0;
  double peak = -1;
  std::vector<SavedLevel> levels;
  for (std::size_t rank = 0; rank < panel.ranks(); ++rank) {
    std::vector<SavedLevel> own = saved_levels(panel, rank, bytes);
    const double highest = std::ranges::max_element(own, {}, &SavedLevel::amount)->amount;
    if (highest <= peak * (1 + 1e-9)) continue;
    most = rank, peak = highest, levels = std::move(own);
  }
  Json pairs = Json::array();
  for (const SavedLevel& level : levels) pairs.push_back({level.at, level.amount});
  return {{"rank", most}, {"levels", std::move(pairs)}};
}

}  // namespace concertina
