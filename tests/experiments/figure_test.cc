// Charts: no value makes one fail, words never overlap, ticks are round, fronts are fronts.
#include "io/figure/chart.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <limits>
#include <map>

#include "io/figure/axis_scale.h"
#include "io/figure/palette.h"
#include "tests/experiments/figure_shapes.h"

namespace concertina {
namespace {

constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr double kInfinite = std::numeric_limits<double>::infinity();

/// Anything that a vector of figures may hold.
double any_number() {
  return *rc::gen::element(0.0, 1.0, -1.0, 3.5, 1e-9, 250.0, 1e6, -7e4, 1e300, -1e300, 1e308,
                           5e-324, 1e15, 1e15 + 1, kNone, kInfinite, -kInfinite);
}
std::vector<double> any_numbers() {
  std::vector<double> numbers(*rc::gen::inRange<std::size_t>(0, 9));
  for (double& number : numbers) number = any_number();
  return numbers;
}
std::string any_words() {
  return *rc::gen::element<std::string>(
      "", "1f1b", "a <b> & 'c' \"d\"", "zero bubble, vertical", "Größe µs", "bad \xff\xc3 bytes",
      std::string("nul \0 and \x1b[0m", 13), "$x_1^2$ {%} \\end{document} #~",
      "one rather long name that no legend of a narrow column can hold in a single line at all",
      "Anditsotherformwithoutanyblankthatcouldbeusedtobreakitintolines");
}
ChartAxis any_axis() {
  return {any_words(), any_words(), *rc::gen::element(Scale::linear, Scale::log, Scale::log2),
          *rc::gen::arbitrary<bool>()};
}

Lines any_lines() {
  Lines lines;
  for (int n = *rc::gen::inRange(0, 5); n > 0; --n)
    lines.series.push_back({any_words(), any_numbers(), any_numbers(), any_numbers(), any_numbers(),
                            *rc::gen::arbitrary<bool>(), *rc::gen::arbitrary<bool>(),
                            *rc::gen::arbitrary<bool>(), *rc::gen::arbitrary<bool>()});
  for (int n = *rc::gen::inRange(0, 3); n > 0; --n)
    lines.marks.push_back({any_number(), any_words(), any_words()});
  return lines;
}
Bars any_bars() {
  Bars bars;
  for (int n = *rc::gen::inRange(0, 7); n > 0; --n) bars.groups.push_back(any_words());
  for (int n = *rc::gen::inRange(0, 4); n > 0; --n)
    bars.series.push_back({any_words(), any_numbers(), any_numbers(), any_numbers()});
  return bars;
}
HeatMap any_map() {
  HeatMap map;
  for (int n = *rc::gen::inRange(0, 6); n > 0; --n) map.columns.push_back(any_words());
  for (int n = *rc::gen::inRange(0, 6); n > 0; --n) {
    map.rows.push_back(any_words());
    map.values.push_back(any_numbers());
  }
  map.label = any_words();
  map.dark_is_low = *rc::gen::arbitrary<bool>();
  return map;
}
Stacks any_stacks() {
  Stacks stacks;
  for (int n = *rc::gen::inRange(0, 9); n > 0; --n) stacks.parts.push_back(any_words());
  for (int n = *rc::gen::inRange(0, 12); n > 0; --n) {
    StackGroup group{any_words(), {}};
    for (int k = *rc::gen::inRange(0, 3); k > 0; --k)
      group.bars.push_back({any_numbers(), *rc::gen::arbitrary<bool>(),
                            *rc::gen::element(std::optional<double>(), std::optional(any_number())),
                            any_words()});
    stacks.groups.push_back(group);
  }
  if (*rc::gen::arbitrary<bool>()) stacks.colours = {kGreen, kPink};
  stacks.mark = any_words();
  stacks.level = *rc::gen::arbitrary<bool>();
  return stacks;
}
Scatter any_scatter() {
  Scatter scatter;
  for (int n = *rc::gen::inRange(0, 4); n > 0; --n) {
    ScatterSeries series{any_words(), {}};
    for (int k = *rc::gen::inRange(0, 8); k > 0; --k)
      series.points.push_back({any_number(), any_number(), any_words()});
    scatter.series.push_back(series);
  }
  const auto better = rc::gen::element(BetterEnd::neither, BetterEnd::lower, BetterEnd::higher);
  scatter.x = *better;
  scatter.y = *better;
  return scatter;
}

Chart any_chart() {
  Chart chart{any_words(), any_axis(), any_axis(), {}};
  switch (*rc::gen::inRange(0, 5)) {
    case 0:
      chart.marks = any_stacks();
      break;
    case 3:
      chart.marks = any_lines();
      break;
    case 1:
      chart.marks = any_bars();
      break;
    case 2:
      chart.marks = any_map();
      break;
    default:
      chart.marks = any_scatter();
  }
  chart.width_in = *rc::gen::element(kColumnInches, kPageInches, 0.0, kNone);
  chart.height_in = *rc::gen::element(0.0, 0.0, 2.5);
  chart.legend = *rc::gen::element(LegendAt::automatic, LegendAt::none, LegendAt::top,
                                   LegendAt::right, LegendAt::direct);
  chart.note = any_words();
  return chart;
}

RC_GTEST_PROP(Chart, IsWellFormedAndReadableWhateverIsInIt, ()) {
  const Chart chart = any_chart();
  RC_LOG() << "marks " << chart.marks.index() << ", legend " << static_cast<int>(chart.legend)
           << ", " << chart.width_in << " x " << chart.height_in;
  const Drawing drawing = draw(chart);
  RC_ASSERT(xml_fault(svg(drawing)) == "");
  RC_ASSERT(readable_fault(drawing) == "");
  RC_ASSERT(svg(chart) == svg(drawing));
  RC_ASSERT(tikz(drawing).find("\\end{tikzpicture}\n") + 18 == tikz(drawing).size());
}

TEST(Chart, LeavesOutSeriesWithoutData) {
  Chart chart{.title = "Step time", .x = {"ranks"}, .y = {"time", "ms"}};
  chart.marks = Lines{{{.name = "full", .x = {1, 2}, .y = {3, 4}},
                       {.name = "also", .x = {1, 2}, .y = {5, kInfinite}},
                       {.name = "empty", .x = {1, 2}, .y = {kNone, kInfinite}}}};
  const Drawing drawing = draw(chart);
  EXPECT_TRUE(has_text(drawing, "full"));
  EXPECT_TRUE(has_text(drawing, "also"));
  EXPECT_FALSE(has_text(drawing, "empty"));
  EXPECT_TRUE(has_text(drawing, "time (ms)"));
  EXPECT_FALSE(has_text(drawing, "no data"));
}

TEST(Chart, SaysThatItHasNoData) {
  for (const auto& marks : std::vector<decltype(Chart::marks)>{
           Lines{}, Lines{{{.name = "a", .x = {1}, .y = {kNone}}}}, Bars{{"g"}, {}},
           Bars{{}, {{.name = "a", .values = {1}}}}, HeatMap{{"c"}, {"r"}, {{kNone}}, "", ""},
           HeatMap{}, Stacks{}, Stacks{{"a"}, {{"g", {{{0, kNone}}}}}},
           Scatter{{{"a", {{1, kInfinite, "p"}}}}}})
    EXPECT_TRUE(has_text(draw(Chart{.title = "t", .marks = marks}), "no data"));
}

TEST(Chart, PartsStandOnEachOtherAndTheirSumOnTop) {
  Chart chart{.title = "t", .y = {"time", "ms"}, .legend = LegendAt::right};
  chart.marks = Stacks{{"compute", "never", "bubble"},
                       {{"4", {{{30, 0, 10}, false}, {{25, kNone, 25}, true}}}}};
  const Drawing drawing = draw(chart);
  std::vector<RectShape> boxes;
  for (const Shape& shape : drawing.shapes)
    if (const auto* box = std::get_if<RectShape>(&shape)) boxes.push_back(*box);
  ASSERT_EQ(boxes.size(), 6u) << "two of the legend, two of each bar";
  const RectShape* bar = &boxes[2];
  EXPECT_NEAR(bar[0].height, 3 * bar[1].height, 1e-9);
  EXPECT_NEAR(bar[2].height, bar[3].height, 1e-9);
  for (const int i : {0, 2}) EXPECT_NEAR(bar[i + 1].y + bar[i + 1].height, bar[i].y, 1e-9);
  EXPECT_NEAR(bar[0].y + bar[0].height, bar[2].y + bar[2].height, 1e-9);
  EXPECT_GT(bar[2].x, bar[0].x + bar[0].width - 1e-9) << "side by side";
  EXPECT_NE(bar[0].paint.fill, bar[2].paint.fill) << "pale";
  EXPECT_LT(boxes[0].y, boxes[1].y);
  EXPECT_EQ(boxes[0].paint.fill, bar[1].paint.fill) << "what is on top is named first";
  EXPECT_FALSE(has_text(drawing, "never"));
  EXPECT_TRUE(has_text(drawing, "40"));
  EXPECT_TRUE(has_text(drawing, "50"));
}

TEST(Chart, LevelBarsAreAsLongAsTheirValues) {
  Chart chart{.x = {.unit = "ms"}};
  chart.marks = Stacks{{"compute", "bubble"},
                       {{"a", {{{30, 10}, false, 20, "40 in all"}}}},
                       {kSky},
                       "expected",
                       true};
  const Drawing drawing = draw(chart);
  std::map<std::string, RectShape> titled;
  for (const Shape& shape : drawing.shapes)
    if (const auto* box = std::get_if<RectShape>(&shape)) titled[box->title] = *box;
  const RectShape compute = titled["a, compute: 30 ms"], bubble = titled["a, bubble: 10 ms"];
  EXPECT_NEAR(compute.width, 3 * bubble.width, 1e-9);
  EXPECT_NEAR(compute.x + compute.width, bubble.x, 1e-9);
  EXPECT_EQ(compute.paint.fill, kSky);
  EXPECT_NEAR(titled["a, expected: 20 ms"].x - compute.x, 2 * bubble.width, 1e-9);
  for (const char* text : {"40 in all", "compute", "expected"})
    EXPECT_TRUE(has_text(drawing, text)) << text;
}

TEST(Chart, MarksAndCurvesSayWhatTheyAre) {
  Chart chart{.x = {.label = "step", .low = 0, .high = 10}, .y = {.low = 0, .high = 1}};
  chart.marks = Lines{{{.name = "loss", .x = {0, 10}, .y = {1, 0}}}, {{5, "1", "half way"}}};
  const Drawing drawing = draw(chart);
  const AxesArea axes = drawing.axes.value();
  EXPECT_EQ(axes.x_high, 10);
  bool marked = false, named = false;
  for (const Shape& shape : drawing.shapes) {
    if (const auto* box = std::get_if<RectShape>(&shape);
        box != nullptr && box->title == "half way")
      marked = std::abs(box->x + box->width / 2 - (axes.left + axes.right) / 2) < 1e-9;
    if (const auto* path = std::get_if<PathShape>(&shape); path != nullptr && path->title == "loss")
      named = path->pieces[0][1].x == axes.right && path->pieces[0][1].y == axes.bottom;
  }
  EXPECT_TRUE(marked && named && has_text(drawing, "1"));
  const std::string in_page = svg_in_page(drawing);
  EXPECT_NE(in_page.find(" 0 10 0 1\" data-x=\"step\""), std::string::npos) << in_page;
  EXPECT_EQ(in_page.find("http"), std::string::npos);
  EXPECT_EQ(xml_fault(in_page), "");
}

TEST(Palette, APageHasTheColoursOfItsDrawings) {
  const std::string css = page_colours();
  EXPECT_NE(css.find("svg [fill=\"" + hex(kBlue) + "\"] { fill: var(--blue); }"), css.npos) << css;
  EXPECT_LT(css.find("--ink: " + hex(kInk)), css.find("prefers-color-scheme: dark"));
  EXPECT_EQ(terminal_colour(kPaper), 231);
  EXPECT_EQ(terminal_colour({0, 0, 0}), 16);
}

/// Whether some of a straight line is within the corners of a level text.
bool lies_on(const std::array<Spot, 4>& corners, Spot from, Spot to) {
  constexpr int kPieces = 400;
  for (int i = 0; i <= kPieces; ++i) {
    const double share = static_cast<double>(i) / kPieces;
    const Spot spot{from.x + share * (to.x - from.x), from.y + share * (to.y - from.y)};
    if (spot.x > corners[0].x && spot.x < corners[1].x && spot.y > corners[2].y &&
        spot.y < corners[0].y)
      return true;
  }
  return false;
}

TEST(Chart, NamesOfPointsLieOnNoLineNoPointAndNoName) {
  for (std::uint32_t seed = 0; seed < 60; ++seed) {
    const int points = 3 + static_cast<int>(seed % 10) * 3;
    Chart chart{.title = "t", .x = {"memory", "GiB"}, .y = {"time", "ms"}};
    Scatter scatter{{{"", {}}}, BetterEnd::lower, BetterEnd::lower};
    std::uint32_t random = seed;
    const auto some = [&] { return (random = random * 1664525 + 1013904223) % 4096 / 4096.0; };
    for (int i = 0; i < points; ++i)  // a falling crowd: some on the front, some above it
      scatter.series[0].points.push_back({i + points * some() * some(),
                                          points - i + points * some() * some(),
                                          fmt::format("schedule=zb-v pp={} dp={}", i, 64 - i)});
    chart.marks = scatter;
    const Drawing drawing = draw(chart);
    EXPECT_EQ(readable_fault(drawing), "");
    int names = 0;
    for (const Shape& shape : drawing.shapes) {
      const auto* text = std::get_if<TextShape>(&shape);
      if (text == nullptr || !text->text.starts_with("schedule=")) continue;
      ++names;
      for (const Shape& other : drawing.shapes) {
        if (const auto* dot = std::get_if<CircleShape>(&other)) {
          EXPECT_FALSE(lies_on(corners_of(*text), dot->at, dot->at)) << text->text;
        }
        const auto* path = std::get_if<PathShape>(&other);
        if (path == nullptr || path->closed || path->paint.line == kGridLine) continue;
        for (const auto& piece : path->pieces)
          for (std::size_t i = 1; i < piece.size(); ++i)
            EXPECT_FALSE(lies_on(corners_of(*text), piece[i - 1], piece[i]))
                << text->text << " of " << points;
      }
    }
    EXPECT_GE(names, 2) << seed;
  }
}

TEST(Chart, LeavesAGapAtANaN) {
  const auto pieces = [](std::vector<double> y) {
    Chart chart;
    chart.marks = Lines{{{.name = "a", .x = {1, 2, 3, 4, 5}, .y = std::move(y)}}};
    std::size_t most = 0;
    for (const Shape& shape : draw(chart).shapes)
      if (const auto* path = std::get_if<PathShape>(&shape))
        if (path->paint.line == series_colour(0)) most = std::max(most, path->pieces.size());
    return most;
  };
  EXPECT_EQ(pieces({1, 2, 3, 4, 5}), 1u);
  EXPECT_EQ(pieces({1, 2, kNone, 4, 5}), 2u);
}

TEST(Chart, LongCurvesStaySmallAndKeepTheirPeaks) {
  LineSeries series{.name = "loss"};
  for (int i = 0; i < 200000; ++i) {
    series.x.push_back(i);
    series.y.push_back(i == 77777 ? 50 : 1);
  }
  Chart chart;
  chart.marks = Lines{{series}};
  const Drawing drawing = draw(chart);
  EXPECT_LT(svg(drawing).size(), 60000u);
  double highest = 1e300;
  for (const Shape& shape : drawing.shapes)
    if (const auto* path = std::get_if<PathShape>(&shape))
      if (path->paint.line == series_colour(0))
        for (const Spot& spot : path->pieces[0]) highest = std::min(highest, spot.y);
  EXPECT_LT(highest, drawing.height / 4);
}

/// 1, 2 or 5 times a power of ten.
bool is_round(double step) {
  const double digit = step / std::pow(10, std::floor(std::log10(step) + 1e-6));
  return std::abs(digit - 1) < 1e-6 || std::abs(digit - 2) < 1e-6 || std::abs(digit - 5) < 1e-6;
}

RC_GTEST_PROP(AxisScale, TicksAreRoundAndOnTheAxis, ()) {
  const double size = std::pow(10, *rc::gen::inRange(-12, 13));
  const double low = size * *rc::gen::inRange(-1000, 1000);
  const double high = low + size * *rc::gen::inRange(1, 3000);
  const int count = *rc::gen::inRange(2, 12);
  const AxisScale scale({}, {low, high});
  const std::vector<AxisTick> ticks = scale.ticks(count);
  RC_ASSERT(ticks.size() >= 2u && static_cast<int>(ticks.size()) <= std::max(6, count + 1));
  for (std::size_t i = 0; i < ticks.size(); ++i) {
    RC_ASSERT(scale.share(ticks[i].value) > -1e-6 && scale.share(ticks[i].value) < 1 + 1e-6);
    if (i == 0) continue;
    RC_ASSERT(is_round(ticks[i].value - ticks[i - 1].value));
    RC_ASSERT(ticks[i].label != ticks[i - 1].label);
  }
}

TEST(AxisScale, LogarithmicTicksAreWhatPeopleReadThere) {
  const auto labels = [](Scale kind, std::vector<double> values) {
    std::vector<std::string> result;
    for (const AxisTick& tick : AxisScale({.scale = kind}, values).ticks(8))
      result.push_back(tick.label);
    return result;
  };
  EXPECT_EQ(labels(Scale::log2, {1, 64}),
            (std::vector<std::string>{"1", "2", "4", "8", "16", "32", "64"}));
  EXPECT_EQ(labels(Scale::log, {1, 100}),
            (std::vector<std::string>{"1", "2", "5", "10", "20", "50", "100"}));
  EXPECT_EQ(labels(Scale::log, {0.01, 10000}),
            (std::vector<std::string>{"0.01", "0.1", "1", "10", "100", "1000", "10000"}));
}

RC_GTEST_PROP(ParetoFront, HoldsWhatNoOtherPointBeats, ()) {
  std::vector<Spot> points(*rc::gen::inRange<std::size_t>(0, 12));
  for (Spot& point : points)
    point = {static_cast<double>(*rc::gen::inRange(0, 6)),
             static_cast<double>(*rc::gen::inRange(0, 6))};
  const auto way = rc::gen::element(BetterEnd::lower, BetterEnd::higher);
  const BetterEnd x = *way, y = *way;
  const auto gain = [](double to, double from, BetterEnd better) {
    return better == BetterEnd::higher ? to - from : from - to;
  };
  std::vector<std::size_t> expected;
  for (std::size_t i = 0; i < points.size(); ++i) {
    bool beaten = false;
    for (std::size_t k = 0; k < points.size(); ++k) {
      const double dx = gain(points[k].x, points[i].x, x), dy = gain(points[k].y, points[i].y, y);
      beaten = beaten || (dx >= 0 && dy >= 0 && (dx > 0 || dy > 0 || k < i));
    }
    if (!beaten) expected.push_back(i);
  }
  std::vector<std::size_t> front = pareto_front(points, x, y);
  for (std::size_t i = 1; i < front.size(); ++i)
    RC_ASSERT(points[front[i - 1]].x < points[front[i]].x);
  std::ranges::sort(front);
  RC_ASSERT(front == expected);
}

/// L* of CIELAB, from sRGB.
double lightness(Colour colour) {
  const auto linear = [](int channel) {
    const double c = channel / 255.0;
    return c <= 0.04045 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4);
  };
  const double y =
      0.2126 * linear(colour.red) + 0.7152 * linear(colour.green) + 0.0722 * linear(colour.blue);
  return 116 * std::cbrt(y) - 16;
}

TEST(Cividis, GrowsLighterEvenly) {
  const double step = (lightness(cividis(1)) - lightness(cividis(0))) / 16;
  for (int i = 0; i < 16; ++i) {
    const double grows = lightness(cividis((i + 1) / 16.0)) - lightness(cividis(i / 16.0));
    EXPECT_GT(grows, 0.7 * step) << i;
    EXPECT_LT(grows, 1.3 * step) << i;
  }
}

}  // namespace
}  // namespace concertina
