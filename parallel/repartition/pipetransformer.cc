// AutoPipe and AutoDP of PipeTransformer (He et al., ICML 2021, algorithm 1): after a freeze,
// stages are filled with units in order, by number of parameters; frozen ones count as a sixth.
// The number of stages is halved as long as the largest stage stays smaller than the largest one at
// the start; the freed ranks become replicas. A stage is filled up to the mean size per remaining
// stage. The variance that the paper adds to the mean as slack is omitted: its unit differs.
#include <algorithm>
#include <numeric>

#include "core/index.h"
#include "core/text/number_text.h"
#include "parallel/repartition/grown_batch.h"

namespace concertina {
namespace {

constexpr double kFrozenWeight = 1.0 / 6;

std::vector<double> unit_sizes(const Job& job, int frozen) {
  std::vector<double> sizes;
  for (int u = 0; u < job.units(); ++u) {
    double parameters = 0;
    for (const ParameterSpec& parameter : job.model.units[at(u)].parameters)
      parameters += static_cast<double>(parameter.count());
    sizes.push_back(u < frozen ? kFrozenWeight * parameters : parameters);
  }
  return sizes;
}

/// Fills each stage with units up to the mean size per remaining stage, with at least one unit,
/// leaving one for each following stage.
std::vector<UnitRange> fill(const std::vector<double>& sizes, int stages) {
  const int units = static_cast<int>(sizes.size());
  double left = std::accumulate(sizes.begin(), sizes.end(), 0.0);
  std::vector<UnitRange> ranges;
  for (int stage = 0, first = 0; stage < stages; ++stage) {
    const double mean = left / (stages - stage);
    const int limit = units - (stages - stage - 1);
    int last = first + 1;
    double size = sizes[at(first)];
    for (; last < limit && (stage + 1 == stages || size + sizes[at(last)] <= mean); ++last)
      size += sizes[at(last)];
    ranges.push_back({first, last});
    left -= size;
    first = last;
  }
  return ranges;
}

double largest(const std::vector<double>& sizes, const std::vector<UnitRange>& ranges) {
  double most = 0;
  for (const UnitRange& range : ranges)
    most = std::max(most,
                    std::accumulate(sizes.begin() + range.first, sizes.begin() + range.last, 0.0));
  return most;
}

bool one_stage_per_rank(const Request& request) {
  if (request.file) return false;
  const Folding folding = folding_of(request);
  return folding.chunks == 1 && folding.placement == Placement::loop;
}

/// Returns the number of batches per step with pipelines of `depth` stages on the initial number of
/// ranks, so that results are bit-identical if the run resumes on a different number.
int batches_at(const LayoutView& view, int depth) {
  if (!view.options.grows) return view.asked.batches;
  for (int replicas = std::max(1, view.start.world / depth);; --replicas) {
    const int batches = grown_batches(replicas, view.start.replicas, view.steps_left);
    if (replicas <= view.job.leaves * batches) return batches;
  }
}

LayoutDecision decide(const LayoutView& view) {
  LayoutDecision decision{.step_seconds = view.forecast.step_seconds(view.now)};
  if (!one_stage_per_rank(view.asked)) {
    decision.reason = "this policy is for registered schedules with one stage per rank";
    return decision;
  }
  const std::vector<double> all = unit_sizes(view.job, view.start.frozen_units),
                            now = unit_sizes(view.job, view.now.frozen_units());
  const double limit = largest(all, fill(all, view.start.stages));
  int depth = view.start.stages;
  while (depth >= 2 && largest(now, fill(now, depth / 2)) < limit) depth /= 2;
  Request request = view.asked;
  request.batches = batches_at(view, depth);
  const int leaves = view.job.leaves * request.batches;
  const Grid grid{std::min(depth, view.now.world),
                  std::min(view.now.world / std::min(depth, view.now.world), leaves)};
  request.spare = view.now.world - grid.pp * grid.dp;
  request.layout =
      make_layout(fill(now, grid.pp), grid, view.job.microbatches * request.batches, leaves);
  Assignment next = assign(view.job, request);
  decision.reason = fmt::format(
      "the largest of {} would have {:.4g} million parameters, with frozen ones counted "
      "as a sixth; at the start it had {:.4g}",
      counted(depth, "stage"), largest(now, fill(now, depth)) * 1e-6, limit * 1e-6);
  if (next.layout == view.now.layout) return decision;
  if (const std::string refusal = view.forecast.refusal(next); !refusal.empty())
    decision.reason = fmt::format("{} is not possible: {}", describe(request, next), refusal);
  else
    decision.next = choice_of(view, std::move(request), std::move(next));
  return decision;
}

}  // namespace

LayoutPolicy layout_policy_pipetransformer() {
  return {.decide = decide,
          .about =
              "half as many stages, as long as the largest has fewer parameters than at the start "
              "(frozen ones count as a sixth), and more replicas (PipeTransformer, He et al. "
              "2021, algorithm 1)"};
}

}  // namespace concertina
