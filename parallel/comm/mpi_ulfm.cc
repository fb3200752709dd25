#include "parallel/comm/mpi_ulfm.h"

#include <mpi-ext.h>

#include <vector>

#include "parallel/comm/mpi_environment.h"

namespace concertina {

bool ulfm_available() {
  return true;
}

std::string ulfm_failed_ranks(MPI_Comm comm, int error) {
  int type = MPI_SUCCESS;
  MPI_Error_class(error, &type);
  if (type != MPIX_ERR_PROC_FAILED && type != MPIX_ERR_PROC_FAILED_PENDING &&
      type != MPIX_ERR_REVOKED)
    return {};
  MPI_Group dead = MPI_GROUP_NULL, world = MPI_GROUP_NULL;
  if (MPIX_Comm_failure_ack(comm) != MPI_SUCCESS ||
      MPIX_Comm_failure_get_acked(comm, &dead) != MPI_SUCCESS)
    return {};
  int count = 0;
  MPI_Group_size(dead, &count);
  MPI_Comm_group(MPI_COMM_WORLD, &world);
  std::vector<int> ranks(count), world_ranks(count);
  for (int r = 0; r < count; ++r) ranks[r] = r;
  MPI_Group_translate_ranks(dead, count, ranks.data(), world, world_ranks.data());
  MPI_Group_free(&dead);
  MPI_Group_free(&world);
  std::string names;
  for (int rank : world_ranks) {
    names += names.empty() ? "rank " : ", rank ";
    names += std::to_string(rank);
  }
  return names;
}

}  // namespace concertina
