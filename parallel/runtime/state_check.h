// Checks that a rank's weights and optimizer state are unchanged since its last update, and that
// weights agree between replicas.
// The owner of a weight updates it and sends it to all other holders. After a bit flip, the next
// update spreads the owner's value and the effect on gradients to all ranks. So each rank digests
// its state right after an update and again before the next one, which is skipped if something
// differs. Invariants: all working ranks find the same fault in the same step, before any weight
// changes; a step without a fault allocates nothing; digests modify nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "parallel/comm/communicator.h"
#include "parallel/runtime/state.h"

namespace concertina {

/// A fault in the numbers of a step, whose update was skipped. The same on all working ranks.
struct StepFault {
  // data: a rank could not read its part of the batch; its StepEngine::unread() gives the reason.
  enum class Kind { none, not_finite, state, data } kind = Kind::none;
  std::string what{}, where{};  // for an Error, if not finite
  // state: the ranks with a wrong state or, if unknown, those that differ from each other.
  std::vector<int> ranks{};
  bool known = false;       // whether `ranks` are known to be wrong
  bool repairable = false;  // whether other ranks have the correct data
  explicit operator bool() const { return kind != Kind::none; }
};

/// Sets of at least two ranks with the same buckets, ordered by their first bucket.
std::vector<std::vector<int>> replica_sets(const Assignment& assignment);

class StateCheck {
 public:
  /// `kinds` is the number of optimizer tensors; other state is ignored.
  StateCheck(const Assignment& assignment, int rank, std::size_t kinds);
  void connect(const State& state, Communicator& working);

  /// Number of values that `rank` sends to the others in each step.
  std::size_t words(int rank) const;
  /// Requests that the state be recorded after the next update.
  void record_next() { wanted_ = true; }
  /// Begins a step. Injects faults that tests request.
  void begin(std::int64_t step);
  /// Records the state after an update, if requested.
  void updated(std::int64_t step);
  /// Discards the record, because other code has written the state.
  void forget() { recorded_ = false; }
  /// Digests the state before an update, if recorded, and fills in `mine`.
  void compare(std::span<double> mine);
  /// Replaces the result of compare() if this rank could not read its part of the batch.
  static constexpr double kUnread = 4;
  /// Decides from the values of all working ranks. After a fault, the record is kept.
  using Words = std::function<std::span<const double>(int rank)>;
  StepFault judge(const Words& words);

  /// Names of this rank's tensors that differ from the record.
  std::vector<std::string> changed() const;
  /// Names and digests, from the last compare(), of weights that other ranks also have.
  std::vector<std::pair<std::string, std::uint64_t>> shared_digests() const;
  /// Copies the weights of a correct rank to the ranks with a wrong state. Returns the names of
  /// this rank's tensors that were wrong. Collective over the working ranks.
  std::vector<std::string> repair(const StepFault& fault);
  /// Duration of the last record and of its compare(), in seconds.
  double seconds() const { return record_seconds_ + compare_seconds_; }

 private:
  struct Tensor {
    std::size_t bucket;
    const BucketTensor* spec;
    int kind;  // -1: weights
    View view;
    std::uint64_t recorded = 0, seen = 0;
  };
  double see();
  bool is_shared(std::size_t bucket) const { return assignment_.owners[bucket].ranks.size() > 1; }
  void judge_set(const std::vector<int>& set, const Words& words, StepFault& fault) const;
  std::string name_of(const Tensor& tensor) const;

  const Assignment& assignment_;
  const int rank_;
  const std::size_t kinds_;
  const std::vector<std::vector<int>> sets_;
  std::vector<std::size_t> set_of_;  // by bucket; sets_.size() for buckets with a single holder
  const State* state_ = nullptr;
  Communicator* working_ = nullptr;
  std::vector<Tensor> tensors_;
  std::vector<std::byte> scratch_;
  bool wanted_ = false, recorded_ = false;
  double record_seconds_ = 0, compare_seconds_ = 0;
};

}  // namespace concertina
