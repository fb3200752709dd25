#include "parallel/comm/mpi_environment.h"
#include "parallel/comm/mpi_ulfm.h"

namespace concertina {

bool ulfm_available() {
  return false;
}

std::string ulfm_failed_ranks(MPI_Comm, int) {
  return {};
}

bool ulfm_active() {
  return false;
}

void ulfm_revoke(MPI_Comm) {}

bool ulfm_revoked(MPI_Comm) {
  return false;
}

bool ulfm_lost(int) {
  return false;
}

MPI_Comm ulfm_living(MPI_Comm) {
  return MPI_COMM_NULL;
}

}  // namespace concertina
