// Steps as data, which experiments/python/concertina/timeline.py draws. Invariant: the size is
// bounded, whatever the plans: of many ranks some are there, and many actions are there by column,
// each with the work that takes most of it.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "experiments/timeline/timeline_rows.h"

namespace concertina {

/// Returns `inches`, how wide the picture is, and `panels`, each with `name`, numbers of `ranks`,
/// `microbatches` and `chunks`, `makespan`, `bubble`, `critical_path` (the computations on it:
/// rank, start, end) and `rows`: a `rank` and its `boxes`, which are lists of kind of work, start
/// and end; of an action or a known wait also what it is; of F, B, I and W also microbatch, chunk
/// and part. Where actions are many, boxes are runs of columns with kind, start and end alone, and
/// `columns` of them are as long as the longest step: two per point of the picture.
nlohmann::ordered_json timelines_json(const std::vector<TimelinePanel>& panels, double inches);

/// Returns the activations of the rank that saves most: `rank`, and `levels`, pairs of a time and
/// the amount from then on, as of saved_levels().
nlohmann::ordered_json most_saved_json(const TimelinePanel& panel, bool bytes);

}  // namespace concertina
