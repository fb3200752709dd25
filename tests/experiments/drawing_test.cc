// Drawings as text and as files: well-formed TikZ, converters, whole files.
#include "io/figure/drawing.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>
#include <sys/stat.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "core/error.h"
#include "io/figure/axis_ticks.h"
#include "io/figure/write_figure.h"
#include "io/file.h"
#include "io/process.h"
#include "tests/experiments/figure_shapes.h"
#include "tests/temporary_directory.h"

namespace concertina {
namespace {

namespace fs = std::filesystem;

Drawing hostile_drawing() {
  const std::string words = "100% of $x_1$ {a}} \\end{tikzpicture} # ~ ^ <&> \"q\" \xff \x01 µ";
  return {100,
          50,
          words,
          {RectShape{1, 2, 30, 4, {.fill = Colour{1, 2, 3}, .opacity = 0.5}, words},
           RectShape{1, 2, -30, 4, {}, ""},
           PathShape{{{{0, 0}, {5, 5}}, {{1, 1}, {1, 8}, {4, 8}}},
                     true,
                     {.line = Colour{9, 9, 9}, .dash = {1, 2}}},
           PathShape{{{{0, 0}, {std::nan(""), 5}}}, false, {}},
           TextShape{{50, 40}, words, 7, Anchor::middle, true, {}, -90}}};
}

TEST(Drawing, SvgAndHtmlAreWellFormed) {
  const std::string text = svg(hostile_drawing());
  EXPECT_EQ(xml_fault(text), "");
  EXPECT_EQ(text.find("nan"), std::string::npos);
  std::string page = html_page(hostile_drawing(), "a < b & c");
  EXPECT_EQ(xml_fault(page.substr(page.find("<html"))), "");
  EXPECT_NE(page.find("a &lt; b &amp; c"), std::string::npos);
}

/// Without escaped characters, comments and the preamble of comments.
std::string bare_tex(const std::string& tex) {
  std::string bare;
  for (std::size_t i = 0; i < tex.size(); ++i) {
    if (tex[i] == '%')
      i = tex.find('\n', i);
    else if (tex[i] == '\\' && std::string("{}$&#_%").find(tex[i + 1]) != std::string::npos)
      ++i;
    else
      bare += tex[i];
  }
  return bare;
}

TEST(Drawing, TikzIsBalancedAndEscaped) {
  const std::string bare = bare_tex(tikz(hostile_drawing()));
  int braces = 0, brackets = 0;
  for (const char c : bare) {
    braces += (c == '{') - (c == '}');
    brackets += (c == '[') - (c == ']');
    ASSERT_GE(braces, 0);
    ASSERT_TRUE(c != ';' || brackets == 0);
  }
  EXPECT_EQ(braces, 0);
  EXPECT_EQ(brackets, 0);
  // Its one end is its own, and what means something to TeX is nowhere else.
  EXPECT_EQ(bare.find("\\end{tikzpicture}"), bare.size() - 18);
  for (const char c : {'#', '_', '&', '^', '~', '\xff', '\x01'})
    EXPECT_EQ(bare.find(c), std::string::npos) << c;
  EXPECT_EQ(bare.find("nan"), std::string::npos);
  // Every line is one statement.
  std::istringstream lines(bare);
  for (std::string line; std::getline(lines, line);)
    if (line.starts_with("\\path") || line.starts_with("\\node")) {
      EXPECT_TRUE(line.ends_with(";")) << line;
    }
  EXPECT_NE(bare.find("rotate=90"), std::string::npos);
}

TEST(Drawing, HatchesStayInTheirArea) {
  const RectShape area{10, 20, 13, 5};
  for (const Hatch hatch : {Hatch::rising, Hatch::falling, Hatch::crossed, Hatch::level}) {
    const PathShape lines = hatch_lines(area, hatch, 2, {});
    EXPECT_GE(lines.pieces.size(), 2u);
    for (const auto& piece : lines.pieces)
      for (const Spot& spot : piece) {
        EXPECT_GE(spot.x, 10 - 1e-9);
        EXPECT_LE(spot.x, 23 + 1e-9);
        EXPECT_GE(spot.y, 20 - 1e-9);
        EXPECT_LE(spot.y, 25 + 1e-9);
      }
  }
  EXPECT_TRUE(hatch_lines(area, Hatch::none, 2, {}).pieces.empty());
}

TEST(Drawing, WordsAreShortenedAtWholeCharacters) {
  EXPECT_EQ(shortened("short", 7, 100), "short");
  const std::string cut = shortened("ÄÄÄÄÄÄÄÄÄÄÄÄ", 7, 40);
  EXPECT_TRUE(cut.ends_with("..."));
  EXPECT_LE(text_width(cut, 7), 40);
  EXPECT_EQ(xml_fault("<a>" + cut + "</a>"), "");
  const auto lines = wrapped("one two three four five six seven", 7, 60);
  EXPECT_GT(lines.size(), 1u);
  for (const std::string& line : lines) EXPECT_LE(text_width(line, 7), 60);
}

/// A new directory, and PATH as the test wants it.
class WriteFigure : public testing::Test {
 protected:
  void SetUp() override { path_ = std::getenv("PATH"); }
  void TearDown() override { ::setenv("PATH", path_.c_str(), 1); }
  std::string file(const std::string& name) const { return folder_.path() + "/" + name; }

  /// PATH has this script and no other converter.
  void set_converter(const std::string& name, const std::string& body) {
    fs::create_directory(file("bin"));
    std::ofstream(file("bin/" + name)) << "#!/bin/sh\n" << body << "\n";
    ::chmod(file("bin/" + name).c_str(), 0755);
    ::setenv("PATH", file("bin").c_str(), 1);
  }

