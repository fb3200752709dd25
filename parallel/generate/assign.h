// From what is asked for to an Assignment that is proven: layout, plan, owners.
// Invariant: pure; the same on every rank, and the same whether ranks exist or not.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "parallel/generate/fit_schedule.h"
#include "parallel/generate/schedule_registry.h"
#include "parallel/plan/assignment.h"

namespace concertina {

/// An assignment as it is asked for: the keys of [parallel], and what the run decides. What is left
/// out follows from the rest.
struct Request {
  int world = 1;
  int spare = 0;                   // ranks that hold no stage: the last ones, unless `layout` says
  int frozen_units = 0;            // units [0, frozen_units) only run forward
  int batches = 1;                 // that a step trains on together (Assignment::batches)
  int pp = 0, dp = 0, chunks = 0;  // 0: follows
  Layout layout{};                 // in place of pp, dp and chunks
  std::string schedule = "1f1b";   // of the registry
  std::optional<ScheduleFile> file{};  // in place of `schedule`
  std::string partition = "balanced";
  bool overlap = false;
  ExchangeChoice exchange{};
  std::vector<double> unit_costs{};  // what `partition` balances; empty: FLOPs as far as they train
};

/// Throws bad input, whose place is a config key, if model, layout and world do not go together.
Assignment assign(const Job& job, const Request& request);
/// The same for a job of other unit costs than that of `like`, an assignment of the same request,
/// whose plan it takes over where the layout is the same.
Assignment assign_like(const Job& job, const Request& request, Assignment like);

/// The fewest ranks that `request` is for, the spare ones with it; 1 where it names none.
int ranks_asked(const Request& request);

/// How a replica of the request folds onto its ranks. It has no file.
Folding folding_of(const Request& request);

}  // namespace concertina
