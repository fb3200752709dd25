// Precompiled header for the single-file schedules, partitioners, exchange schemes and policies.
#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "parallel/generate/interleave.h"
#include "parallel/policies/freeze_policy.h"
#include "parallel/repartition/layout_policy.h"
