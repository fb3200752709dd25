// The table of freeze policies, generated from the list in meson.build. It has its own file, like
// the table of schedules, so that a program can be built with a longer list.
#include "parallel/policies/freeze_policy.h"

#include "policy_table.h"

namespace concertina {

CONCERTINA_REGISTRY(CONCERTINA_POLICIES, FreezePolicy, policy_, freeze_policies)

}  // namespace concertina
