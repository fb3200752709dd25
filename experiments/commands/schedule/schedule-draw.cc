// `concertina schedule draw`: draws schedules' predicted steps as a picture or as text.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "core/error.h"
#include "core/text/number_text.h"
#include "experiments/commands/python_command.h"
#include "experiments/commands/schedule/schedule_options.h"
#include "experiments/machine/output.h"
#include "experiments/timeline/timeline_rows.h"

namespace concertina {
namespace {

using Json = nlohmann::ordered_json;

struct DrawOptions : ScheduleOptions {
  std::vector<std::string> schedules;  // one panel each
  std::string out;                     // file of the picture
  double width = 6.75;                 // inches
  bool grid = false;
};

const std::vector<std::string> kPictures{".svg", ".pdf", ".png", ".tex", ".html"};

/// Whether the name includes a number of chunks, as in "NAME:4".
bool names_chunks(const std::string& schedule) {
  const std::size_t colon = schedule.rfind(':');
  return colon != std::string::npos && is_schedule(schedule.substr(0, colon));
}

ScheduleOptions options_for(const ScheduleOptions& options, const std::string& schedule) {
  ScheduleOptions one = options;
  one.schedule = schedule;
  const std::size_t colon = schedule.rfind(':');
  if (!names_chunks(schedule)) return one;
  std::string chunks = schedule.substr(colon + 1);
  if (!whole_number(1, 64)(chunks).empty())
    throw_input(fmt::format("expected a number of chunks, got '{}'", chunks), schedule,
                "NAME:CHUNKS, such as interleaved-1f1b:4");
  one.schedule = schedule.substr(0, colon);
  one.chunks = std::stoi(chunks);
  return one;
}

/// A stage's share of its rank's costs, because --costs applies to a whole rank.
double share_of_stage(const Layout& layout) {
  return static_cast<double>(working_ranks(layout).size()) /
         static_cast<double>(layout.pipelines[0].stages.size());
}

TimelinePanel panel_of(const std::string& name, const ScheduleOptions& options,
                       const ScheduleCosts& costs) {
  Planned planned = plan_of(options);
  Costs of_plan =
      costs.of(planned.layout, planned.plan, share_of_stage(planned.layout), planned.leaves);
  Timeline timeline = simulate(planned.plan, planned.layout, of_plan);
  return {name, std::move(planned.plan), std::move(planned.layout), std::move(of_plan),
          std::move(timeline)};
}

/// Files define the numbers of ranks and microbatches; named schedules use the first file's.
std::vector<TimelinePanel> panels_of(const ScheduleOptions& options,
                                     const std::vector<std::string>& schedules,
                                     const ScheduleCosts& costs) {
  std::vector<TimelinePanel> panels(schedules.size());
  std::optional<int> ranks = options.ranks, microbatches = options.microbatches;
  for (const bool names : {false, true})
    for (std::size_t i = 0; i < panels.size(); ++i) {
      ScheduleOptions one = options_for(options, schedules[i]);
      if (is_schedule(one.schedule) != names) continue;
      if (names) one.ranks = ranks, one.microbatches = microbatches;
      panels[i] = panel_of(schedules[i], one, costs);
      if (!ranks) ranks = static_cast<int>(panels[i].ranks());
      if (!microbatches) microbatches = panels[i].microbatches();
    }
  return panels;
}

/// Throws before anything is drawn if the files cannot share a picture.
void require_same_ranks(const std::vector<TimelinePanel>& panels) {
  for (const TimelinePanel& panel : panels)
    if (panel.ranks() != panels[0].ranks())
      throw_input(
          fmt::format("{} has {}, but {} has {}", panels[0].name,
                      counted(static_cast<std::int64_t>(panels[0].ranks()), "rank"), panel.name,
                      counted(static_cast<std::int64_t>(panel.ranks()), "rank")),
          panel.name, "draw them in separate pictures");
}

/// Throws Error{bad_input} before anything is drawn unless a picture can be written to `path`.
void require_picture(const std::string& path) {
  const std::string extension = std::filesystem::path(path).extension().string();
  if (std::ranges::find(kPictures, CLI::detail::to_lower(extension)) == kPictures.end())
    throw_input(extension.empty() ? "a picture's file name needs an extension"
                                  : fmt::format("'{}' is not a picture format", extension),
                path, fmt::format("one of: {}", fmt::join(kPictures, ", ")));
  require_output(path, "--out");
}

GridLook look_of_terminal() {
  if (::isatty(STDOUT_FILENO) != 1) return {};
  const char* no_color = std::getenv("NO_COLOR");
  return {static_cast<std::size_t>(terminal_columns(stdout)),
          no_color == nullptr || *no_color == '\0'};
}

/// The picture as JSON for schedule_draw() in experiments/python/concertina/commands.
Json picture_of(const DrawOptions& options, const ScheduleCosts& costs,
                const std::vector<TimelinePanel>& panels) {
  Json json = timelines_json(panels, options.width);
  json["bytes"] = costs.measured();
  if (!costs.measured() && options.links.links.empty())  // the unit of the numbers is unknown
    json["time_label"] = fmt::format("time (F, I, W of a rank: {})", options.costs);
  for (std::size_t i = 0; i < panels.size(); ++i) {
    const IdleShares idle = idle_shares(panels[i]);
    json["panels"][i]["by_cause"] = {{"schedule", idle.schedule},
                                     {"imbalance", idle.imbalance},
                                     {"transfer", idle.transfer},
                                     {"gradients_and_optimizer", idle.exchange}};
    json["panels"][i]["saved"] = most_saved_json(panels[i], costs.measured());
  }
  return json;
}

Json report_of(const Json& picture, const std::string& out) {
  Json entries = Json::array();
  for (const Json& panel : picture["panels"])
    entries.push_back({{"schedule", panel["name"]},
                       {"makespan", panel["makespan"]},
                       {"bubble", panel["bubble"]},
                       {"by_cause", panel["by_cause"]}});
  return {{"out", out}, {"schedules", entries}};
}

/// The command line, without flags.
std::string command_of(const DrawOptions& options) {
  std::string text = fmt::format("concertina schedule draw {}", fmt::join(options.schedules, " "));
  for (const CLI::Option* option : options.app->get_options())
    if (option->count() > 0 && option->nonpositional() && option->get_items_expected_max() > 0)
      text += fmt::format(" {} {}", option->get_name(), option->as<std::string>());
  return text;
}

int run_schedule_draw(const DrawOptions& options) {
  if (options.grid && !options.out.empty())
    throw_input("--grid prints text, --out writes a picture", "--grid", "use one of them");
  for (const char* const option : {"--width", "--json"})
    options.excludes(option, "--grid", options.grid);
  options.excludes("--chunks", "chunks in every name",
                   std::ranges::all_of(options.schedules, names_chunks));
  if (options.grid) return print_grid(options, options.schedules);
  if (options.out.empty())
    throw_input("no output file", "--out",
                "--out FILE.svg (or .pdf, .png, .tex, .html), or --grid for text in the terminal");
  require_picture(options.out);
  const ScheduleCosts costs = costs_of(options);
  const std::vector<TimelinePanel> panels = panels_of(options, options.schedules, costs);
  require_same_ranks(panels);
  const Json picture = picture_of(options, costs, panels);
  const int code =
      call_python("schedule-draw", {{"out", options.out}, {"note", command_of(options)}}, picture);
  if (code != 0) return code;
  fmt::print("{}", options.json ? json_line(report_of(picture, options.out))
                                : fmt::format("wrote {}\n", options.out));
  return 0;
}

void add_draw_options(CLI::App& app, DrawOptions& options) {
  app.add_option("schedules", options.schedules,
                 "schedules, one panel each: a name (`schedule list`), with a number of chunks if "
                 "needed (interleaved-1f1b:4), or a file with one row of actions per rank")
      ->type_name("NAME|FILE")
      ->required();
  app.add_option("--out", options.out,
                 fmt::format("picture to write, in the format of its extension: {}",
                             fmt::join(kPictures, ", ")))
      ->type_name("FILE");
  add_default_option(app, "--width", options.width,
                     "width in inches: 3.25 for one of two columns, 6.75 for the whole page")
      ->check(number(1.5, 40));
  add_plan_options(app, options);
  add_grid_option(app, options.grid);
  add_cost_options(app, options);
  add_json_option(app, options);
}

}  // namespace

int print_grid(const ScheduleOptions& options, const std::vector<std::string>& schedules) {
  const std::vector<TimelinePanel> panels = panels_of(options, schedules, costs_of(options));
  require_same_ranks(panels);
  fmt::print("{}", timeline_grid(panels, look_of_terminal()));
  return 0;
}

Command command_schedule_draw() {
  return make_command<DrawOptions>("draw predicted timelines of schedules", add_draw_options,
                                   run_schedule_draw);
}

}  // namespace concertina
