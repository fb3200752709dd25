#include <fmt/format.h>

#include <algorithm>

#include "core/number_text.h"
#include "experiments/planner/search_report.h"
#include "experiments/run/memory_advice.h"

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

std::string advice(const Json& layout) {
  const Json& help = layout["help_most"];
  const auto part = help["part"].get<std::string>();
  const std::string share =
      fmt::format("{:.1f}%", 100 * help["seconds"].get<double>() / layout["step_s"].get<double>());
  if (part == "bubble") return share + " of the step is bubble: more microbatches, fewer stages";
  if (part == "transfer") return share + " waits for transfers: a faster network between stages";
  if (part == "reduction")
    return share + " waits for gradients and weights of replicas: a faster network, fewer replicas";
  if (part == "recompute") return share + " is recomputation: more memory";
  if (part == "memory") return share + " less with twice the memory";
  return share + " is all-reduces of tensor parallelism: a smaller group, faster links in a host";
}

std::string layout_line(const Json& layout, std::size_t place) {
  const Json& memory = layout["memory"];
  const Json& parts = layout["parts"];
  const double step = layout["step_s"];
  const auto percent = [&](const char* part) { return 100 * parts[part].get<double>() / step; };
  std::string text = fmt::format(
      "{:>2}  {:<74} {:>9.4g} {:>11} {:>8.4g} {:>6} {:>6}  {:>5.1f} {:>5.1f} {:>5.1f} {:>5.1f} "
      "{:>5.1f}  {:>6} = {:>5}+{:>5}+{:>5} {}\n",
      place, layout["text"].get<std::string>(), step,
      grouped(static_cast<std::int64_t>(layout["tokens_per_s"].get<double>())),
      layout["tflops_per_gpu"].get<double>(), share_of(layout["mfu"]), share_of(layout["hfu"]),
      percent("bubble"), percent("transfer"), percent("reduction"), percent("recompute"),
      percent("group"), gib(memory["total_bytes"]), gib(memory["weights_bytes"]),
      gib(memory["optimizer_bytes"]), gib(memory["activations_bytes"]),
      memory["exact"].get<bool>() ? "exact" : "model");
  if (layout["runs_here"].get<bool>())
    text += fmt::format("      runs here: {}\n", layout["keys"].get<std::string>());
  return text;
}

std::string too_large_text(const Json& report) {
  const Json& layouts = report["too_large"];
  if (layouts.empty()) return "nothing that does not fit would be faster\n";
  std::string text = "would be faster, but does not fit:\n";
  for (const Json& layout : layouts) {
    const Json& memory = layout["memory"];
    const double over =
        memory["total_bytes"].get<double>() - report["device_memory_bytes"].get<double>();
    text += fmt::format(
        "    {:<74} {:>9.4g}  needs {} GiB ({}), {:.1f} too much: weights {}, optimizer {}, "
        "activations {}\n",
        layout["text"].get<std::string>(), layout["step_s"].get<double>(),
        gib(memory["total_bytes"]), memory["exact"].get<bool>() ? "exact" : "model",
        over / (1 << 30), gib(memory["weights_bytes"]), gib(memory["optimizer_bytes"]),
        gib(memory["activations_bytes"]));
  }
  return text;
}

}  // namespace

std::string search_text(const Json& report) {
  const auto count = [&](const char* key) { return grouped(report[key].get<std::int64_t>()); };
  std::string text = fmt::format(
      "{} ranks of {}, {} GiB each, as {}\n{} layouts: {} fit; {} simulated, {} slower by their "
      "bound",
      count("world"), report["machine"].get<std::string>(), gib(report["device_memory_bytes"]),
      report["software"]["about"].get<std::string>(), count("candidates"), count("fitting"),
      count("simulated"), count("proven_worse"));
  const Json& left = report["left_out"];
  if (const auto number = left["count"].get<std::int64_t>(); number > 0)
    text += fmt::format(", {} left out by --budget {:g} (none below {:.4g} s)", grouped(number),
                        report["budget"].get<double>(), left["least_step_s"].get<double>());
  text += fmt::format(
      "\n\n    {:<74} {:>9} {:>11} {:>8} {:>6} {:>6}  {:>5} {:>5} {:>5} {:>5} {:>5}  {}\n",
      "layout", "step s", "tokens/s", "TFLOP/s", "MFU", "HFU", "bub%", "xfer%", "red%", "rec%",
      "tp%", "GiB = weights+optimizer+activations");
  std::size_t place = 0;
  for (const Json& layout : report["layouts"]) text += layout_line(layout, ++place);
  text += "\n" + too_large_text(report);
  if (!report["layouts"].empty())
    text += "what would help most: " + advice(report["layouts"].front()) + "\n";
  return text;
}

}  // namespace concertina
