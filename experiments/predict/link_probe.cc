#include "experiments/predict/link_probe.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <thread>
#include <utility>

#include "core/clock.h"
#include "core/step_history.h"
#include "experiments/machine/gather.h"

namespace concertina {
namespace {

constexpr double kProbeSeconds = 0.03;       // approximate time per measurement
constexpr double kLongest = 0.05;            // seconds of one message
constexpr int kLooks = 24;                   // polls of the transfer while computing
constexpr std::size_t kTrial = 1 << 17;      // bytes of the first message
constexpr std::size_t kMostEager = 1 << 20;  // bytes

/// A computation of known duration that uses no memory.
class Spin {
 public:
  Spin() {
    std::int64_t rounds = 1 << 16;
    for (double seconds = 0; seconds < 2e-3; rounds *= 2) {
      const double start = now();
      run(rounds);
      seconds = now() - start;
      rounds_per_s_ = static_cast<double>(rounds) / seconds;
    }
  }
  void run_seconds(double seconds) { run(static_cast<std::int64_t>(seconds * rounds_per_s_)); }

 private:
  void run(std::int64_t rounds) {
    for (std::int64_t i = 0; i < rounds; ++i) state_ = state_ * 6364136223846793005U + 1;
    keep_ = state_;
  }
  std::uint64_t state_ = 1;
  volatile std::uint64_t keep_ = 0;
  double rounds_per_s_ = 1;
};

/// One end of a measured pair.
class End {
 public:
  End(Communicator& world, int peer, bool leads, std::size_t bytes)
      : world_(world), peer_(peer), leads_(leads), buffer_(bytes) {}

  /// The size of a message that does not take too long; at most `bytes`.
  std::size_t bounded(std::size_t bytes) {
    const double seconds = agree(back_and_forth(Bytes(buffer_).first(std::min(bytes, kTrial)))) / 2;
    const double most = static_cast<double>(kTrial) * kLongest / std::max(seconds, 1e-6);
    return agree(std::min(bytes, std::max(kTrial, static_cast<std::size_t>(most))));
  }

  /// The largest size of messages sent before the receiver is ready, to 1/16; at most kMostEager.
  std::size_t eager() {
    std::size_t most = 0, least = 1024;
    while (least <= kMostEager && leaves(least)) most = std::exchange(least, 2 * least);
    while (least <= kMostEager && least - most > least / 16) {
      const std::size_t middle = most + (least - most) / 2;
      (leaves(middle) ? most : least) = middle;
    }
    return most;
  }

  /// The time of one message, half of a round trip: the median of several, or the minimum.
  double message(std::size_t bytes, bool quickest = false) {
    const Bytes data = Bytes(buffer_).first(bytes);
    back_and_forth(data);
    const double first = back_and_forth(data);
    const int rounds = agree(std::clamp(static_cast<int>(kProbeSeconds / std::max(first, 1e-7)),
                                        quickest ? 1 : 5, 1000));
    std::vector<double> seconds;
    for (int i = 0; i < rounds; ++i) seconds.push_back(back_and_forth(data) / 2);
    return agree(quickest ? std::ranges::min(seconds) : median(std::move(seconds)));
  }

  /// Seconds that a message adds to `seconds` of computation by `spin` on this end.
  double overlap(Spin& spin, double seconds, std::size_t bytes) {
    const Bytes data = Bytes(buffer_).first(bytes);
    const int rounds = agree(std::clamp(static_cast<int>(kProbeSeconds / seconds / 2), 5, 50));
    std::vector<double> alone, with;
    for (int i = 0; i < rounds; ++i) {
      meet();
      alone.push_back(compute(spin, seconds, nullptr));
      meet();
      Work work = leads_ ? world_.isend(data, peer_) : world_.irecv(data, peer_);
      with.push_back(compute(spin, seconds, &work));
      work.wait();
    }
    return median(std::move(with)) - median(std::move(alone));
  }

 private:
  /// Whether a message is sent before its receiver is ready.
  bool leaves(std::size_t bytes) {
    constexpr double kAway = 2e-3;  // seconds
    const Bytes data = Bytes(buffer_).first(bytes);
    meet();
    const double start = now();
    if (!leads_) {
      while (now() < start + 2 * kAway) std::this_thread::yield();
      world_.irecv(data, peer_).wait();
      return agree(false);
    }
    Work work = world_.isend(data, peer_);
    bool left = false;
    while (!left && now() < start + kAway) left = work.test();
    work.wait();
    return agree(left);
  }
  double back_and_forth(Bytes data) {
    const double start = now();
    for (const bool send : {leads_, !leads_}) {
      if (send)
        world_.isend(data, peer_).wait();
      else
        world_.irecv(data, peer_).wait();
    }
    return now() - start;
  }
  /// The leader's value. Both ends thus send the same number of messages of the same sizes,
  /// whatever times each has measured.
  template <class T>
  T agree(T value) {
    const Bytes data = std::as_writable_bytes(std::span(&value, 1));
    if (leads_)
      world_.isend(data, peer_).wait();
    else
      world_.irecv(data, peer_).wait();
    return value;
  }
  void meet() { back_and_forth(Bytes(buffer_).first(1)); }
  static double compute(Spin& spin, double seconds, Work* work) {
    const double start = now();
    for (int i = 0; i < kLooks; ++i) {
      spin.run_seconds(seconds / kLooks);
      if (work != nullptr) work->test();
    }
    return now() - start;
  }

