// The table of schedules, generated from the list in meson.build.
// In a file of its own, with the table's header found beside the target that compiles it, so that a
// program can be built with a longer list (tests/parallel_plan does).
#include "parallel/generate/schedule_registry.h"

#include "schedule_table.h"

namespace concertina {

CONCERTINA_REGISTRY(CONCERTINA_SCHEDULES, Schedule, schedule_, schedules)

}  // namespace concertina
