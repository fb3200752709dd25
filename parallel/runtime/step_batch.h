// The fields of a step's batches that the units of one rank read. If a batch has M microbatches,
// microbatch m of the step is microbatch m % M of batch m / M, counted from the step's first batch.
// Invariants: loads only the fields that units of this rank read, for the microbatches of its
// pipelines, regardless of the stage; allocates nothing in a step.
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
  /// `batches` is the number of batches per step. `job` must outlive this object.
  StepBatch(const Job& job, const Layout& layout, int rank, int batches = 1);

  /// Memory needed by attach(), in bytes.
  std::size_t bytes() const;
  /// `arena` is in `memory`, which must outlive this object.
  void attach(Arena& arena, Memory& memory);

  /// Loads what this rank reads of microbatches [0, count), starting with batch `batch`.
  void load(std::int64_t batch, int count, BatchSource& source);
  /// Replaces all samples that this rank reads with blank_sample().
  void blank();
  /// fields_of() the model for one microbatch; fields that no unit of this rank reads are empty.
  std::span<const View> fields(int microbatch) const {
    return std::span(views_).subspan(static_cast<std::size_t>(microbatch) * fields_.size(),
                                     fields_.size());
  }

 private:
  /// Microbatches [first, last) of one pipeline, and the fields that are read.
  struct Reading {
    int first = 0, last = 0;
    std::vector<bool> fields;
  };
  /// Memory of one field, for microbatches [first, last).
  struct Buffer {
    int first = 0, last = 0;
    std::size_t elements = 0;  // per microbatch
    HostMirror mirror;
  };

  void load(std::int64_t batch, int first, int last, const Reading& reading, BatchSource& source);

  const Job& job_;
  const int microbatches_;  // per step
  std::vector<Field> fields_;
  std::vector<Reading> readings_;
  std::vector<Buffer> buffers_;  // by field
  std::vector<View> views_;      // [microbatches x fields]
  std::vector<int> indices_;     // indices of the fields of the last source
  std::vector<View> wanted_;     // by field of the source, for one load
};

}  // namespace concertina
