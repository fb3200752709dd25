// Whether the weights and the optimizer state of a rank still are what its last update left, and
// the weights those of its replicas.
// An update makes each weight on one rank, its owner, which sends it to all other holders. A bit
// that flips in between stays only until the next update: the owner's is in everybody's weights
// from then on, and what it did to gradients too. So each rank digests its state right after an
// update, and again before the next one, which is left out if something differs. Invariants: all
// working ranks find the same fault in the same step, before a weight has changed; nothing is
// allocated in a step without a fault; the digests change nothing that is trained.
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

/// What was wrong with the numbers of a step, whose update was left out. The same on all working
/// ranks.
struct StepFault {
  // data: a rank could not read its part of the batch; StepEngine::unread() says why, there.
  enum class Kind { none, not_finite, state, data } kind = Kind::none;
  std::string what{}, where{};  // not_finite: for an Error
  // Of state: the ranks whose state is wrong, or, where nobody can know, those that differ from
  // each other.
  std::vector<int> ranks{};
  bool known = false;       // they are the wrong ones
  bool repairable = false;  // others have all that is wrong
  explicit operator bool() const { return kind != Kind::none; }
};

/// The sets of ranks that hold the same buckets, of two ranks or more, by their first bucket.
std::vector<std::vector<int>> replica_sets(const Assignment& assignment);

class StateCheck {
 public:
  /// `kinds`: tensors of the optimizer; what else a state has is others' to write. All outlive it.
  StateCheck(const Assignment& assignment, int rank, std::size_t kinds);
  void connect(const State& state, Communicator& working);

  /// Numbers that `rank` tells the others in each step.
  std::size_t words(int rank) const;
  /// From now on, after the next update, the state is recorded.
  void record_next() { wanted_ = true; }
  /// A step begins: the place of faults that are made on purpose.
  void begin(std::int64_t step);
  /// After an update: records the state if that is wanted.
  void updated(std::int64_t step);
  /// The state was written from outside: what was recorded is of no use.
  void forget() { recorded_ = false; }
  /// Before an update: digests the state if it was recorded, and fills in `mine`.
  void compare(std::span<double> mine);
  /// In place of all that compare() says: this rank could not read its part of the batch.
  static constexpr double kUnread = 4;
  /// Decides from the words of all working ranks. After a fault what was recorded stays.
  using Words = std::function<std::span<const double>(int rank)>;
  StepFault judge(const Words& words);

  /// Names of this rank's tensors that are not what was recorded.
  std::vector<std::string> changed() const;
  /// The weights that other ranks hold too, with the digests of the last compare().
  std::vector<std::pair<std::string, std::uint64_t>> shared_digests() const;
  /// Writes the weights of a rank that is right over those of the wrong ones. Returns the names of
  /// this rank's tensors that were wrong. Collective over the working ranks.
  std::vector<std::string> repair(const StepFault& fault);
  /// Seconds of the last record and of the last compare() of one.
  double seconds() const { return record_seconds_ + compare_seconds_; }

 private:
  struct Tensor {
    std::size_t bucket;
    const BucketTensor* spec;
    int kind;  // -1: the weights
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
  std::vector<std::size_t> set_of_;  // by bucket; sets_.size() of one that has a single holder
  const State* state_ = nullptr;
  Communicator* working_ = nullptr;
  std::vector<Tensor> tensors_;
  std::vector<std::byte> scratch_;
  bool wanted_ = false, recorded_ = false;
  double record_seconds_ = 0, compare_seconds_ = 0;
};

}  // namespace concertina
