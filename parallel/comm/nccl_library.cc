#include "parallel/comm/nccl_library.h"

#include <fmt/format.h>

#include "core/cuda/library.h"
#include "core/error.h"
#include "parallel/comm/tensor_communicator.h"

namespace concertina {
namespace {

constexpr int kLeastVersion = 21803;  // 2.18.3: ncclCommSplit

struct Loaded {
  cuda::Library library{"NCCL", fmt::format("libnccl.so.{}", NCCL_MAJOR)};
  Nccl functions{};
  int version = 0;

  Loaded() {
    library.find("ncclGetVersion", functions.get_version);
    library.find("ncclGetUniqueId", functions.get_unique_id);
    library.find("ncclCommInitRankConfig", functions.comm_init);
    library.find("ncclCommSplit", functions.comm_split);
    library.find("ncclCommFinalize", functions.comm_finalize);
    library.find("ncclCommDestroy", functions.comm_destroy);
    library.find("ncclCommAbort", functions.comm_abort);
    library.find("ncclCommGetAsyncError", functions.comm_state);
    library.find("ncclGetErrorString", functions.error_string);
    library.find("ncclGetLastError", functions.last_error);
    library.find("ncclGroupStart", functions.group_start);
    library.find("ncclGroupEnd", functions.group_end);
    library.find("ncclSend", functions.send);
    library.find("ncclRecv", functions.receive);
    library.find("ncclBroadcast", functions.broadcast);
    if (library.problem().empty()) check_version();
  }

  void check_version() {
    functions.get_version(&version);
    if (version < kLeastVersion)
      library.refuse(fmt::format("NCCL's version {} is older than {}", version, kLeastVersion));
  }
};

const Loaded& loaded() {
  static const Loaded once;
  return once;
}

}  // namespace

std::string nccl_problem() {
  return loaded().library.problem();
}

std::string nccl_status() {
  const int version = loaded().version;
  return nccl_problem().empty()
             ? fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100)
             : nccl_problem();
}

const Nccl& nccl() {
  CONCERTINA_CHECK(nccl_problem().empty(), "{}", nccl_problem());
  return loaded().functions;
}

}  // namespace concertina
