#include "io/datasets/packed.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <utility>

#include "core/error.h"
#include "io/datasets/text_overlap.h"

namespace concertina {
namespace {

/// The free space of samples, in a tree whose inner nodes store the maximum of their children.
class RoomTree {
 public:
  explicit RoomTree(std::size_t samples)
      : leaves_(std::bit_ceil(std::max<std::size_t>(samples, 1))), room_(2 * leaves_) {}

  void set(std::size_t sample, std::uint32_t room) {
    std::size_t node = leaves_ + sample;
    room_[node] = room;
    while (node /= 2) room_[node] = std::max(room_[2 * node], room_[2 * node + 1]);
  }
  std::uint32_t room(std::size_t sample) const { return room_[leaves_ + sample]; }
  /// Returns the first sample with at least `room` free tokens, or a value >= `samples`.
  std::size_t find(std::uint32_t room) const {
    if (room_[1] < room) return leaves_;
    std::size_t node = 1;
    while (node < leaves_) node = 2 * node + (room_[2 * node] >= room ? 0 : 1);
    return node - leaves_;
  }

 private:
  std::size_t leaves_;
  std::vector<std::uint32_t> room_;
};

std::vector<PackedPiece> pieces_of(std::span<const std::uint64_t> bounds, std::uint64_t tokens) {
  std::vector<PackedPiece> pieces;
  for (std::size_t d = 0; d + 1 < bounds.size(); ++d) {
    CONCERTINA_CHECK(bounds[d] <= bounds[d + 1], "document bounds {} and {} are not ascending",
                     bounds[d], bounds[d + 1]);
    for (std::uint64_t at = bounds[d]; at + 1 < bounds[d + 1]; at += tokens)
      pieces.push_back({at, static_cast<std::uint32_t>(std::min(tokens, bounds[d + 1] - 1 - at))});
  }
  return pieces;
}

class PackedDataset final : public FileDataset {
 public:
  PackedDataset(const DataOptions& options, WindowedTokens parts,
                std::span<const std::uint64_t> bounds);

  std::span<const Field> fields() const override { return fields_; }
  std::int64_t vocabulary() const override { return parts_.vocabulary; }
  const Splits* splits() const override { return parts_.splits.get(); }
  std::uint64_t samples(Split split) const override { return of(split).samples(); }
  std::int64_t targets_before(Split split, std::uint64_t sample) const override {
    return static_cast<std::int64_t>(of(split).targets[sample]);
  }
  void write(const SampleAt& at, std::span<const View> views) const override;
  bool repeats() const override { return true; }
  const Corpus& corpus() const override { return *parts_.corpus; }
  void verify(const std::function<void()>& progress) const override {
    verify_tokens(parts_, progress);
  }
  std::string summary() const override;
  std::vector<std::string> notes(std::uint64_t /*samples*/) const override {
    return {packing_text()};
  }

 private:
  const PackedPieces& of(Split split) const { return packed_[static_cast<std::size_t>(split)]; }
  std::string packing_text() const;

