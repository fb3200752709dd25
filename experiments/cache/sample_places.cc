#include "experiments/cache/sample_places.h"

#include <algorithm>
#include <cstring>
#include <utility>
#include <vector>

#include "core/index.h"

namespace concertina {
namespace {

/// A block of tensor memory and a host buffer of the same size.
class ProbeBlock {
 public:
  ProbeBlock(Memory& memory, std::size_t bytes)
      : memory_(memory), host_(bytes), block_(memory.allocate(bytes, "sample places")) {}
  ProbeBlock(ProbeBlock&& other) noexcept
      : memory_(other.memory_),
        host_(std::move(other.host_)),
        block_(std::exchange(other.block_, nullptr)) {}
  ProbeBlock& operator=(ProbeBlock&&) = delete;
  ~ProbeBlock() {
    if (block_ != nullptr) memory_.release(block_, host_.size());
  }
  void* data() const { return block_; }
  std::vector<std::byte>& host() { return host_; }
  /// Copies the host's bytes as `samples` equal parts: part (i + by) % samples goes to place i.
  void put(std::size_t samples, std::size_t by) {
    const std::size_t split = host_.size() / samples * by;
    std::vector<std::byte> turned(host_.begin() + static_cast<std::ptrdiff_t>(split), host_.end());
    turned.insert(turned.end(), host_.begin(), host_.begin() + static_cast<std::ptrdiff_t>(split));
    memory_.copy(turned.data(), block_, turned.size());
  }

 private:
  Memory& memory_;
  std::vector<std::byte> host_;
  void* block_;
};

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
        output_(memory, model.boundary_bytes),
        saved_(memory, model.boundary_bytes),
        first_(model.boundary_bytes),
        turned_(model.boundary_bytes) {
    const std::vector<Field> fields = fields_of(model);
    std::vector<int> indices(fields.size());
    find_fields(source.fields(), fields, indices);
    wanted_.resize(source.fields().size());
    fields_.reserve(fields.size());
    for (std::size_t f = 0; f < fields.size(); ++f) {
      const auto count = static_cast<std::size_t>(model.samples * fields[f].elements());
      ProbeBlock& block = fields_.emplace_back(memory, count * size_of(fields[f].type));
      wanted_[at(indices[f])] = {block.host().data(), count, fields[f].type};
      views_.push_back({block.data(), count, fields[f].type});
    }
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
    for (ProbeBlock& field : fields_) field.put(static_cast<std::size_t>(model_.samples), by);
    MicrobatchIo io;
    io.fields = views_;
    io.output = {output_.data(), model_.boundary_bytes / size_of(model_.activation),
                 model_.activation};
    io.saved = saved_.data();
    for (int unit = 0; unit < units_; ++unit) stage_.forward_unit(unit, io);
    const View made = stage_.frozen_output(units_ - 1, io);
    memory_.copy(made.data, output.data(), made.bytes());
  }

  Stage& stage_;
  const int units_;
  const ModelSpec& model_;
  BatchSource& source_;
  Memory& memory_;
  ProbeBlock output_, saved_;
  std::vector<ProbeBlock> fields_;
  std::vector<View> views_, wanted_;  // views of fields_; the fields wanted from the source
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
