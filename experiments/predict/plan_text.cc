#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "experiments/predict/plan_report.h"
#include "experiments/predict/rank_lines.h"

namespace concertina {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kMiB = 1024.0 * 1024, kGiB = 1024 * kMiB;
constexpr std::size_t kMostStagesInToml = 64;
constexpr double kSameShare = 0.01;  // of a rank's total: less is no difference to a reader

std::string units_text(const Json& names) {
  const auto first = names.front().get<std::string>(), last = names.back().get<std::string>();
  return names.size() == 1 ? first : fmt::format("{} .. {} ({})", first, last, names.size());
}

/// Pipelines of equal stages share their lines.
std::string layout_text(const Json& pipelines) {
  std::vector<std::pair<Json, std::vector<int>>> kinds;  // stages without ranks; pipelines
  for (int p = 0; p < std::ssize(pipelines); ++p) {
    Json stages = pipelines[static_cast<std::size_t>(p)]["stages"];
    for (Json& stage : stages) stage.erase("rank");
    const auto same = std::find_if(kinds.begin(), kinds.end(),
                                   [&](const auto& kind) { return kind.first == stages; });
    if (same == kinds.end())
      kinds.push_back({stages, {p}});
    else
      same->second.push_back(p);
  }
  std::string text = fmt::format("{:<16}{:<7}{:<16}{:<42}{:>13}{:>9}\n", "pipeline", "stage",
                                 "rank", "units", "parameters", "FLOPs");
  for (const auto& [stages, members] : kinds)
    for (std::size_t s = 0; s < stages.size(); ++s) {
      std::vector<int> ranks;
      for (const int p : members)
        ranks.push_back(pipelines[static_cast<std::size_t>(p)]["stages"][s]["rank"].get<int>());
      std::sort(ranks.begin(), ranks.end());
      text += fmt::format("{:<16}{:<7}{:<16}{:<42}{:>13}{:>8.1f}%\n", list_text(members), s,
                          list_text(ranks), units_text(stages[s]["unit_names"]),
                          stages[s]["parameters"].get<std::size_t>(),
                          100 * stages[s]["flops_share"].get<double>());
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

/// Ranks whose figures are nearly the same (uneven parts of one bucket) share a line.
struct MemoryLine {
  std::vector<int> ranks;
  std::vector<double> bytes;  // the largest of each purpose; the total is the last
  bool takes(const std::vector<double>& other) const {
    for (std::size_t i = 0; i < bytes.size(); ++i)
      if (std::abs(bytes[i] - other[i]) > kSameShare * other.back()) return false;
    return true;
  }
};

std::string memory_lines(const Json& groups) {
  std::vector<MemoryLine> lines;
  for (const Json& group : groups) {
    MemoryLine mine{group["ranks"].get<std::vector<int>>(), {}};
    for (const auto& [key, value] : group["bytes"].items()) mine.bytes.push_back(value);
    const auto line = std::find_if(lines.begin(), lines.end(),
                                   [&](const MemoryLine& one) { return one.takes(mine.bytes); });
    if (line == lines.end()) {
      lines.push_back(mine);
      continue;
    }
    line->ranks.insert(line->ranks.end(), mine.ranks.begin(), mine.ranks.end());
    for (std::size_t i = 0; i < mine.bytes.size(); ++i)
      line->bytes[i] = std::max(line->bytes[i], mine.bytes[i]);
  }
  std::string text;
  for (MemoryLine& line : lines) {
    std::sort(line.ranks.begin(), line.ranks.end());
    text += fmt::format("{:<16}", list_text(line.ranks));
    for (const double bytes : line.bytes) text += fmt::format("{:>12.2f}", bytes / kMiB);
    text += "\n";
  }
  return text;
}

std::string memory_text(const Json& report) {
  const Json& available = report["machine"]["available_bytes"];
  return memory_header(report["memory"][0]["bytes"]) + memory_lines(report["memory"]) +
         fmt::format("all ranks {:.3f} GiB, the largest {:.3f} GiB{}\n",
                     report["all_ranks_bytes"].get<double>() / kGiB,
                     report["peak_bytes"].get<double>() / kGiB,
                     available.is_null() ? ""
                                         : fmt::format("; {} has {:.1f} GiB free",
                                                       report["machine"]["name"].get<std::string>(),
                                                       available.get<double>() / kGiB)) +
         fmt::format(
             "besides, the largest rank: {:.2f} MiB for the copy that checkpoints are "
             "written from, {:.2f} MiB of /dev/shm for snapshots under `run`, twice "
             "that on several hosts\n",
             report["checkpoint_copy_bytes"].get<double>() / kMiB,
             report["snapshot_bytes"].get<double>() / kMiB);
}

/// Says where the times come from.
std::string basis_text(const Json& report) {
  const std::string links = fmt::format("links: {}\n", report["links"]["text"].get<std::string>());
  if (report.contains("costs_from"))
    return fmt::format("from the costs that {} measured\n{}",
                       report["costs_from"].get<std::string>(), links);
  const auto left_out = report["left_out"].get<std::vector<std::string>>();
  const bool alone = std::ranges::find(left_out, "other kernels") != left_out.end();
  return fmt::format(
      "products{}, at {:.1f} GFLOP/s per rank\n({}){}\n{}",
      alone ? " alone" : " and what is bound by memory", report["rate_gflops_per_s"].get<double>(),
      report["rate_from"].get<std::string>(),
      left_out.empty() ? "" : fmt::format("; {} come on top", fmt::join(left_out, " and ")), links);
}

/// The lines on gradients between replicas, where they take time.
std::string exchange_text(const Json& report) {
  if (!report.contains("exchange")) return "";
  const Json& exchange = report["exchange"];
  const double sent = exchange["sent_bytes"], ring = exchange["ring_bytes"];
  std::string text = fmt::format(
      "gradients between replicas: a rank sends {:.1f} MiB and its weights; {:.2f} ms of the "
      "step\n",
      sent / kMiB, exchange["exposed_ms"].get<double>());
  if (sent > ring * 1.001)
    text += fmt::format(
        "{:.2f} times the bytes of a ring: the {} leaves (numerics.leaves) do not divide into one "
        "sum for each replica; a power of two for each would\n",
        sent / ring, report["leaves"].get<int>());
  return text;
}

std::string times_text(const Json& report) {
  std::string text = fmt::format("{:<16}{:>12}{:>10}{:>38}\n", "rank", "busy ms", "bubble",
                                 "peak activations, microbatch-stages");
  RankLines lines;
  for (std::size_t rank = 0; rank < report["busy_ms"].size(); ++rank)
    lines.add(static_cast<int>(rank),
              fmt::format("{:>12.2f}{:>9.2f}%{:>38}", report["busy_ms"][rank].get<double>(),
                          100 * report["bubble"]["ranks"][rank].get<double>(),
                          report["peak_activations"]["microbatch_stages"][rank].get<int>()));
  return text + lines.text() +
         fmt::format("step {:.2f} ms, {:.0f} tokens/s, bubble {:.2f}%: {}",
                     report["step_ms"].get<double>(), report["tokens_per_s"].get<double>(),
                     100 * report["bubble"]["mean"].get<double>(), basis_text(report)) +
         exchange_text(report);
}

/// Says what recomputation would save and cost.
std::string recompute_text(const Json& choices) {
  std::string text =
      fmt::format("{:<22}{:>20}{:>12}\n", "recompute", "largest rank, MiB", "step ms");
  for (const Json& one : choices)
    text +=
        fmt::format("{:<22}{:>20.2f}{:>12.2f}{}\n", one["recompute"].get<std::string>(),
                    one["largest_rank_bytes"].get<double>() / kMiB, one["step_ms"].get<double>(),
                    one["chosen"].get<bool>() ? "  (chosen)" : "");
  return text;
}

std::string toml_text(const Json& report) {
  std::size_t stages = 0;
  for (const Json& pipeline : report["pipelines"]) stages += pipeline["stages"].size();
  if (stages > kMostStagesInToml)
    return fmt::format("parallel.layout has {} stages: --json prints it as layout_toml\n", stages);
  return fmt::format("parallel.layout = {}\n", report["layout_toml"].get<std::string>());
}

}  // namespace

std::string plan_text(const Json& report) {
  std::string text = fmt::format(
      "{} of {} rank{} with {} thread{}, {}, {} microbatches in {} leaves, {} parameters\n",
      report["layout"].get<std::string>(), report["world"].get<int>(),
      report["world"] == 1 ? "" : "s", report["threads"].get<int>(),
      report["threads"] == 1 ? "" : "s", report["schedule"].get<std::string>(),
      report["microbatches"].get<int>(), report["leaves"].get<int>(),
      report["parameters"].get<std::size_t>());
  if (const int frozen = report["frozen_units"].get<int>(); frozen > 0)
    text +=
        fmt::format("the first {} unit{} frozen: {} parameters train\n", frozen,
                    frozen == 1 ? " is" : "s are", report["trained_parameters"].get<std::size_t>());
  text += '\n';
  text += layout_text(report["pipelines"]) + toml_text(report) + "\n" + memory_text(report) + "\n" +
          times_text(report) + "\n" + recompute_text(report["recompute"]);
  for (const Json& warning : report["warnings"])
    text += fmt::format("warning: {}\n", warning.get<std::string>());
  return text;
}

}  // namespace concertina
