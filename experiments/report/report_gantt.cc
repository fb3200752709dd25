#include "experiments/report/report_gantt.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "experiments/report/html.h"

namespace concertina {
namespace {

constexpr std::size_t kMaxBoxes = 8000;  // drawn one by one, about 1.5 MB
constexpr int kColumns = 1000;           // of a row that is drawn by column
constexpr int kMaxRows = 64;
constexpr double kWidth = 1040;  // pixels of a step, about, before zooming

constexpr int kTitle = 26, kAxis = 30, kGap = 14;

/// Colour classes, in the order in which they are drawn.
enum Style {
  kForward,
  kInput,
  kWeight,
  kBackward,
  kOptimizer,  // work
  kPeers,
  kTransfer,
  kReduction,
  kGather,  // waiting
  kStyles
};
constexpr std::array<const char*, kStyles> kClasses{"f",    "i",  "w",  "b", "o",
                                                    "idle", "wt", "wr", "wo"};

struct Box {
  Style style = kForward;
  double start = 0, end = 0;
  std::string text, title;
  int chunk = 0;  // which of its rank's stages
  int part = 0;   // of an overlapped pair: 1 above, 2 below
};

Style style_of(Kind kind) {
  switch (kind) {
    case Kind::F:
      return kForward;
    case Kind::I:
      return kInput;
    case Kind::W:
      return kWeight;
    case Kind::STEP:
      return kOptimizer;
    default:
      return kBackward;
  }
}

std::string span_text(double start, double end) {
  return fmt::format("{:.3f} to {:.3f} ms: {}", start * 1e3, end * 1e3,
                     html::duration(end - start));
}

/// The boxes of one rank's row at these times.
std::vector<Box> action_boxes(const RunTrace& trace, std::size_t rank,
                              const std::vector<Interval>& times, bool with_titles) {
  std::vector<int> stages;
  for (int s = 0; s < trace.layout.stage_count(); ++s)
    if (trace.layout.stage(s).rank == static_cast<int>(rank)) stages.push_back(s);
  std::vector<Box> boxes;
  for (std::size_t i = 0; i < trace.plan.rows[rank].size(); ++i) {
    const Action& action = trace.plan.rows[rank][i];
    if (!is_compute(action.kind) && action.kind != Kind::STEP) continue;
    Box box{style_of(action.kind), times[i].start, times[i].end, {}, {}, 0, 0};
    if (action.overlapped) box.part = 1;
    if (i > 0 && trace.plan.rows[rank][i - 1].overlapped) box.part = 2;
    if (is_compute(action.kind))
      box.chunk = static_cast<int>(std::ranges::find(stages, action.stage) - stages.begin());
    if (with_titles) {
      if (is_compute(action.kind)) box.text = std::to_string(action.microbatch);
      box.title = fmt::format("{}\n{}", title(action), span_text(box.start, box.end));
    }
    boxes.push_back(std::move(box));
  }
  return boxes;
}

Style style_of(Cause cause) {
  if (cause == Cause::transfer) return kTransfer;
  return cause == Cause::reduction ? kReduction : kGather;
}

std::string wait_text(const WaitTime& wait) {
  switch (wait.what) {
    case WaitFor::reduction:
      return "gradients of other ranks";
    case WaitFor::ranks:
      return "all ranks";
    case WaitFor::weights:
      return "weights of other ranks";
    default:
      return title(wait.transfer);
  }
}

/// Waits, cut where the computation that they were for had ended.
void add_waits(const StepRecord& record, const std::vector<double>& computed, double origin,
               std::vector<Box>& boxes) {
  for (std::size_t i = 0; i < record.waits.size(); ++i) {
    const WaitTime& wait = record.waits[i];
    const auto add = [&](Style style, const char* what, double start, double end) {
      if (end > start)
        boxes.push_back({style,
                         start - origin,
                         end - origin,
                         {},
                         fmt::format("{} {}\n{}", what, wait_text(wait),
                                     span_text(start - origin, end - origin)),
                         0,
                         0});
    };
    add(kPeers, "idle until computed:", wait.start, computed[i]);
    add(style_of(cause_of(wait.what)), "waits for the transfer:", computed[i], wait.end);
  }
}

class Gantt {
 public:
  Gantt(const RunTrace& trace, const ReportFigures& figures) : trace_(trace), figures_(figures) {
    const int ranks = trace.ranks(), shown = std::min(ranks, kMaxRows);
    for (int i = 0; i < shown; ++i) ranks_.push_back(static_cast<std::size_t>(i * ranks / shown));
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
    body += panel(fmt::format("Predicted: {}", html::duration(figures_.predicted_seconds)), kAxis,
                  figures_.predicted_seconds, [&](std::size_t rank) {
                    return action_boxes(trace_, rank, figures_.predicted.rows[rank], !by_column_);
                  });
    body += panel(fmt::format("Measured: {} (step {})", html::duration(figures_.seconds),
                              trace_.steps[figures_.typical][0].step),
                  kAxis + panel_height() + kGap, figures_.seconds, [&](std::size_t rank) {
                    const StepRecord& record = trace_.steps[figures_.typical][rank];
                    std::vector<Interval> times;
                    for (const ActionTime& time : record.actions)
                      times.push_back({time.start - span.start, time.end - span.start});
                    std::vector<Box> boxes = action_boxes(trace_, rank, times, !by_column_);
                    add_waits(record, computed[rank], span.start, boxes);
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
      const std::vector<Box> boxes = boxes_of(rank);
      text += by_column_ ? columns(boxes, y, height) : singly(boxes, y, height);
      y += row_;
    }
    return text;
  }

  std::string singly(const std::vector<Box>& boxes, int top, int full) const {
    std::string text;
    for (const Box& box : boxes) {
      const int height = box.part == 0 ? full : full / 2;
      const int y = box.part == 2 ? top + full - height : top;
      const double x = share(box.start), width = share(box.end - box.start);
      text += fmt::format(
          "<rect class=\"{}{}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\">"
          "<title>{}</title></rect>",
          kClasses[box.style], box.chunk % 2 == 1 ? " odd" : "", html::percent(x), y,
          html::percent(width), height, html::escape(box.title));
      // A label appears at the first zoom at which it fits.
      const double needed = 7.0 * static_cast<double>(box.text.size()) + 4;
      int zoom = 1;
      while (zoom <= 16 && width * kWidth * zoom < needed) zoom *= 2;
      if (!box.text.empty() && zoom <= 16 && height >= 12)
        text += fmt::format("<text class=\"on {}-on z{}\" x=\"{}\" y=\"{}\">{}</text>",
                            kClasses[box.style], zoom, html::percent(x + width / 2),
                            y + height / 2 + 4, box.text);
    }
    return text;
  }

  /// One path a style, in columns that have the colour of what took most of their time.
  std::string columns(const std::vector<Box>& boxes, int y, int height) const {
    std::vector<std::array<double, kStyles>> used(kColumns);
    for (const Box& box : boxes) {
      const double first = share(box.start) * kColumns, last = share(box.end) * kColumns;
      for (int c = std::max(0, static_cast<int>(first)); c < kColumns && c < last; ++c)
        used[static_cast<std::size_t>(c)][box.style] +=
            std::min(last, c + 1.0) - std::max(first, static_cast<double>(c));
    }
    std::array<std::string, kStyles> paths;
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
    for (std::size_t s = 0; s < kStyles; ++s)
      if (!paths[s].empty())
        text += fmt::format("<path class=\"{}\" d=\"{}\"/>", kClasses[s], paths[s]);
    return text + "</svg>";
  }

  /// -1 where a column is idle for the most part, as the background is.
  static int main_style(const std::array<double, kStyles>& used) {
    double busy = 0;
    for (const double part : used) busy += part;
    if (busy < 0.5) return -1;
    const auto style = static_cast<int>(std::ranges::max_element(used) - used.begin());
    return style == kPeers ? -1 : style;
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
