#include "experiments/planner/plan_candidate.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>
#include <span>

#include "core/error.h"
#include "core/number_text.h"
#include "parallel/generate/schedule_registry.h"

namespace concertina {
namespace {

constexpr int kMostTp = 8;
constexpr int kMostChunks = 16;

template <class T>
bool tried(const std::vector<T>& list, const T& value) {
  return list.empty() || std::find(list.begin(), list.end(), value) != list.end();
}

std::vector<int> divisors(int number) {
  std::vector<int> result;
  for (int i = 1; i <= number; ++i)
    if (number % i == 0) result.push_back(i);
  return result;
}

/// A schedule of two opposite pipelines keeps all weights twice; one that is found by search takes
/// too long.
bool is_searchable(const Entry<Schedule>& schedule) {
  return !schedule.value.searched && schedule.value.placement != Placement::opposite;
}

/// The chunks per rank that fit `pp` ranks.
std::vector<int> chunks_of(const Entry<Schedule>& schedule, int pp, const RunConfig& config,
                           const Software& software, const SearchSpace& space) {
  const Chunks& chunks = schedule.value.chunks;
  const int layers = config.model.layers;
  std::vector<int> result;
  if (pp % schedule.value.rank_step != 0) return result;
  for (int v = chunks.step; v <= std::min({chunks.most, kMostChunks, layers / pp});
       v += chunks.step) {
    const bool equal = layers % (pp * v) == 0;
    if (tried(space.chunks, v) && (equal || (!software.equal_layers && v == chunks.usual)))
      result.push_back(v);
  }
  // On one rank all orders are alike; more than one chunk without a pipeline is none.
  if (pp == 1 && (schedule.name != "1f1b" || result != std::vector<int>{1}))
    result.assign(schedule.name == "1f1b" && tried(space.chunks, 1), 1);
  return result;
}

class Enumeration {
 public:
  Enumeration(const RunConfig& config, const Software& software, const SearchSpace& space)
      : config_(config), software_(software), space_(space) {}

  std::vector<PlanCandidate> run() {
    const int host = space_.ranks_per_host > 0 ? space_.ranks_per_host : space_.world;
    for (int tp = 1; tp <= std::min(kMostTp, host); tp *= 2)
      if (space_.world % tp == 0 && host % tp == 0 && config_.model.heads % tp == 0 &&
          tried(space_.tp, tp))
        add_tp(tp);
    return std::move(found_);
  }

 private:
  void add_tp(int tp) {
    const int ranks = space_.world / tp;
    for (const int pp : divisors(ranks)) {
      if (pp > config_.model.layers || !tried(space_.pp, pp)) continue;
      const int dp = ranks / pp;
      if (config_.batch.global % dp != 0) continue;
      for (const int samples : divisors(config_.batch.global / dp))
        if (tried(space_.samples, samples))
          add_schedules({.tp = tp, .pp = pp, .dp = dp, .samples = samples});
    }
  }

  void add_schedules(PlanCandidate candidate) {
    for (const Entry<Schedule>& schedule : schedules()) {
      if (!is_searchable(schedule) || !tried(space_.schedules, std::string(schedule.name)))
        continue;
      candidate.schedule = schedule.name;
      for (const int chunks : chunks_of(schedule, candidate.pp, config_, software_, space_)) {
        candidate.chunks = chunks;
        for (const Recompute recompute : {Recompute::none, Recompute::selective, Recompute::full}) {
          // Without scores in memory there is nothing that selective recomputation would save.
          if (recompute == Recompute::selective && !software_.keeps_scores) continue;
          candidate.recompute = recompute;
          if (tried(space_.recompute, recompute)) found_.push_back(candidate);
        }
      }
    }
  }

