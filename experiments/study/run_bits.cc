#include "experiments/study/run_bits.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <filesystem>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <vector>

#include "core/error.h"
#include "core/number_text.h"
#include "experiments/record/training_clock.h"
#include "experiments/results/config_values.h"
#include "io/checkpoint_commit.h"
#include "io/checkpoint_reader.h"
#include "io/run_files.h"

namespace concertina {
namespace {

bool same(double one, double other) {
  return one == other || (std::isnan(one) && std::isnan(other));
}

std::map<std::int64_t, MetricsPoint> by_step(const std::string& directory) {
  std::map<std::int64_t, MetricsPoint> points;  // a step that was done twice: the last time
  for (const MetricsPoint& point : read_log(directory).metrics)
    points.insert_or_assign(static_cast<std::int64_t>(point.step), point);
  return points;
}

void compare_logs(const std::string& one, const std::string& other, BitsOfTwo& bits) {
  const auto mine = by_step(one), theirs = by_step(other);
  bits.last = mine.empty() ? 0 : mine.rbegin()->first;
  bits.other_last = theirs.empty() ? 0 : theirs.rbegin()->first;
  for (const auto& [step, point] : mine) {
    const auto found = theirs.find(step);
    if (found == theirs.end()) continue;
    ++bits.steps;
    const MetricsPoint& beside = found->second;
    const bool loss = !same(point.loss, beside.loss);
    if (bits.step || (!loss && same(point.grad_norm, beside.grad_norm))) continue;
    bits.step = step;
    bits.figure = loss ? "loss" : "grad_norm";
    bits.one = loss ? point.loss : point.grad_norm;
    bits.other = loss ? beside.loss : beside.grad_norm;
  }
}

/// Where the run's config says, which another version of the program may have written.
std::string checkpoints_of(const std::string& directory) {
  const std::string own = setting_text(keys_of_run(directory)["checkpoint.dir"]);
  return own.empty() ? run_file(directory, kCheckpointFolder) : own;
}

std::map<std::int64_t, std::string> commits_of(const std::string& directory) {
  std::map<std::int64_t, std::string> commits;
  for (const Commit& commit : list_commits(checkpoints_of(directory)))
    commits[commit.step] = commit.path;
  return commits;
}

/// The parts of each tensor of a commit.
std::map<std::string, std::set<std::string>> parts_of(const CheckpointReader& reader) {
  std::map<std::string, std::set<std::string>> parts;
  for (const ShardRecord& shard : reader.manifest().shards)
    for (const StoredPiece& piece : shard.pieces)
      for (const StoredPart& part : piece.parts) parts[piece.tensor].insert(part.name);
  return parts;
}

std::vector<float> values_of(CheckpointReader& reader, const std::string& tensor,
                             const std::string& part) {
  const std::vector<std::int64_t>& shape = reader.shape(tensor);
  const std::int64_t elements =
      std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies());
  std::vector<float> values(static_cast<std::size_t>(elements));
  reader.read(tensor, part, 0, values);
  return values;
}

/// A tensor of each at a time is in memory.
std::optional<TensorDifference> compare_commits(CheckpointReader& one, CheckpointReader& other,
                                                std::int64_t step) {
  std::optional<TensorDifference> first;
  std::size_t tensors = 0, count = 0;
  const auto theirs = parts_of(other);
  for (const auto& [tensor, parts] : parts_of(one)) {
    ++count;
    bool differs = false;
    for (const std::string& part : parts) {
      if (!theirs.at(tensor).contains(part)) continue;
      const std::vector<float> mine = values_of(one, tensor, part),
                               beside = values_of(other, tensor, part);
      const auto bits = [](float value) { return std::bit_cast<std::uint32_t>(value); };
      const auto [at, there] = std::ranges::mismatch(mine, beside, {}, bits, bits);
      if (at == mine.end()) continue;
      differs = true;
      if (!first)
        first = {step, tensor, part, static_cast<std::uint64_t>(at - mine.begin()), *at, *there};
    }
    tensors += differs ? 1 : 0;
  }
  if (first) first->tensors = tensors;
  if (first) first->of = count;
  return first;
}

/// Empty if both have the same tensors in the same shapes.
std::string other_tensors(const CheckpointReader& one, const CheckpointReader& other) {
  const std::vector<std::string> tensors = one.tensors();
  if (tensors != other.tensors()) return "the models have other tensors";
  for (const std::string& tensor : tensors)
    if (one.shape(tensor) != other.shape(tensor))
      return fmt::format("the models' {} have other shapes", tensor);
  return {};
}

void compare_checkpoints(const std::string& one, const std::string& other, BitsOfTwo& bits) {
  const auto theirs = commits_of(other);
  for (const auto& [step, path] : commits_of(one)) {
    const auto found = theirs.find(step);
    if (found == theirs.end()) continue;
    ++bits.checkpoints;
    if (bits.tensor || !bits.why_no_tensor.empty()) continue;
    try {
      CheckpointReader mine(path), beside(found->second);
      bits.why_no_tensor = other_tensors(mine, beside);
      if (bits.why_no_tensor.empty()) bits.tensor = compare_commits(mine, beside, step);
    } catch (const Error&) {
      std::error_code error;  // a run that trains removes its old commits
      if (std::filesystem::exists(path, error) && std::filesystem::exists(found->second, error))
        throw;
      --bits.checkpoints;
    }
  }
}

}  // namespace

