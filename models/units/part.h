// Parts of units that have parameters.
// Invariant: a unit's parameters and packed weights are those of its parts, in order.
#pragma once

#include <span>
#include <vector>

#include "models/units/unit.h"

namespace concertina {

class UnitPart {
 public:
  virtual ~UnitPart() = default;
  /// Returns the number of parameters, which are consecutive in the unit's list.
  virtual std::size_t parameters() const = 0;
  virtual std::size_t packed_bytes() const { return 0; }
  virtual std::size_t pack_scratch() const { return 0; }
  /// `weights` are the part's; `packed` spans packed_bytes().
  virtual void attach(std::span<const View> weights, void* packed) = 0;
  /// See Unit::pack().
  virtual void pack(void* /*scratch*/) {}
  /// Whether pack() reads the part's parameter `index`.
  virtual bool packs(std::size_t /*index*/) const { return false; }

  /// Sets the index of its first parameter in the unit's list.
  void place(std::size_t first) { first_ = first; }

 protected:
  /// Returns the gradient of the part's parameter `index` from the unit's gradients.
  const UnitGradient& own(std::span<const UnitGradient> gradients, std::size_t index) const {
    return gradients[first_ + index];
  }

 private:
  std::size_t first_ = 0;
};

/// Tables and vectors that a unit reads directly. Absent ones are empty and have no gradient.
class Tables final : public UnitPart {
 public:
  explicit Tables(std::vector<bool> there) : there_(std::move(there)), views_(there_.size()) {}

  std::size_t parameters() const override;
  void attach(std::span<const View> weights, void* packed) override;
  View operator[](std::size_t table) const { return views_[table]; }
  UnitGradient gradient(std::span<const UnitGradient> gradients, std::size_t table) const;

 private:
  std::size_t index_of(std::size_t table) const;

  std::vector<bool> there_;
  std::vector<View> views_;
};

/// A unit whose parameters all belong to parts.
class PartedUnit : public Unit {
 public:
  void attach(std::span<const View> parameters, void* packed) final;
  void pack(void* scratch) final;
  bool packs(std::size_t parameter) const final;

 protected:
  /// Adds parts in the order of their parameters. They must outlive the unit.
  void add_parts(std::span<UnitPart* const> parts);
  /// Returns a unit's memory, given what it saves, with that of its parts.
  UnitMemory with_parts(std::size_t saved_bytes, std::size_t grad_bytes) const;

 private:
  std::vector<UnitPart*> parts_;
};

}  // namespace concertina
