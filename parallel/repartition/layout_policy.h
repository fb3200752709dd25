// A layout policy decides, between two steps, which assignment a run should change to.
// Invariant: pure; a decision depends only on the view, which is the same on every rank, so all
// ranks make the same decision. No code refers to a policy by name.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/registry.h"
#include "parallel/generate/assign.h"
#include "parallel/predict/forecast.h"

namespace concertina {

/// The changes that a policy may make, and the thresholds for making them.
struct LayoutOptions {
  bool depth = true;        // number of stages of a pipeline; partitions may always change
  bool replicas = true;     // number of replicas, and with it the number of spare ranks
  bool schedule = true;     // any registered one that needs no search; false: the current one
  double least_gain = .02;  // smallest predicted gain that counts, as a fraction of a step
  double most_share = .02;  // limit on the cost of a decision, as a fraction of its possible gain
  bool grows = false;       // whether steps may have several batches (grown_batches())
};

/// The world and layout with which a run began.
struct LayoutStart {
  int world = 1;
  int stages = 1;        // per pipeline
  int frozen_units = 0;  // before the first step
  int replicas = 1;
};

/// Steps of a run with the same number of frozen units.
struct LayoutPeriod {
  int frozen_units = 0;
  std::int64_t steps = 0;
};

/// One decision point.
struct LayoutView {
  const Job& job;
  const Request& asked;         // requested keys, with the units that are currently frozen
  const Assignment& now;        // with the currently frozen units; the run may keep its layout
  std::int64_t steps_left = 0;  // after the current step
  const LayoutOptions& options;
  const LayoutForecast& forecast;
  LayoutStart start{};
  std::vector<LayoutPeriod> ahead{};  // after future freezes, if they are known
};

/// An assignment, its request, and its costs.
struct LayoutChoice {
  Request request;
  Assignment assignment;
  double step_seconds = 0, move_seconds = 0;
};

struct LayoutDecision {
  std::optional<LayoutChoice> next{};  // empty: the layout stays
  double step_seconds = 0;             // predicted, for the current layout
  std::string reason{};                // explanation for the user
};

struct LayoutPolicy {
  LayoutDecision (*decide)(const LayoutView& view) = nullptr;
  /// Keys in [elastic] that a run with this policy reads.
  std::vector<std::string_view> keys{"elastic.every", "elastic.batch"};
  bool by_times = false;  // whether it uses the forecast, so that two runs may decide differently
  /// Its rule and source.
  const char* about = "";
};

/// Returns all policies listed in meson.build, by name.
std::span<const Entry<LayoutPolicy>> layout_policies();

/// Returns the start of a run that begins with `assignment`, created for the request `asked`.
LayoutStart start_of(const Request& asked, const Assignment& assignment);

/// Returns the choice of `assignment`, with its costs from the view's forecast.
LayoutChoice choice_of(const LayoutView& view, Request request, Assignment assignment);

/// Describes an assignment of `request`, as in "pp2xdp1 1f1b (units 0-3, 4-7), 1 spare".
std::string describe(const Request& request, const Assignment& assignment);

}  // namespace concertina
