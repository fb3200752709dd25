// The table of freeze policies, generated from the list in meson.build.
// In a file of its own, as that of schedules, so that a program can be built with a longer list.
#include "parallel/policies/freeze_policy.h"

#include "policy_table.h"

namespace concertina {

#define CONCERTINA_DECLARE(name, symbol) FreezePolicy policy_##symbol();
CONCERTINA_POLICIES(CONCERTINA_DECLARE)
#undef CONCERTINA_DECLARE

std::span<const Entry<FreezePolicy>> freeze_policies() {
#define CONCERTINA_ENTRY(name, symbol) Entry<FreezePolicy>{name, policy_##symbol()},
  static const Entry<FreezePolicy> table[] = {CONCERTINA_POLICIES(CONCERTINA_ENTRY)};
#undef CONCERTINA_ENTRY
  return table;
}

}  // namespace concertina
