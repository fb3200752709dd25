// Replaces the other nccl_* files in builds without CUDA or nccl.h.
#include "core/error.h"
#include "parallel/comm/nccl_communicator.h"
#include "parallel/comm/tensor_communicator.h"

namespace concertina {

std::string nccl_refusal(Communicator&, Memory&) {
  return "concertina was built without NCCL";
}

std::string nccl_status() {
  return {};
}

std::unique_ptr<Communicator> make_nccl_communicator(Communicator&, Memory&) {
  CONCERTINA_CHECK(false, "concertina was built without NCCL");
}

}  // namespace concertina
