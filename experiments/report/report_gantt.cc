#include "experiments/report/report_gantt.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/number_text.h"
#include "experiments/report/gantt_boxes.h"
#include "experiments/report/html.h"
#include "experiments/report/report_sections.h"

namespace concertina {
namespace {

constexpr std::size_t kMaxBoxes = 8000;  // drawn one by one, about 1.5 MB
constexpr int kColumns = 1000;           // of a row that is drawn by column
constexpr std::size_t kMaxRows = 64;
constexpr double kWidth = 1040;  // pixels of a step, about, before zooming

constexpr int kTitle = 26, kAxis = 30, kGap = 14;

class Gantt {
 public:
  Gantt(const RunTrace& trace, const ReportFigures& figures)
      : trace_(trace), figures_(figures), ranks_(some_ranks(figures.ranks.size(), kMaxRows)) {
    const std::size_t shown = ranks_.size();
    row_ = shown <= 4 ? 34 : shown <= 8 ? 26 : shown <= 16 ? 18 : shown <= 32 ? 12 : 8;
    longest_ = std::max(figures.seconds, figures.predicted_seconds);
    std::size_t actions = 0;
    for (const std::size_t rank : ranks_) actions += trace.plan.rows[rank].size();
    by_column_ = actions > kMaxBoxes;
  }

  std::string draw() {
    const StepSpan span = span_of(trace_.steps[figures_.typical]);
    const std::vector<std::vector<double>> computed =
        computed_until(trace_.plan, trace_.layout, trace_.steps[figures_.typical]);
    std::string body = axis();
    body += panel(fmt::format("Predicted: {}", duration_text(figures_.predicted_seconds)), kAxis,
                  figures_.predicted_seconds, [&](std::size_t rank) {
                    std::vector<GanttBox> boxes =
                        action_boxes(trace_, rank, figures_.predicted.rows[rank], !by_column_);
                    add_predicted_waits(trace_, figures_, rank, boxes);
                    return boxes;
                  });
    body += panel(fmt::format("Measured: {} (step {})", duration_text(figures_.seconds),
                              trace_.steps[figures_.typical][0].step),
                  kAxis + panel_height() + kGap, figures_.seconds, [&](std::size_t rank) {
                    const StepRecord& record = trace_.steps[figures_.typical][rank];
                    std::vector<Interval> times;
                    for (const ActionTime& time : record.actions)
                      times.push_back({time.start - span.start, time.end - span.start});
                    std::vector<GanttBox> boxes = action_boxes(trace_, rank, times, !by_column_);
                    add_waits(trace_.layout, record, computed[rank], span.start, boxes);
                    return boxes;
                  });
    const int height = kAxis + 2 * panel_height() + kGap;
    return fmt::format(
        "<div class=\"gantt\"><svg class=\"names\" width=\"64\" height=\"{0}\">{1}</svg>"
        "<div class=\"scroll\"><svg id=\"chart\" class=\"chart\" data-z=\"1\" width=\"100%\" "
        "height=\"{0}\">{2}</svg></div></div>\n{3}",
        height, names_, body, note());
  }

 private:
  int panel_height() const { return kTitle + static_cast<int>(ranks_.size()) * row_; }
  double share(double seconds) const { return seconds / longest_; }

  std::string axis() const {
    const int bottom = kAxis + 2 * panel_height() + kGap;
    const std::vector<double> marks = html::ticks(0, longest_ * 1e3, 10);
    const double step = marks.size() > 1 ? marks[1] - marks[0] : 1;
    std::string text;
    for (const double mark : marks) {
      const double at = share(mark * 1e-3);
      const bool unit = mark == marks.back();
      text += fmt::format(
          "<line class=\"grid\" x1=\"{0}\" x2=\"{0}\" y1=\"{1}\" y2=\"{2}\"/>"
          "<text class=\"tick {3}\" x=\"{0}\" y=\"14\">{4}{5}</text>",
          html::percent(at), kAxis - 8, bottom,
          mark == 0   ? "first"
          : at > 0.97 ? "last"
                      : "",
          html::tick_label(mark, step), unit ? " ms" : "");
    }
    return text;
  }

