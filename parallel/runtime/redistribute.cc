#include "parallel/runtime/redistribute.h"

#include <algorithm>
#include <map>

#include "core/model/exchange_order.h"

namespace concertina {
namespace {

/// The new blocks of a bucket on this rank.
struct NewBlocks {
  Arena weights, kinds;
  std::size_t weight_elements = 0, kind_elements = 0;
};

class RoundMover {
 public:
  RoundMover(State& state, const Assignment& to, Communicator& tensors)
      : state_(state), from_(state.assignment()), to_(to), tensors_(tensors) {}

  void run(const MoveRound& round) {
    for (const std::size_t bucket : round.buckets) make_blocks(bucket);
    for (const Move& move : round.moves) add(move);
    const int me = state_.rank(), size = tensors_.size();
    for (Send& one : sends_) one.step = exchange_step(me, one.to, size);
    for (Receive& one : receives_) one.step = exchange_step(one.from, me, size);
    std::ranges::stable_sort(sends_, {}, &Send::step);
    std::ranges::stable_sort(receives_, {}, &Receive::step);
    tensors_.barrier();  // data that arrives before its receive is posted uses unplanned memory
    tensors_.exchange(sends_, receives_).wait();
    for (const std::size_t bucket : round.buckets) swap_blocks(bucket);
    blocks_.clear();
    sends_.clear();
    receives_.clear();
  }

 private:
  bool holds(const Assignment& assignment, std::size_t bucket) const {
    return concertina::holds(assignment, bucket, state_.rank());
  }
  /// Elements of this rank's part whose optimizer state it keeps.
  std::size_t own_elements(const Assignment& assignment, std::size_t bucket) const {
    const Part* part = own_state(assignment, bucket, state_.rank());
    return part == nullptr ? 0 : part->count();
  }
  bool keeps_kinds(std::size_t bucket) const {
    return keeps_own_state(from_, to_, bucket, state_.rank());
  }

  void make_blocks(std::size_t bucket) {
    NewBlocks& made = blocks_[bucket];
    if (holds(to_, bucket) && !holds(from_, bucket)) {
      made.weight_elements = to_.buckets[bucket].elements;
      made.weights = state_.make_block(made.weight_elements, 1);
    }
    if (keeps_kinds(bucket)) return;
    made.kind_elements = own_elements(to_, bucket);
    made.kinds = state_.make_block(made.kind_elements, state_.kinds().size());
  }

  /// The destination of a move, for the weights or one kind of optimizer state.
  View new_place(const Move& move, std::size_t kind) {
    const NewBlocks& made = blocks_.at(move.bucket);
    if (!move.kinds)
      return View{made.weights.data(), made.weight_elements, DType::f32}.slice(move.begin,
                                                                               move.count());
    const View all{
        static_cast<std::byte*>(made.kinds.data()) + kind * block_bytes(made.kind_elements, 1),
        made.kind_elements, DType::f32};
    return all.slice(move.begin - own_state(to_, move.bucket, move.to)->begin, move.count());
  }
  View old_place(const Move& move, std::size_t kind) const {
    if (!move.kinds) return state_.weights()[move.source].slice(move.begin, move.count());
    return state_.part(move.bucket, kind)
        .slice(move.begin - own_state(from_, move.bucket, move.from)->begin, move.count());
  }

  void add(const Move& move) {
    const int me = state_.rank();
    if (move.from != me && move.to != me) return;
    for (std::size_t k = 0; k < (move.kinds ? state_.kinds().size() : 1); ++k) {
      if (move.from == move.to)
        state_.memory().copy(old_place(move, k).data, new_place(move, k).data,
                             old_place(move, k).bytes());
      else if (move.from == me)
        add_pieces(bytes_of(old_place(move, k)), move.to, sends_);
      else
        add_pieces(bytes_of(new_place(move, k)), move.from, receives_);
    }
  }

  void swap_blocks(std::size_t bucket) {
    NewBlocks& made = blocks_.at(bucket);
    if (holds(to_, bucket) != holds(from_, bucket))
      state_.give_back(state_.swap_weights(bucket, std::move(made.weights), made.weight_elements));
    if (!keeps_kinds(bucket))
      state_.give_back(state_.swap_kinds(bucket, std::move(made.kinds), made.kind_elements));
  }

  State& state_;
  const Assignment& from_;
  const Assignment& to_;
  Communicator& tensors_;
  std::map<std::size_t, NewBlocks> blocks_;
  std::vector<Send> sends_;
  std::vector<Receive> receives_;
};

}  // namespace

void redistribute(State& state, const Assignment& to, const MovePlan& plan, Communicator& tensors) {
  state.resize(std::max(state.assignment().buckets.size(), to.buckets.size()));
  RoundMover mover(state, to, tensors);
  for (const MoveRound& round : plan.rounds) mover.run(round);
  state.use(to);
}

}  // namespace concertina
