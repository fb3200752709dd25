// A layout policy: which assignment a run should go on with, decided between two steps.
// Invariant: pure; a decision depends on the view alone, which is the same on every rank, so every
// rank decides alike. No code knows a policy by name.
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

/// The changes that a policy may make, and when they are worth it.
struct LayoutOptions {
  bool depth = true;        // stages of a pipeline; its cuts may always move
  bool replicas = true;     // and with them how many ranks are spare
  bool schedule = true;     // any of the registry that needs no search; else the present one
  double least_gain = .02;  // smallest predicted gain that counts, as a share of a step
  double most_share = .02;  // of what a decision could gain at most, that it may take to be found
  bool grows = false;       // steps may do several at once: as grown_batches() says
};

/// The world and layout that a run began with, whatever it has now.
struct LayoutStart {
  int world = 1;
  int stages = 1;        // of a pipeline
  int frozen_units = 0;  // before any step
  int replicas = 1;
};

/// Steps of a run with so many frozen units.
struct LayoutPeriod {
  int frozen_units = 0;
  std::int64_t steps = 0;
};

/// One decision point.
struct LayoutView {
  const Job& job;
  const Request& asked;         // what the run was told, with the units that are frozen now
  const Assignment& now;        // with the units that are frozen now; its layout can stay
  std::int64_t steps_left = 0;  // after this
  const LayoutOptions& options;
  const LayoutForecast& forecast;
  LayoutStart start{};
  std::vector<LayoutPeriod> ahead{};  // after the coming freezes, as far as they are foreseen
};

/// An assignment, what it was asked for, and what it would take.
struct LayoutChoice {
  Request request;
  Assignment assignment;
  double step_seconds = 0, move_seconds = 0;
};

struct LayoutDecision {
  std::optional<LayoutChoice> next{};  // nothing: the layout stays
  double step_seconds = 0;             // predicted, of the layout of now
  std::string reason{};                // why, in words
};

struct LayoutPolicy {
  LayoutDecision (*decide)(const LayoutView& view) = nullptr;
  /// Keys of [elastic] that a run reads for it.
  std::vector<std::string_view> keys{"elastic.every", "elastic.batch"};
  bool by_times = false;  // decides by the forecast: two runs may decide otherwise
  /// Its rule, and where it is from.
  const char* about = "";
};

/// Every policy of the list in meson.build, by name.
std::span<const Entry<LayoutPolicy>> layout_policies();

/// Returns the start of a run that begins with `assignment`, for which it asked.
LayoutStart start_of(const Request& asked, const Assignment& assignment);

/// The choice of `assignment`, as the view's forecast sees it.
LayoutChoice choice_of(const LayoutView& view, Request request, Assignment assignment);

/// "pp2xdp1 1f1b (units 0-3, 4-7), 1 spare": of an assignment asked for by `request`.
std::string describe(const Request& request, const Assignment& assignment);

}  // namespace concertina
