// Hosts on which ranks are started, with their slot counts. Invariant: hosts are distinct, and each
// has at least one slot.
#pragma once

#include <string>
#include <vector>

namespace concertina {

struct Host {
  std::string name;
  int slots = 1;
  bool operator==(const Host&) const = default;
};

/// Parses "a:2,b" as mpirun's -H does: host b has one slot. Throws Error{bad_input} if it cannot.
std::vector<Host> parse_hosts(const std::string& text, const std::string& where);

/// Returns text such as "a:2,b:1".
std::string hosts_text(const std::vector<Host>& hosts);

int slots_of(const std::vector<Host>& hosts);

/// The first of these hosts that together have slots for `ranks` ranks, the last one reduced to the
/// slots needed; all hosts if there are too few slots.
std::vector<Host> first_slots(const std::vector<Host>& hosts, int ranks);

}  // namespace concertina
