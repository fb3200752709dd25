#include "parallel/generate/row_judge.h"

#include <algorithm>
#include <limits>
#include <queue>
#include <utility>

#include "core/index.h"

namespace concertina {
namespace {

/// An action of a rank that cannot start before `head` and is followed by at least `tail`.
struct HeldAction {
  double head = 0, seconds = 0, tail = 0;
};

/// Jackson's rule with preemption: of the available actions, run the one with the longest tail.
double interrupted_length(std::vector<HeldAction> jobs) {
  std::ranges::sort(jobs, {}, &HeldAction::head);
  std::priority_queue<std::pair<double, double>> ready;  // tail, remaining seconds
  double now = 0, length = 0;
  for (std::size_t next = 0; next < jobs.size() || !ready.empty();) {
    if (ready.empty()) now = std::max(now, jobs[next].head);
    for (; next < jobs.size() && jobs[next].head <= now; ++next)
      ready.emplace(jobs[next].tail, jobs[next].seconds);
    const auto [tail, left] = ready.top();
    ready.pop();
    const double until = next < jobs.size() ? std::min(jobs[next].head, now + left) : now + left;
    if (until < now + left)
      ready.emplace(tail, left - (until - now));
    else
      length = std::max(length, until + tail);
    now = until;
  }
  return length;
}

/// Stages [first, last] of one pipeline.
class Chains {
 public:
  Chains(const RowJudge& judge, int first, int last)
      : judge_(judge), first_(first), last_(last), count_(microbatches()) {
    for (std::vector<HeldAction>* kind : {&forward_, &input_, &weight_})
      kind->resize(at((last - first + 1) * count_));
    for (int s = first; s <= last; ++s)
      for (int m = 0; m < count_; ++m) forward_head(s, m);
    for (int s = last; s >= first; --s)
      for (int m = 0; m < count_; ++m) gradient_heads(s, m);
    for (int s = first; s <= last; ++s)
      for (int m = count_ - 1; m >= 0; --m) gradient_tails(s, m);
    for (int s = last; s >= first; --s)
      for (int m = count_ - 1; m >= 0; --m) forward_tail(s, m);
  }

  void add_to(std::vector<std::vector<HeldAction>>& ranks) const {
    for (int s = first_; s <= last_; ++s)
      for (int m = 0; m < count_; ++m)
        for (const std::vector<HeldAction>* kind : {&forward_, &input_, &weight_})
          ranks[at(judge_.stages()[at(s)].rank)].push_back((*kind)[cell(s, m)]);
  }

 private:
  int microbatches() const {
    const StageInfo& stage = judge_.stages()[at(first_)];
    return stage.last_microbatch - stage.first_microbatch;
  }
  std::size_t cell(int stage, int m) const { return at((stage - first_) * count_ + m); }
  static double end(const HeldAction& job) { return job.head + job.seconds; }
  static double rest(const HeldAction& job) { return job.seconds + job.tail; }

  void forward_head(int s, int m) {
    HeldAction& job = forward_[cell(s, m)];
    job.seconds = judge_.seconds({Kind::F, s, 0});
    if (m > 0) job.head = end(forward_[cell(s, m - 1)]);
    if (s > first_)
      job.head = std::max(job.head, end(forward_[cell(s - 1, m)]) + judge_.message(s - 1, s));
  }
  void gradient_heads(int s, int m) {
    HeldAction &input = input_[cell(s, m)], &weight = weight_[cell(s, m)];
    input.seconds = judge_.seconds({Kind::I, s, 0});
    weight.seconds = judge_.seconds({Kind::W, s, 0});
    input.head = end(forward_[cell(s, m)]);
    if (m > 0) input.head = std::max(input.head, end(input_[cell(s, m - 1)]));
    if (s < last_)
      input.head = std::max(input.head, end(input_[cell(s + 1, m)]) + judge_.message(s + 1, s));
    weight.head = end(input);
    if (m > 0) weight.head = std::max(weight.head, end(weight_[cell(s, m - 1)]));
  }
  void gradient_tails(int s, int m) {
    HeldAction &input = input_[cell(s, m)], &weight = weight_[cell(s, m)];
    if (m + 1 < count_) weight.tail = rest(weight_[cell(s, m + 1)]);
    input.tail = rest(weight);
    if (m + 1 < count_) input.tail = std::max(input.tail, rest(input_[cell(s, m + 1)]));
    if (s > first_)
      input.tail = std::max(input.tail, judge_.message(s, s - 1) + rest(input_[cell(s - 1, m)]));
  }
  void forward_tail(int s, int m) {
    HeldAction& job = forward_[cell(s, m)];
    job.tail = rest(input_[cell(s, m)]);
    if (m + 1 < count_) job.tail = std::max(job.tail, rest(forward_[cell(s, m + 1)]));
    if (s < last_)
      job.tail = std::max(job.tail, judge_.message(s, s + 1) + rest(forward_[cell(s + 1, m)]));
  }

