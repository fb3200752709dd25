#include "experiments/run/sample_places.h"

#include <cstring>
#include <utility>
#include <vector>

#include "core/index.h"

namespace concertina {
namespace {

/// A block of tensors' memory, and what a host would have in it.
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
  /// The host's bytes in `samples` equal parts, of which part (i + by) % samples comes to place i.
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

/// The fields that `model` reads, of the first microbatch of `source`.
std::vector<ProbeBlock> load_fields(const ModelSpec& model, const std::vector<Field>& fields,
                                    BatchSource& source, Memory& memory) {
  std::vector<int> indices(fields.size());
  find_fields(source, fields, indices);
  std::vector<ProbeBlock> blocks;
  std::vector<View> wanted(source.fields().size());
  for (std::size_t f = 0; f < fields.size(); ++f) {
    const auto count = static_cast<std::size_t>(model.samples * fields[f].elements());
    blocks.emplace_back(memory, count * size_of(fields[f].type));
    wanted[at(indices[f])] = {blocks.back().host().data(), count, fields[f].type};
  }
  source.load(0, 0, model.samples, wanted);
  return blocks;
}

}  // namespace

bool same_in_any_place(Stage& stage, int units, const ModelSpec& model, BatchSource& source,
                       Memory& memory) {
  const auto samples = static_cast<std::size_t>(model.samples);
  if (samples == 1 || units == 0) return true;
  const std::vector<Field> fields = fields_of(model);
  std::vector<ProbeBlock> blocks = load_fields(model, fields, source, memory);
  ProbeBlock output(memory, model.boundary_bytes), saved(memory, model.boundary_bytes);
  std::vector<View> views;
  for (std::size_t f = 0; f < fields.size(); ++f)
    views.push_back(
        {blocks[f].data(), blocks[f].host().size() / size_of(fields[f].type), fields[f].type});
  MicrobatchIo io;
  io.fields = views;
  io.output = {output.data(), model.boundary_bytes / size_of(model.activation), model.activation};
  io.saved = saved.data();
  std::vector<std::byte> first(model.boundary_bytes), now(model.boundary_bytes);
  const std::size_t entry = first.size() / samples;
  bool same = true;
  for (std::size_t by = 0; by < samples; ++by) {
    for (ProbeBlock& block : blocks) block.put(samples, by);
    for (int unit = 0; unit < units; ++unit) stage.forward_unit(unit, io);
    const View made = stage.frozen_output(units - 1, io);
    memory.copy(made.data, by == 0 ? first.data() : now.data(), made.bytes());
    for (std::size_t i = 0; by > 0 && i < samples; ++i)
      same = same && std::memcmp(now.data() + i * entry, first.data() + (i + by) % samples * entry,
                                 entry) == 0;
  }
  return same;
}

}  // namespace concertina
