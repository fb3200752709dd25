// Copies of this rank's snapshots on another host, and of others' here, so that a host may be lost.
// Invariants: all ranks begin a copy after the same step, and none before all copies of the last
// one are whole; copies travel while training goes on; what has no room is left out, and said.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "io/checkpoint/snapshot_file.h"
#include "parallel/comm/communicator.h"

namespace concertina {

class PartnerCopies {
 public:
  /// Collective. `hosts`: by rank. A rank's partner is on the next host; one host alone has none.
  PartnerCopies(Communicator& world, const std::vector<int>& hosts, const std::string& prefix);
  /// Waits until what is under way has arrived.
  ~PartnerCopies();
  PartnerCopies(const PartnerCopies&) = delete;
  PartnerCopies& operator=(const PartnerCopies&) = delete;

  /// Collective. Announces the snapshot that `file` has begun to write; null: this rank has none.
  void begin(const SnapshotFile* file);
  /// Makes progress, without waiting.
  void advance();
  /// Whether a copy is under way, to or from here.
  bool busy() const;
  /// Waits for it. All ranks do, if any.
  void finish();
  /// Why no copies are kept here; empty: they are.
  const std::string& problem() const { return problem_; }

 private:
  /// A rank whose snapshots are kept here.
  struct Source {
    int rank = 0;
    std::unique_ptr<SnapshotSlot> slots[2];
    std::uint64_t bytes = 0;     // of its last snapshot; 0: there is none
    std::size_t generation = 0;  // of that
    Work payload{};
  };

  void make_room(std::span<const double> sizes);

  // Of its own: messages of two ranks come in order; null: off.
  std::unique_ptr<Communicator> comm_;
  int partner_ = -1;
  std::vector<Source> sources_;
  const SnapshotFile* file_ = nullptr;  // that is to be sent, once it is whole
  Work payload_;
  std::string problem_;
};

}  // namespace concertina
