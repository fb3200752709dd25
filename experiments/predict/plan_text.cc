#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/index.h"
#include "experiments/predict/plan_report.h"
#include "experiments/predict/report_parts.h"

namespace concertina {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kMiB = 1024.0 * 1024, kGiB = 1024 * kMiB;
constexpr std::size_t kMostStagesInToml = 64;
constexpr double kSameShare = 0.01;  // of a rank's total; smaller differences are not shown

std::string units_text(const Json& names) {
  return names.size() == 1
             ? names[0].get<std::string>()
             : fmt::format("{} .. {} ({})", names.front(), names.back(), names.size());
}

/// Pipelines with equal stages share their lines.
std::string layout_text(const Json& pipelines) {
  std::vector<std::pair<Json, std::vector<int>>> kinds;  // stages without ranks; pipelines
  for (std::size_t p = 0; p < pipelines.size(); ++p) {
    Json stages = pipelines[p]["stages"];
    for (Json& stage : stages) stage.erase("rank");
    auto kind = std::ranges::find(kinds, stages, [](const auto& one) { return one.first; });
    if (kind == kinds.end()) kind = kinds.emplace(kind, stages, std::vector<int>{});
    kind->second.push_back(static_cast<int>(p));
  }
  std::string text = fmt::format("{:<16}{:<7}{:<16}{:<42}{:>13}{:>9}\n", "pipeline", "stage",
                                 "rank", "units", "parameters", "FLOPs");
  for (const auto& [stages, members] : kinds)
    for (std::size_t s = 0; s < stages.size(); ++s) {
      std::vector<int> ranks;
      for (const int p : members) ranks.push_back(pipelines[at(p)]["stages"][s]["rank"]);
      std::ranges::sort(ranks);
      text += fmt::format("{:<16}{:<7}{:<16}{:<42}{:>13}{:>8.1f}%\n", list_text(members), s,
                          list_text(ranks), units_text(stages[s]["unit_names"]),
                          stages[s]["parameters"], 100 * stages[s]["flops_share"].get<double>());
    }
  return text;
}

/// The two header lines: "packed weights" is "packed" above "weights".
std::string memory_header(const Json& bytes) {
  std::string above = fmt::format("{:<16}", "memory, MiB"), below = fmt::format("{:<16}", "rank");
  for (const auto& [key, value] : bytes.items()) {
    const std::string name = key.substr(0, key.rfind("_bytes"));
    const std::size_t cut = name.find('_');
    above += fmt::format("{:>12}", cut == std::string::npos ? "" : name.substr(0, cut));
    below += fmt::format("{:>12}", cut == std::string::npos ? name : name.substr(cut + 1));
  }
  return above + "\n" + below + "\n";
}

/// Ranks with nearly the same values (uneven parts of one bucket) share a line.
struct MemoryLine {
  std::vector<int> ranks;
  std::vector<double> bytes;  // maximum for each purpose, then for the total
  bool takes(const std::vector<double>& other) const {
    return std::ranges::equal(bytes, other, [&](double a, double b) {
      return std::abs(a - b) <= kSameShare * other.back();
    });
  }
};

std::string memory_lines(const Json& groups) {
  std::vector<MemoryLine> lines;
  for (const Json& group : groups) {
    std::vector<double> bytes(group["bytes"].begin(), group["bytes"].end());
    auto line = std::ranges::find_if(lines, [&](const auto& one) { return one.takes(bytes); });
    if (line == lines.end()) line = lines.insert(line, MemoryLine{{}, bytes});
    line->ranks.insert(line->ranks.end(), group["ranks"].begin(), group["ranks"].end());
    for (std::size_t i = 0; i < bytes.size(); ++i)
      line->bytes[i] = std::max(line->bytes[i], bytes[i]);
  }
  std::string text;
  for (MemoryLine& line : lines) {
    std::ranges::sort(line.ranks);
    text += fmt::format("{:<16}", list_text(line.ranks));
    for (const double bytes : line.bytes) text += fmt::format("{:>12.2f}", bytes / kMiB);
    text += "\n";
  }
  return text;
}

std::string memory_text(const Json& report) {
  const auto bytes_in = [&](double unit, const char* key) {
    return report[key].get<double>() / unit;
  };
  const Json& machine = report["machine"];
  const Json& free = machine["available_bytes"];
  return memory_header(report["memory"][0]["bytes"]) + memory_lines(report["memory"]) +
         fmt::format("all ranks {:.3f} GiB, the largest {:.3f} GiB{}\n",
                     bytes_in(kGiB, "all_ranks_bytes"), bytes_in(kGiB, "peak_bytes"),
                     free.is_null() ? ""
                                    : fmt::format("; {} has {:.1f} GiB free", machine["name"],
                                                  free.get<double>() / kGiB)) +
         fmt::format(
             "in addition, the largest rank needs {:.2f} MiB for the copy that checkpoints are "
             "written "
             "from and {:.2f} MiB of /dev/shm for snapshots under `run` (twice that on several "
             "hosts)\n",
             bytes_in(kMiB, "checkpoint_copy_bytes"), bytes_in(kMiB, "snapshot_bytes"));
}

/// The source of the times.
std::string basis_text(const Json& report) {
  const std::string links = fmt::format("links: {}\n", report["links"]["text"]);
  if (report.contains("costs_from"))
    return fmt::format("from the costs measured in {}\n{}", report["costs_from"], links);
  const auto left_out = report["left_out"].get<std::vector<std::string>>();
  const bool alone = std::ranges::find(left_out, "other kernels") != left_out.end();
  return fmt::format(
      "products{}, at {:.1f} GFLOP/s per rank\n({}){}\n{}",
      alone ? " only" : " and memory-bound kernels", report["rate_gflops_per_s"],
      report["rate_from"],
      left_out.empty() ? "" : fmt::format("; not included: {}", fmt::join(left_out, " and ")),
      links);
}

/// The lines about sending gradients between replicas, if that takes time.
std::string exchange_text(const Json& report) {
  if (!report.contains("exchange")) return "";
  const Json& exchange = report["exchange"];
  const double sent = exchange["sent_bytes"], ring = exchange["ring_bytes"];
  std::string text = fmt::format(
      "gradients between replicas: a rank sends {:.1f} MiB and its weights, which adds {:.2f} ms "
      "to the step\n",
      sent / kMiB, exchange["exposed_ms"]);
  if (sent > ring * 1.001)
    text += fmt::format(
        "{:.2f} times as many bytes as a ring: the {} leaves (numerics.leaves) cannot be split "
        "into one "
        "sum per replica, but a power of two per replica could be\n",
        sent / ring, report["leaves"]);
  return text;
}

std::string times_text(const Json& report) {
  RankLines lines;
  const Json& bubble = report["bubble"];
  for (std::size_t rank = 0; rank < report["busy_ms"].size(); ++rank)
    lines.add(static_cast<int>(rank),
              fmt::format("{:>12.2f}{:>9.2f}%{:>38}", report["busy_ms"][rank],
                          100 * bubble["ranks"][rank].get<double>(),
                          report["peak_activations"]["microbatch_stages"][rank]));
  return fmt::format("{:<16}{:>12}{:>10}{:>38}\n{}", "rank", "busy ms", "bubble",
                     "peak activations, microbatch-stages", lines.text()) +
         fmt::format("step {:.2f} ms, {:.0f} tokens/s, bubble {:.2f}%: ", report["step_ms"],
                     report["tokens_per_s"], 100 * bubble["mean"].get<double>()) +
         basis_text(report) + exchange_text(report);
}

/// The memory that recomputation would save, and its cost in time.
std::string recompute_text(const Json& choices) {
  std::string text =
      fmt::format("{:<22}{:>20}{:>12}\n", "recompute", "largest rank, MiB", "step ms");
  for (const Json& one : choices)
    text += fmt::format("{:<22}{:>20.2f}{:>12.2f}{}\n", one["recompute"],
                        one["largest_rank_bytes"].get<double>() / kMiB, one["step_ms"],
                        one["chosen"].get<bool>() ? "  (chosen)" : "");
  return text;
}

std::string toml_text(const Json& report) {
  std::size_t stages = 0;
  for (const Json& pipeline : report["pipelines"]) stages += pipeline["stages"].size();
  if (stages > kMostStagesInToml)
    return fmt::format("parallel.layout has {} stages; --json prints it as layout_toml\n", stages);
  return fmt::format("parallel.layout = {}\n", report["layout_toml"]);
}

}  // namespace

std::string plan_text(const Json& report) {
  const auto plural = [](const Json& count) { return count == 1 ? "" : "s"; };
  const Json &world = report["world"], &threads = report["threads"];
  std::string text = fmt::format(
      "{} of {} rank{} with {} thread{}, {}, {} microbatches in {} leaves, {} parameters\n",
      report["layout"], world, plural(world), threads, plural(threads), report["schedule"],
      report["microbatches"], report["leaves"], report["parameters"]);
  if (const Json& frozen = report["frozen_units"]; frozen > 0)
    text += fmt::format("the first {} unit{} frozen: {} parameters train\n", frozen,
                        frozen == 1 ? " is" : "s are", report["trained_parameters"]);
  text += '\n' + layout_text(report["pipelines"]) + toml_text(report) + "\n" + memory_text(report) +
          "\n" + times_text(report) + "\n" + recompute_text(report["recompute"]);
  for (const Json& warning : report["warnings"]) text += fmt::format("warning: {}\n", warning);
  return text;
}

}  // namespace concertina
