#include "tests/parallel_runtime/test_rank.h"

#include <string>

#include "core/error.h"

namespace concertina {

Job tied_job(int units, int own, int tied, int microbatches, int leaves, int rows,
             std::vector<std::string> reads) {
  reads.resize(static_cast<std::size_t>(units));
  Job job{.model = {}, .microbatches = microbatches, .leaves = leaves};
  job.model.samples = 1;
  for (int u = 0; u < units; ++u) {
    UnitSpec& unit = job.model.units.emplace_back();
    unit.name = std::to_string(u);
    unit.parameters.push_back({"own", {own}, false, {}, ""});
    if (u == 0 || u == units - 1) unit.parameters.push_back({"tied", {tied}, false, {}, "tied"});
    if (const std::string& field = reads[u]; !field.empty())
      unit.reads.push_back({field, DType::i32, {rows}});
  }
  return job;
}

void NumberedRows::load(std::int64_t, std::int64_t first, std::int64_t count,
                        std::span<const View> views) {
  for (std::size_t f = 0; f < views.size(); ++f) {
    const std::int64_t rows = fields_[f].elements();
    if (!views[f].empty())
      for (std::int64_t i = 0; i < count * rows; ++i)
        views[f].i32()[i] = static_cast<std::int32_t>(first * rows + i);
  }
}

TestRank::TestRank(const Plan& plan, const Layout& layout, Job job, Communicator& world,
                   const MakeStage& make_stage)
    : world_(world),
      job_(std::move(job)),
      assignment_(make_assignment(job_, layout, plan)),
      backend_(make_cpu_backend(1)),
      exchange_(job_, assignment_, world.rank()),
      executor_(layout, plan, make_stages(layout, make_stage), world.rank(), job_.microbatches,
                backend_->clock()),
      batch_(job_, layout, world.rank()) {
  groups_ = std::make_unique<Groups>(world, assignment_);
  const std::size_t bytes =
      executor_.saved_bytes() + executor_.boundary_bytes() + executor_.loss_bytes();
  arena_.reserve(bytes + exchange_.sum_bytes() + exchange_.staging_bytes() + batch_.bytes());
  executor_.attach(arena_, host_memory());
  CONCERTINA_CHECK(arena_.used() == bytes, "the executor takes other memory than it says");
  exchange_.attach(arena_);
  batch_.attach(arena_, host_memory());
  NumberedRows rows(job_);
  batch_.load(0, job_.microbatches, rows);
  exchange_.connect(*groups_, *backend_);
  executor_.connect(world, exchange_, nullptr);
}

std::vector<Stage*> TestRank::make_stages(const Layout& layout, const MakeStage& make_stage) {
  std::vector<Stage*> result;
  for (int s = 0; s < layout.stage_count(); ++s) {
    const StagePlacement& at = layout.stage(s);
    stages_.push_back(at.rank == world_.rank() ? make_stage(at, buckets(), layout.frozen_units)
                                               : nullptr);
    result.push_back(stages_.back().get());
  }
  return result;
}

}  // namespace concertina
