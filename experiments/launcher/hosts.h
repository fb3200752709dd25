// Hosts that ranks are started on, with how many slots each has for them.
// Invariant: no host is there twice, and each has one slot at least.
#pragma once

#include <string>
#include <vector>

namespace concertina {

struct Host {
  std::string name;
  int slots = 1;
  bool operator==(const Host&) const = default;
};

/// Reads "a:2,b" as mpirun's -H has it: host b has one slot. Throws Error{bad_input} that names
/// `where`.
std::vector<Host> parse_hosts(const std::string& text, const std::string& where);

/// "a:2,b:1".
std::string hosts_text(const std::vector<Host>& hosts);

int slots_of(const std::vector<Host>& hosts);

/// The first of these hosts that have slots for so many ranks together, the last one with as many
/// slots as are still needed; all of them where they are too few.
std::vector<Host> first_slots(const std::vector<Host>& hosts, int ranks);

}  // namespace concertina
