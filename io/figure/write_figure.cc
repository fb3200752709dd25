#include "io/figure/write_figure.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "core/error.h"
#include "io/file.h"
#include "io/process.h"

namespace concertina {
namespace {

namespace fs = std::filesystem;

constexpr double kDotsPerInch = 300, kCssPerPoint = 96.0 / 72;
constexpr std::uint64_t kMostConverted = std::uint64_t{1} << 30;
constexpr double kLimit{120};

std::string extension_of(const std::string& path) {
  std::string extension = fs::path(path).extension().string();
  std::ranges::transform(extension, extension.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return extension;
}

bool is_converted(const std::string& extension) {
  return extension == ".pdf" || extension == ".png";
}

struct Converter {
  enum class Kind { rsvg, inkscape, chromium };
  Kind kind = Kind::rsvg;
  std::string path;
};

/// The first that is there.
std::optional<Converter> find_converter() {
  using Kind = Converter::Kind;
  for (const auto& [kind, name] : {std::pair{Kind::rsvg, "rsvg-convert"},
                                   {Kind::inkscape, "inkscape"},
                                   {Kind::chromium, "chromium"},
                                   {Kind::chromium, "chromium-browser"},
                                   {Kind::chromium, "google-chrome"}})
    if (std::string path = find_program(name); !path.empty()) return Converter{kind, path};
  return std::nullopt;
}

[[noreturn]] void throw_no_converter(const std::string& path) {
  throw_input(fmt::format("no program is there that turns SVG into {}", extension_of(path)), path,
              "install one of the packages librsvg2-bin, inkscape or chromium; or write .svg");
}

/// A new directory of this process, gone with all that is in it at the end.
class Workshop {
 public:
  Workshop() {
    std::error_code error;
    const fs::path base = fs::temp_directory_path(error);
    path_ = (error ? fs::path("/tmp") : base) / "concertina-figure-XXXXXX";
    if (::mkdtemp(path_.data()) == nullptr) throw_io("mkdtemp", path_);
  }
  ~Workshop() {
    std::error_code ignored;
    fs::remove_all(path_, ignored);
  }
  Workshop(const Workshop&) = delete;
  Workshop& operator=(const Workshop&) = delete;
  std::string file(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

void write_plain(const std::string& path, const std::string& text) {
  File file(path, File::Mode::create);
  file.write(text);
  file.close();
}

/// Width and height in points, as drawing.cc writes them.
std::pair<double, double> size_of(const std::string& svg) {
  const auto number = [&](const char* name) {
    const std::size_t at = svg.find(name);
    return at == std::string::npos ? 0.0 : std::atof(svg.c_str() + at + std::string(name).size());
  };
  const std::pair size{number(" width=\""), number(" height=\"")};
  CONCERTINA_CHECK(size.first > 0 && size.second > 0, "an SVG of no size");
  return size;
}

/// A page that is the picture and nothing around it.
std::string bare_page(const std::string& svg, double width, double height) {
  return fmt::format(
      "<!DOCTYPE html><html><head><meta charset=\"utf-8\"><style>"
      "@page {{ size: {0}pt {1}pt; margin: 0 }} html, body {{ margin: 0; padding: 0 }} "
      "svg {{ display: block; width: {0}pt; height: {1}pt }}</style></head><body>{2}</body></html>",
      width, height, svg);
}

std::vector<std::string> chromium_words(const Converter& converter, const Workshop& workshop,
                                        const std::string& svg, const std::string& extension) {
  const auto [width, height] = size_of(svg);
  write_plain(workshop.file("page.html"), bare_page(svg, width, height));
  std::vector<std::string> words{converter.path,
                                 "--headless",
                                 "--disable-gpu",
                                 "--no-first-run",
                                 "--disable-extensions",
                                 "--hide-scrollbars",
                                 "--user-data-dir=" + workshop.file("profile")};
  if (::geteuid() == 0) words.push_back("--no-sandbox");  // it does not run as root with one
  if (extension == ".pdf") {
    words.push_back("--no-pdf-header-footer");
    words.push_back("--print-to-pdf=" + workshop.file("out.pdf"));
  } else {
    words.push_back(fmt::format("--force-device-scale-factor={}", kDotsPerInch / 96));
    words.push_back(fmt::format("--window-size={:.0f},{:.0f}", std::ceil(width * kCssPerPoint),
                                std::ceil(height * kCssPerPoint)));
    words.push_back("--screenshot=" + workshop.file("out.png"));
  }
  words.push_back("file://" + workshop.file("page.html"));
  return words;
}

std::vector<std::string> words_of(const Converter& converter, const Workshop& workshop,
                                  const std::string& svg, const std::string& extension) {
  if (converter.kind == Converter::Kind::chromium)
    return chromium_words(converter, workshop, svg, extension);
  write_plain(workshop.file("in.svg"), svg);
  const std::string type = extension.substr(1), dots = fmt::format("{:g}", kDotsPerInch);
  if (converter.kind == Converter::Kind::inkscape)
    return {converter.path, workshop.file("in.svg"), "--export-type=" + type,
            "--export-dpi=" + dots, "--export-filename=" + workshop.file("out." + type)};
  // Dots per inch would change the size of a PDF.
  if (type == "pdf")
    return {converter.path,         "-f", type, "-o", workshop.file("out." + type),
            workshop.file("in.svg")};
  return {converter.path,
          "-f",
          type,
          "-d",
          dots,
          "-p",
          dots,
          "-o",
          workshop.file("out." + type),
          workshop.file("in.svg")};
}

/// The end of what a program said.
std::string one_line(std::string text) {
  constexpr std::size_t kShown = 300;
  while (text.ends_with('\n') || text.ends_with(' ')) text.pop_back();
  if (text.size() > kShown) text.erase(0, text.size() - kShown);
  std::ranges::replace(text, '\n', ' ');
  return text;
}

std::string converted(const std::string& svg, const std::string& path) {
  const std::optional<Converter> converter = find_converter();
  if (!converter) throw_no_converter(path);
  const Workshop workshop;
  const std::string extension = extension_of(path);
  const std::vector<std::string> words = words_of(*converter, workshop, svg, extension);
  const ProcessResult result = run_process(words, kLimit);
  const std::string file = workshop.file("out" + extension);
  if (result.code != 0 || !fs::exists(file))
    throw_failure(
        !result.code
            ? fmt::format("{} did not end within {:g} s", converter->path, kLimit)
            : fmt::format("{} could not convert the figure: {}", converter->path,
                          result.output.empty() ? fmt::format("exit status {}", *result.code)
                                                : one_line(result.output)),
        path, "write .svg, and convert it yourself");
  return read_file(file, kMostConverted);
}

}  // namespace

void require_figure(const std::string& path, const std::vector<std::string>& extensions) {
  const std::string extension = extension_of(path);
  if (std::ranges::find(extensions, extension) == extensions.end())
    throw_input(extension.empty() ? "a figure's file needs an extension that says its kind"
                                  : fmt::format("'{}' is no kind of figure", extension),
                path, fmt::format("one of: {}", fmt::join(extensions, ", ")));
  const std::string why = why_not_writable(path);
  if (!why.empty())
    throw_input(fmt::format("cannot write the figure here: {}", why), path,
                "a file in a directory of yours");
  if (is_converted(extension) && !find_converter()) throw_no_converter(path);
}

void write_figure(const std::string& path, const std::string& svg) {
  require_figure(path);
  atomic_replace(path, is_converted(extension_of(path)) ? converted(svg, path) : svg);
}

void write_figure(const std::string& path, const Drawing& drawing, const std::string& note) {
  const std::string extension = extension_of(path);
  if (extension == ".tex")
    atomic_replace(path, tikz(drawing));
  else if (extension == ".html")
    atomic_replace(path, html_page(drawing, note));
  else
    write_figure(path, svg(drawing));
}

}  // namespace concertina
