// Copies of this rank's snapshots on another host, and of other ranks' snapshots here, so that a
// run survives the loss of a host. Invariants: all ranks start a copy after the same step, once the
// snapshots of all ranks are complete; copies are sent while training continues; copies for which
// there is no space are omitted, with a warning.
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
  /// Collective. `hosts`: by rank. A rank's partner is on the next host; a single host has none.
  PartnerCopies(Communicator& world, const std::vector<int>& hosts, const std::string& prefix);
  /// Waits for the copy in progress.
  ~PartnerCopies();
  PartnerCopies(const PartnerCopies&) = delete;
  PartnerCopies& operator=(const PartnerCopies&) = delete;

  /// Collective. Starts to send the last snapshot of `file`, which must be complete. Returns false
  /// if no host keeps copies for another.
  bool begin(const SnapshotFile& file);
  /// Makes progress without waiting.
  void advance();
  /// Whether a copy to or from this rank is in progress.
  bool busy() const;
  /// Waits for the copy in progress. All ranks must call it if any does.
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

  // Used only for copies, because the messages between two ranks arrive in order; null: off.
  std::unique_ptr<Communicator> comm_;
  int partner_ = -1;
  std::vector<Source> sources_;
  Work payload_;
  bool off_ = false;  // there was no space here
};

}  // namespace concertina
