// Selects the best assignment by prediction: the run changes to the assignment with which it would
// end earliest, if the gain justifies the change. If future freezes are known, that is the first
// assignment on the shortest path through the candidates after each freeze.
#include <algorithm>
#include <limits>

#include "core/error.h"
#include "core/text/number_text.h"
#include "parallel/generate/passes.h"
#include "parallel/repartition/choices.h"

namespace concertina {
namespace {

constexpr std::size_t kMostAhead = 4;  // freezes that a decision considers
constexpr std::size_t kKept = 2;       // layouts per period, in addition to the current one

/// The decision based on current costs alone, and the layouts that it prefers to all others.
struct Greedy {
  LayoutDecision decision;
  std::vector<LayoutChoice> best;  // possible ones
};

bool is_worth(const LayoutView& view, const LayoutChoice& choice, double step) {
  const double gain = step - choice.step_seconds;
  return gain > view.options.least_gain * step &&
         gain * static_cast<double>(view.steps_left) > choice.move_seconds;
}

Greedy decide_now(const LayoutView& view, std::int64_t actions) {
  Greedy greedy{.decision = {.step_seconds = view.forecast.step_seconds(view.now)}, .best = {}};
  LayoutDecision& decision = greedy.decision;
  std::string refused;
  LayoutChoices choices = best_choices(view, decision.step_seconds, actions);
  for (LayoutChoice& choice : choices.best) {
    const std::string what = describe(choice.request, choice.assignment);
    const bool worth = is_worth(view, choice, decision.step_seconds);
    if (!worth && decision.reason.empty())
      decision.reason = fmt::format(
          "the best other layout, {}, would take {:.4g} ms per step instead of "
          "{:.4g} ms, and {:.4g} s to change to, with {} left",
          what, choice.step_seconds * 1e3, decision.step_seconds * 1e3, choice.move_seconds,
          counted(view.steps_left, "step"));
    if (greedy.best.size() == kKept) break;
    if (const std::string why = view.forecast.refusal(choice.assignment); !why.empty()) {
      if (worth && refused.empty()) refused = fmt::format("; {} is not possible: {}", what, why);
      continue;
    }
    greedy.best.push_back(choice);
    if (!decision.reason.empty()) continue;
    decision.reason = fmt::format(
        "{:.4g} ms per step instead of {:.4g} ms gains {:.4g} s over {}, and the "
        "change takes {:.4g} s",
        choice.step_seconds * 1e3, decision.step_seconds * 1e3,
        (decision.step_seconds - choice.step_seconds) * static_cast<double>(view.steps_left),
        counted(view.steps_left, "step"), choice.move_seconds);
    decision.next = std::move(choice);
  }
  if (decision.reason.empty()) decision.reason = "no other layout is predicted to be faster";
  decision.reason += refused;
  if (choices.left_out > 0)
    decision.reason += fmt::format("; {} that seemed less promising were skipped to save time",
                                   counted(static_cast<std::int64_t>(choices.left_out), "layout"));
  return greedy;
}

/// The rest of a run as a graph whose nodes are layouts in periods between freezes.
class Course {
 public:
  Course(const LayoutView& view, std::int64_t most_actions_tried)
      : view_(view), actions_(most_actions_tried), periods_{{view.now.frozen_units(), 0}} {
    std::int64_t left = view.steps_left;
    const auto stages = std::ssize(view.now.layout.pipelines.front().stages);
    const std::int64_t actions = most_actions(stages, view.job.microbatches);
    for (const LayoutPeriod& period : view.ahead) {
      left -= period.steps;
      const auto count = static_cast<std::int64_t>(periods_.size()) + 1;
      const bool bounded =
          count * count * static_cast<std::int64_t>(kKept + 1) * actions <= actions_ / 2;
      if (periods_.size() > kMostAhead || !bounded)
        periods_.back().steps += period.steps;
      else
        periods_.push_back(period);
    }
    CONCERTINA_CHECK(left >= 0, "{} steps left, fewer than expected", view.steps_left);
    periods_.front().steps += left;
    nodes_.push_back({view.asked, {}, {}});
    nodes_.back().asked.layout = view.now.layout;
    nodes_.back().asked.layout.frozen_units = 0;
  }

  /// Whether none or too many freezes are known.
  bool is_short() const { return periods_.size() == 1; }

