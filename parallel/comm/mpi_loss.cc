#include "parallel/comm/mpi_loss.h"

#include <sched.h>

#include <utility>

#include "core/clock.h"
#include "core/error.h"
#include "parallel/comm/mpi_ulfm.h"

namespace concertina {
namespace {

/// Time limit for all requests together. Observed: 30 ms with ten times as many processes as cores.
constexpr double kCalmSeconds = 2;

}  // namespace

bool MpiLoss::known() const {
  return expected_ && (left_ || reported_.load(std::memory_order_relaxed) || ulfm_revoked(all_));
}

void MpiLoss::leave(std::string what, std::string where) {
  if (!std::exchange(left_, true)) {
    left_at_ = now();
    for (const MPI_Comm comm : comms_) ulfm_revoke(comm);
  }
  throw LostRanks(Exit::failure, std::move(what), std::move(where), "");
}

void MpiLoss::end(MPI_Request& request) {
  for (int done = 0; done == 0; ::sched_yield()) {
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);  // the error is already known
    if (done == 0 && now() > left_at_ + kCalmSeconds) {
      calm_ = false;
      return;
    }
  }
}

}  // namespace concertina
