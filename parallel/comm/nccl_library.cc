#include "parallel/comm/nccl_library.h"

#include <fmt/format.h>

#include "core/error.h"
#include "parallel/comm/tensor_communicator.h"

namespace concertina {
namespace {

constexpr int kLeastVersion = 21803;  // 2.18.3: ncclCommSplit

struct Loaded : cuda::Library {
  Nccl functions{};
  int version = 0;

  Loaded() : Library("NCCL", fmt::format("libnccl.so.{}", NCCL_MAJOR)) {
    CONCERTINA_NCCL(CONCERTINA_LIBRARY_FIND)
    if (problem().empty()) check_version();
  }

  void check_version() {
    functions.get_version(&version);
    if (version < kLeastVersion)
      refuse(fmt::format("NCCL version {} is older than the required {}", version, kLeastVersion));
  }
};

}  // namespace

std::string nccl_problem() {
  return cuda::loaded<Loaded>().problem();
}

std::string nccl_status() {
  return nccl_problem().empty() ? cuda::version_text(cuda::loaded<Loaded>().version)
                                : nccl_problem();
}

const Nccl& nccl() {
  CONCERTINA_CHECK(nccl_problem().empty(), "{}", nccl_problem());
  return cuda::loaded<Loaded>().functions;
}

}  // namespace concertina
