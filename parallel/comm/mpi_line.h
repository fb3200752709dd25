// Exchanges that MPI ranks post step by step (core/exchange_order.h): a line of them for each
// communicator. Invariants: messages are posted in the order of the calls, by which those between
// two ranks match; the first step of a line that is not done is always posted, so the exchanges of
// a communicator end once all its ranks have called them; whatever this process waits for, all its
// lines move on.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

namespace concertina {

class MpiLine;
class MpiWork;

/// The lines of this process that have something to do.
class MpiLines {
 public:
  /// Takes note of what is done, in every line, and posts what may follow.
  void advance();

 private:
  friend class MpiLine;
  std::vector<MpiLine*> busy_;
  std::size_t lines_ = 0;
};

class MpiLine {
 public:
  explicit MpiLine(std::shared_ptr<MpiLines> all);
  ~MpiLine();
  MpiLine(const MpiLine&) = delete;
  MpiLine& operator=(const MpiLine&) = delete;

  /// Room for this many exchanges at the same time.
  void reserve(std::size_t works) { works_.reserve(works); }
  /// A planned exchange goes last in the line.
  void push(MpiWork& work);
  /// It will never end.
  void forget(const MpiWork& work);
  /// A step that sent `bytes` is done.
  void step_done(std::size_t bytes);

 private:
  friend class MpiLines;
  void advance();
  void post();

  std::shared_ptr<MpiLines> all_;
  std::vector<MpiWork*> works_;  // not done, in the order of the calls
  int steps_ = 0;                // under way
  std::size_t bytes_ = 0;        // that they send
};

}  // namespace concertina
