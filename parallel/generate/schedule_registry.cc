// The table of schedules, generated from the list in meson.build.
// In a file of its own, with the table's header found beside the target that compiles it, so that a
// program can be built with a longer list (tests/parallel_plan does).
#include "parallel/generate/schedule_registry.h"

#include "schedule_table.h"

namespace concertina {

#define CONCERTINA_DECLARE(name, symbol) Schedule schedule_##symbol();
CONCERTINA_SCHEDULES(CONCERTINA_DECLARE)
#undef CONCERTINA_DECLARE

std::span<const Entry<Schedule>> schedules() {
#define CONCERTINA_ENTRY(name, symbol) Entry<Schedule>{name, schedule_##symbol()},
  static const Entry<Schedule> table[] = {CONCERTINA_SCHEDULES(CONCERTINA_ENTRY)};
#undef CONCERTINA_ENTRY
  return table;
}

}  // namespace concertina
