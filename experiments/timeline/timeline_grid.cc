#include "experiments/timeline/timeline_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace concertina {
namespace {

constexpr std::size_t kMostColumns = 4000, kMostGridRows = 256;

/// The colors of a 256-color terminal that are closest to those of F, B, I, W and S in pictures.
constexpr std::array kTerminalColors{25, 178, 222, 74, 175};

/// Returns "0.25", "12000" or "3.5e-06": `digits` significant digits, in full notation if short.
std::string short_number(double value, int digits) {
  const std::string text = fmt::format("{:.{}g}", value, digits);
  return value >= 1 && value < 1e7 ? fmt::format("{:.10g}", std::stod(text)) : text;
}

class TextGrid {
 public:
  TextGrid(const std::vector<TimelinePanel>& panels, const GridLook& look)
      : panels_(panels), look_(look) {
    for (const TimelinePanel& panel : panels) measure(panel);
    names_ = fmt::format("rank {}", most_ranks_ - 1).size() + 2;
    const std::size_t most = look.width > 0 ? look.width : kMostColumns * 8;
    room_ = std::min(kMostColumns, most > names_ + 8 ? most - names_ : 8);
    if (!(shortest_ < kNone)) shortest_ = longest_ > 0 ? longest_ : 1;
    cells_ = std::ceil(longest_ / shortest_ - 1e-6);
    worded_ = cells_ * static_cast<double>(cell_) <= static_cast<double>(room_) && all_multiples();
    unit_ = shortest_;
    if (!worded_ && cells_ > static_cast<double>(room_))
      unit_ = longest_ / static_cast<double>(room_), cells_ = static_cast<double>(room_);
  }

  std::string text() const {
    std::string text;
    bool fewer = false;
    for (const TimelinePanel& panel : panels_) {
      text +=
          fmt::format("{}: makespan {}, bubble {:.1f}%\n", panel.name,
                      short_number(panel.timeline.makespan, 4), 100 * panel.timeline.mean_bubble);
      fewer = fewer || panel.ranks() > kMostGridRows;
      for (const std::size_t rank : spread_ranks(panel.ranks(), kMostGridRows)) {
        std::string line = fmt::format("{:<{}}", fmt::format("rank {}", rank), names_);
        const std::vector<WorkBox> boxes = work_boxes(panel, rank);
        line += worded_ ? worded(panel, boxes) : lettered(panel, boxes);
        line.erase(line.find_last_not_of(' ') + 1);
        text += line + "\n";
      }
    }
    if (!worded_) text += fmt::format("one column is {}\n", short_number(unit_, 3));
    if (fewer) text += fmt::format("showing {} evenly spaced ranks\n", kMostGridRows);
    return text;
  }

 private:
  static constexpr double kNone = 1e300;

  void measure(const TimelinePanel& panel) {
    longest_ = std::max(longest_, panel.timeline.makespan);
    most_ranks_ = std::max(most_ranks_, panel.ranks());
    for (std::size_t rank = 0; rank < panel.ranks(); ++rank)
      for (const WorkBox& box : work_boxes(panel, rank)) {
        if (box.end > box.start) shortest_ = std::min(shortest_, box.end - box.start);
        cell_ = std::max(cell_, word(panel, box).size() + 1);
      }
  }

  /// Whether every action starts and ends on a cell's edge.
  bool all_multiples() const {
    const auto whole = [&](double value) {
      return std::abs(value / shortest_ - std::round(value / shortest_)) < 1e-3;
    };
    for (const TimelinePanel& panel : panels_)
      for (std::size_t rank = 0; rank < panel.ranks(); ++rank)
        for (const WorkBox& box : work_boxes(panel, rank))
          if (!whole(box.start) || !whole(box.end)) return false;
    return true;
  }

  static std::string word(const TimelinePanel& panel, const WorkBox& box) {
    if (box.microbatch < 0) return "S";
    return fmt::format("{}{}{}", chunks_of(panel) > 1 ? fmt::to_string(box.stage) : "",
                       letter_of(box.work), box.microbatch);
  }

  std::string colored(WorkKind work, const std::string& text) const {
    if (!look_.color) return text;
    const int letters = work == WorkKind::forward ? 231 : 16;
    return fmt::format("\x1b[48;5;{};38;5;{}m{}\x1b[0m",
                       kTerminalColors[static_cast<std::size_t>(work)], letters, text);
  }

  std::size_t edge(double time) const {
    return static_cast<std::size_t>(std::llround(time / unit_)) * cell_;
  }

  std::string worded(const TimelinePanel& panel, const std::vector<WorkBox>& boxes) const {
    std::string line;
    std::size_t at = 0;  // characters so far, without color codes
    const auto wait_until = [&](std::size_t end) {
      for (; at + cell_ <= end; at += cell_) line += "." + std::string(cell_ - 1, ' ');
    };
    for (std::size_t i = 0; i < boxes.size(); ++i) {
      const std::size_t begin = edge(boxes[i].start), end = edge(boxes[i].end);
      std::string name = word(panel, boxes[i]);
      const WorkKind work = boxes[i].work;
      // Overlapping actions share one interval.
      if (boxes[i].part == 1 && i + 1 < boxes.size()) name += "+" + word(panel, boxes[++i]);
      if (end <= begin || begin < at) continue;
      wait_until(begin);
      name.resize(end - begin - 1, '-');
      line += colored(work, name) + " ";
      at = end;
    }
    wait_until(edge(panel.timeline.makespan));
    return line;
  }

  std::string lettered(const TimelinePanel& panel, const std::vector<WorkBox>& boxes) const {
    std::string line, same;  // `same`: a run of equal kinds, colored together
    std::optional<WorkKind> kind;
    const auto flush = [&] {
      line += kind ? colored(*kind, same) : same;
      same.clear();
    };
    const double end = panel.timeline.makespan * (1 - 1e-9);
    const auto count = static_cast<std::size_t>(std::min(cells_, std::ceil(end / unit_)));
    for (const std::optional<WorkKind>& work : main_work(boxes, unit_, count)) {
      if (work != kind) flush();
      kind = work;
      same += work ? letter_of(*work) : '.';
    }
    flush();
    return line;
  }

  const std::vector<TimelinePanel>& panels_;
  const GridLook look_;
  double longest_ = 0, shortest_ = kNone, unit_ = 1, cells_ = 0;
  std::size_t most_ranks_ = 1, names_ = 8, room_ = 72;
  std::size_t cell_ = 3;  // characters
  bool worded_ = false;
};

}  // namespace

std::string timeline_grid(const std::vector<TimelinePanel>& panels, const GridLook& look) {
  return TextGrid(panels, look).text();
}

}  // namespace concertina
