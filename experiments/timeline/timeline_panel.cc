#include "experiments/timeline/timeline_panel.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "core/index.h"
#include "experiments/timeline/timeline_style.h"
#include "io/figure/axis_scale.h"

namespace concertina {
namespace {

constexpr double kPanelTitleSize = 8, kFiguresSize = 7, kStrip = 18;
constexpr double kLeastLabel = 3.8, kMostLabel = 7;  // of microbatch numbers
constexpr double kNoWait = 1;      // points: shorter waits interrupt neither path nor memory
constexpr double kOutlined = 2.4;  // points: narrower boxes of the critical path are one line

class PanelDrawer {
 public:
  PanelDrawer(const TimelinePanel& panel, const PanelScale& scale, Drawing& sheet)
      : panel_(panel),
        scale_(scale),
        sheet_(sheet),
        ranks_(spread_ranks(panel.ranks(), scale.rows)),
        chunks_(chunks_of(panel)),
        height_(scale.row - (scale.row > 8   ? 1.6
                             : scale.row > 5 ? 0.8
                                             : 0.4)) {}

  double draw(const SavedCurve& saved, const PanelText& text, double top) {
    top_ = titles(text, top);
    if (!scale_.by_column) fit_labels();
    for (std::size_t row = 0; row < ranks_.size(); ++row) rank_row(row);
    add(TextShape{{scale_.left - rank_names_ - 5.5, (top_ + bottom()) / 2},
                  "rank",
                  kRankSize,
                  Anchor::middle,
                  false,
                  kSoft,
                  -90});
    path();
    return scale_.most_saved > 0 ? memory(saved, text.saved, bottom() + 2) : bottom() + 2;
  }

 private:
  void add(Shape shape) { sheet_.shapes.push_back(std::move(shape)); }
  double bottom() const { return top_ + static_cast<double>(ranks_.size()) * scale_.row; }
  double y_of(std::size_t row) const { return top_ + static_cast<double>(row) * scale_.row; }

  double titles(const PanelText& text, double top) {
    const double width = text_width(text.title, kPanelTitleSize, true);
    const double figures = text_width(text.figures, kFiguresSize), most = scale_.right - 5;
    add(TextShape{{5, top + 8},
                  shortened(text.title, 1.1 * kPanelTitleSize, most),
                  kPanelTitleSize,
                  Anchor::start,
                  true,
                  kInk});
    if (5 + width + 10 + figures <= scale_.right) {
      add(TextShape{{scale_.right, top + 8}, text.figures, kFiguresSize, Anchor::end, false, kInk});
      return top + 11.5;
    }
    top += 8;
    for (const std::string& line : wrapped(text.figures, kFiguresSize, most - 5)) {
      top += 8.5;
      add(TextShape{{5, top}, line, kFiguresSize, Anchor::start, false, kInk});
    }
    return top + 3.5;
  }

  void rank_row(std::size_t row) {
    const std::size_t rank = ranks_[row];
    const std::string name = fmt::format("{}", rank);
    // Only some of narrow rows have a name.
    const auto every = static_cast<std::size_t>(std::ceil((kRankSize + 0.5) / scale_.row));
    if (row % every == 0) {
      rank_names_ = std::max(rank_names_, text_width(name, kRankSize));
      add(TextShape{{scale_.left - 3, y_of(row) + height_ / 2 + 0.36 * kRankSize},
                    name,
                    kRankSize,
                    Anchor::end,
                    false,
                    kInk});
    }
    const std::vector<WorkBox> boxes = work_boxes(panel_, rank);
    const double end = scale_.x(panel_.timeline.makespan);
    if (end > scale_.left)
      add(RectShape{scale_.left, y_of(row), end - scale_.left, height_, {.fill = kIdle}});
    PathShape idle{{}, false, {.line = kIdleLines, .width = 0.5}};
    for (const Interval& wait : waits_between(boxes, panel_.timeline.makespan)) {
      const double left = scale_.x(wait.start), width = scale_.x(wait.end) - left;
      const PathShape lines =
          hatch_lines({left, y_of(row), width, height_}, Hatch::rising, kIdleGap, {});
      idle.pieces.insert(idle.pieces.end(), lines.pieces.begin(), lines.pieces.end());
    }
    if (!idle.pieces.empty()) add(idle);
    if (scale_.by_column)
      columns(boxes, y_of(row));
    else
      for (const WorkBox& one : boxes) box(one, y_of(row));
  }

