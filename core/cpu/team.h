// The threads of one rank. Work is cut into pieces that do not depend on the number of threads, so
// the number never changes a bit; a thread takes whole pieces.
#pragma once

#include <omp.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>

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

/// Scratch that all operators of one backend share: one piece a thread.
class Workspace {
 public:
  explicit Workspace(int threads) : threads_(threads) {}
  void need(std::size_t bytes_per_thread) {
    per_thread_ = std::max(per_thread_, (bytes_per_thread + 63) / 64 * 64);
  }
  std::size_t bytes() const { return per_thread_ * static_cast<std::size_t>(threads_); }
  void set(void* block) { block_ = static_cast<std::byte*>(block); }
  void* of(int thread) const { return block_ + per_thread_ * static_cast<std::size_t>(thread); }

 private:
  int threads_;
  std::size_t per_thread_ = 64;
  std::byte* block_ = nullptr;
};

}  // namespace concertina::cpu
