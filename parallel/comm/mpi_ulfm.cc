#include "parallel/comm/mpi_ulfm.h"

#include <mpi-ext.h>

#include <cstdlib>
#include <string_view>
#include <vector>

#include "parallel/comm/mpi_environment.h"

namespace concertina {

bool ulfm_available() {
  return true;
}

bool ulfm_active() {
  static const bool active = [] {
    const char* enabled = std::getenv("OMPI_MCA_mpi_ft_enable");  // set by `--with-ft ulfm`
    return enabled != nullptr && std::string_view(enabled) == "1";
  }();
  return active;
}

void ulfm_revoke(MPI_Comm comm) {
  MPIX_Comm_revoke(comm);
}

bool ulfm_revoked(MPI_Comm comm) {
  int revoked = 0;
  return MPIX_Comm_is_revoked(comm, &revoked) == MPI_SUCCESS && revoked != 0;
}

bool ulfm_lost(int error) {
  int type = MPI_SUCCESS;
  MPI_Error_class(error, &type);
  return type == MPIX_ERR_PROC_FAILED || type == MPIX_ERR_PROC_FAILED_PENDING ||
         type == MPIX_ERR_REVOKED;
}

MPI_Comm ulfm_living(MPI_Comm comm) {
  MPI_Comm living = MPI_COMM_NULL;
  if (MPIX_Comm_shrink(comm, &living) != MPI_SUCCESS) return MPI_COMM_NULL;
  MPI_Comm_set_errhandler(living, MPI_ERRORS_RETURN);
  return living;
}

std::string ulfm_failed_ranks(MPI_Comm comm, int error) {
  if (!ulfm_lost(error)) return {};
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