  /// Per kind of work, the size at which the numbers of all its boxes fit: all of them or none.
  void fit_labels() {
    labels_.fill(std::min(kMostLabel, 0.68 * scale_.row));
    for (const std::size_t rank : ranks_)
      for (const WorkBox& one : work_boxes(panel_, rank)) {
        if (one.microbatch < 0 || !(one.end > one.start)) continue;
        double& size = labels_[static_cast<std::size_t>(one.work)];
        const double width = scale_.x(one.end) - scale_.x(one.start) - 0.8;
        size = std::min({size, width / text_width(std::to_string(one.microbatch), 1),
                         one.part > 0 ? 0.45 * scale_.row : size});
      }
    for (double& size : labels_)
      if (size < kLeastLabel) size = 0;
    // Kinds whose numbers are nearly of one size have one size.
    double least = kMostLabel;
    for (const double size : labels_)
      if (size > 0) least = std::min(least, size);
    for (double& size : labels_)
      if (size > 0 && size < 1.5 * least) size = least;
  }

  std::string title_of(const WorkBox& box) const {
    const std::string what = box.microbatch < 0
                                 ? "optimizer"
                                 : fmt::format("{} of microbatch {} on stage {}",
                                               letter_of(box.work), box.microbatch, box.stage);
    return fmt::format("{}, {:.6g} to {:.6g} s of the costs", what, box.start, box.end);
  }

  void box(const WorkBox& one, double top) {
    const double left = scale_.x(one.start), width = scale_.x(one.end) - left;
    const double height = one.part > 0 ? height_ / 2 : height_;
    if (one.part == 2) top += height;
    const Colour colour = colour_of(one.work, one.chunk, chunks_);
    const RectShape shape{left,
                          top,
                          width,
                          height,
                          {.fill = colour, .line = kPaper, .width = width > 2 ? 0.4 : 0.1},
                          title_of(one)};
    add(shape);
    const PathShape hatch = hatch_of(one.work, shape);
    if (!hatch.pieces.empty()) add(hatch);
    const double size = labels_[static_cast<std::size_t>(one.work)];
    if (one.microbatch < 0 || size <= 0) return;
    const std::string number = std::to_string(one.microbatch);
    if (!hatch.pieces.empty()) {  // no lines behind the number
      const double inner = text_width(number, size) + 0.6;
      add(RectShape{left + (width - inner) / 2,
                    top + height / 2 - 0.45 * size,
                    inner,
                    0.9 * size,
                    {.fill = colour}});
    }
    add(TextShape{{left + width / 2, top + height / 2 + 0.36 * size},
                  number,
                  size,
                  Anchor::middle,
                  false,
                  readable_on(colour)});
  }

  /// Each column in the colour of what took most of it; one path per colour.
  void columns(const std::vector<WorkBox>& boxes, double top) {
    const auto count = static_cast<std::size_t>((scale_.right - scale_.left) / kColumnWidth) + 1;
    std::vector<std::array<double, kWorkKinds>> used(count);  // shares of columns
    for (const WorkBox& one : boxes) {
      const double first = (scale_.x(one.start) - scale_.left) / kColumnWidth;
      const double last = (scale_.x(one.end) - scale_.left) / kColumnWidth;
      for (auto c = static_cast<std::size_t>(first); c < count && static_cast<double>(c) < last;
           ++c)
        used[c][static_cast<std::size_t>(one.work)] +=
            std::min(last, static_cast<double>(c) + 1) - std::max(first, static_cast<double>(c));
    }
    std::array<PathShape, kWorkKinds> paths;
    for (std::size_t c = 0; c < count;) {
      const int main = main_of(used[c]);
      std::size_t end = c + 1;
      while (end < count && main_of(used[end]) == main) ++end;
      if (main >= 0) {
        const double left = scale_.left + static_cast<double>(c) * kColumnWidth;
        const double right =
            std::min(scale_.right, scale_.left + static_cast<double>(end) * kColumnWidth);
        PathShape& path = paths[at(main)];
        path.closed = true;
        path.paint.fill = colour_of(static_cast<WorkKind>(main));
        path.pieces.push_back(
            {{left, top}, {right, top}, {right, top + height_}, {left, top + height_}});
      }
      c = end;
    }
    for (PathShape& path : paths)
      if (!path.pieces.empty()) add(std::move(path));
  }

  /// -1 where a column is idle for the most part.
  static int main_of(const std::array<double, kWorkKinds>& used) {
    double busy = 0;
    for (const double share : used) busy += share;
    return busy < 0.5 ? -1 : static_cast<int>(std::ranges::max_element(used) - used.begin());
  }

  struct PathBox {
    double start, end;
    std::size_t row;
  };

  /// The part of the plan's critical path that is computation on a rank that is shown; computations
  /// of a rank without a visible wait between them are one box.
  std::vector<PathBox> path_boxes() const {
    std::map<int, std::size_t> row_of;
    for (std::size_t row = 0; row < ranks_.size(); ++row)
      row_of[static_cast<int>(ranks_[row])] = row;
    std::vector<PathBox> result;
    for (const PathStep& step : panel_.timeline.critical_path) {
      const Action& action = panel_.plan.rows[at(step.rank)][at(step.position)];
      const Interval& time = panel_.timeline.rows[at(step.rank)][at(step.position)];
      const auto row = row_of.find(step.rank);
      if (!is_compute(action.kind) || row == row_of.end() || !(time.end > time.start)) continue;
      if (!result.empty() && result.back().row == row->second &&
          scale_.x(time.start) - scale_.x(result.back().end) < kNoWait)
        result.back().end = time.end;
      else
        result.push_back({time.start, time.end, row->second});
    }
    return result;
  }

