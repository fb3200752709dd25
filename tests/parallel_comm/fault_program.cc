// Misbehaves on purpose, for fault_test.sh: ranks that abort, throw, or are launched wrongly.
// usage: fault_program world|abort|exception|finish
#include <cstdio>
#include <stdexcept>
#include <string>

#include "core/error.h"
#include "core/log.h"
#include "parallel/mpi_environment.h"

namespace concertina {
namespace {

void misbehave(const std::string& how, MpiEnvironment& mpi) {
  Communicator& world = mpi.world();
  if (world.rank() == 0) std::printf("%d ranks, %d here\n", world.size(), mpi.local_size());
  if (how == "world") return;
  const bool culprit = world.rank() == world.size() - 1;
  if (culprit && how == "abort") world.abort(75);
  if (culprit && how == "exception") throw std::runtime_error("the culprit throws");
  std::byte byte{};
  world.irecv(Bytes(&byte, 1), world.size() - 1).wait();  // never comes
}

}  // namespace
}  // namespace concertina

int main(int, char** argv) {
  using namespace concertina;
  try {
    MpiEnvironment mpi;
    misbehave(argv[1], mpi);
  } catch (const Error& error) {
    log::error("{}", error.what());
    return static_cast<int>(error.code());
  }
  return 0;
}
