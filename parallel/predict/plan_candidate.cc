#include "parallel/predict/plan_candidate.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <set>
#include <span>

#include "core/error.h"
#include "core/index.h"
#include "core/registry.h"
#include "core/text/number_text.h"
#include "parallel/generate/schedule_registry.h"

namespace concertina {
namespace {

constexpr std::array kSoftware = {
    Entry<Software>{"concertina",
                    {.name = "concertina",
                     .about = "this program, as if it had tensor parallelism: fp32 weights, "
                              "gradients and moments, a packed 16-bit copy of the weights, memory "
                              "for received gradients, moments sharded over dp; transfers and "
                              "reductions overlap",
                     .in_16 = {6, 4, 8},
                     .sums_by_tree = true,
                     .received_bytes = 4,
                     .sharded = true,
                     .overlaps = true,
                     .pipeline_inside = true}},
    Entry<Software>{"megatron",
                    {.name = "megatron",
                     .about = "Megatron-LM of 2021: 16-bit weights and gradients, fp32 master "
                              "weights and moments on each replica, blocking transfers, "
                              "all-reduce after the last backward, the same number of layers in "
                              "each stage, where embedding and head may count as a layer each",
                     .unfused = true,
                     .cuts = Cuts::layers}},
    Entry<Software>{"deepspeed",
                    {.name = "deepspeed",
                     .about = "Megatron-DeepSpeed of 2022: like megatron, but with the optimizer's "
                              "state sharded over dp (ZeRO-1) and stages that may differ by a "
                              "layer",
                     .sharded = true,
                     .unfused = true,
                     .cuts = Cuts::even}}};

constexpr int kMostTp = 8;
constexpr int kMostChunks = 16;
constexpr std::array kRecompute = {Entry<Recompute>{"none", Recompute::none},
                                   Entry<Recompute>{"selective", Recompute::selective},
                                   Entry<Recompute>{"full", Recompute::full}};

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

/// Two opposite pipelines keep two copies of the weights, and searching a schedule takes too long.
bool is_searchable(const Entry<Schedule>& schedule) {
  return !schedule.value.searched && schedule.value.placement != Placement::opposite;
}

/// Whether the software can split the layers into this many stages.
bool cuts_into(const PlanProblem& problem, int stages, bool default_value) {
  const int layers = problem.layers();
  const Cuts cuts = problem.software.cuts;
  if (layers % stages == 0) return true;
  return cuts == Cuts::units ? default_value
                             : (layers + 2) % stages == 0 || (cuts == Cuts::even && default_value);
}

/// Returns the numbers of chunks per rank that fit `pp` ranks.
std::vector<int> chunks_of(const Entry<Schedule>& schedule, int pp, const PlanProblem& problem,
                           const SearchSpace& space) {
  const Chunks& chunks = schedule.value.chunks;
  std::vector<int> result;
  if (pp % schedule.value.rank_step != 0) return result;
  // With one chunk, schedules made for several are the same as others: interleaved 1F1B is 1F1B.
  const int least = std::max(chunks.step, std::min(chunks.default_value, 2));
  for (int v = least; v <= std::min({chunks.most, kMostChunks, problem.layers() / pp});
       v += chunks.step)
    if (tried(space.chunks, v) && cuts_into(problem, pp * v, v == chunks.default_value))
      result.push_back(v);
  // On one rank, all orders are equivalent, and several chunks without a pipeline are pointless.
  if (pp == 1 && (schedule.name != "1f1b" || result != std::vector<int>{1}))
    result.assign(schedule.name == "1f1b" && tried(space.chunks, 1), 1);
  return result;
}

bool divides_units(const PlanProblem& problem, int tp) {
  return std::ranges::all_of(problem.model.units,
                             [&](const UnitSpec& unit) { return unit.cost.split.parts % tp == 0; });
}

/// Adds all depths, microbatch sizes, schedules, chunks and recomputations with groups of `tp`.
void add_candidates(const PlanProblem& problem, const SearchSpace& space, int tp,
                    std::vector<PlanCandidate>& found) {
  for (const int pp : divisors(space.world / tp)) {
    const int dp = space.world / tp / pp;
    if (pp > problem.layers() || !tried(space.pp, pp) || problem.batch % dp != 0) continue;
    for (const int samples : divisors(problem.batch / dp)) {
      if (!tried(space.samples, samples)) continue;
      for (const Entry<Schedule>& schedule : schedules()) {
        if (!is_searchable(schedule) || !tried(space.schedules, std::string(schedule.name)))
          continue;
        for (const int chunks : chunks_of(schedule, pp, problem, space))
          for (const Entry<Recompute>& recompute : kRecompute)
            if (tried(space.recompute, recompute.value))
              found.push_back({tp, pp, dp, chunks, schedule.name, samples, recompute.value});
      }
    }
  }
}

std::vector<PlanCandidate> all_candidates(const PlanProblem& problem, const SearchSpace& space) {
  std::vector<PlanCandidate> found;
  const int host = space.ranks_per_host > 0 ? space.ranks_per_host : space.world;
  for (int tp = 1; tp <= std::min(kMostTp, host); tp *= 2)
    if (space.world % tp == 0 && host % tp == 0 && divides_units(problem, tp) &&
        tried(space.tp, tp))
      add_candidates(problem, space, tp, found);
  return found;
}

}  // namespace

const Software& find_software(std::string_view name) {
  return lookup(std::span<const Entry<Software>>(kSoftware), name, "program", "--software");
}

std::string_view name_of(Recompute recompute) {
  return kRecompute[static_cast<std::size_t>(recompute)].name;
}

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
  return lookup(std::span<const Entry<Recompute>>(kRecompute), name, "recomputation",
                "--recompute");
}

