// Heartbeats between the hosts of a launch, outside of MPI: which neighbour is not heard any more.
// Invariants: a host sends to the one before and the one after it alone, whatever their number; one
// that was never heard (a firewall, maybe) is never missed; nothing here waits.
#pragma once

#include <netinet/in.h>

#include <cstdint>
#include <string>
#include <vector>

#include "experiments/machine/lasting.h"
#include "io/file.h"
#include "parallel/comm/communicator.h"

namespace concertina {

/// Ranks of another host that this one has not heard for too long.
struct SilentHost {
  std::string name;
  std::vector<int> ranks;
};

class Heartbeats {
 public:
  /// A host is unreachable once it has been silent for longer.
  static constexpr Limit kSilenceLimit{1.5, 8};

  /// Collective. Every rank listens, on all addresses of its host; the ranks of one host lie side
  /// by side or not. One host alone has no neighbours.
  explicit Heartbeats(Communicator& world);
  /// Says that this host's silence is on purpose from now on.
  ~Heartbeats();
  Heartbeats(const Heartbeats&) = delete;
  Heartbeats& operator=(const Heartbeats&) = delete;

  bool has_neighbours() const { return !neighbours_.empty(); }
  /// Takes in what has come, then sends if this rank `speaks` for its host.
  void beat(bool speaks);
  /// The neighbours that are missed now.
  std::vector<SilentHost> silent() const;

 private:
  /// What travels: a launch of its own is not taken for another one's.
  struct Beat {
    std::uint64_t launch = 0;
    std::int32_t host = 0;
    std::int32_t leaves = 0;  // 1: this was the last one
  };
  struct Neighbour {
    std::int32_t host = 0;
    SilentHost names;
    std::vector<sockaddr_in> addresses;  // of its ranks
    Lasting silence;                     // free_at 0: never heard, or it has left
    bool left = false;                   // on purpose
  };

  void listen();
  void receive();
  void send() const;

  Beat own_;
  File socket_;
  std::vector<Neighbour> neighbours_;
};

}  // namespace concertina