BitsOfTwo compare_bits(const TrialRecord& one, const TrialRecord& other) {
  BitsOfTwo bits;
  compare_logs(one.directory, other.directory, bits);
  const std::string state = cell_text(cell_of(one, "state_sha256")),
                    beside = cell_text(cell_of(other, "state_sha256"));
  if (!state.empty() && !beside.empty()) bits.same_state = state == beside;
  if (bits.same_state.value_or(false)) bits.state = state;
  compare_checkpoints(one.directory, other.directory, bits);
  return bits;
}

std::string bits_text(const BitsOfTwo& bits) {
  constexpr std::size_t kShown = 12;
  std::string text;
  if (bits.steps == 0)
    text = "no step in common";
  else if (bits.step)
    text = fmt::format("{} differs from step {} on: {} against {}", bits.figure, *bits.step,
                       bits.one, bits.other);
  else
    text = fmt::format("the same losses over {}", counted(bits.steps, "step"));
  if (bits.last != bits.other_last)
    text += fmt::format("; one is shorter: {} steps against {}", bits.other_last, bits.last);
  else if (bits.same_state && !*bits.same_state)
    text += "; another final state";
  if (bits.same_state.value_or(false))
    text += fmt::format("; the same final state ({}...)", bits.state.substr(0, kShown));
  if (!bits.why_no_tensor.empty()) return text + "; " + bits.why_no_tensor;
  if (!bits.tensor)
    return text + (bits.checkpoints > 0 ? fmt::format("; the same bits in {}",
                                                      counted(bits.checkpoints, "checkpoint"))
                                        : "");
  const TensorDifference& tensor = *bits.tensor;
  return text + fmt::format(
                    "; in the checkpoints of step {} {} of {} differ, the first of them in "
                    "element {} of {} ({}): {} against {}",
                    tensor.step, tensor.tensors,
                    counted(static_cast<std::int64_t>(tensor.of), "tensor"), tensor.element,
                    tensor.tensor, tensor.part, tensor.one, tensor.other);
}

nlohmann::ordered_json to_json(const BitsOfTwo& bits) {
  nlohmann::ordered_json json = {{"same", !bits.differ()},
                                 {"steps", bits.steps},
                                 {"last_steps", {bits.last, bits.other_last}}};
  if (bits.step)
    json["log"] = {
        {"step", *bits.step}, {"figure", bits.figure}, {"one", bits.one}, {"other", bits.other}};
  if (bits.same_state) json["same_state"] = *bits.same_state;
  json["checkpoints"] = bits.checkpoints;
  if (bits.tensor)
    json["tensor"] = {{"step", bits.tensor->step},       {"name", bits.tensor->tensor},
                      {"part", bits.tensor->part},       {"element", bits.tensor->element},
                      {"one", bits.tensor->one},         {"other", bits.tensor->other},
                      {"tensors", bits.tensor->tensors}, {"of", bits.tensor->of}};
  if (!bits.why_no_tensor.empty()) json["why"] = bits.why_no_tensor;
  return json;
}

}  // namespace concertina
