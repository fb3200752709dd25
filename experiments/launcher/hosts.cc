#include "experiments/launcher/hosts.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "core/text/number_text.h"

namespace concertina {
namespace {

Host parse_host(std::string_view word, const std::string& where) {
  const std::size_t colon = word.rfind(':');
  Host host{std::string(word.substr(0, colon))};
  if (colon != std::string_view::npos)
    host.slots = parse_number<int>(word.substr(colon + 1)).value_or(0);
  constexpr int kMostSlots = 1 << 20;
  const bool spaces = host.name.find_first_of(" \t,{}") != std::string::npos;
  if (host.name.empty() || spaces || host.slots < 1 || host.slots > kMostSlots)
    throw_input(fmt::format("expected HOST:SLOTS, got '{}'", word), where,
                "--hosts node1:4,node2:4");
  return host;
}

}  // namespace

std::vector<Host> parse_hosts(const std::string& text, const std::string& where) {
  std::vector<Host> hosts;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    const Host host = parse_host(std::string_view(text).substr(at, comma - at), where);
    if (std::ranges::find(hosts, host.name, &Host::name) != hosts.end())
      throw_input(fmt::format("host {} is listed twice", host.name), where,
                  "each host once, with its total number of slots");
    hosts.push_back(host);
    at = comma + 1;
  }
  return hosts;
}

std::string hosts_text(const std::vector<Host>& hosts) {
  std::string text;
  for (const Host& host : hosts)
    text += fmt::format("{}{}:{}", text.empty() ? "" : ",", host.name, host.slots);
  return text;
}

int slots_of(const std::vector<Host>& hosts) {
  int slots = 0;
  for (const Host& host : hosts) slots += host.slots;
  return slots;
}

std::vector<Host> first_slots(const std::vector<Host>& hosts, int ranks) {
  std::vector<Host> first;
  for (Host host : hosts) {
    if (ranks <= 0) break;
    host.slots = std::min(host.slots, ranks);
    ranks -= host.slots;
    first.push_back(host);
  }
  return first;
}

}  // namespace concertina
