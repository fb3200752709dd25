#include "experiments/predict/schedule_costs.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <boost/algorithm/string/trim.hpp>
#include <cstdint>
#include <filesystem>
#include <set>
#include <string_view>

#include "core/error.h"
#include "core/text/number_text.h"
#include "experiments/config/config_toml.h"
#include "experiments/run/planning.h"
#include "io/csv.h"
#include "io/file.h"
#include "parallel/plan/partition.h"
#include "parallel/plan/plan_index.h"
#include "parallel/plan/reduction_tree.h"
#include "parallel/predict/machine.h"
#include "parallel/predict/plan_costs.h"
#include "parallel/simulate/costs.h"

namespace concertina {
namespace {

// A file with the costs of each pipeline stage: the header `F,I,W`, then one row of seconds per
// stage, from the first stage to the last. Invariant: pure except for reading the file.
constexpr std::uint64_t kMostStageCostsBytes = 16 << 20;
constexpr const char* kStageCostsHint =
    "a text file with the header F,I,W and one row of seconds per stage, such as 1,1,1";

double seconds_of(std::string_view word, const std::string& place, const std::string& fix) {
  const auto value = parse_number<double>(word);
  if (!value || !is_valid_value(*value))
    throw_input(fmt::format("'{}' is not a number of seconds", word.substr(0, 40)), place, fix);
  return *value;
}

StageCosts row_of(const std::vector<std::string>& cells, const std::string& place) {
  if (cells.size() != 3) throw_input("a row does not have three costs", place, kStageCostsHint);
  std::array<double, 3> seconds{};
  std::ranges::transform(cells, seconds.begin(), [&](const std::string& cell) {
    return seconds_of(cell, place, fmt::format("seconds: {}", kValueRange));
  });
  return {.forward = seconds[0], .input = seconds[1], .weight = seconds[2]};
}

/// Whether --costs names a file of stage costs: its name ends in .csv.
bool is_stage_costs_file(const std::string& path) {
  return std::filesystem::path(path).extension() == ".csv";
}

/// The rows of the file. Throws Error{bad_input} naming `path:line` for a malformed file or a cell
/// that is not a valid cost (parallel/predict/machine.h).
std::vector<StageCosts> read_stage_costs(const std::string& path) {
  if (!exists_at(path)) throw_input("no such cost file", path, kStageCostsHint);
  std::string text = read_input_file(path, kMostStageCostsBytes, kStageCostsHint);
  constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";  // written by spreadsheets
  if (text.starts_with(kByteOrderMark)) text.erase(0, kByteOrderMark.size());
  boost::trim_right(text);
  auto lines = parse_csv(text);
  if (!lines) throw_input("unterminated quote, or quote within a cell", path, kStageCostsHint);
  std::vector<StageCosts> rows;
  int number = 0;
  for (std::vector<std::string>& cells : *lines) {
    for (std::string& cell : cells) boost::trim(cell);
    const std::string place = fmt::format("{}:{}", path, ++number);
    if (number > 1)
      rows.push_back(row_of(cells, place));
    else if (cells != std::vector<std::string>{"F", "I", "W"})
      throw_input(fmt::format("the first line is '{:.40}', not F,I,W",
                              fmt::to_string(fmt::join(cells, ","))),
                  place, kStageCostsHint);
  }
  if (rows.empty()) throw_input("the file contains no costs", path, kStageCostsHint);
  return rows;
}

const std::string kCostsHint = fmt::format(
    "three numbers such as 1,1,1, each {}; or a file.csv with the header F,I,W and a "
    "row per stage; or a run with a costs.json",
    kValueRange);

/// A number of leaves in the reduction tree such that no two pipelines of the layout share a leaf.
int leaves_of_cut(const Layout& layout, int microbatches) {
  const int leaves = default_leaves(microbatches);
  for (const Pipeline& pipeline : layout.pipelines)
    if (pipeline.first_microbatch % (microbatches / leaves) != 0) return microbatches;
  return leaves;
}

/// Returns `layout`, which has one unit per stage, with a model's units divided among its stages.
Layout cut_units(Layout layout, const std::vector<UnitCost>& costs) {
  std::vector<double> flops;
  for (const UnitCost& cost : costs) flops.push_back(total_flops(cost));
  std::set<int> frontiers;
  for (Pipeline& pipeline : layout.pipelines) {
    const auto ranges = partition(flops, static_cast<int>(pipeline.stages.size()));
    frontiers.insert(ranges[static_cast<std::size_t>(layout.frozen_units)].first);
    for (std::size_t s = 0; s < ranges.size(); ++s) {
      pipeline.stages[s].first_unit = ranges[s].first;
      pipeline.stages[s].last_unit = ranges[s].last;
    }
  }
  if (frontiers.size() > 1)
    throw_input("pipelines of different depths would freeze different units of the model",
                "--frozen", "--frozen 0, or --costs F,I,W");
  layout.frozen_units = *frontiers.begin();
  return layout;
}

}  // namespace

ScheduleCosts::ScheduleCosts(const std::vector<std::string>& words, const LinkOptions& links) {
  if (words.size() == 1 && is_stage_costs_file(words[0]))
    rows_ = read_stage_costs(file_ = words[0]);
  else if (words.size() == 1)
    read_run(words[0]);
  else
    read_stage(words);
  read_links(links);
}

void ScheduleCosts::read_run(const std::string& path) {
  source_ = read_costs(path);
  if (!source_->measured)
    throw_input("a machine file has links, but no times for F, I and W", path,
                fmt::format("--costs F,I,W --links {} --boundary-bytes N, in seconds and bytes; or "
                            "`concertina plan @model.toml --costs {}`",
                            path, path));
  machine_ = source_->machine;
  links_ = {path, true};
}

void ScheduleCosts::read_stage(const std::vector<std::string>& words) {
  if (words.size() != 3)
    throw_input(fmt::format("expected three costs, got {}", words.size()), "--costs", kCostsHint);
  for (std::size_t i = 0; i < words.size(); ++i)
    stage_.*std::array{&StageCosts::forward, &StageCosts::input, &StageCosts::weight}[i] =
        seconds_of(words[i], "--costs", kCostsHint);
}

void ScheduleCosts::read_latency(const LinkOptions& options) {
  if (!options.links.empty() || options.boundary_bytes)
    throw_input("--latency cannot be combined with --links", "--latency",
                "--latency SECONDS, or --links");
  if (!is_valid_value(*options.latency))
    throw_input(fmt::format("{} is not a latency", *options.latency), "--latency",
                fmt::format("seconds: {}", kValueRange));
  latency_ = options.latency;
}

void ScheduleCosts::read_links(const LinkOptions& options) {
  if (options.latency) return read_latency(options);
  if (source_ && options.boundary_bytes)
    throw_input("the run's model already determines the message size", "--boundary-bytes",
                "--costs RUN without it");
  if (!source_ && options.links.empty() && options.boundary_bytes)
    throw_input("the message size is given, but no links are", "--boundary-bytes",
                "--links machine.toml as well, as `concertina bench links` writes it");
  if (options.links.empty()) return;
  if (!source_ && !options.boundary_bytes)
    throw_input("the size of a message between stages is unknown", "--links",
                "--boundary-bytes N: samples per microbatch x context x width x bytes per "
                "number");
  const CostSource from = read_costs(options.links);
  machine_ = source_ ? with_links(machine_, from.machine) : from.machine;
  links_ = {options.links, from.measured.has_value()};
  boundary_bytes_ = options.boundary_bytes.value_or(0);
}

nlohmann::ordered_json ScheduleCosts::links(const Layout& layout, const Costs& costs) const {
  nlohmann::ordered_json json = links_json(links_, layout, costs);
  if (!latency_) return json;
  json["from"] = "--latency";
  json["text"] =
      fmt::format("each message between ranks takes {:g} and occupies no rank", *latency_);
  return json;
}

std::optional<int> ScheduleCosts::rows() const {
  if (rows_.empty()) return std::nullopt;
  return static_cast<int>(rows_.size());
}

std::optional<int> ScheduleCosts::units() const {
  if (!source_) return std::nullopt;
  return static_cast<int>(source_->measured->units.size());
}

Costs ScheduleCosts::of(const Layout& layout, const Plan& plan, double share, int leaves) const {
  Costs costs = source_ ? measured_costs(layout, plan, leaves) : given_costs(layout, share);
  if (latency_) costs.take_latency_alone(*latency_);
  return costs;
}

Costs ScheduleCosts::given_costs(const Layout& layout, double share) const {
  Costs costs = unit_costs(layout);
  if (rows_.empty()) {
    for (StageCosts& stage : costs.stages)
      stage = {stage_.forward * share, stage_.input * share, stage_.weight * share};
  } else {
    costs.stages.clear();
    for (const Pipeline& pipeline : layout.pipelines) {
      if (pipeline.stages.size() != rows_.size())
        throw_input(fmt::format("the file has costs for {}, but a pipeline has {}",
                                counted(std::ssize(rows_), "stage"),
                                counted(std::ssize(pipeline.stages), "stage")),
                    file_, "one row per stage: --ranks times --chunks rows");
      costs.stages.insert(costs.stages.end(), rows_.begin(), rows_.end());
    }
  }
  costs.boundary_bytes = boundary_bytes_;
  add_links(machine_, rank_count(layout), costs);
  return costs;
}

Costs ScheduleCosts::measured_costs(const Layout& layout, const Plan& plan, int leaves) const {
  RunConfig config;
  read_config(source_->measured->config, source_->name, config);
  config.freeze = FreezeSection{};  // stages are partitioned as if all of them trained
  Job job = job_of(config);
  Layout cut = cut_units(layout, training_costs(job.model, 0));
  config.freeze.units = cut.frozen_units;
  job.microbatches = 0;
  for (const Pipeline& pipeline : cut.pipelines)
    job.microbatches = std::max(job.microbatches, pipeline.last_microbatch);
  job.leaves = leaves > 0 ? leaves : leaves_of_cut(cut, job.microbatches);
  const Assignment assignment = make_assignment(job, std::move(cut), plan);
  return plan_costs(job, assignment, unit_seconds(*source_, job, assignment, config), machine_);
}

}  // namespace concertina
