#include "experiments/timeline/timeline_panel.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>

#include "core/index.h"
#include "io/figure/axis_ticks.h"

namespace concertina {
namespace {

constexpr double kPanelTitleSize = 8, kFiguresSize = 7, kStrip = 18;
constexpr double kLeastLabel = 3.8, kMostLabel = 7;  // of microbatch numbers
constexpr int kMostZoom = 16;                        // of the page
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
    if (!scale_.by_column && !scale_.units.in_page) fit_labels();
    for (std::size_t row = 0; row < ranks_.size(); ++row) rank_row(row);
    sheet_.words({scale_.left - rank_names_ - 5.5, (top_ + bottom()) / 2}, "rank", kRankSize,
                 Anchor::middle, kSoft, -90);
    path();
    return scale_.most_saved > 0 ? memory(saved, bottom() + 2) : bottom() + 2;
  }

 private:
  void add(Shape shape) { sheet_.add(std::move(shape)); }
  double bottom() const { return top_ + static_cast<double>(ranks_.size()) * scale_.row; }
  double y_of(std::size_t row) const { return top_ + static_cast<double>(row) * scale_.row; }

  double titles(const PanelText& text, double top) {
    const double width = text_width(text.title, kPanelTitleSize, true);
    const double figures = text_width(text.figures, kFiguresSize), most = scale_.right - 5;
    sheet_.bold_words({5, top + 8}, shortened(text.title, 1.1 * kPanelTitleSize, most),
                      kPanelTitleSize);
    if (5 + width + 10 + figures <= scale_.right) {
      sheet_.words({scale_.right, top + 8}, text.figures, kFiguresSize, Anchor::end);
      return top + 11.5;
    }
    top += 8;
    for (const std::string& line : wrapped(text.figures, kFiguresSize, most - 5)) {
      top += 8.5;
      sheet_.words({5, top}, line, kFiguresSize);
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
      sheet_.words({scale_.left - 3, y_of(row) + height_ / 2 + 0.36 * kRankSize}, name, kRankSize,
                   Anchor::end);
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
    const TimelineUnits& units = scale_.units;
    const Layout& layout = panel_.layout;
    const auto text = [&](double seconds) { return short_number(seconds / units.time, 4); };
    std::string what = is_wait(box.work) ? box.what : "optimizer";
    if (box.microbatch >= 0)
      what = fmt::format("{} {} stage {}", letter_of(box.work), box.microbatch,
                         box.stage - layout.first_stage(layout.pipeline_of(box.stage)));
    return fmt::format("{}, {} to {}{}: {}{}", what, text(box.start), text(box.end),
                       units.time_unit, text(box.end - box.start), units.time_unit);
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
    if (one.microbatch >= 0) number(one, shape, !hatch.pieces.empty());
  }

  /// The microbatch in its box; on a page, from the zoom on at which it has room.
  void number(const WorkBox& one, const RectShape& box, bool hatched) {
    const std::string text = std::to_string(one.microbatch);
    double size = labels_[static_cast<std::size_t>(one.work)];
    int zoom = 1;
    if (scale_.units.in_page) {
      size = std::min(kRankSize, 0.68 * scale_.row) * (one.part > 0 ? 0.6 : 1);
      const double needed = text_width(text, size) + 0.8;
      while (zoom <= kMostZoom && box.width * zoom < needed) zoom *= 2;
    }
    if (size < kLeastLabel || zoom > kMostZoom) return;
    const Colour colour = *box.paint.fill;
    const Spot middle{box.x + box.width / 2, box.y + box.height / 2};
    if (hatched && zoom == 1) {  // no lines under the number
      const double inner = text_width(text, size) + 0.6;
      add(RectShape{
          middle.x - inner / 2, middle.y - 0.45 * size, inner, 0.9 * size, {.fill = colour}});
    }
    add(TextShape{{middle.x, middle.y + 0.36 * size},
                  text,
                  size,
                  Anchor::middle,
                  false,
                  readable_on(colour),
                  0,
                  zoom});
  }

  /// Each column in the colour of what took most of it; one path per colour.
  void columns(const std::vector<WorkBox>& boxes, double top) {
    const double seconds = scale_.longest * kColumnWidth / (scale_.right - scale_.left);
    const auto count = static_cast<std::size_t>((scale_.right - scale_.left) / kColumnWidth) + 1;
    const std::vector<std::optional<WorkKind>> work = main_work(boxes, seconds, count);
    std::array<PathShape, kWorkKinds> paths;
    for (std::size_t c = 0, end = 0; c < count; c = end) {
      while (end < count && work[end] == work[c]) ++end;
      if (!work[c]) continue;
      PathShape& path = paths[static_cast<std::size_t>(*work[c])];
      path.paint = {.line = colour_of(*work[c]), .width = height_};
      const double middle = top + height_ / 2, left = static_cast<double>(c) * kColumnWidth,
                   right = static_cast<double>(end) * kColumnWidth;
      path.pieces.push_back(
          {{scale_.left + left, middle}, {std::min(scale_.right, scale_.left + right), middle}});
    }
    for (PathShape& path : paths)
      if (!path.pieces.empty()) add(std::move(path));
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

  double memory(const SavedCurve& saved, double top) {
    const double width = scale_.right - scale_.left;
    sheet_.words({scale_.left, top + kCaptionSize}, shortened(saved.caption, kCaptionSize, width),
                 kCaptionSize, Anchor::start, kSoft);
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
    sheet_.line({scale_.left, base}, {scale_.right, base}, kGridLine, 0.5);
    for (const auto& [amount, y] : {std::pair{scale_.most_saved, top}, {0.0, base}})
      sheet_.words({scale_.left - 3, y + 0.36 * kRankSize},
                   short_number(amount / scale_.saved_unit, 3), kRankSize, Anchor::end, kSoft);
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

Colour colour_of(WorkKind work) {
  constexpr std::array<Colour, kWorkKinds> kColours{kBlue, kOrange,     kPaleOrange, kSky, kPink,
                                                    kIdle, kVermillion, kGreen,      kDark};
  return kColours[static_cast<std::size_t>(work)];
}

Colour colour_of(WorkKind work, int chunk, int chunks) {
  // A paler F still is darker than B, in grey too.
  const double most = work == WorkKind::forward ? 0.27 : 0.45;
  return mixed(colour_of(work), kPaper, chunks > 1 ? most * chunk / (chunks - 1) : 0);
}

PathShape hatch_of(WorkKind work, const RectShape& box) {
  const Paint idle{.line = kIdleLines, .width = 0.5};
  if (work == WorkKind::idle) return hatch_lines(box, Hatch::rising, kIdleGap, idle);
  const Hatch hatch = work == WorkKind::weight      ? Hatch::falling
                      : work == WorkKind::input     ? Hatch::rising
                      : work == WorkKind::optimizer ? Hatch::crossed
                                                    : Hatch::none;
  const Colour colour = work == WorkKind::input ? mixed(colour_of(WorkKind::backward), kInk, 0.1)
                                                : mixed(colour_of(work), kInk, 0.4);
  return hatch_lines(box, hatch, 3, {.line = colour, .width = 0.4});
}

double draw_timeline_panel(const TimelinePanel& panel, const SavedCurve& saved,
                           const PanelText& text, const PanelScale& scale, double top,
                           Drawing& sheet) {
  return PanelDrawer(panel, scale, sheet).draw(saved, text, top);
}

}  // namespace concertina
