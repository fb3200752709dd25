// Sends heartbeats between a launch's hosts, outside MPI; detects neighbors that have gone silent.
// Invariants: a host sends only to the previous and the next host, however many there are; a host
// never heard from (because of a firewall, for example) is never reported; nothing here blocks.
#pragma once

#include <netinet/in.h>

#include <cstdint>
#include <string>
#include <vector>

#include "experiments/machine/persistent_state.h"
#include "io/file.h"
#include "parallel/comm/communicator.h"

namespace concertina {

/// A host from which no heartbeat has arrived for too long, and its ranks.
struct SilentHost {
  std::string name;
  std::vector<int> ranks;
};

class Heartbeats {
 public:
  /// A host counts as unreachable once it has been silent for longer than this.
  static constexpr Limit kSilenceLimit{1.5, 8};

  /// Collective. Every rank listens on all addresses of its host; the ranks of a host need not be
  /// consecutive. A single host has no neighbors.
  explicit Heartbeats(Communicator& world);
  /// Announces that this host is about to fall silent on purpose.
  ~Heartbeats();
  Heartbeats(const Heartbeats&) = delete;
  Heartbeats& operator=(const Heartbeats&) = delete;

  bool has_neighbors() const { return !neighbors_.empty(); }
  /// Receives pending heartbeats, then sends one if this rank `speaks` for its host.
  void beat(bool speaks);
  /// The neighbors whose heartbeats are overdue now.
  std::vector<SilentHost> silent() const;

 private:
  /// A datagram; `launch` distinguishes it from the datagrams of other launches.
  struct Beat {
    std::uint64_t launch = 0;
    std::int32_t host = 0;
    std::int32_t leaves = 0;  // 1: this is the last beat
  };
  struct Neighbor {
    std::int32_t host = 0;
    SilentHost names;
    std::vector<sockaddr_in> addresses;  // of its ranks
    PersistentState silence;             // free_at is 0 if it was never heard from or has left
    bool left = false;                   // on purpose
  };

  void listen();
  void receive();
  void send() const;

  Beat own_;
  File socket_;
  std::vector<Neighbor> neighbors_;
};

}  // namespace concertina