  template <class Boxes>
  std::string panel(const std::string& title, int top, double seconds, Boxes boxes_of) {
    std::string text = fmt::format("<text class=\"title\" x=\"0\" y=\"{}\">{}</text>", top + 16,
                                   html::escape(title));
    int y = top + kTitle;
    for (const std::size_t rank : ranks_) {
      const int height = row_ - (row_ > 12 ? 4 : row_ > 8 ? 2 : 1);
      if (row_ >= 12 || rank % 8 == 0)
        names_ += fmt::format("<text class=\"rank\" x=\"56\" y=\"{}\">rank {}</text>",
                              y + height / 2 + 4, rank);
      text += fmt::format("<rect class=\"idle\" x=\"0\" y=\"{}\" width=\"{}\" height=\"{}\"/>", y,
                          html::percent(share(seconds)), height);
      const std::vector<GanttBox> boxes = boxes_of(rank);
      text += by_column_ ? columns(boxes, y, height) : singly(boxes, y, height);
      y += row_;
    }
    return text;
  }

  std::string singly(const std::vector<GanttBox>& boxes, int top, int full) const {
    std::string text;
    for (const GanttBox& box : boxes) {
      const int height = box.part == 0 ? full : full / 2;
      const int y = box.part == 2 ? top + full - height : top;
      const double x = share(box.start), width = share(box.end - box.start);
      text += fmt::format(
          "<rect class=\"{}{}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\">"
          "<title>{}</title></rect>",
          kGanttClasses[box.style], box.chunk % 2 == 1 ? " odd" : "", html::percent(x), y,
          html::percent(width), height, html::escape(box.title));
      // A label appears at the first zoom at which it fits.
      const double needed = 7.0 * static_cast<double>(box.text.size()) + 4;
      int zoom = 1;
      while (zoom <= 16 && width * kWidth * zoom < needed) zoom *= 2;
      if (!box.text.empty() && zoom <= 16 && height >= 12)
        text += fmt::format("<text class=\"on {}-on z{}\" x=\"{}\" y=\"{}\">{}</text>",
                            kGanttClasses[box.style], zoom, html::percent(x + width / 2),
                            y + height / 2 + 4, box.text);
    }
    return text;
  }

  /// One path a style, in columns that have the colour of what took most of their time.
  std::string columns(const std::vector<GanttBox>& boxes, int y, int height) const {
    std::vector<std::array<double, GanttBox::kStyles>> used(kColumns);
    for (const GanttBox& box : boxes) {
      const double first = share(box.start) * kColumns, last = share(box.end) * kColumns;
      for (int c = std::max(0, static_cast<int>(first)); c < kColumns && c < last; ++c)
        used[static_cast<std::size_t>(c)][box.style] +=
            std::min(last, c + 1.0) - std::max(first, static_cast<double>(c));
    }
    std::array<std::string, GanttBox::kStyles> paths;
    for (int c = 0; c < kColumns;) {
      const int style = main_style(used[static_cast<std::size_t>(c)]);
      int end = c + 1;
      while (end < kColumns && main_style(used[static_cast<std::size_t>(end)]) == style) ++end;
      if (style >= 0)
        paths[static_cast<std::size_t>(style)] +=
            fmt::format("M{} 0h{}v1h-{}z", c, end - c, end - c);
      c = end;
    }
    std::string text = fmt::format(
        "<svg x=\"0\" y=\"{}\" width=\"100%\" height=\"{}\" viewBox=\"0 0 {} 1\" "
        "preserveAspectRatio=\"none\">",
        y, height, kColumns);
    for (std::size_t s = 0; s < GanttBox::kStyles; ++s)
      if (!paths[s].empty())
        text += fmt::format("<path class=\"{}\" d=\"{}\"/>", kGanttClasses[s], paths[s]);
    return text + "</svg>";
  }

  /// -1 where a column is idle for the most part, as the background is.
  static int main_style(const std::array<double, GanttBox::kStyles>& used) {
    double busy = 0;
    for (const double part : used) busy += part;
    if (busy < 0.5) return -1;
    const auto style = static_cast<int>(std::ranges::max_element(used) - used.begin());
    return style == GanttBox::kPeers ? -1 : style;
  }

  std::string note() const {
    std::string text;
    if (by_column_)
      text += fmt::format(
          "The step has too many actions to draw each one: the picture has {} columns in the "
          "colour of what took most of their time. trace.json has every action. ",
          kColumns);
    if (static_cast<int>(ranks_.size()) < trace_.ranks())
      text += fmt::format("{} of {} ranks are shown, at equal distances. ", ranks_.size(),
                          trace_.ranks());
    return text.empty() ? "" : "<p class=\"note\">" + text + "</p>\n";
  }

  const RunTrace& trace_;
  const ReportFigures& figures_;
  std::vector<std::size_t> ranks_;
  int row_ = 0;
  double longest_ = 0;
  bool by_column_ = false;
  std::string names_;
};

}  // namespace

std::string gantt(const RunTrace& trace, const ReportFigures& figures) {
  return Gantt(trace, figures).draw();
}

}  // namespace concertina
