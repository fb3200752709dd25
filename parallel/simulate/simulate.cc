#include "parallel/simulate/simulate.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <utility>

#include "core/error.h"
#include "core/index.h"
#include "parallel/plan/plan_memory.h"
#include "parallel/simulate/simulation.h"

namespace concertina {

Simulation::Simulation(const Plan& plan, const Layout& layout, const Costs& costs)
    : plan_(plan),
      costs_(costs),
      stages_(stage_infos(layout)),
      compute_(static_cast<int>(plan.rows.size())),
      links_(costs, compute_),
      messages_(stages_, costs, links_, [this](int rank, double time) { return look(rank, time); }),
      buckets_(layout, costs, rank_count()),
      ranks_(plan.rows.size()) {
  row_begin_.push_back(0);
  for (const std::vector<Action>& row : plan.rows) {
    row_begin_.push_back(row_begin_.back() + static_cast<int>(row.size()));
    timeline_.rows.emplace_back(row.size());
    transfers_ =
        transfers_ || (!costs.latency_alone && std::ranges::any_of(row, [](const Action& action) {
          return is_transfer(action.kind);
        }));
    if (!row.empty() && row.back().kind == Kind::STEP) ++steps_left_;
    const auto last = std::find_if(row.rbegin(), row.rend(),
                                   [](const Action& action) { return is_compute(action.kind); });
    ranks_[timeline_.rows.size() - 1].tail = static_cast<std::size_t>(row.rend() - last);
  }
  for (std::size_t stage = 0; stage < stages_.size(); ++stage)
    ranks_[at(stages_[stage].rank)].stages.push_back(static_cast<int>(stage));
  delays_.resize(at(row_begin_.back()));
}

int Simulation::node(int rank) const {
  return row_begin_[at(rank)] + static_cast<int>(ranks_[at(rank)].position);
}

double Simulation::next_time() const {
  const double exchange = buckets_.next_time();
  return events_.empty() ? exchange : std::min(exchange, events_.top().time);
}

Timeline Simulation::run() && {
  for (int rank = 0; rank < rank_count(); ++rank) {
    if (!costs_.ranks.empty()) ranks_[at(rank)].clock = costs_.ranks[at(rank)].load;
    events_.push({ranks_[at(rank)].clock, rank});
  }
  for (double time = next_time(); std::isfinite(time); time = next_time()) {
    if (events_.empty() || time < events_.top().time) {
      for (const int rank : buckets_.advance(links_)) events_.push({time, rank});
      continue;
    }
    const Event event = events_.top();
    events_.pop();
    if (event.who < rank_count())
      run_rank(event.who);
    else
      proceed(event.who - rank_count(), event.time);
  }
  for (int rank = 0; rank < rank_count(); ++rank)
    CONCERTINA_CHECK(ranks_[at(rank)].position == plan_.rows[at(rank)].size(),
                     "the plan deadlocks; check it before simulating");
  for (const auto& [rank, interval] : steps_) timeline_.rows[at(rank)].back() = interval;
  complete(timeline_, plan_, stages_, costs_, delays_, row_begin_);
  return std::move(timeline_);
}

void Simulation::run_rank(int rank) {
  while (perform(rank))
    if (next_time() < ranks_[at(rank)].clock) return events_.push({ranks_[at(rank)].clock, rank});
}

bool Simulation::perform(int rank) {
  if (post_outputs(rank)) return true;
  Rank& mine = ranks_[at(rank)];
  const std::vector<Action>& row = plan_.rows[at(rank)];
  if (mine.position == row.size()) return false;
  const Action& action = row[mine.position];
  if (is_compute(action.kind)) return compute(rank, action.overlapped ? 2 : 1);
  const double start = mine.clock;
  if (!other(rank, action)) return false;
  timeline_.rows[at(rank)][mine.position++] = {start, mine.clock};
  return true;
}

bool Simulation::compute(int rank, int count) {
  Rank& mine = ranks_[at(rank)];
  const std::vector<Action>& row = plan_.rows[at(rank)];
  const std::span<const Action> actions(&row[mine.position], at(count));
  UnderWay& one = mine.under_way;
  const bool begins = one.seconds < 0;
  if (begins) {
    for (const Action& action : actions)
      if (!await(rank, action)) return false;
    for (const Action& action : actions) copy_input(rank, action);
    one = {mine.clock, 0};
    for (const Action& action : actions) one.seconds += costs_.seconds(action);
  }
  const double end = compute_.end(rank, one.start, one.seconds);
  const bool over = end <= mine.clock;
  mine.clock = end;
  if (begins)
    for (const Action& action : actions) start_reductions(rank, action);
  if (!over) return true;
  for (const Action& action : actions) {
    if (Outbox* outbox = outbox_of(rank, action)) ++outbox->taken;
    keep_outputs(rank, action);
    timeline_.rows[at(rank)][mine.position++] = {one.start, end};
  }
  one = {};
  return true;
}

void Simulation::start_reductions(int rank, const Action& action) {
  if (!makes_weight_gradient(action.kind)) return;
  buckets_.gradient(action.stage, ranks_[at(rank)].clock, node(rank));
}

bool Simulation::other(int rank, const Action& action) {
  if (action.kind == Kind::STEP) return step(rank);
  if (is_transfer(action.kind)) return !transfers_ || post(rank, action);
  return ranks_[at(rank)].position < ranks_[at(rank)].tail || reduced(rank, action.stage);
}

bool Simulation::reduced(int rank, int stage) {
  int late = -1;
  const bool all = buckets_.reduce(rank, stage, ranks_[at(rank)].clock, late);
  if (late >= 0) delays_[at(node(rank))] = {late, Wait::reduction};
  return all;
}

bool Simulation::step(int rank) {
  for (const int stage : ranks_[at(rank)].stages)
    if (!reduced(rank, stage)) return false;
  in_step_.push_back(rank);
  if (--steps_left_ > 0) return true;
  int latest = rank;
  double start = 0;
  for (const int one : in_step_)
    if (const double met = ranks_[at(one)].clock + norm(one); met > start) {
      start = met;
      latest = one;
    }
  if (rank_count() > 1) start += (costs_.hosts.empty() ? costs_.local : costs_.remote).latency;
  const std::vector<double> ends = buckets_.update(start, links_);
  for (const int one : in_step_) {
    const int last = static_cast<int>(plan_.rows[at(one)].size()) - 1;
    const int latest_node = row_begin_[at(latest) + 1] - 1;
    if (one != latest && latest_node > row_begin_[at(latest)])
      delays_[at(row_begin_[at(one)] + last)] = {latest_node - 1, Wait::all_ranks};
    steps_.emplace_back(one, Interval{start - norm(one), ends[at(one)]});
  }
  return true;
}

Timeline simulate(const Plan& plan, const Layout& layout, const Costs& costs) {
  CONCERTINA_CHECK(static_cast<int>(costs.stages.size()) == layout.stage_count(),
                   "costs for {} stages instead of {}", costs.stages.size(), layout.stage_count());
  CONCERTINA_CHECK(costs.is_finite(), "costs are not finite numbers");
  return Simulation(plan, layout, costs).run();
}

}  // namespace concertina
