#include "experiments/adopt/freezing.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <optional>

#include "core/error.h"
#include "experiments/machine/gather.h"

/// Stores an absent optional value as null.
template <class T>
struct nlohmann::adl_serializer<std::optional<T>> {
  static void to_json(json& json, const std::optional<T>& value) {
    json = value ? nlohmann::json(*value) : nlohmann::json();
  }
  static void from_json(const json& json, std::optional<T>& value) {
    value = json.is_null() ? std::nullopt : std::optional<T>(json.get<T>());
  }
};

namespace concertina {

// The state in a checkpoint.
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(FreezeRecord, step, epoch, loss, lr, frozen, grad_norm, drift,
                                   reference)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(SkipGroup, units, skipped)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(SkipPlan, groups, step_ratio, best_ratio)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(FreezeState, history, memory, best_loss, last_lr, lr_fell,
                                   from_step, from_epoch, planned, skips)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(FreezeSums, steps, loss, lr, squares, finite)

namespace {

__extension__ typedef __int128 Wide;  // NOLINT(modernize-use-using): as GCC spells it

/// Bits of the integer to which a block's sum is scaled; 2^35 such sums can be added.
constexpr int kBits = 90;

/// Sums of squares over one block.
struct BlockSquares {
  int layer = 0;
  double change = 0, weight = 0;
};

std::size_t reference_kind(const State& state) {
  const auto found = std::find(state.kinds().begin(), state.kinds().end(), kReference);
  CONCERTINA_CHECK(found != state.kinds().end(), "the state has no snapshot of the weights");
  return static_cast<std::size_t>(found - state.kinds().begin());
}

/// Calls `see(bucket, block, weights, snapshot)` for the trainable parts that this rank owns.
template <class See>
void each_block(const State& state, const See& see) {
  const std::size_t kind = reference_kind(state);
  const Assignment& assignment = state.assignment();
  for (std::size_t b = 0; b < assignment.buckets.size(); ++b) {
    const Part* part = own_state(assignment, b, state.rank());
    if (part == nullptr || assignment.buckets[b].frozen) continue;
    for (std::size_t i = part->first_block; i < part->last_block; ++i) {
      const Block block = block_at(assignment.buckets[b], i);
      see(b, state.weights()[b].slice(block.offset, block.count),
          state.part(b, kind).slice(block.offset - part->begin, block.count));
    }
  }
}

std::vector<BlockSquares> own_squares(const State& state, std::span<const int> layer_of_bucket) {
  std::vector<BlockSquares> blocks;
  std::vector<std::byte> weight_copy, reference_copy;
  each_block(state, [&](std::size_t bucket, View weights, View reference) {
    if (layer_of_bucket[bucket] < 0) return;
    const float* w = host_view(state.memory(), weights, weight_copy).f32();
    const float* r = host_view(state.memory(), reference, reference_copy).f32();
    BlockSquares& sums = blocks.emplace_back(BlockSquares{layer_of_bucket[bucket]});
    for (std::size_t e = 0; e < weights.count; ++e) {
      const double weight = w[e], change = weight - static_cast<double>(r[e]);
      sums.change += change * change;
      sums.weight += weight * weight;
    }
  });
  return blocks;
}

double finite_or_infinite(double sum) {
  return std::isfinite(sum) ? sum : std::numeric_limits<double>::infinity();
}

/// The largest block sum on any rank; infinite if a sum is not finite. Collective.
double largest_sum(Communicator& world, const std::vector<BlockSquares>& blocks) {
  double most = 0;
  for (const BlockSquares& one : blocks)
    most = std::max({most, finite_or_infinite(one.change), finite_or_infinite(one.weight)});
  return largest_values(world, std::span(&most, 1))[0];
}

/// The exponent of the power of two that scales values of at most `most` to below 2^kBits.
int exponent_for(double most) {
  int exponent = 0;
  std::frexp(most, &exponent);
  return kBits - exponent;
}

Wide to_integer(double value, int exponent) {
  return static_cast<Wide>(std::ldexp(value, exponent));
}

/// The layer of a bucket: the layer of its first use, because it freezes with that layer.
int layer_of(const ModelSpec& model, const Bucket& bucket) {
  const auto end =
      std::upper_bound(model.layer_ends.begin(), model.layer_ends.end(), bucket.uses.front());
  return end == model.layer_ends.end() ? -1 : static_cast<int>(end - model.layer_ends.begin());
}

/// Describes `plan`: the fraction of weight gradients that each stage skips, and step-time ratios.
nlohmann::ordered_json skip_facts(const SkipPlan& plan) {
  std::vector<double> shares;
  for (const SkipGroup& group : plan.groups)
    shares.push_back(group.units.empty() ? 0
                                         : static_cast<double>(group.skipped) /
                                               static_cast<double>(group.units.size()));
  return {{"skipped_by_stage", shares},
          {"predicted_step_ratio", plan.step_ratio},
          {"best_step_ratio", plan.best_ratio}};
}

}  // namespace

void take_reference(Trainer& trainer) {
  State& state = trainer.state();
  each_block(state, [&](std::size_t, View weights, View reference) {
    state.memory().copy(weights.data, reference.data, weights.bytes());
  });
}

std::vector<double> weight_drift(Trainer& trainer, std::span<const int> layer_of_bucket,
                                 std::size_t layers) {
  Communicator& world = trainer.world();
  const std::vector<BlockSquares> blocks = own_squares(trainer.state(), layer_of_bucket);
  const double most = largest_sum(world, blocks);
  if (!std::isfinite(most))
    return std::vector<double>(layers, std::numeric_limits<double>::quiet_NaN());
  const int exponent = exponent_for(most);
  using Pair = std::array<Wide, 2>;  // change, weight
  std::vector<Pair> mine(layers);
  for (const BlockSquares& one : blocks) {
    Pair& sum = mine[static_cast<std::size_t>(one.layer)];
    sum[0] += to_integer(one.change, exponent);
    sum[1] += to_integer(one.weight, exponent);
  }
  const auto size = static_cast<std::size_t>(world.size());
  std::vector<Pair> all(size * layers);
  std::vector<Bytes> places;
  for (std::size_t rank = 0; rank < size; ++rank)
    places.push_back(std::as_writable_bytes(std::span(all).subspan(rank * layers, layers)));
  world.all_gather(std::as_bytes(std::span(mine)), places).wait();
  std::vector<double> drift(layers);
  for (std::size_t layer = 0; layer < layers; ++layer) {
    Pair sum{};
    for (std::size_t rank = 0; rank < size; ++rank)
      for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += all[rank * layers + layer][i];
    if (sum[1] > 0)
      drift[layer] = std::sqrt(static_cast<double>(sum[0]) / static_cast<double>(sum[1]));
  }
  return drift;
}

Freezing::Freezing(const RunConfig& config, const Job& job)
    : job_(job), rules_(freeze_rules(config, job.model)), every_(config.freeze.every) {
  squares_.resize(job.model.layer_ends.size());
}

void Freezing::consider(const RunView& view, Trainer& trainer, Change& change) {
  if (rules_.name == "none") return;
  add(view, trainer);
  if (every_ > 0 ? !view.due(every_) : view.epochs == view.epochs_before) return;
  const FreezeDecision decision = ask(view, trainer);
  const int before = trainer.layout().frozen_units;
  const int units = units_of_layers(job_.model, decision.frozen);
  nlohmann::ordered_json facts = {{"layers", decision.frozen}};
  if (units != before)
    facts.update(
        {{"units_before", before}, {"units", units}, {"frozen", frozen_names(job_.model, units)}});
  facts.update({{"statistic", decision.statistic}, {"why", decision.reason}});
  if (decision.skips) facts.update(skip_facts(state_.planned));
  change.events.push_back({EventKind::freeze, std::move(facts)});
  if (units == before) return;
  Request request = trainer.asked_with_frozen(units);
  Assignment next = assign(job_, request);
  change.next = {std::move(request), std::move(next)};
  change.cause = change.events.size() - 1;
  change.reasons.push_back(fmt::format("{} of {} layers frozen ({}): {}", decision.frozen,
                                       rules_.layers, decision.reason,
                                       frozen_names(job_.model, units)));
}

void Freezing::add(const RunView& view, const Trainer& trainer) {
  layer_of_bucket_.clear();
  for (const Bucket& bucket : trainer.assignment().buckets)
    layer_of_bucket_.push_back(layer_of(job_.model, bucket));
  std::fill(squares_.begin(), squares_.end(), 0.0);
  const std::vector<double>& bucket_squares = trainer.bucket_squares();
  for (std::size_t b = 0; b < bucket_squares.size(); ++b)
    if (layer_of_bucket_[b] >= 0)
      squares_[static_cast<std::size_t>(layer_of_bucket_[b])] += bucket_squares[b];
  sums_ = add_step(std::move(sums_), view.result.loss, view.result.lr, squares_);
}

FreezeDecision Freezing::ask(const RunView& view, Trainer& trainer) {
  FreezeRecord record = record_of(sums_, view.step, static_cast<double>(view.epochs),
                                  layers_of_units(job_.model, trainer.layout().frozen_units));
  if (has_reference_) record.drift = weight_drift(trainer, layer_of_bucket_, squares_.size());
  FreezeDecision decision = decide(rules_, state_, record);
  state_ = remember(rules_, std::move(state_), std::move(record), decision);
  sums_.steps = 0;
  skip(trainer);
  if (decision.take_reference) {
    take_reference(trainer);
    has_reference_ = true;
  }
  return decision;
}

void Freezing::skip(Trainer& trainer) const {
  trainer.skip(state_.skips ? state_.planned.groups : std::vector<SkipGroup>{});
}

nlohmann::json Freezing::progress() const {
  return {{"reference", has_reference_}, {"state", state_}, {"sums", sums_}};
}

void Freezing::restore(const nlohmann::json& progress, Trainer& trainer,
                       const std::string& source) {
  if (rules_.name == "none") return;
  if (progress.is_null() && trainer.done() > 0)
    throw_failure(fmt::format("the checkpoint lacks state for freeze.policy = \"{}\"", rules_.name),
                  source, kOtherCheckpoint);
  if (progress.is_null() && rules_.policy->plan_skips != nullptr)
    state_.planned = rules_.policy->plan_skips(job_, trainer.assignment(), rules_.options);
  if (progress.is_null()) return;
  try {
    has_reference_ = progress.at("reference");
    progress.at("state").get_to(state_);
    progress.at("sums").get_to(sums_);
  } catch (const nlohmann::json::exception& error) {
    throw_failure(fmt::format("cannot read the freezing state in the checkpoint: {}", error.what()),
                  source, kOtherCheckpoint);
  }
  const bool alike =
      sums_.squares.size() == squares_.size() || (sums_.steps == 0 && sums_.squares.empty());
  if (!alike || sums_.steps < 0 || state_.from_step < 0 || state_.from_epoch < 0)
    throw_failure(
        fmt::format("invalid freezing state in the checkpoint: sums over {} steps for {} layers, "
                    "policy started at step {} and epoch {}",
                    sums_.steps, sums_.squares.size(), state_.from_step, state_.from_epoch),
        source, kOtherCheckpoint);
  skip(trainer);
}

}  // namespace concertina
