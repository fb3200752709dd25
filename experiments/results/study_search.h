// What successive halving did with a study's trials: how many stopped at which step, at which
// metric, and what the search cost beside the whole grid.
// Invariant: pure; a metric that is not finite counts as stopped and is in no range.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "experiments/results/results.h"

namespace concertina {

struct SearchRung {
  std::int64_t steps = 0;
  int reached = 0, stopped = 0;     // trials that came here, and that ended here without the rest
  std::optional<double> best;       // of those that reached it
  std::optional<double> left_best;  // of those that stopped here: best and worst
  std::optional<double> left_worst;
};

struct SearchCourse {
  std::string metric;
  std::vector<SearchRung> rungs;  // ascending
  int trials = 0;
  int best = 0;  // the trial with the best metric at the last rung; 0: none is there
  double best_metric = 0;
  Settings best_settings;
  std::int64_t steps_run = 0, steps_of_all = 0;  // up to rungs; if all trials had run to their end

  double cost() const {  // of the whole grid
    return steps_of_all > 0 ? static_cast<double>(steps_run) / static_cast<double>(steps_of_all)
                            : 0;
  }
};

/// Nothing of a study that is no such search.
std::optional<SearchCourse> search_course(const StudyResults& results);

/// "successive halving by Validation loss: the best of 9 trials is trial 6 ...", and what it cost.
std::vector<std::string> search_lines(const SearchCourse& course);
/// Head and lines of a table: step, trials, stopped, best, metric of those that stopped.
std::vector<std::vector<std::string>> rung_rows(const SearchCourse& course);
nlohmann::ordered_json to_json(const SearchCourse& course);

}  // namespace concertina
