#include "parallel/plan/infer_layout.h"

#include <algorithm>
#include <map>

#include "parallel/plan/plan_grid.h"

namespace concertina {
namespace {

/// Occurrences of a stage in a plan.
struct Found {
  std::map<int, Place> forwards;      // by rank, the first forward
  std::map<int, int> count;           // by rank, number of forwards
  std::map<int, int> passes;          // by microbatch, number of F and B (or I)
  std::map<int, Place> microbatches;  // by microbatch, the first forward
  int rank = 0;                       // rank with the most forwards
};
using Stages = std::map<int, Found>;

class Inference {
 public:
  Inference(const Plan& plan, const std::string& where) : plan_(plan), where_(where) {}

  Layout run() {
    find_stages();
    require_places();
    Layout layout;
    for (auto first = stages_.cbegin(); first != stages_.cend();) {
      const auto last = end_of_pipeline(first);
      layout.pipelines.push_back(pipeline(first, last, layout));
      first = last;
    }
    return layout;
  }

 private:
  [[noreturn]] void refuse(Rule rule, const std::string& why, std::vector<Place> places) const {
    throw RefusedPlan(plan_, {rule, why, std::move(places)}, "", where_);
  }

  std::string name(Place place) const {
    return fmt::format("rank {} action {} {}", place.rank, place.position,
                       to_text(plan_.rows[place.rank][place.position]));
  }

  void find_stages() {
    for (int rank = 0; rank < std::ssize(plan_.rows); ++rank) {
      for (int position = 0; position < std::ssize(plan_.rows[rank]); ++position) {
        const Action& action = plan_.rows[rank][position];
        if (action.kind != Kind::F && !makes_input_gradient(action.kind)) continue;
        Found& found = stages_[action.stage];
        ++found.passes[action.microbatch];
        if (action.kind != Kind::F) continue;
        found.forwards.try_emplace(rank, Place{rank, position});
        found.microbatches.try_emplace(action.microbatch, Place{rank, position});
        ++found.count[rank];
      }
    }
    std::erase_if(stages_, [](const auto& stage) { return stage.second.forwards.empty(); });
  }

  /// Checks that stages are numbered from 0 without gaps, each on one rank, with one or more per
  /// rank.
  void require_places() {
    if (stages_.empty()) refuse(Rule::cover, "the schedule has no forward pass", {});
    std::vector<int> held(plan_.rows.size(), 0);
    for (auto& [stage, found] : stages_) {
      found.rank = std::max_element(found.count.begin(), found.count.end(), [](auto& a, auto& b) {
                     return a.second < b.second;
                   })->first;
      ++held[found.rank];
    }
    for (const auto& [stage, found] : stages_)
      for (const auto& [rank, place] : found.forwards)
        if (const Place home = found.forwards.at(found.rank); rank != found.rank)
          refuse(
              Rule::placement,
              fmt::format("{}: stage {} is on rank {}, see action {} {}", name(place), stage,
                          home.rank, home.position, to_text(plan_.rows[home.rank][home.position])),
              {place, home});
    int next = 0;
    for (const auto& [stage, found] : stages_)
      if (const Place place = found.forwards.at(found.rank); stage != next++)
        refuse(Rule::range, fmt::format("{}: stage {} has no forward pass", name(place), next - 1),
               {place});
    for (int rank = 0; rank < std::ssize(held); ++rank)
      if (held[rank] == 0)
        refuse(Rule::shape, fmt::format("rank {} has no stage: its row has no forward pass", rank),
               plan_.rows[rank].empty() ? std::vector<Place>{} : std::vector{Place{rank, 0}});
    stages_of_rank_ = std::move(held);
  }

