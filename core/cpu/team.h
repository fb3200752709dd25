// The threads of one rank and their scratch. Work is cut into pieces that do not depend on the
// number of threads, so the number never changes a bit; a thread takes whole pieces.
#pragma once

#include <omp.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "core/cpu/kernels.h"
#include "core/tensor.h"

namespace concertina::cpu {

class Team {
 public:
  explicit Team(int threads) : threads_(threads) {}
  int threads() const { return threads_; }

  /// f(piece, thread) for every piece in [0, pieces).
  template <class F>
  void each(std::int64_t pieces, F&& f) const {
    const int used = static_cast<int>(std::min<std::int64_t>(threads_, pieces));
    if (used <= 1) {
      // Libraries called in here would start threads of their own.
      omp_set_num_threads(1);
      for (std::int64_t i = 0; i < pieces; ++i) f(i, 0);
      return;
    }
#pragma omp parallel num_threads(used)
    {
      const int thread = omp_get_thread_num();
#pragma omp for schedule(static)
      for (std::int64_t i = 0; i < pieces; ++i) f(i, thread);
    }
  }

  /// f(begin, end) over [0, n) in runs of `run`.
  template <class F>
  void runs(std::int64_t n, std::int64_t run, F&& f) const {
    each((n + run - 1) / run, [&](std::int64_t i, int) { f(i * run, std::min(n, (i + 1) * run)); });
  }

 private:
  int threads_;
};

/// Scratch that all operators of one backend share: one piece a thread. A piece has a part for an
/// operator and one for the product that it runs meanwhile.
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

/// What the operators of one backend share.
struct Context {
  const LoopTable& loops;
  Team team;
  Workspace workspace;
  bool bf16_products = false;  // the processor has them; else bf16 values are multiplied as fp32
  const PanelAttention<Bf16>* pair_attention = nullptr;  // where it has nothing better
  const PanelProducts* panel_products = nullptr;         // of linear maps in fp32, likewise
};

}  // namespace concertina::cpu
