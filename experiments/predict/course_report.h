// `concertina plan freeze`: what freezing gives a run that nobody has launched, part by part.
// Invariant: the report is one value, and its text says nothing else.
#pragma once

#include <functional>
#include <string>

#include "experiments/predict/plan_report.h"

namespace concertina {

struct CourseOptions {
  int epochs = 10;
  std::int64_t samples = 0;                            // of an epoch; 0: those of data.text
  std::function<void(const std::string&)> progress{};  // told what comes next
};

/// Keys: policy, epochs, samples, steps, world, schedule, fixed_share; course: by epoch, with the
/// config's own [elastic] and [cache]: epoch, frozen_layers, layout, batch, steps, change_s (null
/// where no links are known), step_s, seconds; ladder: rung, keys (a list: they make it, on top of
/// the config), seconds, unfrozen_epochs (that cost as much work as the whole run), over_static,
/// over_best, and, but for `static`, ceiling_over_static and ceiling_over_best, which the two
/// before never exceed: nothing waits, moves or reads. Throws Error{bad_input} where the policy
/// cannot be foreseen or there are no samples.
nlohmann::ordered_json course_report(RunConfig config, const PlanOptions& plan,
                                     const CourseOptions& options);

std::string course_text(const nlohmann::ordered_json& report);

}  // namespace concertina
