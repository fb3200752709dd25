// Precompiled header for families, published models, optimizers, tasks and learning-rate schedules,
// each of which is one source file.
#include <fmt/format.h>

#include "core/error.h"
#include "models/hugging_face.h"
#include "models/model.h"
#include "models/task.h"
#include "models/units/attention.h"
#include "models/units/embedding.h"
#include "models/units/mlp.h"
