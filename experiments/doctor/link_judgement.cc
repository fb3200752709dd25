// Links between hosts and within them.
#include <fmt/format.h>

#include <algorithm>

#include "core/index.h"
#include "core/text/number_text.h"
#include "experiments/doctor/cluster_judgement.h"

namespace concertina {
namespace {

/// The middle one in each figure, the better one of an even number.
LinkSpeed better_middle(std::vector<LinkSpeed> links) {
  if (links.empty()) return {};
  const auto middle = links.begin() + static_cast<std::ptrdiff_t>((links.size() - 1) / 2);
  std::ranges::nth_element(links, middle, {}, &LinkSpeed::latency);
  const double latency = middle->latency;
  std::ranges::nth_element(links, middle, std::ranges::greater(), &LinkSpeed::bandwidth);
  return {latency, middle->bandwidth};
}

std::vector<LinkSpeed> links_of(const std::vector<LinkSpeed>& links, std::size_t hosts,
                                std::size_t host) {
  std::vector<LinkSpeed> own;
  for (std::size_t peer = 0; peer < hosts; ++peer)
    if (peer != host) own.push_back(links[host * hosts + peer]);
  return own;
}

/// A host with more slow links than others is a slow host; of the other hosts, pairs are slow.
void judge_figure(const ClusterFacts& facts, const char* check, decltype(has_high_latency) slow,
                  const char* bound, const LinkSpeed& usual, std::vector<Finding>& found) {
  const std::size_t count = facts.hosts.size();
  std::vector<bool> slow_host(count);
  std::vector<std::string> hosts, pairs;
  for (std::size_t host = 0; host < count; ++host) {
    const std::vector<LinkSpeed> own = links_of(facts.links, count, host);
    const auto is_slow = [&](const LinkSpeed& link) { return slow(link, usual); };
    const auto links = static_cast<std::size_t>(std::ranges::count_if(own, is_slow));
    slow_host[host] = 2 * links > own.size();
    const std::string which =
        links == own.size() ? "all its links" : fmt::format("{} of {} links", links, own.size());
    if (slow_host[host])
      hosts.push_back(
          fmt::format("{}: {}: {}", facts.hosts[host].name, which, speed_text(better_middle(own))));
  }
  for (std::size_t a = 0; a < count; ++a)
    for (std::size_t b = a + 1; b < count; ++b)
      if (const LinkSpeed& link = facts.links[a * count + b];
          !slow_host[a] && !slow_host[b] && slow(link, usual))
        pairs.push_back(
            fmt::format("{}-{}: {}", facts.hosts[a].name, facts.hosts[b].name, speed_text(link)));
  const std::string limit = fmt::format("{}: {}", bound, speed_text(usual));
  add(found, hosts,
      {false, check, "", limit,
       "look at its network card, cable, switch port and power saving, or leave it out"});
  add(found, pairs,
      {false, check, "", limit, "look at the route between the two, or do not launch on both"});
}

void judge_local_links(const ClusterFacts& facts, std::vector<Finding>& found) {
  constexpr double kOthers = 8 * 1024 * 1024;  // bytes that other processes may send meanwhile
  std::vector<std::string> settings(facts.hosts.size()), hosts;
  for (const RankFacts& rank : facts.ranks)
    if (const auto btl = rank.environment.find("OMPI_MCA_btl"); btl != rank.environment.end())
      settings[at(rank.host)] = " with OMPI_MCA_btl=" + btl->second;
  for (std::size_t i = 0; i < facts.hosts.size(); ++i)
    if (const HostFacts& host = facts.hosts[i]; host.looped > kOthers)
      hosts.push_back(fmt::format("{}: {}{}", host.name, speed_text(host.local), settings[i]));
  add(found, hosts,
      {false, "transport", "messages within a host go over TCP: ", "shared memory",
       "unset OMPI_MCA_btl, or add vader to it (sm in Open MPI 5), also in mca-params.conf"});
}

}  // namespace

LinkSpeed usual_link(const std::vector<LinkSpeed>& links, std::size_t hosts) {
  std::vector<LinkSpeed> typical;
  for (std::size_t host = 0; hosts > 1 && host < hosts; ++host)
    typical.push_back(better_middle(links_of(links, hosts, host)));
  return better_middle(typical);
}

std::string speed_text(const LinkSpeed& link) {
  return fmt::format("{}, {}/s", duration_text(link.latency), bytes_text(link.bandwidth));
}

bool has_low_bandwidth(const LinkSpeed& link, const LinkSpeed& usual) {
  return link.bandwidth < usual.bandwidth / 4;
}

bool has_high_latency(const LinkSpeed& link, const LinkSpeed& usual) {
  return link.latency > std::max(4 * usual.latency, usual.latency + 50e-6);
}

std::optional<int> opponent(int host, int round, int hosts) {
  const int last = hosts - 1 + hosts % 2;  // odd; the one who stays in place
  int other =
      host == last ? round * ((last + 1) / 2) % last : ((round - host) % last + last) % last;
  if (other == host) other = last;
  return other < hosts ? std::optional(other) : std::nullopt;
}

void judge_links(const ClusterFacts& facts, std::vector<Finding>& found) {
  if (!facts.links.empty()) {
    const LinkSpeed usual = usual_link(facts.links, facts.hosts.size());
    judge_figure(facts, "bandwidth", has_low_bandwidth, "a quarter of the usual", usual, found);
    judge_figure(facts, "latency", has_high_latency, "four times it and 50 µs more", usual, found);
  }
  judge_local_links(facts, found);
}

}  // namespace concertina
