#include "experiments/timeline/timeline_drawing.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/text/number_text.h"
#include "experiments/timeline/timeline_panel.h"
#include "io/figure/axis_ticks.h"

namespace concertina {
namespace {

constexpr std::size_t kMostBoxes = 8000, kMostRows = 64;
constexpr double kMargin = 5, kPanelGap = 9;

/// "1.2 GiB" in numbers: what a byte is divided by, and the unit's name.
std::pair<double, const char*> byte_unit(double most) {
  constexpr double kKiB = 1024;
  if (most >= kKiB * kKiB * kKiB) return {kKiB * kKiB * kKiB, "GiB"};
  if (most >= kKiB * kKiB) return {kKiB * kKiB, "MiB"};
  return most >= kKiB ? std::pair{kKiB, "KiB"} : std::pair{1.0, "bytes"};
}

constexpr double kLegendSize = 7, kSample = 10, kLine = 10.5, kApart = 9;

class LegendDrawer {
 public:
  LegendDrawer(double left, double top, double right, Drawing& sheet)
      : left_(left), right_(right), x_(left), y_(top), sheet_(sheet) {}

  /// Boxes side by side, and what they mean; `hatch`: of the lines over a box.
  void entry(const std::vector<Paint>& samples, const std::string& name,
             WorkKind hatch = WorkKind::forward) {
    const double width =
        static_cast<double>(samples.size()) * kSample + 3 + text_width(name, kLegendSize);
    if (x_ > left_ && x_ + width > right_) x_ = left_, y_ += kLine;
    for (const Paint& paint : samples) {
      const RectShape box{x_, y_ + 1, kSample, 7, paint};
      sheet_.add(box);
      sheet_.add(hatch_of(hatch, box));
      x_ += kSample;
    }
    sheet_.words({x_ + 3, y_ + 7.2}, name, kLegendSize);
    x_ += 3 + text_width(name, kLegendSize) + kApart;
  }

  double bottom() const { return y_ + kLine; }

 private:
  double left_, right_, x_, y_;
  Drawing& sheet_;
};

class TimelinesDrawer {
 public:
  TimelinesDrawer(const std::vector<TimelinePanel>& panels, const TimelineUnits& units,
                  double width_in)
      : panels_(panels), units_(units) {
    const double inches = std::isfinite(width_in) ? std::clamp(width_in, 1.5, 100.0) : kPageInches;
    sheet_.width = inches * 72;
    scale_.right = sheet_.width - kMargin;
    measure();
  }

  Drawing draw() {
    sheet_.title = fmt::format("Predicted timelines of {}", fmt::join(names(), ", "));
    double y = legend();
    const double top = y;
    for (std::size_t i = 0; i < panels_.size(); ++i) {
      PanelText text{panels_[i].name, {}};
      if (!units_.in_page) text = {title(panels_[i]), figures(panels_[i])};
      y = draw_timeline_panel(panels_[i], saved_[i], text, scale_, y + (i > 0 ? kPanelGap : 3),
                              sheet_);
    }
    sheet_.axes = {scale_.left, scale_.right, top, y, 0, scale_.longest / units_.time, 0, 1, {}};
    sheet_.height = notes(axis(y + 3)) + 4;
    return std::move(sheet_);
  }

 private:
  /// Draws the content of the panels, in lines; returns where they end.
  double legend() {
    std::array<bool, kWorkKinds> used{};
    int chunks = 1;
    bool path = false;
    for (const TimelinePanel& panel : panels_) {
      chunks = std::max(chunks, chunks_of(panel));
      path = path || !panel.timeline.critical_path.empty();
      for (std::size_t rank = 0; rank < panel.ranks(); ++rank) {
        const std::vector<WorkBox> boxes = work_boxes(panel, rank);
        for (const WorkBox& box : boxes) used[static_cast<std::size_t>(box.work)] = true;
        if (!waits_between(boxes, panel.timeline.makespan).empty())
          used[static_cast<std::size_t>(WorkKind::idle)] = true;
      }
    }
    LegendDrawer legend(kMargin, 3, scale_.right, sheet_);
    constexpr std::array<const char*, kWorkKinds> kMeanings{"F forward",
                                                            "B backward (I and W)",
                                                            "I input gradient",
                                                            "W weight gradient",
                                                            "optimizer",
                                                            "waiting",
                                                            "waiting for a transfer",
                                                            "waiting for reduction",
                                                            "waiting in the optimizer"};
    for (std::size_t i = 0; i < kWorkKinds; ++i) {
      const auto work = static_cast<WorkKind>(i);
      if (used[i])
        legend.entry({{.fill = colour_of(work)}}, kMeanings[i],
                     scale_.by_column && work != WorkKind::idle ? WorkKind::forward : work);
      if (work == WorkKind::optimizer && chunks > 1 && !scale_.by_column)
        legend.entry({{.fill = colour_of(WorkKind::forward)},
                      {.fill = colour_of(WorkKind::forward, chunks - 1, chunks)}},
                     "first, last stage of a rank");
    }
    if (path) legend.entry({{.line = kInk, .width = 1.1}}, "critical path");
    return legend.bottom();
  }

  std::vector<std::string> names() const {
    std::vector<std::string> result;
    for (const TimelinePanel& panel : panels_) result.push_back(panel.name);
    return result;
  }

