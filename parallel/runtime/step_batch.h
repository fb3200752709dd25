// The fields of a step's batch, or of its batches, that the units of one rank read: microbatch m is
// microbatch m % M of batch m / M, counted from the step's first one, where a batch has M
// microbatches. Invariants: only fields that a unit of this rank reads, and microbatches of its own
// pipelines, are loaded, whatever stage reads them; nothing is allocated in a step.
#pragma once

#include <span>
#include <vector>

#include "core/arena.h"
#include "core/memory.h"
#include "core/model/batch.h"
#include "parallel/plan/job.h"
#include "parallel/plan/layout.h"

namespace concertina {

class StepBatch {
 public:
  /// `batches`: of a step. `job` outlives it.
  StepBatch(const Job& job, const Layout& layout, int rank, int batches = 1);

  /// Bytes of attach().
  std::size_t bytes() const;
  /// `arena`: of `memory`, which outlives it.
  void attach(Arena& arena, Memory& memory);

  /// Loads microbatches [0, count) from batch `batch` on, as far as this rank reads them.
  void load(std::int64_t batch, int count, BatchSource& source);
  /// Makes all samples that this rank reads nobody's (blank_sample()).
  void blank();
  /// fields_of() the model, for one microbatch; those that no unit here reads are empty.
  std::span<const View> fields(int microbatch) const {
    return std::span(views_).subspan(static_cast<std::size_t>(microbatch) * fields_.size(),
                                     fields_.size());
  }

 private:
  /// Microbatches [first, last) of one pipeline, and which fields are wanted of them.
  struct Reading {
    int first = 0, last = 0;
    std::vector<bool> fields;
  };
  /// Memory of one field: microbatches [first, last).
  struct Buffer {
    int first = 0, last = 0;
    std::size_t elements = 0;  // of a microbatch
    HostMirror mirror;
  };

  void load(std::int64_t batch, int first, int last, const Reading& reading, BatchSource& source);

  const Job& job_;
  const int microbatches_;  // of a step
  std::vector<Field> fields_;
  std::vector<Reading> readings_;
  std::vector<Buffer> buffers_;  // by field
  std::vector<View> views_;      // [microbatches x fields]
  std::vector<int> indices_;     // of the last source
  std::vector<View> wanted_;     // by field of the source, of one load
};

}  // namespace concertina
