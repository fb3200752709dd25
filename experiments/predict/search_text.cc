#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/text/number_text.h"
#include "experiments/predict/report_parts.h"
#include "experiments/predict/search_report.h"

namespace concertina {
namespace {

using Json = nlohmann::ordered_json;

std::string gib(const Json& bytes) {
  const double size = bytes.get<double>() / (1 << 30);
  return fmt::format("{:.{}f}", size, size < 10 ? 2 : 1);
}

std::string share_of(const Json& value) {
  return value.is_null() ? "-" : fmt::format("{:.1f}%", 100 * value.get<double>());
}

/// Describes the change that would shorten the step the most.
std::string advice(const Json& layout, const Json& report) {
  static const std::map<std::string, const char*> kCures = {
      {"bubble", "more microbatches or fewer stages (smaller bubble)"},
      {"transfer", "a faster network between stages (less waiting for transfers)"},
      {"reduction", "a faster network or fewer replicas (less waiting for gradients or weights)"},
      {"recompute", "enough memory to avoid recomputation"},
      {"group", "a smaller tensor-parallel group or faster links in a host (faster all-reduces)"}};
  const Json& help = layout["help_most"];
  const double share = help["seconds"].get<double>() / layout["step_s"].get<double>();
  if (share < 5e-4) return "a faster device: nearly all of the step is computation";
  const std::string less = fmt::format("{:.1f}% less time with ", 100 * share);
  if (help["part"] == "memory")
    return fmt::format("{}{} GiB per device, twice the memory", less,
                       gib(2 * report["device_memory_bytes"].get<double>()));
  return fmt::format("up to {}{}", less, kCures.at(help["part"]));
}

std::string layout_line(const Json& layout, std::size_t place) {
  const Json &memory = layout["memory"], &parts = layout["parts"];
  const double step = layout["step_s"];
  const auto percent = [&](const char* part) { return 100 * parts[part].get<double>() / step; };
  std::string text = fmt::format(
      "{:>2}{} {:<74} {:>9.4g} {:>11} {:>8.4g} {:>6} {:>6}  {:>5.1f} {:>5.1f} {:>5.1f} {:>5.1f} "
      "{:>5.1f}  {:>6} = {:>5}+{:>5}+{:>5}+{:>5}, {:>5} free{}\n",
      place, layout["within_tie"].get<bool>() ? "~" : " ", layout["text"], step,
      grouped(layout["tokens_per_s"].get<std::int64_t>()), layout["tflops_per_gpu"],
      share_of(layout["mfu"]), share_of(layout["hfu"]), percent("bubble"), percent("transfer"),
      percent("reduction"), percent("recompute"), percent("group"), gib(memory["total_bytes"]),
      gib(memory["weights_bytes"]), gib(memory["optimizer_bytes"]),
      gib(memory["activations_bytes"]), gib(memory["reserved_bytes"]), gib(memory["margin_bytes"]),
      memory["exact"].get<bool>() ? " exact" : "");
  if (!layout["runs_here"].get<bool>())
    return text + (layout["tp"] == 1 ? "      modeled for other software (--software)\n"
                                     : "      needs tensor parallelism, which Concertina lacks\n");
  const Json& shown = layout["plan_show_s"];
  return text + fmt::format("      runs in Concertina{}: {}\n",
                            shown.is_null() ? "" : fmt::format(", {:.4g} s by `plan show`", shown),
                            layout["keys"]);
}

std::string too_large_text(const Json& report) {
  const Json& layouts = report["too_large"];
  if (layouts.empty()) return "no layout with at most twice the memory would be faster\n";
  std::string text = "faster, but too large:\n";
  for (const Json& layout : layouts) {
    const Json& memory = layout["memory"];
    const double over =
        memory["total_bytes"].get<double>() - report["device_memory_bytes"].get<double>();
    text += fmt::format(
        "    {:<74} {:>9.4g}  needs {} GiB{}, {:.1f} too much: weights {}, optimizer {}, "
        "activations {}\n",
        layout["text"], layout["step_s"], gib(memory["total_bytes"]),
        memory["exact"].get<bool>() ? " exactly" : "", over / (1 << 30),
        gib(memory["weights_bytes"]), gib(memory["optimizer_bytes"]),
        gib(memory["activations_bytes"]));
  }
  return text;
}

/// Lists the measurements that predictions were compared with, and warns of an uncertain order.
std::string trust_text(const Json& report) {
  const auto compared = report["compared"].get<std::vector<std::string>>();
  const auto software = report["software"]["name"].get<std::string>();
  std::string text;
  for (const std::string& one : compared)
    text += fmt::format("compared with measurements, {}\n", one);
  const bool known = std::ranges::any_of(
      compared, [&](const std::string& one) { return one.starts_with(software + ":"); });
  if (!known)
    text += fmt::format(
        "no prediction for {} with {} has ever been compared with a measurement: "
        "measure the top layouts before choosing one\n",
        report["machine"], software);
  const auto ties = std::ranges::count_if(
      report["layouts"], [](const Json& layout) { return layout["within_tie"].get<bool>(); });
  if (ties > 1)
    text +=
        fmt::format("~: the {} layouts within {:.0f}% of the fastest, too close to distinguish\n",
                    ties, 100 * report["tie"].get<double>());
  return text;
}

/// Explains the columns.
std::string legend_text(const Json& report) {
  std::string text =
      "step s: seconds per step; tokens/s: of all devices; TFLOP/s: per device, recomputation "
      "included; MFU, HFU: share of its peak rate, without and with recomputation\n"
      "% of the step: bub: schedule bubble; xfer: waiting for transfers between stages; red: "
      "waiting for gradients and weights of replicas; rec: recomputation; tp: all-reduces of "
      "tensor parallelism\n"
      "GiB: memory of the fullest device, used and free; exact: accurate to the "
      "byte; otherwise modeled\n";
  const bool shown = std::ranges::any_of(
      report["layouts"], [](const Json& layout) { return !layout["plan_show_s"].is_null(); });
  if (shown)
    text +=
        "by `plan show`: it simulates all replicas and each message in their exchange, but a "
        "search "
        "simulates one replica and a ring exchange. Its bubble is all the idle time of ranks, "
        "which is bub + xfer + red above\n";
  return text + trust_text(report);
}

}  // namespace

std::string search_text(const Json& report) {
  const auto count = [&](const char* key) { return grouped(report[key].get<std::int64_t>()); };
  std::string text = fmt::format(
      "{} of {}, {} GiB each, as {}\n{} layouts: {} fit; {} simulated, {} proven slower by "
      "a bound",
      counted(report["world"], "rank"), report["machine"], gib(report["device_memory_bytes"]),
      report["software"]["about"], count("candidates"), count("fitting"), count("simulated"),
      count("proven_worse"));
  const Json& left = report["left_out"];
  if (const auto number = left["count"].get<std::int64_t>(); number > 0)
    text += fmt::format(", {} skipped because of --budget {:g} (none below {:.4g} s)",
                        grouped(number), report["budget"].get<double>(), left["least_step_s"]);
  text += fmt::format(
      "\n\n    {:<74} {:>9} {:>11} {:>8} {:>6} {:>6}  {:>5} {:>5} {:>5} {:>5} {:>5}  {}\n",
      "layout", "step s", "tokens/s", "TFLOP/s", "MFU", "HFU", "bub%", "xfer%", "red%", "rec%",
      "tp%", "GiB = weights+optimizer+activations+reserved");
  std::size_t place = 0;
  for (const Json& layout : report["layouts"]) text += layout_line(layout, ++place);
  const auto here = std::ranges::count_if(
      report["layouts"], [](const Json& layout) { return layout["runs_here"].get<bool>(); });
  if (here < static_cast<std::ptrdiff_t>(place))
    text += fmt::format("runs in Concertina: {} of these {}; `--tp 1` lists only such layouts\n",
                        here == 0 ? "none" : fmt::format("the first {}", here), place);
  text += "\n" + legend_text(report) + "\n" + too_large_text(report);
  if (!report["layouts"].empty())
    text += "largest gain: " + advice(report["layouts"].front(), report) + "\n";
  return text;
}

}  // namespace concertina
