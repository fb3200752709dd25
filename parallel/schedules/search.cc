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
  const int stages = shape.stages();
  Layout layout = make_layout(single_units(stages), {stages, 1}, shape.microbatches, 1);
  for (std::size_t stage = 0; stage < shape.stage_rank.size(); ++stage)
    layout.pipelines[0].stages[stage].rank = shape.stage_rank[stage];
  return layout;
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
