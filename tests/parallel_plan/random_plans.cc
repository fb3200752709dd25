#include "tests/parallel_plan/random_plans.h"

#include <algorithm>
#include <map>

namespace concertina {
namespace {

int below(int count, std::mt19937& random) {
  return static_cast<int>(random() % static_cast<unsigned>(std::max(1, count)));
}

/// The actions of one microbatch in a stage, and their dependencies within the row.
class RowMaker {
 public:
  RowMaker(const Layout& layout, int rank, int disorder, std::mt19937& random)
      : disorder_(disorder), random_(random) {
    int s = 0;
    for (const Pipeline& pipeline : layout.pipelines) {
      for (int i = 0; i < std::ssize(pipeline.stages); ++i, ++s) {
        if (pipeline.stages[i].rank != rank) continue;
        const int last = static_cast<int>(pipeline.stages.size()) - 1;
        const int previous = i > 0 ? pipeline.stages[i - 1].rank : -1;
        const int next = i < last ? pipeline.stages[i + 1].rank : -1;
        for (int m = pipeline.first_microbatch; m < pipeline.last_microbatch; ++m)
          add_cell(rank, s, m, previous, next);
        add({Kind::REDUCE, s, -1}, ends_[s]);
      }
    }
  }

  std::vector<Action> make() {
    std::vector<Action> row;
    while (!needs_.empty()) {
      std::vector<Action> ready;
      for (const auto& [action, needs] : needs_) {
        const auto done = [&](const Action& one) {
          return std::find(row.begin(), row.end(), one) != row.end();
        };
        if (std::all_of(needs.begin(), needs.end(), done)) ready.push_back(action);
      }
      // Mostly in ascending order of microbatches; otherwise, rows would hardly ever match.
      std::shuffle(ready.begin(), ready.end(), random_);
      if (below(100, random_) >= disorder_)
        std::stable_sort(ready.begin(), ready.end(), [](const Action& a, const Action& b) {
          return a.microbatch < b.microbatch;
        });
      row.push_back(ready.front());
      std::erase_if(needs_, [&](const auto& entry) { return entry.first == row.back(); });
    }
    row.push_back({Kind::STEP, 0, -1});
    return row;
  }

 private:
  void add(Action action, std::vector<Action> needs) {
    needs_.emplace_back(action, std::move(needs));
  }
  Action gradient(int s, int m) {  // B, or I if split
    const auto [it, fresh] = split_.try_emplace({s, m}, random_() % 2 == 0);
    return {it->second ? Kind::I : Kind::B, s, m};
  }

  void add_cell(int rank, int s, int m, int previous, int next) {
    const Action forward{Kind::F, s, m}, backward = gradient(s, m);
    std::vector<Action> forward_needs, backward_needs{forward};
    if (previous == rank) forward_needs.push_back({Kind::F, s - 1, m});
    if (next == rank) backward_needs.push_back(gradient(s + 1, m));
    if (previous >= 0 && previous != rank) {
      add({Kind::RECV_F, s, m}, {});
      add({Kind::SEND_B, s, m}, {backward});
      forward_needs.push_back({Kind::RECV_F, s, m});
    }
    if (next >= 0 && next != rank) {
      add({Kind::RECV_B, s, m}, {});
      add({Kind::SEND_F, s, m}, {forward});
      backward_needs.push_back({Kind::RECV_B, s, m});
    }
    add(forward, forward_needs);
    add(backward, backward_needs);
    if (backward.kind == Kind::I) add({Kind::W, s, m}, {backward});
    ends_[s].push_back(backward.kind == Kind::I ? Action{Kind::W, s, m} : backward);
  }

  const int disorder_;  // percentage of random choices
  std::mt19937& random_;
  std::vector<std::pair<Action, std::vector<Action>>> needs_;  // remaining actions
  std::map<std::pair<int, int>, bool> split_;                  // by stage and microbatch
  std::map<int, std::vector<Action>> ends_;                    // W or B, by stage
};

}  // namespace

Plan random_plan(const Layout& layout, std::mt19937& random) {
  int ranks = 0;
  for (const Pipeline& pipeline : layout.pipelines)
    for (const StagePlacement& stage : pipeline.stages) ranks = std::max(ranks, stage.rank + 1);
  const int disorder = 5 * below(5, random);
  Plan plan;
  for (int rank = 0; rank < ranks; ++rank)
    plan.rows.push_back(RowMaker(layout, rank, disorder, random).make());
  return plan;
}

Plan edit(Plan plan, Edit edit, std::mt19937& random) {
  std::vector<Action>& row = plan.rows[below(static_cast<int>(plan.rows.size()), random)];
  const int count = static_cast<int>(row.size());
  if (count == 0) return plan;
  const int at = below(count, random);
  const int near = std::clamp(at - 3 + below(7, random), 0, count - 1);
  Action action = row[at];
  switch (edit) {
    case Edit::swap:
      std::swap(row[at], row[random() % 4 == 0 ? below(count, random) : near]);
      break;
    case Edit::drop:
      row.erase(row.begin() + at);
      break;
    case Edit::duplicate:
      row.insert(row.begin() + near, action);
      break;
    case Edit::shift:
      row.erase(row.begin() + at);
      row.insert(row.begin() + near, action);
      break;
    case Edit::misplace: {
      const int how = below(3, random);
      if (how == 0) {
        std::vector<Action>& other = plan.rows[below(static_cast<int>(plan.rows.size()), random)];
        row.erase(row.begin() + at);
        other.insert(other.begin() + below(static_cast<int>(other.size()) + 1, random), action);
      } else {
        (how == 1 ? row[at].stage : row[at].microbatch) += random() % 2 == 0 ? 1 : -1;
      }
    }
  }
  return plan;
}

}  // namespace concertina
