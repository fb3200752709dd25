// Precompiled header for families, published models, optimizers, tasks and learning-rate schedules,
// which are one source file each.
#include <fmt/format.h>

#include "core/error.h"
#include "models/hugging_face.h"
#include "models/model.h"
#include "models/task.h"
#include "models/units/attention.h"
#include "models/units/embedding.h"
#include "models/units/mlp.h"
