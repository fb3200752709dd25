#include "experiments/machine/heartbeats.h"

#include <arpa/inet.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <sys/socket.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <random>
#include <set>

#include "core/clock.h"
#include "core/host_name.h"
#include "experiments/machine/gather.h"

namespace concertina {
namespace {

/// The IPv4 addresses at which other hosts may reach this one.
std::vector<std::uint32_t> own_addresses() {
  std::vector<std::uint32_t> addresses;
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) return addresses;
  for (const ifaddrs* one = list; one != nullptr; one = one->ifa_next) {
    const bool usable = (one->ifa_flags & IFF_UP) != 0 && (one->ifa_flags & IFF_LOOPBACK) == 0;
    if (usable && one->ifa_addr != nullptr && one->ifa_addr->sa_family == AF_INET)
      addresses.push_back(reinterpret_cast<const sockaddr_in*>(one->ifa_addr)->sin_addr.s_addr);
  }
  ::freeifaddrs(list);
  return addresses;
}

std::uint16_t port_of(int socket) {
  sockaddr_in address{};
  socklen_t size = sizeof address;
  ::getsockname(socket, reinterpret_cast<sockaddr*>(&address), &size);
  return address.sin_port;
}

}  // namespace

void Heartbeats::listen() {
  const int socket = ::socket(AF_INET, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  sockaddr_in any{};
  any.sin_family = AF_INET;
  if (socket < 0 || ::bind(socket, reinterpret_cast<const sockaddr*>(&any), sizeof any) != 0)
    return;  // this host then sends no heartbeats and is never reported as silent
  socket_ = File(socket, "a socket for heartbeats");
}

Heartbeats::Heartbeats(Communicator& world) {
  const std::vector<int> hosts = host_of_ranks(world);
  const int count = 1 + *std::ranges::max_element(hosts);
  if (count == 1) return;
  listen();
  std::random_device random;
  own_ = {.launch = from_first(
              world, [&] { return nlohmann::json((std::uint64_t{random()} << 32) | random()); }),
          .host = hosts[static_cast<std::size_t>(world.rank())]};
  const std::vector<nlohmann::json> all =
      gather_json(world, {{"port", socket_.descriptor() < 0 ? 0 : port_of(socket_.descriptor())},
                          {"addresses", own_addresses()},
                          {"name", host_name()}});
  for (const int host : std::set<int>{(own_.host + 1) % count, (own_.host + count - 1) % count}) {
    Neighbor neighbor{.host = host, .names = {}, .addresses = {}, .silence = {}};
    for (std::size_t rank = 0; rank < hosts.size(); ++rank) {
      if (hosts[rank] != host) continue;
      neighbor.names.name = all[rank]["name"].get<std::string>();
      neighbor.names.ranks.push_back(static_cast<int>(rank));
      for (const std::uint32_t address : all[rank]["addresses"].get<std::vector<std::uint32_t>>()) {
        sockaddr_in& place = neighbor.addresses.emplace_back();
        place.sin_family = AF_INET;
        place.sin_port = all[rank]["port"].get<std::uint16_t>();
        place.sin_addr.s_addr = address;
      }
    }
    neighbors_.push_back(std::move(neighbor));
  }
}

void Heartbeats::receive() {
  for (Neighbor& neighbor : neighbors_) neighbor.silence.look(true, now());
  Beat beat;
  while (::recv(socket_.descriptor(), &beat, sizeof beat, 0) == sizeof beat) {
    if (beat.launch != own_.launch) continue;
    for (Neighbor& neighbor : neighbors_) {
      if (neighbor.host != beat.host) continue;
      neighbor.left = neighbor.left || beat.leaves != 0;
      neighbor.silence.look(false, neighbor.left ? 0 : now());
    }
  }
}

void Heartbeats::beat(bool speaks) {
  if (socket_.descriptor() < 0) return;
  receive();
  if (speaks) send();
}

void Heartbeats::send() const {
  for (const Neighbor& neighbor : neighbors_)
    for (const sockaddr_in& address : neighbor.addresses)
      ::sendto(socket_.descriptor(), &own_, sizeof own_, 0,
               reinterpret_cast<const sockaddr*>(&address), sizeof address);
}

Heartbeats::~Heartbeats() {
  if (socket_.descriptor() < 0) return;
  constexpr int kTimes = 3;  // datagrams may be lost
  own_.leaves = 1;
  for (int i = 0; i < kTimes; ++i) send();
}

std::vector<SilentHost> Heartbeats::silent() const {
  std::vector<SilentHost> silent;
  for (const Neighbor& neighbor : neighbors_)
    if (neighbor.silence.free_at > 0 && neighbor.silence.exceeds(kSilenceLimit))
      silent.push_back(neighbor.names);
  return silent;
}

}  // namespace concertina