  void path() {
    const std::vector<PathBox> boxes = path_boxes();
    if (boxes.empty()) return;
    double narrowest = 1e300;
    for (const PathBox& one : boxes)
      narrowest = std::min(narrowest, scale_.x(one.end) - scale_.x(one.start));
    if (scale_.by_column || narrowest < kOutlined)
      path_line(boxes);
    else
      path_outlines(boxes);
  }

  void path_outlines(const std::vector<PathBox>& boxes) {
    constexpr double kWidth = 1.1;
    PathShape links{{}, false, {.line = kInk, .width = kWidth}};
    for (std::size_t i = 1; i < boxes.size(); ++i) {
      const PathBox &from = boxes[i - 1], &to = boxes[i];
      if (from.row == to.row) continue;
      const bool down = to.row > from.row;
      links.pieces.push_back({{scale_.x(from.end), y_of(from.row) + (down ? height_ : 0)},
                              {scale_.x(to.start), y_of(to.row) + (down ? 0 : height_)}});
    }
    if (!links.pieces.empty()) add(links);
    for (const PathBox& one : boxes)
      add(RectShape{scale_.x(one.start),
                    y_of(one.row),
                    scale_.x(one.end) - scale_.x(one.start),
                    height_,
                    {.line = kInk, .width = kWidth}});
  }

  void path_line(const std::vector<PathBox>& boxes) {
    PathShape line{{{}}, false, {.line = kPaper, .width = 1.6}};
    for (const PathBox& one : boxes) {
      const double middle = y_of(one.row) + height_ / 2;
      line.pieces[0].push_back({scale_.x(one.start), middle});
      line.pieces[0].push_back({scale_.x(one.end), middle});
    }
    add(line);
    line.paint = {.line = kInk, .width = 0.8};
    add(line);
  }

  /// Too short to be seen as more than a scratch.
  bool is_dip(const SavedLevel& level, const SavedLevel& next) const {
    return next.amount > level.amount && scale_.x(next.at) - scale_.x(level.at) < kNoWait;
  }

  double memory(const SavedCurve& saved, const std::string& caption, double top) {
    const double width = scale_.right - scale_.left;
    add(TextShape{{scale_.left, top + kCaptionSize},
                  shortened(caption, kCaptionSize, width),
                  kCaptionSize,
                  Anchor::start,
                  false,
                  kSoft});
    top += kCaptionSize + 3;
    const double base = top + kStrip;
    const auto level = [&](double amount) { return base - amount / scale_.most_saved * kStrip; };
    std::vector<Spot> line{{scale_.left, base}};
    for (std::size_t i = 0; i < saved.levels.size(); ++i) {
      const SavedLevel& step = saved.levels[i];
      if (i > 0 && i + 1 < saved.levels.size() && is_dip(step, saved.levels[i + 1])) continue;
      line.push_back({scale_.x(step.at), line.back().y});
      line.push_back({scale_.x(step.at), level(step.amount)});
    }
    line.push_back({scale_.x(panel_.timeline.makespan), line.back().y});
    line.push_back({line.back().x, base});
    add(PathShape{{line}, true, {.fill = mixed(kSoft, kPaper, 0.72)}});
    add(PathShape{{line}, false, {.line = kSoft, .width = 0.7}});
    add(PathShape{
        {{{scale_.left, base}, {scale_.right, base}}}, false, {.line = kGridLine, .width = 0.5}});
    for (const auto& [amount, y] : {std::pair{scale_.most_saved, top}, {0.0, base}})
      add(TextShape{{scale_.left - 3, y + 0.36 * kRankSize},
                    short_number(amount / scale_.saved_unit, 3),
                    kRankSize,
                    Anchor::end,
                    false,
                    kSoft});
    return base + 1;
  }

  const TimelinePanel& panel_;
  const PanelScale& scale_;
  Drawing& sheet_;
  const std::vector<std::size_t> ranks_;
  const int chunks_;
  const double height_;                      // of a box
  std::array<double, kWorkKinds> labels_{};  // sizes of numbers; 0: none
  double top_ = 0, rank_names_ = 0;
};

}  // namespace

double draw_timeline_panel(const TimelinePanel& panel, const SavedCurve& saved,
                           const PanelText& text, const PanelScale& scale, double top,
                           Drawing& sheet) {
  return PanelDrawer(panel, scale, sheet).draw(saved, text, top);
}

}  // namespace concertina
