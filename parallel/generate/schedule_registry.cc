// The table of schedules, generated from the list in meson.build. This is a separate file, and
// finds the table's header next to the target that compiles it, so that a program can be built with
// a longer list (as in tests/parallel_plan).
#include "parallel/generate/schedule_registry.h"

#include "schedule_table.h"

namespace concertina {

CONCERTINA_REGISTRY(CONCERTINA_SCHEDULES, Schedule, schedule_, schedules)

}  // namespace concertina
