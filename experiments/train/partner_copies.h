// Copies of this rank's snapshots on another host, and of others' here, so that a host may be lost.
// Invariants: all ranks begin a copy after the same step, once the snapshots of all are whole;
// copies travel while training goes on; what has no room is left out, with a warning.
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

  /// Collective. Begins to send the last snapshot of `file`, which is whole. False: no host keeps
  /// copies of another.
  bool begin(const SnapshotFile& file);
  /// Makes progress, without waiting.
  void advance();
  /// Whether a copy is under way, to or from here.
  bool busy() const;
  /// Waits for it. All ranks do, if any.
  void finish();

 private:
  /// A rank whose snapshots are kept here.
  struct Source {
    int rank = 0;
    std::unique_ptr<SnapshotSlot> slots[2];
    std::size_t generation = 0;  // of its last snapshot
    Work payload{};
  };

  bool make_room(std::span<const double> sizes);

  // For copies alone, as the messages of two ranks arrive in order; null: off.
  std::unique_ptr<Communicator> comm_;
  int partner_ = -1;
  std::vector<Source> sources_;
  Work payload_;
  bool off_ = false;  // there was no room here
};

}  // namespace concertina
