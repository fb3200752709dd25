#include "experiments/cache/sample_places.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "core/arena.h"
#include "core/index.h"

namespace concertina {
namespace {

constexpr std::size_t kTurns = 12;  // rotations per microbatch, approximately

/// Runs the stage's first units on its own microbatches in its own memory.
class PlaceProbe {
 public:
  PlaceProbe(Stage& stage, int units, const ModelSpec& model, BatchSource& source, Memory& memory)
      : stage_(stage),
        units_(units),
        model_(model),
        source_(source),
        memory_(memory),
        first_(model.boundary_bytes),
        turned_(model.boundary_bytes) {
    const std::vector<Field> fields = fields_of(model);
    std::vector<int> indices(fields.size());
    find_fields(source.fields(), fields, indices);
    wanted_.resize(source.fields().size());
    std::size_t bytes = 2 * align_up(model.boundary_bytes);
    for (std::size_t f = 0; f < fields.size(); ++f) {
      const auto count = static_cast<std::size_t>(model.samples * fields[f].elements());
      std::vector<std::byte>& host = host_.emplace_back(count * size_of(fields[f].type));
      wanted_[at(indices[f])] = {host.data(), count, fields[f].type};
      bytes += align_up(host.size());
    }
    arena_.reserve(bytes, memory);
    for (const int index : indices)
      views_.push_back(
          arena_.take(wanted_[at(index)].count, wanted_[at(index)].dtype, "sample places"));
    output_ = arena_.take(model.boundary_bytes / size_of(model.activation), model.activation,
                          "sample places");
    saved_ = arena_.take(model.boundary_bytes, "sample places");
  }

  /// Whether the first microbatch of `batch` gives each sample the same output at every place.
  bool same(std::int64_t batch) {
    source_.load(batch, 0, model_.samples, wanted_);
    run(0, first_);
    const auto samples = static_cast<std::size_t>(model_.samples);
    const std::size_t entry = first_.size() / samples;
    for (std::size_t by = 1; by < samples; by += std::max<std::size_t>(1, samples / kTurns)) {
      run(by, turned_);
      for (std::size_t i = 0; i < samples; ++i)
        if (std::memcmp(turned_.data() + i * entry, first_.data() + (i + by) % samples * entry,
                        entry) != 0)
          return false;
    }
    return true;
  }

 private:
  /// Computes the output for the microbatch whose samples are rotated by `by` places.
  void run(std::size_t by, std::vector<std::byte>& output) {
    for (std::size_t f = 0; f < views_.size(); ++f) {
      std::vector<std::byte> turned = host_[f];
      const std::size_t split = turned.size() / static_cast<std::size_t>(model_.samples) * by;
      std::ranges::rotate(turned, turned.begin() + static_cast<std::ptrdiff_t>(split));
      memory_.copy(turned.data(), views_[f].data, turned.size());
    }
    MicrobatchIo io;
    io.fields = views_;
    io.output = output_;
    io.saved = saved_;
    for (int unit = 0; unit < units_; ++unit) stage_.forward_unit(unit, io);
    const View made = stage_.frozen_output(units_ - 1, io);
    memory_.copy(made.data, output.data(), made.bytes());
  }

  Stage& stage_;
  const int units_;
  const ModelSpec& model_;
  BatchSource& source_;
  Memory& memory_;
  Arena arena_;
  std::vector<std::vector<std::byte>> host_;  // the samples of each field
  std::vector<View> views_, wanted_;  // each field in the arena; the fields wanted from the source
  View output_;
  void* saved_ = nullptr;
  std::vector<std::byte> first_, turned_;
};

}  // namespace

bool same_in_any_place(Stage& stage, int units, const ModelSpec& model, BatchSource& source,
                       Memory& memory) {
  if (model.samples == 1 || units == 0) return true;
  PlaceProbe probe(stage, units, model, source, memory);
  // bf16 rounding hides most differences between fp32 sums, so more elements are needed.
  const std::size_t wanted = model.activation == DType::f32 ? 1 << 16 : 1 << 20;
  constexpr std::size_t kMicrobatches = 64;
  const std::size_t elements = model.boundary_bytes / size_of(model.activation);
  const std::size_t count = std::clamp<std::size_t>(wanted / elements, 1, kMicrobatches);
  for (std::size_t batch = 0; batch < count; ++batch)
    if (!probe.same(static_cast<std::int64_t>(batch))) return false;
  return true;
}

}  // namespace concertina