  const RunConfig& config_;
  const Software& software_;
  const SearchSpace& space_;
  std::vector<PlanCandidate> found_;
};

}  // namespace

std::string to_text(const PlanCandidate& candidate) {
  return fmt::format("tp{} pp{} dp{} {}{}, microbatches of {}, {}", candidate.tp, candidate.pp,
                     candidate.dp, candidate.schedule,
                     candidate.chunks > 1 ? fmt::format(" v{}", candidate.chunks) : "",
                     candidate.samples,
                     candidate.recompute == Recompute::none
                         ? "no recomputation"
                         : fmt::format("{} recomputation", name_of(candidate.recompute)));
}

Recompute find_recompute(std::string_view name) {
  constexpr std::array kAll = {Entry<Recompute>{"none", Recompute::none},
                               Entry<Recompute>{"selective", Recompute::selective},
                               Entry<Recompute>{"full", Recompute::full}};
  return lookup(std::span<const Entry<Recompute>>(kAll), name, "recomputation", "--recompute");
}

namespace {

/// The one option without which there would be layouts, named with the values that would do.
void refuse_option(const RunConfig& config, const Software& software, const SearchSpace& space) {
  const auto refuse = [&](const char* option, const auto& given, auto list, const auto& value_of) {
    if (given.empty()) return;
    SearchSpace wider = space;
    (wider.*list).clear();
    std::set<decltype(value_of(PlanCandidate{}))> values;
    for (const PlanCandidate& candidate : Enumeration(config, software, wider).run())
      values.insert(value_of(candidate));
    if (values.empty()) return;
    throw_input(fmt::format("no layout of {} has {} {}", counted(space.world, "rank"), option,
                            fmt::join(given, ",")),
                option, fmt::format("with the other options: {}", fmt::join(values, ", ")));
  };
  refuse("--schedules", space.schedules, &SearchSpace::schedules,
         [](const PlanCandidate& one) { return one.schedule; });
  refuse("--tp", space.tp, &SearchSpace::tp, [](const PlanCandidate& one) { return one.tp; });
  refuse("--pp", space.pp, &SearchSpace::pp, [](const PlanCandidate& one) { return one.pp; });
  refuse("--microbatch", space.samples, &SearchSpace::samples,
         [](const PlanCandidate& one) { return one.samples; });
  refuse("--chunks", space.chunks, &SearchSpace::chunks,
         [](const PlanCandidate& one) { return one.chunks; });
  std::vector<std::string_view> recompute;
  for (const Recompute one : space.recompute) recompute.push_back(name_of(one));
  refuse("--recompute", recompute, &SearchSpace::recompute,
         [](const PlanCandidate& one) { return std::string_view(name_of(one.recompute)); });
}

/// The largest smaller world that has a layout; 0: none nearby.
int smaller_world(const RunConfig& config, const Software& software, SearchSpace space) {
  constexpr int kNearby = 64;
  const int least = std::max(1, space.world - kNearby);
  while (--space.world >= least)
    if (!Enumeration(config, software, space).run().empty()) return space.world;
  return 0;
}

[[noreturn]] void refuse_space(const RunConfig& config, const Software& software,
                               const SearchSpace& space) {
  refuse_option(config, software, space);
  const int smaller = smaller_world(config, software, space);
  throw_input(
      fmt::format("no layout of {}: tp (1, 2, 4, 8) x pp (at most {}) x dp has none where dp "
                  "divides batch.global = {}{}",
                  counted(space.world, "rank"), counted(config.model.layers, "layer"),
                  config.batch.global,
                  software.equal_layers ? " and stages have equal layers" : ""),
      "plan search",
      fmt::format("{}, another batch.global, or fewer of --tp, --pp, --microbatch, --schedules, "
                  "--chunks, --recompute{}",
                  smaller > 0 ? fmt::format("--world {}", smaller) : "another --world",
                  software.equal_layers
                      ? "; or --software concertina, whose stages may differ by a layer"
                      : ""));
}

}  // namespace

std::vector<PlanCandidate> plan_candidates(const RunConfig& config, const Software& software,
                                           const SearchSpace& space) {
  for (const std::string& name : space.schedules)
    lookup(std::span<const Entry<Schedule>>(schedules()), name, "schedule", "--schedules");
  std::vector<PlanCandidate> found = Enumeration(config, software, space).run();
  if (found.empty()) refuse_space(config, software, space);
  return found;
}

}  // namespace concertina
