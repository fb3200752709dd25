// The threads of one rank and their scratch. Threads take whole pieces of work, which do not depend
// on the number of threads, so the number of threads never changes results.
#pragma once

#include <omp.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <type_traits>

#include "core/cpu/loops.h"
#include "core/tensor.h"

namespace concertina::cpu {

class TeamThreads;

class Team {
 public:
  explicit Team(int threads);
  ~Team();
  int threads() const { return threads_; }

  /// Calls f(piece, thread) for every piece in [0, pieces). Threads begin with equal shares, then
  /// take pieces from others. A thread that has lost its core delays only its current piece, and no
  /// one waits for a thread that has not started. Rethrows the first exception of f at the end.
  template <class F>
  void each(std::int64_t pieces, F&& f) const {
    omp_set_num_threads(1);  // libraries called here would start more threads
    if (threads_ == 1 || pieces <= 1) {
      for (std::int64_t i = 0; i < pieces; ++i) f(i, 0);
      return;
    }
    using Function = std::remove_reference_t<F>;
    run(pieces,
        {[](void* g, std::int64_t i, int thread) { (*static_cast<Function*>(g))(i, thread); },
         const_cast<std::remove_const_t<Function>*>(&f)});
  }

  /// Divides [0, n) into runs of `run` elements, and calls f(begin, end) for each.
  template <class F>
  void runs(std::int64_t n, std::int64_t run, F&& f) const {
    each((n + run - 1) / run, [&](std::int64_t i, int) { f(i * run, std::min(n, (i + 1) * run)); });
  }

  /// A type-erased function of pieces.
  struct Work {
    void (*call)(void* function, std::int64_t piece, int thread) = nullptr;
    void* function = nullptr;
  };

 private:
  void run(std::int64_t pieces, Work work) const;

  int threads_;
  mutable std::unique_ptr<TeamThreads> others_;  // started by the first run that needs them
};

/// Scratch that all operators of one backend share: one block per thread, with a part for an
/// operator and one for the product that it runs.
class Workspace {
 public:
  explicit Workspace(int threads) : threads_(threads) {}
  void need(std::size_t bytes_per_thread) { raise(operator_, bytes_per_thread); }
  void need_product(std::size_t bytes_per_thread) { raise(product_, bytes_per_thread); }
  std::size_t bytes() const { return piece() * static_cast<std::size_t>(threads_); }
  void set(void* block) { block_ = static_cast<std::byte*>(block); }
  void* of(int thread) const { return block_ + piece() * static_cast<std::size_t>(thread); }
  void* of_product(int thread) const { return static_cast<std::byte*>(of(thread)) + operator_; }

 private:
  static void raise(std::size_t& most, std::size_t bytes) {
    most = std::max(most, align_up(bytes));
  }
  std::size_t piece() const { return operator_ + product_; }

  int threads_;
  std::size_t operator_ = kAlignment, product_ = 0;
  std::byte* block_ = nullptr;
};

/// Shared by the kernels and operators of one backend.
struct Context {
  const LoopTable& loops;
  Team team;
  Workspace workspace;
  bool bf16_products = false;  // supported by the processor; otherwise multiplied as fp32
  const PanelAttention<Bf16>* pair_attention = nullptr;    // where it is the best choice
  const PanelAttention<Bf16>* packed_attention = nullptr;  // for packed documents
  const PanelProducts* panel_products = nullptr;           // for fp32 linear maps, where best
};

}  // namespace concertina::cpu
