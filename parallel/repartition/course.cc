#include "parallel/repartition/course.h"

#include <algorithm>
#include <numeric>

#include "core/error.h"
#include "core/index.h"
#include "parallel/predict/plan_costs.h"

namespace concertina {
namespace {

/// A run between two epochs: its current state and what follows.
class CourseRun {
 public:
  explicit CourseRun(const CourseInput& input)
      : input_(input),
        asked_(input.asked),
        now_(assign(input.job, input.asked)),
        start_(start_of(input.asked, now_)) {}

  /// Freezes `units` for the next `steps_left` steps; `ahead` lists later freezes within them.
  CourseEpoch freeze(int units, std::int64_t steps_left, std::vector<LayoutPeriod> ahead) {
    ahead_ = std::move(ahead);
    CourseEpoch epoch;
    read_ = now_.frozen_units();
    epoch.changed = units != read_;
    if (epoch.changed) epoch.change_s = change(units, steps_left);
    return epoch;
  }

  /// Makes the decision on demand after the first `every` steps of `epoch`, the first epoch.
  void demand(CourseEpoch& epoch, std::int64_t steps_left) {
    const std::int64_t late = std::min(input_.every, epoch.steps);
    if (late == 0) return;
    const double before = step_seconds();
    const Layout layout = now_.layout;
    const double seconds = change(now_.frozen_units(), steps_left - late);
    if (now_.layout == layout) return;
    epoch.change_s += seconds;
    epoch.late_s = static_cast<double>(late) * (before - step_seconds());
  }

  void measure(CourseEpoch& epoch) const {
    const LayoutForecast forecast(input_.job, now_, input_.forecast);
    epoch.step_s = forecast.step_seconds(now_, epoch.changed ? read_ : now_.frozen_units());
    epoch.layout = describe(asked_, now_);
    epoch.batches = now_.batches;
  }

 private:
  double step_seconds() const {
    return LayoutForecast(input_.job, now_, input_.forecast).step_seconds(now_);
  }

  double change(int units, std::int64_t steps_left) {
    const LayoutForecast forecast(input_.job, now_, input_.forecast);
    asked_.frozen_units = units;
    if (!asked_.file) asked_.layout = now_.layout;
    asked_.spare = now_.world - static_cast<int>(now_.working.size());
    Assignment frozen = assign(input_.job, asked_);
    LayoutDecision decision = input_.policy.decide({.job = input_.job,
                                                    .asked = asked_,
                                                    .now = frozen,
                                                    .steps_left = steps_left,
                                                    .options = input_.options,
                                                    .forecast = forecast,
                                                    .start = start_,
                                                    .ahead = ahead_});
    if (decision.next) asked_ = decision.next->request;
    Assignment next = decision.next ? std::move(decision.next->assignment) : std::move(frozen);
    const double seconds = forecast.move_seconds(next);
    now_ = std::move(next);
    return seconds;
  }