  WindowedTokens parts_;
  std::int64_t tokens_;
  std::vector<Field> fields_;
  std::array<PackedPieces, 3> packed_;
};

/// Returns the bounds of the documents within tokens [begin, end).
std::span<const std::uint64_t> bounds_within(std::span<const std::uint64_t> bounds,
                                             std::uint64_t begin, std::uint64_t end) {
  const auto low = std::ranges::lower_bound(bounds, begin);
  const auto high = std::ranges::upper_bound(bounds, end);
  return low < high ? std::span(low, high) : std::span<const std::uint64_t>{};
}

PackedDataset::PackedDataset(const DataOptions& options, WindowedTokens parts,
                             std::span<const std::uint64_t> bounds)
    : parts_(std::move(parts)), tokens_(options.tokens_per_sample), fields_(text_fields(tokens_)) {
  fields_.push_back(starts_field(tokens_));
  std::uint64_t begin = 0;
  for (std::size_t s = 0; s < packed_.size(); ++s) {
    const std::uint64_t end = begin + parts_.sizes[s];
    packed_[s] = pack_documents(bounds_within(bounds, begin, end), tokens_);
    if (parts_.sizes[s] > 0 && packed_[s].samples() == 0)
      throw_input(fmt::format("no document of at least two tokens for {}",
                              s == 0 ? "training" : kSplitNames[s]),
                  std::string(find_format(options.format).files_key),
                  s == 0 ? "use longer documents, or more of them"
                         : "use more documents, another share, or separate files");
    begin = end;
  }
}

void PackedDataset::write(const SampleAt& at, std::span<const View> views) const {
  const PackedPieces& packed = of(at.split);
  std::int32_t *const tokens = views[0].i32(), *const targets = views[1].i32(),
                      *const starts = views[2].i32();
  std::int64_t used = 0;
  for (std::uint64_t p = packed.first[at.sample]; p < packed.first[at.sample + 1]; ++p) {
    const PackedPiece& piece = packed.pieces[p];
    if (tokens != nullptr) parts_.tokens->read(piece.begin, {tokens + used, piece.length});
    if (targets != nullptr) parts_.tokens->read(piece.begin + 1, {targets + used, piece.length});
    if (starts != nullptr)
      std::fill_n(starts + used, piece.length, static_cast<std::int32_t>(used));
    used += piece.length;
  }
  if (tokens != nullptr) std::fill(tokens + used, tokens + tokens_, 0);
  if (starts != nullptr)
    std::fill(starts + used, starts + tokens_, static_cast<std::int32_t>(used));
  if (targets != nullptr) std::fill(targets + std::min(used, at.most), targets + tokens_, kIgnored);
}

std::string PackedDataset::packing_text() const {
  const PackedPieces& train = of(Split::train);
  const double room = static_cast<double>(train.samples()) * static_cast<double>(tokens_);
  return fmt::format(
      "training: {} pieces of documents packed into {} samples of {} tokens, {:.2f}% padding",
      train.pieces.size(), train.samples(), tokens_,
      100 * (1 - static_cast<double>(train.targets.back()) / room));
}

std::string PackedDataset::summary() const {
  std::string lines;
  for (const std::string& file : corpus().files()) lines += fmt::format("file        {}\n", file);
  for (std::size_t s = 0; s < packed_.size(); ++s)
    if (s < 2 || packed_[s].samples() > 0)
      lines += fmt::format("{:<12}{} samples\n", s == 0 ? "training" : kSplitNames[s],
                           packed_[s].samples());
  lines += fmt::format("packing     {}\n", packing_text());
  if (!parts_.begins.empty()) lines += fmt::format("begins      {}\n", parts_.begins);
  return lines + parts_.columns;
}

}  // namespace

PackedPieces pack_documents(std::span<const std::uint64_t> bounds, std::int64_t tokens) {
  CONCERTINA_CHECK(tokens >= 1, "samples of {} tokens", tokens);
  const std::vector<PackedPiece> pieces = pieces_of(bounds, static_cast<std::uint64_t>(tokens));
  RoomTree rooms(pieces.size());
  std::vector<std::uint64_t> sample_of(pieces.size());
  PackedPieces packed;
  for (std::size_t p = 0; p < pieces.size(); ++p) {
    const std::uint32_t length = pieces[p].length;
    std::size_t sample = rooms.find(length);
    if (sample >= packed.samples()) {
      sample = packed.samples();
      packed.first.push_back(0);
      packed.targets.push_back(0);
      rooms.set(sample, static_cast<std::uint32_t>(tokens));
    }
    rooms.set(sample, rooms.room(sample) - length);
    sample_of[p] = sample;
    ++packed.first[sample + 1];
    packed.targets[sample + 1] += length;
  }
  for (std::size_t s = 0; s < packed.samples(); ++s) {
    packed.first[s + 1] += packed.first[s];
    packed.targets[s + 1] += packed.targets[s];
  }
  packed.pieces.resize(pieces.size());
  std::vector<std::uint64_t> next(packed.first.begin(), packed.first.end() - 1);
  for (std::size_t p = 0; p < pieces.size(); ++p) packed.pieces[next[sample_of[p]]++] = pieces[p];
  return packed;
}

std::unique_ptr<Dataset> packed_dataset(const DataOptions& options, WindowedTokens parts,
                                        std::vector<std::uint64_t> bounds) {
  return std::make_unique<PackedDataset>(options, std::move(parts), bounds);
}

}  // namespace concertina
