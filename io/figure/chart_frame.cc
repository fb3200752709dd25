#include "io/figure/chart_frame.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <numbers>

#include "io/figure/palette.h"

namespace concertina {
namespace {

constexpr double kPointsPerInch = 72, kLeastInside = 36;  // points
constexpr double kEntryGap = 10, kRow = 10;

double inches_or(double inches, double otherwise) {
  return inches > 0 && std::isfinite(inches) ? std::clamp(inches, 1.0, 100.0) : otherwise;
}

std::string with_unit(const ChartAxis& axis) {
  if (axis.unit.empty()) return axis.label;
  return axis.label.empty() ? axis.unit : axis.label + " (" + axis.unit + ")";
}

LegendAt place_of(const Chart& chart, const std::vector<LegendEntry>& entries) {
  const bool for_lines_only =
      chart.legend == LegendAt::direct && !std::holds_alternative<Lines>(chart.marks);
  if (chart.legend != LegendAt::automatic && !for_lines_only) return chart.legend;
  return entries.size() > 1 ? LegendAt::top : LegendAt::none;
}

template <class Names, class Text>
double widest_of(const Names& names, Text text) {
  double widest = 0;
  for (const auto& name : names)
    widest = std::max(widest, text_width(std::invoke(text, name), kTickSize));
  return widest;
}

double sample_width(const LegendEntry& entry) {
  return entry.sample == LegendEntry::Sample::line  ? 18
         : entry.sample == LegendEntry::Sample::box ? 12
                                                    : 6;
}

/// The width of the widest label, for any number of ticks that a chart may have room for.
double widest_number(const AxisScale& scale) {
  double widest = 0;
  for (int count = 2; count <= 12; ++count)
    widest = std::max(widest, widest_of(scale.ticks(count), &AxisTick::label));
  return widest;
}

/// The size at which `text` fits into `width`, within what can still be read.
double size_for(const std::string& text, double size, double width) {
  const double needed = text_width(text, size);
  return needed > width ? std::max(5.5, size * width / needed) : size;
}

/// The words in place of a chart without data.
Drawing empty_chart(const Chart& chart) {
  Drawing sheet = ChartFrame(chart, {}).sheet();
  sheet.words({sheet.width / 2, sheet.height / 2}, "no data", kLabelSize, Anchor::middle, kSoft);
  return sheet;
}

}  // namespace

Drawing draw(const Chart& chart) {
  const auto drawn =
      std::visit([&](const auto& marks) { return draw_marks(chart, marks); }, chart.marks);
  return drawn ? *drawn : empty_chart(chart);
}

std::string svg(const Chart& chart) {
  return svg(draw(chart));
}

SeriesLook look_of_series(std::size_t n) {
  return {series_colour(n), series_dash(n), series_hatch(n), n};
}

void add_box(RectShape box, const SeriesLook& look, double gap, Drawing& sheet) {
  const PathShape lines = hatch_lines(box, look.hatch, gap, {.line = kPaper, .width = 0.6});
  sheet.add(std::move(box));
  if (!lines.pieces.empty()) sheet.add(lines);
}

ChartFrame::ChartFrame(const Chart& chart, const std::vector<LegendEntry>& entries)
    : chart_(chart) {
  const double width = inches_or(chart.width_in, kColumnInches);
  const double usual = width <= 4 ? 0.66 * width : 0.45 * width;
  sheet_.width = width * kPointsPerInch;
  sheet_.height = inches_or(chart.height_in, usual) * kPointsPerInch;
  sheet_.title = chart.title;
  right_ = sheet_.width - 6;
  bottom_ = sheet_.height - 4;
  title();
  legend(entries);
  top_ += 4;
}

void ChartFrame::title() {
  for (const std::string& line : wrapped(chart_.title, kTitleSize, right_ - left_, true))
    sheet_.bold_words({left_, (top_ += kTitleSize + 2) - 1}, line, kTitleSize);
  for (const std::string& line : wrapped(chart_.note, kTickSize, right_ - left_))
    sheet_.words({left_, (top_ += kRow) - 1}, line, kTickSize, Anchor::start, kSoft);
  if (top_ > 3) top_ += 2;
}

void ChartFrame::want_inside(double points) {
  if (chart_.height_in > 0) return;
  sheet_.height = std::max(legend_end_, top_ + points) + 4;
  bottom_ = sheet_.height - 4;
}

/// Returns where it ends.
double ChartFrame::legend_entry(const LegendEntry& entry, double x, double y, double width) {
  const double middle = y - 2.6, sample = sample_width(entry);
  if (entry.sample == LegendEntry::Sample::box)
    add_box({x, y - 6.5, sample, 7, {.fill = entry.look.colour, .line = kInk, .width = 0.4}},
            entry.look, 2.2, sheet_);
  if (entry.sample == LegendEntry::Sample::line)
    sheet_.add(
        PathShape{{{{x, middle}, {x + sample, middle}}},
                  false,
                  {.line = entry.look.colour, .width = entry.look.width, .dash = entry.look.dash}});
  if (entry.marker)
    sheet_.add(series_marker(entry.look.marker, {x + sample / 2, middle}, 2.1,
                             {.fill = entry.look.colour, .line = kPaper, .width = 0.4}));
  for (const std::string& line : wrapped(entry.name, kTickSize, width)) {
    sheet_.words({x + sample + 3, y}, line, kTickSize);
    y += kRow;
  }
  return y;
}

void ChartFrame::legend(const std::vector<LegendEntry>& entries) {
  const LegendAt place = place_of(chart_, entries);
  if (entries.empty() || (place != LegendAt::top && place != LegendAt::right)) return;
  const double sample = sample_width(entries[0]) + 3;
  const double most = (place == LegendAt::top ? 1 : 0.4) * (right_ - left_) - sample;
  const double widest = std::min(most, widest_of(entries, &LegendEntry::name));
  double x = left_, y = top_ + kRow - 2, end = y;
  if (place == LegendAt::right) {
    right_ -= widest + sample;
    for (const LegendEntry& entry : entries) y = legend_entry(entry, right_ + 2, y + 2, most) - 2;
    legend_end_ = y + 2;
    sheet_.height = std::max(sheet_.height, legend_end_ + 4);
    bottom_ = sheet_.height - 4;
    right_ -= 6;
    return;
  }
  for (const LegendEntry& entry : entries) {
    const double width = sample + std::min(most, text_width(entry.name, kTickSize));
    if (x > left_ && x + width > right_) x = left_, y = end;
    end = std::max(end, legend_entry(entry, x, y, most));
    x += width + kEntryGap;
  }
  top_ = end - kRow + 3;
}

void ChartFrame::y_label() {
  const std::string label = with_unit(chart_.y);
  if (label.empty()) return;
  const double length = bottom_ - top_, size = size_for(label, kLabelSize, length);
  sheet_.words({left_ + 7, (top_ + bottom_) / 2}, shortened(label, size, length), size,
               Anchor::middle, kInk, -90);
}

void ChartFrame::x_label() {
  const std::string label = with_unit(chart_.x);
  if (label.empty()) return;
  const double length = sheet_.width - 8, size = size_for(label, kLabelSize, length);
  const double half = text_width(label, size) / 2;
  const double middle = std::clamp((left_ + right_) / 2, std::min(half + 4, sheet_.width / 2),
                                   std::max(sheet_.width - half - 4, sheet_.width / 2));
  sheet_.words({middle, sheet_.height - 5}, shortened(label, size, length), size, Anchor::middle);
}

int ChartFrame::most_levels() const {
  return std::min(12, static_cast<int>((bottom_ - top_) / 20));
}

void ChartFrame::y_ticks(const std::vector<AxisTick>& ticks, const AxisScale& y) {
  for (const AxisTick& tick : ticks) {
    const double at = y_of(y, tick.value);
    sheet_.line({left_, at}, {right_, at}, kGridLine, 0.5);
    sheet_.words({left_ - 3, at + 0.36 * kTickSize}, tick.label, kTickSize, Anchor::end);
  }
}

void ChartFrame::x_ticks(const std::vector<AxisTick>& ticks, const AxisScale& x) {
  double until = 0;  // where the last label ends
  for (const AxisTick& tick : ticks) {
    const double at = x_of(x, tick.value);
    sheet_.line({at, top_}, {at, bottom_}, kGridLine, 0.5);
    // A label at the end may stand aside; one without room is left out.
    const double half = text_width(tick.label, kTickSize) / 2;
    const double middle = std::min(at, sheet_.width - half - 1);
    if (middle - half < until + 1) continue;
    until = middle + half;
    sheet_.words({middle, bottom_ + kTickSize + 2}, tick.label, kTickSize, Anchor::middle);
  }
}

/// As many as have room side by side.
std::vector<AxisTick> ChartFrame::fitting_ticks(const AxisScale& x) const {
  std::vector<AxisTick> ticks;
  for (int count = 10; count >= 2; --count) {
    ticks = x.ticks(count);
    const double apart = (right_ - left_) / std::max(1.0, static_cast<double>(ticks.size()) - 1);
    if (apart >= widest_of(ticks, &AxisTick::label) + 7) break;
  }
  return ticks;
}

void ChartFrame::border() {
  sheet_.add(PathShape{
      {{{left_, top_}, {left_, bottom_}, {right_, bottom_}}}, false, {.line = kInk, .width = 0.7}});
}

void ChartFrame::end_labels(const std::vector<EndLabel>& ends, const AxisScale& y) {
  struct Placed {
    const EndLabel* label;
    double at;
  };
  std::vector<Placed> placed;
  for (const EndLabel& end : ends) placed.push_back({&end, y_of(y, end.value)});
  std::ranges::stable_sort(placed, {}, &Placed::at);
  // Apart from each other, from above; then back up from the bottom.
  constexpr double kApart = kTickSize + 1;
  for (std::size_t i = 1; i < placed.size(); ++i)
    placed[i].at = std::max(placed[i].at, placed[i - 1].at + kApart);
  double most = bottom_;
  for (std::size_t i = placed.size(); i-- > 0; most = placed[i].at - kApart)
    placed[i].at = std::min(placed[i].at, most);
  for (const Placed& one : placed)
    sheet_.words({right_ + 4, one.at + 0.36 * kTickSize},
                 shortened(one.label->name, kTickSize, sheet_.width - right_ - 6), kTickSize,
                 Anchor::start, mixed(one.label->colour, kInk, 0.25));
}

void ChartFrame::number_axes(const AxisScale& x, const AxisScale& y,
                             const std::vector<EndLabel>& ends) {
  if (!with_unit(chart_.x).empty()) bottom_ -= kLabelSize + 3;
  bottom_ -= kTickSize + 3;
  // Names at the ends need as many lines.
  const double inside = std::max(kLeastInside, static_cast<double>(ends.size()) * (kTickSize + 1));
  if (const double missing = inside - (bottom_ - top_); missing > 0)
    sheet_.height += missing, bottom_ += missing;
  y_label();
  if (!with_unit(chart_.y).empty()) left_ += kLabelSize + 3;
  const std::vector<AxisTick> levels = y.ticks(most_levels());
  left_ += widest_of(levels, &AxisTick::label) + 4;
  const double widest = widest_of(ends, &EndLabel::name);
  if (widest > 0) right_ -= std::min(widest, 0.4 * (right_ - left_)) + 2;
  const std::vector<AxisTick> ticks = fitting_ticks(x);
  if (!ticks.empty()) {  // the last label may stand out of the area
    const double half = text_width(ticks.back().label, kTickSize) / 2;
    const double at = x_of(x, ticks.back().value);
    if (ends.empty()) right_ -= std::max(0.0, at + half - sheet_.width + 2);
  }
  y_ticks(levels, y);
  x_ticks(ticks, x);
  end_labels(ends, y);
  x_label();
  border();
  if (chart_.x.scale == Scale::linear && chart_.y.scale == Scale::linear)
    sheet_.axes = {
        left_, right_, top_, bottom_, x.low(), x.high(), y.low(), y.high(), with_unit(chart_.x)};
}

/// Sets how the names below stand, and takes the room that they need.
void ChartFrame::room_for_names(const std::vector<std::string>& names) {
  const double slot = (right_ - left_) / std::max<double>(1, static_cast<double>(names.size()));
  const double widest = widest_of(names, std::identity{});
  turned_ = widest > slot - 3;
  constexpr double kMostTurned = 90;
  names_height_ = turned_ ? std::min(widest, kMostTurned) * std::numbers::sqrt2 / 2 + kTickSize + 2
                          : kTickSize + 4;
  if (turned_ && chart_.height_in <= 0) {  // the marks keep their height
    sheet_.height += names_height_ - kTickSize - 4;
    bottom_ += names_height_ - kTickSize - 4;
  }
  bottom_ -= names_height_;
  if (const double missing = kLeastInside - (bottom_ - top_); missing > 0)
    sheet_.height += missing, bottom_ += missing;
}

void ChartFrame::names_below(const std::vector<std::string>& names) {
  const double slot = (right_ - left_) / std::max<double>(1, static_cast<double>(names.size()));
  // Names side by side are as far apart as letters are high.
  const auto every = static_cast<std::size_t>(std::max(1.0, std::ceil((kTickSize + 1) / slot)));
  for (std::size_t i = 0; i < names.size(); i += every) {
    const double middle = left_ + (static_cast<double>(i) + 0.5) * slot;
    const double room = std::min((names_height_ - kTickSize - 2), middle - 2) * std::numbers::sqrt2;
    if (turned_)
      sheet_.words({middle + 3, bottom_ + kTickSize}, shortened(names[i], kTickSize, room + 0.01),
                   kTickSize, Anchor::end, kInk, -45);
    else
      sheet_.words({middle, bottom_ + kTickSize + 3}, names[i], kTickSize, Anchor::middle);
  }
}

double ChartFrame::room_beside(const std::vector<std::string>& names) const {
  return std::min(widest_of(names, std::identity{}), 0.4 * (right_ - left_));
}

void ChartFrame::names_beside(const std::vector<std::string>& names, double room) {
  const double row = (bottom_ - top_) / static_cast<double>(names.size());
  const auto every = static_cast<std::size_t>(std::max(1.0, std::ceil((kTickSize + 1) / row)));
  for (std::size_t i = 0; i < names.size(); i += every)
    sheet_.words({left_ - 4, top_ + (static_cast<double>(i) + 0.5) * row + 0.36 * kTickSize},
                 shortened(names[i], kTickSize, room + 0.01), kTickSize, Anchor::end);
}

void ChartFrame::name_axis_beside(const std::vector<std::string>& names, const AxisScale& x) {
  const double room = room_beside(names), label = with_unit(chart_.x).empty() ? 0 : kLabelSize + 3;
  left_ += room + 4;
  if (chart_.height_in <= 0) {  // the bars keep their height
    sheet_.height += label + kTickSize + 3;
    bottom_ += label + kTickSize + 3;
  }
  bottom_ -= label + kTickSize + 3;
  x_ticks(fitting_ticks(x), x);
  names_beside(names, room);
  x_label();
}

void ChartFrame::name_axis_below(const std::vector<std::string>& names, const AxisScale& y) {
  const double label = with_unit(chart_.y).empty() ? 0 : kLabelSize + 3;
  const double numbers = widest_number(y) + 4;
  left_ += label + numbers;
  if (!with_unit(chart_.x).empty()) bottom_ -= kLabelSize + 3;
  room_for_names(names);
  const double inside = left_;
  left_ -= label + numbers;
  y_label();
  left_ = inside;
  y_ticks(y.ticks(most_levels()), y);
  names_below(names);
  x_label();
  border();
}

void ChartFrame::name_both_axes(const std::vector<std::string>& below,
                                const std::vector<std::string>& beside) {
  const double label = with_unit(chart_.y).empty() ? 0 : kLabelSize + 3;
  const double room = room_beside(beside), cells = bottom_ - top_;
  left_ += label + room + 4;
  if (!with_unit(chart_.x).empty()) bottom_ -= kLabelSize + 3;
  room_for_names(below);
  if (chart_.height_in <= 0) {  // the cells keep their height
    const double missing = cells - (bottom_ - top_);
    sheet_.height += missing, bottom_ += missing;
  }
  const double inside = left_;
  left_ -= label + room + 4;
  y_label();
  left_ = inside;
  names_beside(beside, room);
  names_below(below);
  x_label();
}

}  // namespace concertina