  const CourseInput& input_;
  Request asked_;
  Assignment now_;
  const LayoutStart start_;
  std::vector<LayoutPeriod> ahead_;
  int read_ = 0;  // units whose outputs are in the cache when an epoch begins
};

/// Returns the time of filling and draining in gpipe's steps, as a fraction of their work, for any
/// partition: (p - 1) / m, because forwards end before backwards begin. 0 if that is not a bound:
/// with other schedules, several stages per rank, or unequal ranks or pipelines.
double gpipe_fill(const CourseInput& input, const Layout& layout) {
  const Pipeline& one = layout.pipelines.front();
  const bool alike = std::ranges::all_of(layout.pipelines, [&](const Pipeline& other) {
    return other.stages.size() == one.stages.size() && other.microbatches() == one.microbatches();
  });
  if (input.asked.schedule != "gpipe" || !alike || !input.forecast.machine.factors.empty() ||
      std::ssize(working_ranks(layout)) != layout.stage_count())
    return 0;
  return static_cast<double>(one.stages.size() - 1) / one.microbatches();
}

/// Returns the periods after epoch `e`, one per freeze.
std::vector<LayoutPeriod> ahead(const CourseInput& input, const std::vector<int>& layers,
                                const std::vector<std::int64_t>& steps, std::size_t e) {
  std::vector<LayoutPeriod> periods;
  for (std::size_t later = e + 1; later < layers.size(); ++later) {
    const int units = units_of_layers(input.job.model, layers[later]);
    if (layers[later] != layers[later - 1]) periods.push_back({units, 0});
    if (!periods.empty()) periods.back().steps += steps[later];
  }
  return periods;
}

}  // namespace

double seconds_of(const std::vector<CourseEpoch>& epochs) {
  return std::accumulate(epochs.begin(), epochs.end(), 0.0,
                         [](double sum, const CourseEpoch& one) { return sum + one.seconds(); });
}

std::vector<std::int64_t> steps_of_epochs(std::int64_t samples, std::int64_t batch, int epochs) {
  CONCERTINA_CHECK(samples > 0 && batch > 0, "{} samples in batches of {}", samples, batch);
  const auto first = [&](std::int64_t epoch) { return (epoch * samples + batch - 1) / batch; };
  std::vector<std::int64_t> steps;
  for (int epoch = 0; epoch < epochs; ++epoch) steps.push_back(first(epoch + 1) - first(epoch));
  return steps;
}

std::vector<CourseEpoch> predict_course(const CourseInput& input, const std::vector<int>& layers,
                                        const std::vector<std::int64_t>& steps) {
  CONCERTINA_CHECK(layers.size() == steps.size(), "layers for {} epochs, but steps for {}",
                   layers.size(), steps.size());
  CourseRun run(input);
  std::int64_t left = std::accumulate(steps.begin(), steps.end(), std::int64_t{0});
  std::vector<CourseEpoch> epochs;
  for (std::size_t e = 0; e < layers.size(); ++e) {
    if (input.progress) input.progress(e);
    CourseEpoch epoch = run.freeze(units_of_layers(input.job.model, layers[e]), left,
                                   ahead(input, layers, steps, e));
    epoch.layers = layers[e];
    epoch.steps = steps[e];
    if (e == 0) run.demand(epoch, left);
    run.measure(epoch);
    left -= steps[e];
    epochs.push_back(std::move(epoch));
  }
  return epochs;
}

double least_seconds(const CourseInput& input, const std::vector<CourseEpoch>& epochs,
                     bool keeps_grid) {
  ForecastInput known = input.forecast;
  known.cache.read_s_per_sample = 0;
  const Assignment first = assign(input.job, input.asked);
  const LayoutForecast all(input.job, first, known);
  known.machine.load_s = known.machine.norm_s_per_element = known.machine.update_s_per_element = 0;
  known.machine.device.memory_bytes_per_s = 0;
  const LayoutForecast units_alone(input.job, first, known);
  const double fill = keeps_grid ? gpipe_fill(input, first.layout) : 0;
  double seconds = 0;
  int read = 0;
  for (const CourseEpoch& epoch : epochs) {
    const int units = units_of_layers(input.job.model, epoch.layers);
    const auto least = [&](const LayoutForecast& of) {
      return of.least_seconds(units, first.world, epoch.batches, read);
    };
    seconds += static_cast<double>(epoch.steps) *
               std::max(least(all), least(units_alone) * (1 + fill / epoch.batches));
    read = units;
  }
  return seconds;
}

double fixed_share(const Job& job, const Assignment& assignment, const ForecastInput& input) {
  const std::vector<UnitSeconds> units = with_frozen_units(job.model, input.units, 0);
  const Costs costs = plan_costs(job, assignment, units, input.machine);
  const int last = job.model.layer_ends.empty() ? 0 : job.model.layer_ends.back();
  double layers = 0, others = 0;
  for (int u = 0; u < job.units(); ++u) {
    const UnitSeconds& unit = units[at(u)];
    (u < last ? layers : others) += (unit.forward + unit.input + unit.weight) * job.microbatches;
  }
  for (const RankCosts& rank : costs.ranks)
    others += rank.load + rank.norm + rank.update + rank.refresh;
  return others / (layers + others);
}

}  // namespace concertina