  Communicator& world_;
  const int peer_;
  const bool leads_;
  std::vector<std::byte> buffer_;
};

/// The measurements of one end.
struct LinkValues {
  double latency = 0, message = 0, cpu = 0, bytes = 0, eager = 0;
  double half = 0;  // seconds for a message of half the size
};

/// Used between hosts. Measures the second half of a message, because bytes that pass at once (a
/// switch's buffer, a full token bucket) are in the first half and would inflate the rate.
double stream_seconds(const LinkValues& lead, double handshake) {
  const double first = lead.half - lead.latency - (lead.bytes / 2 > lead.eager ? handshake : 0);
  const double whole = lead.message - lead.latency - (lead.bytes > lead.eager ? handshake : 0);
  return std::max({2 * (whole - first), whole, 1e-9});
}

LinkCosts link_of(const LinkValues& lead, double receive, bool remote) {
  LinkCosts link{.latency = lead.latency};
  // Messages above the eager size require a handshake first.
  const double seconds =
      remote ? stream_seconds(lead, 2 * lead.latency) : std::max(lead.message - lead.latency, 1e-9);
  double send = std::clamp(lead.cpu, 0.0, seconds);
  receive = std::clamp(receive, 0.0, seconds);
  if (remote) {
    link.bandwidth = lead.bytes / seconds;
    link.eager_bytes = lead.eager;
  } else if (send + receive > 0.7 * seconds) {  // copies take nearly all of the time
    const double scale = seconds / (send + receive);
    send *= scale;
    receive *= scale;
  } else {
    link.bandwidth = lead.bytes / seconds;
  }
  link.send_cpu = send / lead.bytes;
  link.receive_cpu = receive / lead.bytes;
  return link;
}

}  // namespace

LinkCosts probe_link(Communicator& world, int a, int b, std::size_t bytes, bool remote) {
  LinkValues mine;
  if (world.rank() == a || world.rank() == b) {
    Spin spin;
    End end(world, world.rank() == a ? b : a, world.rank() == a, std::max(bytes, kMostEager));
    const std::size_t most = end.bounded(std::max<std::size_t>(bytes, 1));
    mine = {.latency = end.message(8),
            .message = end.message(most),
            .bytes = static_cast<double>(most)};
    if (remote) {
      mine.eager = static_cast<double>(end.eager());
      mine.half = end.message(most / 2);
    }
    mine.cpu = end.overlap(spin, std::max((remote ? 1.5 : 4) * mine.message, 1e-3), most);
  }
  using Metrics = std::array<double, sizeof(LinkValues) / sizeof(double)>;
  const std::vector<double> all = gather_values(world, std::bit_cast<Metrics>(mine));
  const auto of = [&](int rank) {
    Metrics values;
    std::copy_n(all.begin() + rank * std::ssize(values), values.size(), values.begin());
    return std::bit_cast<LinkValues>(values);
  };
  return link_of(of(a), of(b).cpu, remote);
}

LinkSpeed probe_speed(Communicator& world, int peer, bool leads) {
  constexpr std::size_t kLarge = std::size_t{4} << 20;
  End end(world, peer, leads, kLarge);
  const std::size_t bytes = end.bounded(kLarge);
  const double latency = end.message(8, true), seconds = end.message(bytes, true);
  // A large message requires a handshake first.
  const double stream = std::max({seconds - 3 * latency, seconds / 2, 1e-9});
  return {latency, static_cast<double>(bytes) / stream};
}

MachineModel probe_classes(Communicator& world, const std::vector<int>& hosts, std::size_t bytes) {
  MachineModel machine;
  machine.ranks_per_host = ranks_per_host(hosts);
  for (const bool remote : {false, true})
    for (std::size_t b = 1; b < hosts.size(); ++b) {
      const auto a = std::find_if(hosts.begin(), hosts.begin() + static_cast<std::ptrdiff_t>(b),
                                  [&](int host) { return (host != hosts[b]) == remote; });
      if (a == hosts.begin() + static_cast<std::ptrdiff_t>(b)) continue;
      (remote ? machine.remote : machine.local) = probe_link(
          world, static_cast<int>(a - hosts.begin()), static_cast<int>(b), bytes, remote);
      break;
    }
  return machine;
}

}  // namespace concertina
