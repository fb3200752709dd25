#include "parallel/plan/schedule.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/error.h"

namespace concertina {
namespace {

/// What a plan's forwards say of a stage.
struct Found {
  int rank = 0;
  std::set<int> microbatches;
};

std::map<int, Found> find_stages(const Plan& plan, const std::string& where) {
  std::map<int, Found> stages;
  for (int rank = 0; rank < static_cast<int>(plan.rows.size()); ++rank) {
    for (const Action& action : plan.rows[rank]) {
      if (action.kind != Kind::F) continue;
      Found& stage = stages.try_emplace(action.stage, Found{rank, {}}).first->second;
      if (stage.rank != rank)
        throw_input(fmt::format("stage {} runs forwards on ranks {} and {}", action.stage,
                                stage.rank, rank),
                    where, "each stage on one rank");
      stage.microbatches.insert(action.microbatch);
    }
  }
  int next = 0;
  for (const auto& [stage, found] : stages)
    if (stage != next++)
      throw_input(fmt::format("stage {} has no forward", next - 1), where,
                  fmt::format("stages 0 to {} without a gap", stages.rbegin()->first));
  if (stages.empty()) throw_input("the schedule has no forward", where, "as in 0F0,0B0");
  return stages;
}

/// check() tells which forward is missing, but looks at each stage and microbatch for that.
void refuse_gaps(const Layout& layout, const std::map<int, Found>& stages,
                 const std::string& where) {
  std::size_t forwards = 0, due = 0;
  for (const auto& [stage, found] : stages) forwards += found.microbatches.size();
  for (const Pipeline& pipeline : layout.pipelines)
    due += pipeline.stages.size() * static_cast<std::size_t>(pipeline.microbatches());
  if (due > 2 * forwards + 1000)
    throw_input(
        fmt::format("{} forwards are there of {} for each stage and microbatch", forwards, due),
        where, "microbatches from 0 without a gap, each on every stage of its pipeline");
}

bool overlap(const std::set<int>& a, const std::set<int>& b) {
  return std::any_of(a.begin(), a.end(), [&](int value) { return b.contains(value); });
}

}  // namespace

bool is_compute(Kind kind) {
  return kind <= Kind::B;
}
bool is_transfer(Kind kind) {
  return kind >= Kind::SEND_F && kind <= Kind::RECV_B;
}

bool makes_input_gradient(Kind kind) {
  return kind == Kind::I || kind == Kind::B;
}

bool makes_weight_gradient(Kind kind) {
  return kind == Kind::W || kind == Kind::B;
}
bool is_send(Kind kind) {
  return kind == Kind::SEND_F || kind == Kind::SEND_B;
}

Action counterpart(const Action& transfer) {
  const Kind kind = transfer.kind;
  const int stage = transfer.stage, microbatch = transfer.microbatch;
  if (kind == Kind::SEND_F) return {Kind::RECV_F, stage + 1, microbatch};
  if (kind == Kind::RECV_F) return {Kind::SEND_F, stage - 1, microbatch};
  if (kind == Kind::SEND_B) return {Kind::RECV_B, stage - 1, microbatch};
  CONCERTINA_CHECK(kind == Kind::RECV_B, "{} is no transfer", to_text(transfer));
  return {Kind::SEND_B, stage + 1, microbatch};
}

Layout infer_layout(const Plan& plan, const std::string& where) {
  Layout layout;
  const std::set<int>* before = nullptr;
  int next = 0;  // first microbatch of the next pipeline
  const std::map<int, Found> stages = find_stages(plan, where);
  for (const auto& [stage, found] : stages) {
    if (before == nullptr || !overlap(*before, found.microbatches)) {
      Pipeline& pipeline = layout.pipelines.emplace_back();
      pipeline.first_microbatch = next;
    }
    before = &found.microbatches;
    Pipeline& pipeline = layout.pipelines.back();
    const int units = static_cast<int>(pipeline.stages.size());
    pipeline.stages.push_back({found.rank, units, units + 1});
    if (*found.microbatches.begin() < pipeline.first_microbatch)
      throw_input(fmt::format("stage {} runs microbatch {}, which pipelines before it have", stage,
                              *found.microbatches.begin()),
                  where, "the microbatches of each pipeline behind those of the one before");
    next = pipeline.last_microbatch =
        std::max(pipeline.last_microbatch, *found.microbatches.rbegin() + 1);
  }
  refuse_gaps(layout, stages, where);
  return layout;
}

}  // namespace concertina