namespace {

/// If dropping one of the options would allow layouts, throws an error with its valid values.
void refuse_option(const PlanProblem& problem, const SearchSpace& space) {
  const auto refuse = [&](const char* option, const auto& given, auto list, const auto& value_of) {
    if (given.empty()) return;
    SearchSpace wider = space;
    (wider.*list).clear();
    std::set<decltype(value_of(PlanCandidate{}))> values;
    for (const PlanCandidate& candidate : all_candidates(problem, wider))
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

/// Returns the next smaller world size that has a layout; 0: none nearby.
int smaller_world(const PlanProblem& problem, SearchSpace space) {
  constexpr int kNearby = 64;
  const int least = std::max(1, space.world - kNearby);
  while (--space.world >= least)
    if (!all_candidates(problem, space).empty()) return space.world;
  return 0;
}

/// Returns a clause with the rule for choosing stages.
std::string_view text_of(Cuts cuts) {
  if (cuts != Cuts::layers) return "";
  return " and stages have the same number of layers, or embedding and head count as a layer each";
}

[[noreturn]] void refuse_space(const PlanProblem& problem, const SearchSpace& space) {
  refuse_option(problem, space);
  const int smaller = smaller_world(problem, space);
  throw_input(
      fmt::format(
          "no layout of {}: there is no tp (1, 2, 4, 8) x pp (at most {}) x dp such that dp "
          "divides batch.global = {}{}",
          counted(space.world, "rank"), counted(problem.layers(), "layer"), problem.batch,
          text_of(problem.software.cuts)),
      "plan search",
      fmt::format("{}, another batch.global, or fewer of --tp, --pp, --microbatch, --schedules, "
                  "--chunks, --recompute{}",
                  smaller > 0 ? fmt::format("--world {}", smaller) : "another --world",
                  problem.software.cuts == Cuts::layers
                      ? "; or --software deepspeed, whose stages may differ by a layer"
                      : ""));
}

}  // namespace

std::vector<PlanCandidate> plan_candidates(const PlanProblem& problem, const SearchSpace& space) {
  for (const std::string& name : space.schedules)
    lookup(std::span<const Entry<Schedule>>(schedules()), name, "schedule", "--schedules");
  std::vector<PlanCandidate> found = all_candidates(problem, space);
  if (found.empty()) refuse_space(problem, space);
  return found;
}

std::vector<UnitRange> layer_cuts(const PlanProblem& problem, int stages) {
  const int layers = problem.layers();
  std::vector<double> sizes(static_cast<std::size_t>(layers), 1);
  if (layers % stages != 0 && (layers + 2) % stages == 0) ++sizes.front(), ++sizes.back();
  std::vector<UnitRange> cuts = partition(sizes, stages);
  const std::vector<int>& ends = problem.model.layer_ends;
  for (UnitRange& cut : cuts)
    cut = {cut.first == 0 ? 0 : ends[at(cut.first - 1)], ends[at(cut.last - 1)]};
  cuts.back().last = static_cast<int>(problem.model.units.size());
  return cuts;
}

}  // namespace concertina