  LayoutDecision decide() {
    roll();
    for (Node& node : nodes_) measure(node);
    shorten();
    const auto first = [&](std::size_t n) {
      return nodes_[n].seconds[0] < kNever
                 ? view_.forecast.change_seconds(nodes_[n].made[0]) + nodes_[n].rest[0]
                 : kNever;
    };
    const double stay = first(0);
    std::size_t best = 0;
    for (std::size_t n = 1; n < nodes_.size(); ++n)
      if (first(n) < first(best)) best = n;
    const Node& next = nodes_[best];
    LayoutDecision decision{.step_seconds = view_.forecast.step_seconds(view_.now)};
    const std::string with = fmt::format(
        "with {} expected", counted(static_cast<std::int64_t>(periods_.size()) - 1, "freeze"));
    LayoutChoice choice = choice_of(view_, next.asked, next.made[0]);
    const double gain = stay - first(best);
    if (best == 0 ||
        gain + choice.move_seconds <= view_.options.least_gain * nodes_[0].seconds[0]) {
      decision.reason = fmt::format(
          "{}, no change would end the run sufficiently earlier than in {:.4g} s", with, stay);
      return decision;
    }
    decision.reason = fmt::format(
        "{}, the run ends in {:.4g} s instead of {:.4g} s; {:.4g} ms per step instead of {:.4g} "
        "ms, and the change takes {:.4g} s",
        with, first(best), stay, choice.step_seconds * 1e3, decision.step_seconds * 1e3,
        choice.move_seconds);
    decision.next = std::move(choice);
    return decision;
  }

 private:
  static constexpr double kNever = std::numeric_limits<double>::infinity();

  struct Node {
    Request asked;
    std::vector<Assignment> made;  // by period
    std::vector<double> seconds;   // duration of the period's steps; kNever: not possible
    std::vector<double> rest{};    // including the shortest path from there to the end
  };

  /// Builds the nodes from decisions without foresight: all layouts that these prefer. Their path
  /// is in the graph, so the result is never worse.
  void roll() {
    const std::int64_t actions = actions_ / static_cast<std::int64_t>(2 * periods_.size());
    Request asked = nodes_[0].asked;
    Assignment now = view_.now, before;
    LayoutForecast forecast = view_.forecast;
    std::int64_t left = view_.steps_left;
    for (std::size_t p = 0; p < periods_.size(); ++p) {
      if (p > 0) {
        before = std::move(now);
        forecast = view_.forecast.from(before);
        asked.frozen_units = periods_[p].frozen_units;
        now = assign(view_.job, asked);
      }
      Greedy greedy = decide_now({.job = view_.job,
                                  .asked = asked,
                                  .now = now,
                                  .steps_left = left,
                                  .options = view_.options,
                                  .forecast = forecast,
                                  .start = view_.start},
                                 actions);
      for (const LayoutChoice& choice : greedy.best) add(choice.request);
      if (greedy.decision.next) {
        asked = greedy.decision.next->request;
        now = std::move(greedy.decision.next->assignment);
      }
      left -= periods_[p].steps;
    }
  }

  void add(const Request& request) {
    for (const Node& node : nodes_)
      if (node.asked.layout == request.layout && node.asked.schedule == request.schedule) return;
    nodes_.push_back({request, {}, {}});
  }

  void measure(Node& node) const {
    for (const LayoutPeriod& period : periods_) {
      node.asked.frozen_units = period.frozen_units;
      Assignment& made = node.made.emplace_back(assign(view_.job, node.asked));
      const bool can = &node == &nodes_[0] || view_.forecast.refusal(made).empty();
      node.seconds.push_back(
          can ? view_.forecast.step_seconds(made) * static_cast<double>(period.steps) : kNever);
    }
    node.asked.frozen_units = periods_[0].frozen_units;
  }

  /// Computes Node::rest, from the last period to the first.
  void shorten() {
    for (Node& node : nodes_) node.rest = node.seconds;
    for (std::size_t p = periods_.size() - 1; p-- > 0;)
      for (Node& node : nodes_) {
        if (node.seconds[p] == kNever) continue;
        const LayoutForecast forecast = view_.forecast.from(node.made[p]);
        double least = kNever;
        for (const Node& next : nodes_)
          if (next.rest[p + 1] < least)  // the cost of a change is never negative
            least = std::min(least, forecast.change_seconds(next.made[p + 1]) + next.rest[p + 1]);
        node.rest[p] += least;
      }
  }

  const LayoutView& view_;
  const std::int64_t actions_;
  std::vector<LayoutPeriod> periods_;
  std::vector<Node> nodes_;  // the current layout first
};

/// Decides without foresight if the batch grows, as the layout then affects the number of steps.
LayoutDecision decide(const LayoutView& view) {
  const std::int64_t actions = actions_worth(view);
  if (actions == 0) {
    const double step = view.forecast.step_seconds(view.now);
    return {
        .step_seconds = step,
        .reason = fmt::format("no layout could gain enough over {:.4g} ms per step, with {} left",
                              step * 1e3, counted(view.steps_left, "step"))};
  }
  if (!view.options.grows && !view.asked.file)
    if (Course course(view, actions); !course.is_short()) return course.decide();
  return decide_now(view, actions).decision;
}

}  // namespace

LayoutPolicy layout_policy_predicted() {
  return {.decide = decide,
          .keys = {"elastic.every", "elastic.batch", "elastic.depth", "elastic.replicas",
                   "elastic.schedule", "elastic.least_gain"},
          .by_times = true,
          .about =
              "the layout with which the run ends first in a simulation with its measured costs, "
              "if the gain exceeds the cost of the change"};
}

}  // namespace concertina
