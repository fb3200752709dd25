#include "experiments/costs/link_probe.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>

#include "core/clock.h"
#include "core/step_history.h"
#include "experiments/run/gather.h"

namespace concertina {
namespace {

constexpr double kSeconds = 0.03;  // for each of the three measurements, about
constexpr int kLooks = 24;         // at the transfer, while computing

/// Work of a known length without memory.
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

  /// Seconds of one message, half of back and forth: the median of several.
  double message(std::size_t bytes) {
    const Bytes data = Bytes(buffer_).first(bytes);
    back_and_forth(data);
    const double first = agree(back_and_forth(data));
    const int rounds = std::clamp(static_cast<int>(kSeconds / std::max(first, 1e-7)), 5, 1000);
    std::vector<double> seconds;
    for (int i = 0; i < rounds; ++i) seconds.push_back(back_and_forth(data) / 2);
    return agree(median(std::move(seconds)));
  }

  /// Seconds that a message adds to `spin` seconds of computing on this end.
  double overlap(Spin& spin, double seconds) {
    const int rounds = std::clamp(static_cast<int>(kSeconds / seconds / 2), 5, 50);
    std::vector<double> alone, with;
    for (int i = 0; i < rounds; ++i) {
      meet();
      alone.push_back(compute(spin, seconds, nullptr));
      meet();
      Work work = leads_ ? world_.isend(buffer_, peer_) : world_.irecv(buffer_, peer_);
      with.push_back(compute(spin, seconds, &work));
      work.wait();
    }
    return median(std::move(with)) - median(std::move(alone));
  }

 private:
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
  /// The leader's figure.
  double agree(double value) {
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

LinkCosts link_of(double latency, double message, double send, double receive, double bytes) {
  LinkCosts link{.latency = latency};
  const double seconds = std::max(message - latency, 0.0);
  send = std::clamp(send, 0.0, seconds);
  receive = std::clamp(receive, 0.0, seconds);
  if (send + receive > 0.7 * seconds) {  // copies are all there is
    const double scale = send + receive > 0 ? seconds / (send + receive) : 0;
    link.send_cpu = send * scale / bytes;
    link.receive_cpu = receive * scale / bytes;
    return link;
  }
  link.bandwidth = bytes / seconds;
  link.send_cpu = send / bytes;
  link.receive_cpu = receive / bytes;
  return link;
}

}  // namespace

LinkCosts probe_link(Communicator& world, int a, int b, std::size_t bytes) {
  std::array<double, 3> mine{};  // latency, message, CPU
  if (world.rank() == a || world.rank() == b) {
    Spin spin;
    End end(world, world.rank() == a ? b : a, world.rank() == a, std::max<std::size_t>(bytes, 8));
    mine[0] = end.message(8);
    mine[1] = end.message(bytes);
    mine[2] = end.overlap(spin, std::max(4 * mine[1], 1e-3));
  }
  const std::vector<double> all = gather_values(world, mine);
  const auto of = [&](int rank, std::size_t figure) {
    return all[static_cast<std::size_t>(rank) * mine.size() + figure];
  };
  return link_of(of(a, 0), of(a, 1), of(a, 2), of(b, 2), static_cast<double>(bytes));
}

std::vector<int> host_of_ranks(Communicator& world) {
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  std::vector<std::string> names;
  std::vector<int> hosts;
  for (const nlohmann::json& one : gather_json(world, std::string(name.data()))) {
    const auto found = std::find(names.begin(), names.end(), one.get<std::string>());
    hosts.push_back(static_cast<int>(found - names.begin()));
    if (found == names.end()) names.push_back(one.get<std::string>());
  }
  return hosts;
}

int ranks_per_host(const std::vector<int>& hosts) {
  const int first = static_cast<int>(std::count(hosts.begin(), hosts.end(), 0));
  if (first == static_cast<int>(hosts.size())) return 0;
  for (std::size_t rank = 0; rank < hosts.size(); ++rank)
    if (hosts[rank] != static_cast<int>(rank) / first) return 0;
  return first;
}

LinkClasses probe_classes(Communicator& world, const std::vector<int>& hosts, std::size_t bytes) {
  LinkClasses classes;
  for (const bool remote : {false, true})
    for (std::size_t b = 1; b < hosts.size(); ++b) {
      const auto a = std::find_if(hosts.begin(), hosts.begin() + static_cast<std::ptrdiff_t>(b),
                                  [&](int host) { return (host != hosts[b]) == remote; });
      if (a == hosts.begin() + static_cast<std::ptrdiff_t>(b)) continue;
      (remote ? classes.remote : classes.local) =
          probe_link(world, static_cast<int>(a - hosts.begin()), static_cast<int>(b), bytes);
      break;
    }
  return classes;
}

}  // namespace concertina
