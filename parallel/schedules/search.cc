// The best order found by parallel/generate/search.h for F = I = W = 1 with at most the activations
// that 1F1B keeps on each rank of the same layout. For other costs and bounds, `concertina schedule
// search` writes a schedule file.
#include "parallel/generate/search.h"

#include <algorithm>

#include "parallel/generate/passes.h"
#include "parallel/generate/row_judge.h"

namespace concertina {
namespace {

constexpr std::string_view kName = "search";

Layout layout_of(const PipelineShape& shape) {
  Pipeline pipeline;
  for (int stage = 0; stage < shape.stages(); ++stage)
    pipeline.stages.push_back(
        {shape.stage_rank[static_cast<std::size_t>(stage)], stage, stage + 1});
  pipeline.last_microbatch = shape.microbatches;
  return {{pipeline}};
}

int peak(const Plan& plan) {
  double most = 0;
  for (const std::vector<Action>& row : plan.rows) most = std::max(most, kept_peak(row));
  return static_cast<int>(most);
}

Rows generate(const PipelineShape& shape) {
  const Layout layout = layout_of(shape);
  SearchBounds bounds;
  bounds.effort = 1'000'000;  // runs in every launch, on every rank
  bounds.peak_activations.assign(static_cast<std::size_t>(shape.ranks),
                                 peak(expand(layout, find_schedule("1f1b").value, kName)));
  return search(layout, unit_costs(layout), named_plans(layout), bounds).plan.rows;
}

}  // namespace

Schedule schedule_search() {
  return {.generate = generate,
          .any_layout = true,
          .searched = true,
          .about = "the best order found for F = I = W, with the memory of 1f1b"};
}

}  // namespace concertina
