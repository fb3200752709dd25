// `concertina schedule list`: lists the registered schedules.
#include <fmt/format.h>

#include "experiments/commands/command.h"
#include "parallel/generate/schedule_registry.h"

namespace concertina {
namespace {

struct ListOptions : CommandOptions {
  bool details = false;
};

nlohmann::ordered_json list_json() {
  nlohmann::ordered_json entries;
  for (const auto& [name, schedule] : schedules())
    entries[std::string(name)] = {{"about", schedule.about},
                                  {"layout", describe(schedule)},
                                  {"chunks", schedule.chunks.default_value},
                                  {"bubble", schedule.bubble.text},
                                  {"peak_microbatch_stages", schedule.peak.text}};
  return {{"schedules", names_of(schedules())}, {"entries", entries}};
}

void print_details() {
  for (const auto& [name, schedule] : schedules()) {
    const std::string_view about = schedule.about;
    fmt::print("{}: {}\n    {}\n", name, about.empty() ? "(no description)" : about,
               describe(schedule));
    if (schedule.bubble.value != nullptr) fmt::print("    bubble {}\n", schedule.bubble.text);
    if (schedule.peak.value != nullptr) fmt::print("    saves {}\n", schedule.peak.text);
    if (schedule.bubble.value == nullptr && schedule.peak.value == nullptr)
      fmt::print("    no closed form\n");
  }
  fmt::print(
      "\np ranks, m microbatches, v chunks (stages) per rank. bubble: ratio of idle to ideal time "
      "between a rank's first and last action, with F = I = W; saves: maximum number of "
      "microbatch-stages saved at a time\n");
}

int run_schedule_list(const ListOptions& options) {
  options.excludes("--long", "--json", options.json);
  if (options.json)
    fmt::print("{}", json_line(list_json()));
  else if (options.details)
    print_details();
  else
    fmt::print("{}\n", fmt::join(names_of(schedules()), "\n"));
  return 0;
}

}  // namespace

Command command_schedule_list() {
  return make_command<ListOptions>(
      "list all schedules",
      [](CLI::App& app, ListOptions& options) {
        app.add_flag("--long", options.details,
                     "also print the requirements and properties of each");
        add_json_option(app, options);
      },
      run_schedule_list);
}

}  // namespace concertina
