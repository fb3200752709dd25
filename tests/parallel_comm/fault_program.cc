// Fails on purpose, for fault_test.sh: ranks that abort, throw, die, or are launched incorrectly.
// usage: fault_program world|abort|exception|unwind|kill
#include <csignal>
#include <cstdio>
#include <stdexcept>
#include <string>

#include "core/error.h"
#include "core/log.h"
#include "parallel/comm/mpi_environment.h"

namespace concertina {
namespace {

void misbehave(const std::string& how, MpiEnvironment& mpi) {
  Communicator& world = mpi.world();
  if (world.rank() == 0)
    std::printf("%d ranks, %d here, ULFM %d\n", world.size(), mpi.local_size(), ulfm_available());
  if (how == "world") return;
  const bool culprit = world.rank() == world.size() - 1;
  if (culprit && how == "abort") world.abort(75);
  if (culprit && (how == "exception" || how == "unwind"))
    throw std::runtime_error("the culprit throws");
  if (culprit && how == "kill") std::raise(SIGKILL);
  std::byte byte{};
  world.irecv(Bytes(&byte, 1), world.size() - 1).wait();  // never arrives
}

}  // namespace
}  // namespace concertina

int main(int, char** argv) {
  using namespace concertina;
  const std::string how = argv[1];
  try {
    MpiEnvironment mpi;
    try {
      misbehave(how, mpi);
    } catch (const std::exception& error) {
      if (how == "unwind") throw;
      log::error("{}", error.what());
      const auto* known = dynamic_cast<const Error*>(&error);
      const int code = static_cast<int>(known == nullptr ? Exit::failure : known->code());
      if (mpi.started()) abort_job(code);
      return code;
    }
  } catch (const std::exception&) {
    log::error("the environment let an exception out");
  }
  return 0;
}
