#include "parallel/runtime/step_batch.h"

#include <algorithm>
#include <array>

#include "core/index.h"

namespace concertina {

StepBatch::StepBatch(const Job& job, const Layout& layout, int rank, int batches)
    : job_(job),
      microbatches_(job.microbatches * batches),
      fields_(fields_of(job.model)),
      buffers_(fields_.size()),
      indices_(fields_.size()) {
  for (std::size_t f = 0; f < fields_.size(); ++f)
    buffers_[f].elements = static_cast<std::size_t>(job.model.samples * fields_[f].elements());
  for (const Pipeline& pipeline : layout.pipelines) {
    Reading reading{pipeline.first_microbatch, pipeline.last_microbatch,
                    std::vector<bool>(fields_.size())};
    for (const StagePlacement& stage : pipeline.stages) {
      if (stage.rank != rank) continue;
      for (int unit = stage.first_unit; unit < stage.last_unit; ++unit)
        for (const int f : read_indices(job.model.units[at(unit)], fields_))
          reading.fields[at(f)] = true;
    }
    for (std::size_t f = 0; f < fields_.size(); ++f) {
      if (!reading.fields[f]) continue;
      Buffer& buffer = buffers_[f];
      const bool fresh = buffer.last == 0;
      buffer.first = fresh ? reading.first : std::min(buffer.first, reading.first);
      buffer.last = std::max(buffer.last, reading.last);
    }
    if (std::find(reading.fields.begin(), reading.fields.end(), true) != reading.fields.end())
      readings_.push_back(std::move(reading));
  }
}

std::size_t StepBatch::bytes() const {
  std::size_t bytes = 0;
  for (std::size_t f = 0; f < fields_.size(); ++f)
    bytes += align_up(at(buffers_[f].last - buffers_[f].first) * buffers_[f].elements *
                      size_of(fields_[f].type));
  return bytes;
}

void StepBatch::attach(Arena& arena, Memory& memory) {
  views_.assign(at(microbatches_) * fields_.size(), {});
  for (std::size_t f = 0; f < fields_.size(); ++f) {
    Buffer& buffer = buffers_[f];
    if (buffer.last == 0) continue;
    const View all = arena.take(at(buffer.last - buffer.first) * buffer.elements, fields_[f].type,
                                fields_[f].name);
    buffer.mirror = HostMirror(memory, all);
    for (int m = buffer.first; m < buffer.last; ++m)
      views_[at(m) * fields_.size() + f] =
          all.slice(at(m - buffer.first) * buffer.elements, buffer.elements);
  }
}

void StepBatch::load(std::int64_t batch, int count, BatchSource& source) {
  find_fields(source.fields(), fields_, indices_);
  for (const Reading& reading : readings_)
    for (int m = reading.first, end; m < std::min(reading.last, count); m = end) {
      const int next_batch = (m / job_.microbatches + 1) * job_.microbatches;
      end = std::min({reading.last, count, next_batch});
      load(batch + m / job_.microbatches, m, end, reading, source);
    }
}

void StepBatch::blank() {
  for (std::size_t f = 0; f < fields_.size(); ++f) {
    const View host = buffers_[f].mirror.host();
    const auto each = static_cast<std::size_t>(fields_[f].elements());
    for (std::size_t i = 0; i < host.count; i += each)
      blank_sample(std::span(&fields_[f], 1), std::array{host.slice(i, each)});
    if (host.count > 0) buffers_[f].mirror.upload();
  }
}

/// Loads microbatches [first, last) of the step, all of which are in batch `batch`.
void StepBatch::load(std::int64_t batch, int first, int last, const Reading& reading,
                     BatchSource& source) {
  wanted_.assign(source.fields().size(), {});
  const auto place = [&](const Buffer& buffer) {
    return std::pair(at(first - buffer.first) * buffer.elements,
                     at(last - first) * buffer.elements);
  };
  for (std::size_t f = 0; f < fields_.size(); ++f) {
    if (!reading.fields[f]) continue;
    const auto [from, length] = place(buffers_[f]);
    wanted_[at(indices_[f])] = buffers_[f].mirror.host().slice(from, length);
  }
  source.load(batch, first % job_.microbatches * job_.model.samples,
              (last - first) * job_.model.samples, wanted_);
  for (std::size_t f = 0; f < fields_.size(); ++f) {
    if (!reading.fields[f]) continue;
    const auto [from, length] = place(buffers_[f]);
    buffers_[f].mirror.upload(from, length);
  }
}

}  // namespace concertina