  const RowJudge& judge_;
  const int first_, last_, count_;
  std::vector<HeldAction> forward_, input_, weight_;  // by cell
};

}  // namespace

double least_length(const RowJudge& judge, Objective objective) {
  std::vector<std::vector<HeldAction>> ranks(at(judge.ranks()));
  for (int first = 0, s = 0; s < std::ssize(judge.stages()); ++s)
    if (judge.stages()[at(s)].last) {
      Chains(judge, first, s).add_to(ranks);
      first = s + 1;
    }
  double least = 0;
  for (std::vector<HeldAction>& jobs : ranks) {
    if (objective == Objective::span)
      for (HeldAction& job : jobs) job.head = job.tail = 0;
    least = std::max(least, interrupted_length(std::move(jobs)));
  }
  return least;
}

RowJudge::RowJudge(const Layout& layout, const Costs& costs)
    : costs_(costs), stages_(stage_infos(layout)), ranks_(rank_count(layout)) {
  cell_begin_.push_back(0);
  for (const StageInfo& stage : stages_)
    cell_begin_.push_back(cell_begin_.back() + stage.last_microbatch - stage.first_microbatch);
  forward_end_.resize(at(cell_begin_.back()));
  gradient_end_.resize(at(cell_begin_.back()));
  position_.resize(at(ranks_));
  clock_.resize(at(ranks_));
  begin_.resize(at(ranks_));
}

int RowJudge::cell(const Action& action) const {
  return cell_begin_[at(action.stage)] + action.microbatch -
         stages_[at(action.stage)].first_microbatch;
}

double RowJudge::message(int from_stage, int to_stage) const {
  const int from = stages_[at(from_stage)].rank, to = stages_[at(to_stage)].rank;
  if (from == to) return 0;
  const LinkCosts& link = costs_.link(from, to);
  return 2 * costs_.post + link.latency +
         costs_.boundary_bytes * (1 / link.bandwidth + link.send_cpu + link.receive_cpu);
}

double RowJudge::input_end(const Action& action) const {
  const int own = cell(action);
  const StageInfo& stage = stages_[at(action.stage)];
  if (action.kind == Kind::W) return gradient_end_[at(own)];
  double end = 0;
  if (action.kind == Kind::I) end = forward_end_[at(own)];
  if (end < 0) return end;
  const bool forward = action.kind == Kind::F;
  if (forward ? stage.first : stage.last) return end;
  const int neighbor = action.stage + (forward ? -1 : 1);
  const double made =
      (forward ? forward_end_
               : gradient_end_)[at(cell({action.kind, neighbor, action.microbatch}))];
  return made < 0 ? made : std::max(end, made + message(neighbor, action.stage));
}

double RowJudge::makespan(const std::vector<std::vector<Action>>& rows) {
  std::fill(forward_end_.begin(), forward_end_.end(), -1.0);
  std::fill(gradient_end_.begin(), gradient_end_.end(), -1.0);
  std::fill(position_.begin(), position_.end(), 0);
  std::fill(clock_.begin(), clock_.end(), 0.0);
  bool moved = true, open = true;
  while (moved && open) {
    moved = open = false;
    for (int rank = 0; rank < ranks_; ++rank) {
      const std::vector<Action>& row = rows[at(rank)];
      for (std::size_t& i = position_[at(rank)]; i < row.size(); ++i, moved = true) {
        const double ready = input_end(row[i]);
        if (ready < 0) break;
        const double start = std::max(ready, clock_[at(rank)]), end = start + seconds(row[i]);
        if (i == 0) begin_[at(rank)] = start;
        clock_[at(rank)] = end;
        if (row[i].kind == Kind::F) forward_end_[at(cell(row[i]))] = end;
        if (row[i].kind == Kind::I) gradient_end_[at(cell(row[i]))] = end;
      }
      open = open || position_[at(rank)] < row.size();
    }
  }
  if (open) return std::numeric_limits<double>::infinity();
  return *std::max_element(clock_.begin(), clock_.end());
}

double RowJudge::length(const std::vector<std::vector<Action>>& rows, Objective objective) {
  const double seconds = makespan(rows);
  if (objective == Objective::step || seconds == std::numeric_limits<double>::infinity())
    return seconds;
  double span = 0;
  for (std::size_t rank = 0; rank < rows.size(); ++rank)
    if (!rows[rank].empty()) span = std::max(span, clock_[rank] - begin_[rank]);
  return span;
}

double kept_peak(const std::vector<Action>& row, double kept_for_weight) {
  // Counts whole microbatches and those between I and W separately, to avoid rounding errors.
  int whole = 0, after = 0;
  double most = 0;
  for (const Action& action : row) {
    if (action.kind == Kind::F) ++whole;
    if (action.kind == Kind::I) --whole, ++after;
    if (action.kind == Kind::W) --after;
    if (action.kind == Kind::B) --whole;
    most = std::max(most, whole + kept_for_weight * after);
  }
  return most;
}

}  // namespace concertina