  template <class Body>
  static Error error_of(Body body) {
    try {
      body();
    } catch (const Error& error) {
      return error;
    }
    ADD_FAILURE() << "nothing was refused";
    return Error(Exit::ok, "", "", "");
  }

  const std::string svg_ = svg(Drawing{72, 36, "t", {}});
  const TemporaryDirectory folder_;
  std::string path_;
};

TEST_F(WriteFigure, WritesSvgTexAndHtml) {
  write_figure(file("a.svg"), svg_);
  EXPECT_EQ(read_file(file("a.svg"), 1 << 20), svg_);
  const Drawing drawing{72, 36, "t", {}};
  for (const char* name : {"a.tex", "a.html", "a.SVG"}) {
    write_figure(file(name), drawing, "note");
    EXPECT_GT(fs::file_size(file(name)), 50u);
  }
  EXPECT_EQ(read_file(file("a.SVG"), 1 << 20), svg_);
}

TEST_F(WriteFigure, RefusesWhatItCannotWriteBeforeTheWork) {
  EXPECT_EQ(error_of([&] { require_figure(file("a.gif")); }).code(), Exit::bad_input);
  EXPECT_EQ(error_of([&] { require_figure(file("figure")); }).code(), Exit::bad_input);
  EXPECT_EQ(error_of([&] { require_figure(file("no/a.svg")); }).code(), Exit::bad_input);
  EXPECT_EQ(error_of([&] { require_figure("/dev/null.svg/a.svg"); }).code(), Exit::bad_input);
  fs::create_directory(file("folder.svg"));
  EXPECT_EQ(error_of([&] { require_figure(file("folder.svg")); }).code(), Exit::bad_input);
  require_figure(file("a.svg"));
}

TEST_F(WriteFigure, NamesPackagesWhereNoConverterIs) {
  ::setenv("PATH", file("nothing").c_str(), 1);
  const Error error = error_of([&] { require_figure(file("a.pdf")); });
  EXPECT_EQ(error.code(), Exit::bad_input);
  EXPECT_NE(error.fix().find("librsvg2-bin"), std::string::npos);
  EXPECT_EQ(error_of([&] { write_figure(file("a.png"), svg_); }).code(), Exit::bad_input);
  EXPECT_FALSE(fs::exists(file("a.png")));
}

TEST_F(WriteFigure, ConvertsWithoutAShell) {
  // The last word is the SVG, the one after -o the result.
  set_converter("rsvg-convert",
                "while [ $# -gt 1 ]; do [ \"$1\" = -o ] && out=$2; shift; done\n"
                "while read -r line; do echo \"got $line\"; done < \"$1\" > \"$out\"");
  const std::string path = file("a $(touch evil); b.pdf");
  write_figure(path, svg_);
  EXPECT_TRUE(read_file(path, 1 << 20).starts_with("got <svg"));
  EXPECT_FALSE(fs::exists("evil"));
}

TEST_F(WriteFigure, KeepsTheOldFileWhereAConverterFails) {
  set_converter("inkscape", "echo 'no such filter' >&2\nexit 3");
  std::ofstream(file("a.pdf")) << "old";
  const Error error = error_of([&] { write_figure(file("a.pdf"), svg_); });
  EXPECT_EQ(error.code(), Exit::failure);
  EXPECT_NE(error.message().find("no such filter"), std::string::npos);
  EXPECT_EQ(read_file(file("a.pdf"), 100), "old");
}

TEST(RunProcess, EndsWhatRunsTooLong) {
  EXPECT_FALSE(run_process({"/bin/sh", "-c", "sleep 600 & sleep 600"}, 0.1).code);
  EXPECT_EQ(run_process({"/bin/sh", "-c", "sleep 600 & exit 7"}, 9).code, 7);
  EXPECT_EQ(run_process({"/bin/sh", "-c", "echo a; echo b >&2"}, 9).output, "a\nb\n");
  EXPECT_THROW(run_process({"/not/there"}, 9), Error);
}

TEST(Palette, APageHasTheColoursOfItsDrawings) {
  const std::string css = page_colours();
  EXPECT_NE(css.find("svg [fill=\"" + hex(kBlue) + "\"] { fill: var(--blue); }"), css.npos) << css;
  EXPECT_LT(css.find("--ink: " + hex(kInk)), css.find("prefers-color-scheme: dark"));
  EXPECT_EQ(terminal_colour(kPaper), 231);
  EXPECT_EQ(terminal_colour({0, 0, 0}), 16);
}

/// 1, 2 or 5 times a power of ten.
bool is_round(double step) {
  const double digit = step / std::pow(10, std::floor(std::log10(step) + 1e-6));
  return std::abs(digit - 1) < 1e-6 || std::abs(digit - 2) < 1e-6 || std::abs(digit - 5) < 1e-6;
}

RC_GTEST_PROP(AxisTicks, AreRoundAndOnTheAxis, ()) {
  const double high = std::pow(10, *rc::gen::inRange(-12, 13)) * *rc::gen::inRange(1, 3000);
  const int count = *rc::gen::inRange(2, 12);
  const std::vector<AxisTick> ticks = axis_ticks(high, count);
  RC_ASSERT(ticks.size() >= 2u && static_cast<int>(ticks.size()) <= std::max(6, count + 1));
  for (std::size_t i = 0; i < ticks.size(); ++i) {
    RC_ASSERT(ticks[i].value >= 0 && ticks[i].value <= high * (1 + 1e-6));
    if (i == 0) continue;
    RC_ASSERT(is_round(ticks[i].value - ticks[i - 1].value));
    RC_ASSERT(ticks[i].label != ticks[i - 1].label);
  }
}

}  // namespace
}  // namespace concertina
