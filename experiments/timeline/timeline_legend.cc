#include "experiments/timeline/timeline_legend.h"

#include <algorithm>
#include <array>
#include <string>

#include "experiments/timeline/timeline_style.h"

namespace concertina {
namespace {

constexpr double kSize = 7, kSample = 10, kLine = 10.5, kApart = 9;

class LegendDrawer {
 public:
  LegendDrawer(double left, double top, double right, Drawing& sheet)
      : left_(left), right_(right), x_(left), y_(top), sheet_(sheet) {}

  /// Boxes side by side, and what they mean; `hatch`: the lines over a box.
  template <class HatchOf>
  void entry(const std::vector<Paint>& samples, const std::string& name, HatchOf hatch) {
    const double width =
        static_cast<double>(samples.size()) * kSample + 3 + text_width(name, kSize);
    if (x_ > left_ && x_ + width > right_) x_ = left_, y_ += kLine;
    for (const Paint& paint : samples) {
      const RectShape box{x_, y_ + 1, kSample, 7, paint};
      sheet_.shapes.push_back(box);
      sheet_.shapes.push_back(hatch(box));
      x_ += kSample;
    }
    sheet_.shapes.push_back(TextShape{{x_ + 3, y_ + 7.2}, name, kSize, Anchor::start, false, kInk});
    x_ += 3 + text_width(name, kSize) + kApart;
  }

  double bottom() const { return y_ + kLine; }

 private:
  double left_, right_, x_, y_;
  Drawing& sheet_;
};

PathShape no_hatch(const RectShape&) {
  return {};
}

}  // namespace

double draw_timeline_legend(const std::vector<TimelinePanel>& panels, double left, double top,
                            double right, bool by_column, Drawing& sheet) {
  std::array<bool, kWorkKinds> used{};
  int chunks = 1;
  bool waits = false, path = false;
  for (const TimelinePanel& panel : panels) {
    chunks = std::max(chunks, chunks_of(panel));
    path = path || !panel.timeline.critical_path.empty();
    for (std::size_t rank = 0; rank < panel.ranks(); ++rank) {
      const std::vector<WorkBox> boxes = work_boxes(panel, rank);
      for (const WorkBox& box : boxes) used[static_cast<std::size_t>(box.work)] = true;
      waits = waits || !waits_between(boxes, panel.timeline.makespan).empty();
    }
  }
  LegendDrawer legend(left, top, right, sheet);
  constexpr std::array<const char*, kWorkKinds> kMeanings{
      "F forward", "B backward (I and W)", "I input gradient", "W weight gradient", "optimizer"};
  for (std::size_t i = 0; i < kWorkKinds; ++i) {
    const WorkKind work = static_cast<WorkKind>(i);
    if (used[i])
      legend.entry({{.fill = colour_of(work)}}, kMeanings[i], [&](const RectShape& box) {
        return by_column ? PathShape{} : hatch_of(work, box);
      });
  }
  if (chunks > 1 && !by_column)
    legend.entry({{.fill = colour_of(WorkKind::forward)},
                  {.fill = colour_of(WorkKind::forward, chunks - 1, chunks)}},
                 "first, last stage of a rank", no_hatch);
  if (waits)
    legend.entry({{.fill = kIdle}}, "waiting", [](const RectShape& box) {
      return hatch_lines(box, Hatch::rising, kIdleGap, {.line = kIdleLines, .width = 0.5});
    });
  if (path) legend.entry({{.line = kInk, .width = 1.1}}, "critical path", no_hatch);
  return legend.bottom();
}

}  // namespace concertina
