// The table of freeze policies, generated from the list in meson.build. In a separate file, like
// the schedules' table, so that a program can be built with a longer list.
#include "parallel/policies/freeze_policy.h"

#include "policy_table.h"

namespace concertina {

CONCERTINA_REGISTRY(CONCERTINA_POLICIES, FreezePolicy, policy_, freeze_policies)

}  // namespace concertina