  Stages::const_iterator end_of_pipeline(Stages::const_iterator first) const {
    for (auto last = first++; first != stages_.end(); last = first++) {
      const auto &before = last->second.microbatches, &after = first->second.microbatches;
      const auto shared = std::count_if(after.begin(), after.end(),
                                        [&](auto& entry) { return before.contains(entry.first); });
      if (shared == 0 || 2 * shared < std::min(std::ssize(before), std::ssize(after))) break;
    }
    return first;
  }

  Pipeline pipeline(Stages::const_iterator first, Stages::const_iterator last,
                    const Layout& before) const {
    std::map<int, Place> microbatches;
    std::map<int, int> by_microbatch, by_stage;
    for (auto stage = first; stage != last; ++stage) {
      for (const auto& [microbatch, place] : stage->second.microbatches)
        microbatches.try_emplace(microbatch, place);
      for (const auto& [microbatch, passes] : stage->second.passes) {
        by_stage[stage->first] += passes;
        by_microbatch[microbatch] += passes;
      }
    }
    // A backward without any forward is reported by check().
    std::erase_if(by_microbatch, [&](auto& entry) { return !microbatches.contains(entry.first); });
    const auto depth = static_cast<int>(by_stage.size());
    require_majority(by_microbatch, depth, "microbatch",
                     [&](int m) { return std::optional(microbatches.at(m)); });
    require_majority(by_stage, static_cast<int>(microbatches.size()), "stage", [&](int s) {
      const Found& found = stages_.at(s);
      // A rank that runs no other stage needs this one.
      return stages_of_rank_[found.rank] > 1 ? std::optional(found.forwards.at(found.rank))
                                             : std::nullopt;
    });
    return placed(first, last, microbatches, before);
  }

  /// Rejects the outlier: an item with fewer than half of its `width` F and `width` B, while most
  /// items have more.
  template <class PlaceOf>
  void require_majority(const std::map<int, int>& passes, int width, const char* what,
                        PlaceOf place_of) const {
    const auto odd = [&](const auto& entry) { return entry.second < width; };
    const auto few = std::find_if(passes.begin(), passes.end(), odd);
    if (2 * std::count_if(passes.begin(), passes.end(), odd) >= std::ssize(passes)) return;
    if (few == passes.end()) return;
    if (const std::optional<Place> place = place_of(few->first))
      refuse(Rule::range,
             fmt::format("{} is superfluous, or most of {} {} is missing: it has {} of {} F and B",
                         name(*place), what, few->first, few->second, 2 * width),
             {*place});
  }

  static bool runs(Stages::const_iterator first, Stages::const_iterator last, int microbatch) {
    return std::any_of(first, last,
                       [&](const auto& stage) { return stage.second.passes.contains(microbatch); });
  }

  Pipeline placed(Stages::const_iterator first, Stages::const_iterator last,
                  const std::map<int, Place>& microbatches, const Layout& before) const {
    Pipeline result;
    int next = before.pipelines.empty() ? 0 : before.pipelines.back().last_microbatch;
    result.first_microbatch = next;
    for (const auto& [microbatch, place] : microbatches) {
      if (microbatch < next)
        refuse(Rule::range,
               fmt::format("{}: microbatch {} belongs to another pipeline, and the "
                           "microbatches of this one start at {}",
                           name(place), microbatch, next),
               {place});
      // check() reports the missing forward of a microbatch that has only a backward.
      while (microbatch > next && runs(first, last, next)) ++next;
      if (microbatch > next)
        refuse(Rule::range, fmt::format("{}: microbatch {} has no forward pass", name(place), next),
               {place});
      ++next;
    }
    result.last_microbatch = next;
    for (int unit = 0; first != last; ++first, ++unit)
      result.stages.push_back({first->second.rank, unit, unit + 1});
    return result;
  }

  const Plan& plan_;
  const std::string& where_;
  Stages stages_;
  std::vector<int> stages_of_rank_;
};

}  // namespace

Layout infer_layout(const Plan& plan, const std::string& where) {
  return Inference(plan, where).run();
}

}  // namespace concertina
