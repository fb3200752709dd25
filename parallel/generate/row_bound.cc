#include "parallel/generate/row_bound.h"

#include <algorithm>
#include <queue>
#include <utility>

#include "core/index.h"

namespace concertina {
namespace {

/// An action of a rank: it cannot start before `head`, and `tail` is left once it has ended.
struct HeldAction {
  double head = 0, seconds = 0, tail = 0;
};

/// Jackson's rule: of what can run, that with the longest tail, in place of another at any time.
double interrupted_length(std::vector<HeldAction> jobs) {
  std::ranges::sort(jobs, {}, &HeldAction::head);
  std::priority_queue<std::pair<double, double>> ready;  // tail, seconds that are left
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

}  // namespace concertina
