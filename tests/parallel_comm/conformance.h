// Checks what parallel/comm/communicator.h promises, one sentence per check, for every
// implementation.
// Invariant: a check is collective: every rank of a fresh, fully connected communicator calls it.
#pragma once

#include <ostream>
#include <vector>

#include "parallel/comm/communicator.h"

namespace concertina::test {

struct Contract {
  const char* name;
  void (*check)(Communicator&);
};

std::vector<Contract> contracts();

inline std::ostream& operator<<(std::ostream& out, const Contract& contract) {
  return out << contract.name;
}

}  // namespace concertina::test
