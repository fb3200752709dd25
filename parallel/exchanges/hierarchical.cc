#include <algorithm>
#include <map>

#include "parallel/plan/exchange_scheme.h"

namespace concertina {
namespace {

/// Positions of holders; hosts are ordered by their first holder.
class Places {
 public:
  explicit Places(const ExchangeShape& shape) {
    std::map<int, int> numbers;
    for (int h = 0; h < shape.holders(); ++h) {
      const int host = shape.hosts[static_cast<std::size_t>(h)];
      const auto [known, fresh] = numbers.try_emplace(host, hosts());
      if (fresh) members_.emplace_back();
      host_.push_back(known->second);
      position_.push_back(size(known->second));
      members_[static_cast<std::size_t>(known->second)].push_back(h);
      most_ = std::max(most_, size(known->second));
    }
  }

  int hosts() const { return static_cast<int>(members_.size()); }
  int size(int host) const { return static_cast<int>(members(host).size()); }
  int most() const { return most_; }
  int host(int holder) const { return host_[static_cast<std::size_t>(holder)]; }
  int position(int holder) const { return position_[static_cast<std::size_t>(holder)]; }
  const std::vector<int>& members(int host) const {
    return members_[static_cast<std::size_t>(host)];
  }
  /// Returns the holder on `host` that collects the host's shares of `chunk` in the first phase.
  int relay(int host, int chunk) const {
    if (this->host(chunk) == host) return chunk;
    return members(host)[static_cast<std::size_t>(position(chunk) % size(host))];
  }

 private:
  std::vector<int> host_, position_;       // by holder
  std::vector<std::vector<int>> members_;  // by host
  int most_ = 0;                           // maximum number of holders on a host
};

}  // namespace

/// Exchanges around the ring of a host's holders.
static ExchangePhase within(const Places& places, int chunks, int me) {
  ExchangePhase phase;
  const int host = places.host(me), size = places.size(host);
  std::vector<std::vector<int>> relayed(static_cast<std::size_t>(size));  // chunks, by position
  for (int chunk = 0; chunk < chunks; ++chunk)
    relayed[static_cast<std::size_t>(places.position(places.relay(host, chunk)))].push_back(chunk);
  const auto at = [&](int distance) {
    return static_cast<std::size_t>((places.position(me) + distance) % size);
  };
  for (int step = 1; step < size; ++step) {
    const std::vector<int>& ring = places.members(host);
    for (const int chunk : relayed[at(step)]) phase.sends.push_back({step, ring[at(step)], chunk});
    for (const int chunk : relayed[at(0)])
      phase.receives.push_back({step, ring[at(size - step)], chunk});
  }
  return phase;
}

/// Exchanges around the ring of hosts; a host with more holders than this one needs several steps.
static ExchangePhase between(const Places& places, int me) {
  ExchangePhase phase;
  const int hosts = places.hosts(), mine = places.host(me), most = places.most();
  for (int distance = 1; distance < hosts; ++distance) {
    const int to = (mine + distance) % hosts, from = (mine + hosts - distance) % hosts;
    const auto step = [&](int owner, int host) {
      return (distance - 1) * most + places.position(owner) / places.size(host) + 1;
    };
    for (const int owner : places.members(to))
      if (places.relay(mine, owner) == me) phase.sends.push_back({step(owner, mine), owner, owner});
    phase.receives.push_back({step(me, from), places.relay(from, me), me});
  }
  return phase;
}

static ExchangeRow row(const ExchangeShape& shape, int me) {
  const Places places(shape);
  ExchangeRow row;
  if (places.most() > 1) row.push_back(within(places, shape.holders(), me));
  if (places.hosts() > 1 || row.empty()) row.push_back(between(places, me));
  return row;
}

ExchangeScheme exchange_hierarchical() {
  return {.row = row,
          .about =
              "within each host first, so that a host sends each owner a single sum where "
              "the tree allows it; then between hosts"};
}

}  // namespace concertina
