#include "experiments/run/layout_json.h"

namespace concertina {

nlohmann::ordered_json to_json(const Layout& layout, StageForm form) {
  auto pipelines = nlohmann::ordered_json::array();
  for (const auto& [placed, first, last] : layout.pipelines) {
    auto stages = nlohmann::ordered_json::array();
    for (const auto& [rank, first_unit, last_unit] : placed)
      if (form == StageForm::named)
        stages.push_back({{"rank", rank}, {"units", {first_unit, last_unit}}});
      else
        stages.push_back({rank, first_unit, last_unit});
    pipelines.push_back({{"microbatches", {first, last}}, {"stages", stages}});
  }
  return pipelines;
}

Layout layout_from(const nlohmann::json& pipelines) {
  Layout layout;
  for (const nlohmann::json& one : pipelines) {
    const nlohmann::json& microbatches = one.at("microbatches");
    Pipeline& pipeline =
        layout.pipelines.emplace_back(Pipeline{{}, microbatches.at(0), microbatches.at(1)});
    for (const nlohmann::json& stage : one.at("stages")) {
      const bool named = stage.is_object();
      const nlohmann::json& rank = named ? stage.at("rank") : stage.at(0);
      const nlohmann::json &first = named ? stage.at("units").at(0) : stage.at(1),
                           &last = named ? stage.at("units").at(1) : stage.at(2);
      pipeline.stages.push_back({rank, first, last});
    }
  }
  return layout;
}

}  // namespace concertina
