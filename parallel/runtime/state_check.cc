#include "parallel/runtime/state_check.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/clock.h"
#include "core/digest.h"
#include "core/failpoint.h"
#include "core/index.h"
#include "core/model/exchange_order.h"
#include "parallel/runtime/redistribute.h"

namespace concertina {
namespace {

/// A rank's verdict on its state (0: nothing recorded), followed by one digest per set.
constexpr double kSame = 1, kSharedChanged = 2, kOwnChanged = 3;  // 0: nothing was recorded

constexpr std::uint64_t kOdd = 0x9E3779B97F4A7C15;

/// Returns a double that encodes the first 52 bits of a digest.
double as_number(std::uint64_t digest) {
  return static_cast<double>(digest >> 12U);
}

void flip_bit(Memory& memory, View tensor) {
  std::uint32_t bits = 0;
  void* const element = tensor.slice(tensor.count / 2, 1).data;
  memory.copy(element, &bits, sizeof bits);
  bits ^= 1U << 20U;
  memory.copy(&bits, element, sizeof bits);
}

}  // namespace

std::vector<std::vector<int>> replica_sets(const Assignment& assignment) {
  std::vector<std::vector<int>> sets;
  for (const BucketOwners& owners : assignment.owners)
    if (owners.ranks.size() > 1 && std::ranges::find(sets, owners.ranks) == sets.end())
      sets.push_back(owners.ranks);
  return sets;
}

StateCheck::StateCheck(const Assignment& assignment, int rank, std::size_t kinds)
    : assignment_(assignment), rank_(rank), kinds_(kinds), sets_(replica_sets(assignment)) {
  for (const BucketOwners& owners : assignment.owners)
    set_of_.push_back(
        static_cast<std::size_t>(std::ranges::find(sets_, owners.ranks) - sets_.begin()));
}

void StateCheck::connect(const State& state, Communicator& working) {
  state_ = &state;
  working_ = &working;
  scratch_ = digest_scratch(state.memory());
  for (std::size_t b = 0; b < assignment_.buckets.size(); ++b) {
    if (state.weights()[b].empty()) continue;
    const Bucket& bucket = assignment_.buckets[b];
    for (const BucketTensor& tensor : bucket.tensors)
      tensors_.push_back({b, &tensor, -1, state.weights()[b].slice(tensor.offset, tensor.count)});
    const Part* part = own_state(assignment_, b, rank_);
    if (part == nullptr) continue;
    for (const TensorRun& run : tensor_runs(bucket, *part))
      for (std::size_t k = 0; k < kinds_; ++k)
        tensors_.push_back({b, &bucket.tensors[at(run.tensor)], static_cast<int>(k),
                            state.part(b, k).slice(run.begin - part->begin, run.end - run.begin)});
  }
}

std::size_t StateCheck::words(int rank) const {
  return 1 + static_cast<std::size_t>(std::ranges::count_if(
                 sets_, [rank](const auto& set) { return std::ranges::binary_search(set, rank); }));
}

/// Digests all tensors and returns the elapsed seconds.
double StateCheck::see() {
  const double start = now();
  for (Tensor& one : tensors_) one.seen = digest_of(state_->memory(), one.view, scratch_);
  return now() - start;
}

void StateCheck::begin(std::int64_t step) {
  if (failpoint("weight-bit", {{"step", step}, {"rank", rank_}}))
    flip_bit(state_->memory(), tensors_.front().view);
  const auto moment =
      std::ranges::find_if(tensors_, [](const Tensor& one) { return one.kind == 0; });
  if (moment != tensors_.end() && failpoint("optimizer-bit", {{"step", step}, {"rank", rank_}}))
    flip_bit(state_->memory(), moment->view);
}

void StateCheck::updated(std::int64_t step) {
  if (failpoint("weight-bit-after", {{"step", step}, {"rank", rank_}}))
    flip_bit(state_->memory(), tensors_.front().view);
  recorded_ = std::exchange(wanted_, false);
  if (!recorded_) return;
  record_seconds_ = see();
  for (Tensor& one : tensors_) one.recorded = one.seen;
}

void StateCheck::compare(std::span<double> mine) {
  std::ranges::fill(mine, 0.0);
  if (!recorded_) return;
  compare_seconds_ = see();
  double says = kSame;
  for (const Tensor& one : tensors_)
    if (one.seen != one.recorded)
      says = std::max(says, one.kind < 0 && is_shared(one.bucket) ? kSharedChanged : kOwnChanged);
  mine[0] = says;
  std::size_t word = 1;
  for (std::size_t s = 0; s < sets_.size(); ++s) {
    if (!std::ranges::binary_search(sets_[s], rank_)) continue;
    std::uint64_t digest = 0;
    for (const Tensor& one : tensors_)
      if (one.kind < 0 && set_of_[one.bucket] == s) digest = (digest ^ one.seen) * kOdd;
    mine[word++] = as_number(digest);
  }
}

StepFault StateCheck::judge(const Words& words) {
  StepFault fault;
  if (!recorded_) return fault;
  fault.known = fault.repairable = true;
  const auto changed = [&](int rank) { return words(rank)[0] > kSame; };
  for (const int rank : assignment_.working) {
    if (!changed(rank)) continue;
    fault.ranks.push_back(rank);
    if (words(rank)[0] > kSharedChanged) fault.repairable = false;
  }
  for (const std::vector<int>& set : sets_) judge_set(set, words, fault);
  std::ranges::sort(fault.ranks);
  fault.ranks.erase(std::ranges::unique(fault.ranks).begin(), fault.ranks.end());
  if (fault.ranks.empty()) return recorded_ = false, StepFault{};
  fault.kind = StepFault::Kind::state;
  return fault;
}

/// Compares the ranks of a set that found no change; those that differ from the majority are wrong.
void StateCheck::judge_set(const std::vector<int>& set, const Words& words,
                           StepFault& fault) const {
  const auto value = [&](int rank) {  // of this set
    std::size_t word = 1;
    for (const std::vector<int>& other : sets_) {
      if (other == set) return words(rank)[word];
      word += std::ranges::binary_search(other, rank) ? 1 : 0;
    }
    return 0.0;
  };
  const auto sound = [&](int rank) { return words(rank)[0] <= kSame; };
  const auto alike = [&](int rank) {
    return std::ranges::count_if(
        set, [&](int other) { return sound(other) && value(other) == value(rank); });
  };
  const auto all = std::ranges::count_if(set, sound);
  if (all == 0) fault.repairable = false;
  for (const int rank : set) {
    if (!sound(rank) || alike(rank) == all) continue;
    if (2 * alike(rank) > all) continue;
    fault.ranks.push_back(rank);
    const bool most =
        std::ranges::any_of(set, [&](int other) { return sound(other) && 2 * alike(other) > all; });
    if (!most) fault.known = fault.repairable = false;
  }
}

std::string StateCheck::name_of(const Tensor& tensor) const {
  return tensor.kind < 0
             ? tensor.spec->name
             : fmt::format("{} of {}", state_->kinds()[at(tensor.kind)], tensor.spec->name);
}

std::vector<std::string> StateCheck::changed() const {
  std::vector<std::string> names;
  for (const Tensor& one : tensors_)
    if (one.seen != one.recorded) names.push_back(name_of(one));
  return names;
}

std::vector<std::pair<std::string, std::uint64_t>> StateCheck::shared_digests() const {
  std::vector<std::pair<std::string, std::uint64_t>> digests;
  for (const Tensor& one : tensors_)
    if (one.kind < 0 && is_shared(one.bucket)) digests.emplace_back(one.spec->name, one.seen);
  return digests;
}

std::vector<std::string> StateCheck::repair(const StepFault& fault) {
  const auto wrong = [&](int rank) { return std::ranges::binary_search(fault.ranks, rank); };
  for (std::size_t b = 0; b < assignment_.buckets.size(); ++b) {
    const std::vector<int>& holders = assignment_.owners[b].ranks;
    const auto source = std::ranges::find_if_not(holders, wrong);
    if (source == holders.end()) continue;
    for (const int rank : holders) {
      if (!wrong(rank)) continue;
      std::vector<Send> sends;
      std::vector<Receive> receives;
      std::vector<std::byte> copy;
      HostMirror mirror;
      const View weights = state_->weights()[b];
      if (rank_ == *source)
        add_pieces(bytes_of(host_view(state_->memory(), weights, copy)),
                   assignment_.working_index(rank), sends);
      if (rank_ == rank) {
        mirror = HostMirror(state_->memory(), weights);
        add_pieces(bytes_of(mirror.host()), assignment_.working_index(*source), receives);
      }
      working_->exchange(sends, receives).wait();
      if (rank_ == rank) mirror.upload();
    }
  }
  std::vector<std::string> names;
  if (!wrong(rank_)) return names;
  std::vector<std::uint64_t> before;
  for (const Tensor& one : tensors_) before.push_back(one.seen);
  const bool knew = !changed().empty();
  see();
  for (std::size_t t = 0; t < tensors_.size(); ++t) {
    if (tensors_[t].seen != before[t]) names.push_back(name_of(tensors_[t]));
    if (!knew) tensors_[t].recorded = tensors_[t].seen;
  }
  return names;
}

}  // namespace concertina
