#include "core/text/number_text.h"
#include "parallel/generate/schedule_registry.h"

namespace concertina {
namespace {

std::string rule(const Chunks& chunks) {
  if (chunks.step == chunks.most) return fmt::format("{}", chunks.most);
  if (chunks.step == 1) return fmt::format("from 1 to {}", chunks.most);
  return fmt::format("a multiple of {}, up to {}", chunks.step, chunks.most);
}

}  // namespace

std::optional<Claim> ClosedForm::on(const Layout& replica, int v) const {
  int m = 0;
  for (const Pipeline& pipeline : replica.pipelines) {
    if (pipeline.microbatches() != replica.pipelines[0].microbatches()) return std::nullopt;
    m += pipeline.microbatches();
  }
  return at(rank_count(replica), m, v);
}

std::string describe(const Schedule& schedule) {
  constexpr const char* kPlacements[] = {"stage s on rank s % p", "stages back and forth (V, wave)",
                                         "two opposite pipelines on the same ranks, in pairs"};
  std::string text = kPlacements[static_cast<int>(schedule.placement)];
  if (schedule.any_layout) text = "any layout";
  if (schedule.chunks.most > 1 || schedule.chunks.step > 1)
    text += fmt::format(", chunks per rank: {}", rule(schedule.chunks));
  if (schedule.rank_step > 1) text += fmt::format(", ranks: a multiple of {}", schedule.rank_step);
  return text;
}

Folding folding_of(const Entry<Schedule>& schedule, int chunks) {
  const auto& [default_value, step, most] = schedule.value.chunks;
  const int count = chunks == 0 ? default_value : chunks;
  if (count % step != 0 || count > most)
    throw_input(
        fmt::format("schedule '{}' cannot run with {}", schedule.name, counted(count, "chunk")),
        "parallel.chunks",
        fmt::format("chunks per rank: {}; or omit it", rule(schedule.value.chunks)));
  return {count, schedule.value.placement, schedule.value.rank_step};
}

const Entry<Schedule>& find_schedule(std::string_view name) {
  return lookup_entry(schedules(), name, "schedule", "parallel.schedule");
}

}  // namespace concertina
