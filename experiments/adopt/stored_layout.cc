#include "experiments/adopt/stored_layout.h"

#include "experiments/config/schedule_file.h"

namespace concertina {

nlohmann::json layout_json(const Request& request, const Layout& layout) {
  nlohmann::json pipelines = nlohmann::json::array();
  for (const Pipeline& pipeline : layout.pipelines) {
    nlohmann::json stages = nlohmann::json::array();
    for (const auto& [rank, first, last] : pipeline.stages)
      stages.push_back({{"rank", rank}, {"units", {first, last}}});
    pipelines.push_back({{"microbatches", {pipeline.first_microbatch, pipeline.last_microbatch}},
                         {"stages", stages}});
  }
  return {{"schedule", request.schedule}, {"spare", request.spare}, {"pipelines", pipelines}};
}

Request with_stored_layout(Request request, const nlohmann::json& stored) {
  request.schedule = stored.at("schedule");
  request.file.reset();
  if (is_schedule_file(request.schedule)) request.file = read_schedule_file(request.schedule);
  request.spare = stored.at("spare");
  request.pp = request.dp = request.chunks = 0;
  request.layout = {};
  for (const nlohmann::json& one : stored.at("pipelines")) {
    Pipeline& pipeline = request.layout.pipelines.emplace_back();
    pipeline.first_microbatch = one.at("microbatches").at(0);
    pipeline.last_microbatch = one.at("microbatches").at(1);
    for (const nlohmann::json& stage : one.at("stages"))
      pipeline.stages.push_back(
          {stage.at("rank"), stage.at("units").at(0), stage.at("units").at(1)});
  }
  return request;
}

}  // namespace concertina