  /// The scales that all panels share.
  void measure() {
    std::size_t boxes = 0, ranks = 0;
    scale_.units = units_;
    for (const TimelinePanel& panel : panels_) {
      ranks = std::max(ranks, panel.ranks());
      scale_.longest = std::max(scale_.longest, panel.timeline.makespan);
      for (const std::size_t rank : spread_ranks(panel.ranks(), kMostRows))
        boxes += work_boxes(panel, rank).size();
      saved_.push_back(units_.in_page ? SavedCurve{} : most_saved(panel));
      scale_.most_saved = std::max(scale_.most_saved, saved_.back().peak);
    }
    scale_.by_column = boxes > kMostBoxes;
    scale_.rows = std::min(ranks, kMostRows);
    const std::size_t shown = scale_.rows;
    scale_.row = shown <= 4 ? 13 : shown <= 8 ? 11 : shown <= 16 ? 8.5 : shown <= 32 ? 6 : 4;
    if (units_.in_page) scale_.row *= 1.35;
    const auto [unit, name] =
        units_.bytes ? byte_unit(scale_.most_saved) : std::pair{1.0, "microbatches"};
    scale_.saved_unit = unit;
    for (SavedCurve& saved : saved_) caption(saved, unit, name);
    const double widest = std::max(text_width(fmt::format("{}", ranks - 1), kRankSize),
                                   text_width(saved_text(scale_.most_saved / unit), kRankSize));
    scale_.left = kMargin + 9 + widest + 3;
  }

  static std::string saved_text(double amount) { return short_number(amount, 3); }

  /// The rank that saves most, and when.
  SavedCurve most_saved(const TimelinePanel& panel) const {
    SavedCurve most;
    for (std::size_t rank = 0; rank < panel.ranks(); ++rank) {
      SavedCurve saved{rank, 0, saved_levels(panel, rank, units_.bytes), {}};
      for (const SavedLevel& level : saved.levels) saved.peak = std::max(saved.peak, level.amount);
      if (rank == 0 || saved.peak > most.peak * (1 + 1e-9)) most = std::move(saved);
    }
    return most;
  }

  void caption(SavedCurve& saved, double unit, const char* name) const {
    const std::string most = fmt::format("up to {} {}", saved_text(saved.peak / unit), name);
    saved.caption = fmt::format("activations of rank {}, which saves most: {}{}", saved.rank, most,
                                units_.bytes ? "" : " of a rank's share of the model");
    if (text_width(saved.caption, kCaptionSize) > scale_.right - kMargin - 20)
      saved.caption = fmt::format("activations of rank {}: {}", saved.rank, most);
  }

  std::string seconds(double value) const {
    return short_number(value / units_.time, 4) + units_.time_unit;
  }

  static std::string title(const TimelinePanel& panel) {
    return fmt::format("{}, {} x {}", panel.name,
                       counted(static_cast<std::int64_t>(panel.ranks()), "rank"),
                       counted(panel.microbatches(), "microbatch"));
  }

  std::string figures(const TimelinePanel& panel) const {
    const IdleShares idle = idle_shares(panel);
    std::vector<std::string> causes;
    for (const auto& [share, name] : {std::pair{idle.schedule, "schedule"},
                                      {idle.imbalance, "imbalance"},
                                      {idle.transfer, "transfer"},
                                      {idle.exchange, "gradients and optimizer"}})
      if (share >= 0.0005) causes.push_back(fmt::format("{} {:.1f}%", name, 100 * share));
    if (causes.size() == 1) causes[0].erase(causes[0].rfind(' '));
    return fmt::format("makespan {}, bubble {:.1f}%{}{}{}", seconds(panel.timeline.makespan),
                       100 * panel.timeline.mean_bubble, causes.empty() ? "" : " (",
                       fmt::join(causes, ", "), causes.empty() ? "" : ")");
  }

  double axis(double y) {
    const double width = scale_.right - scale_.left;
    sheet_.line({scale_.left, y}, {scale_.right, y}, kInk, 0.6);
    for (const AxisTick& tick :
         axis_ticks(scale_.longest / units_.time, static_cast<int>(width / 40))) {
      const double at = scale_.x(tick.value * units_.time);
      sheet_.line({at, y}, {at, y + 2.5}, kInk, 0.6);
      const double half = text_width(tick.label, kRankSize) / 2;
      sheet_.words({std::min(at, sheet_.width - half - 1), y + 9.5}, tick.label, kRankSize,
                   Anchor::middle);
    }
    sheet_.words({(scale_.left + scale_.right) / 2, y + 18.5},
                 shortened(units_.time_label, 7.5, width), 7.5, Anchor::middle);
    return y + 20;
  }

  /// Notes on all that is not drawn as it is.
  double notes(double y) {
    std::string text;
    if (scale_.by_column)
      text += fmt::format(
          "More than {} boxes: each column of {} pt has the colour of what took most of it. ",
          grouped(kMostBoxes), kColumnWidth);
    for (const TimelinePanel& panel : panels_)
      if (panel.ranks() > kMostRows) {
        text += fmt::format("At most {} ranks are shown, at equal distances.", kMostRows);
        break;
      }
    for (const std::string& line : wrapped(text, 6.5, scale_.right - kMargin)) {
      y += 8;
      sheet_.words({kMargin, y}, line, 6.5, Anchor::start, kSoft);
    }
    return y;
  }

  const std::vector<TimelinePanel>& panels_;
  const TimelineUnits& units_;
  Drawing sheet_;
  PanelScale scale_;
  std::vector<SavedCurve> saved_;  // by panel
};

}  // namespace

Drawing draw_timelines(const std::vector<TimelinePanel>& panels, const TimelineUnits& units,
                       double width_in) {
  return TimelinesDrawer(panels, units, width_in).draw();
}

}  // namespace concertina
