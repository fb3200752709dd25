#include "core/cuda/dnn/dnn.h"

#include <fmt/format.h>

#include <array>

#include "core/cuda/backend.h"
#include "core/cuda/dnn/attention.h"
#include "core/cuda/library.h"
#include "core/error.h"

namespace concertina::cuda {
namespace {

// Before it, masked scores are not minus infinity (cuDNN's release notes, 9.10).
constexpr std::int64_t kLeastVersion = 91000;

std::string text(std::int64_t version) {
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

struct Loaded {
  Library library{"cuDNN", fmt::format("libcudnn.so.{}", CUDNN_MAJOR)};
  Dnn functions{};

  Loaded() {
    library.find("cudnnCreate", functions.create);
    library.find("cudnnDestroy", functions.destroy);
    library.find("cudnnSetStream", functions.set_stream);
    library.find("cudnnGetVersion", functions.version);
    library.find("cudnnGetErrorString", functions.error_string);
    library.find("cudnnGetLastErrorString", functions.last_error);
    library.find("cudnnBackendCreateDescriptor", functions.descriptor_create);
    library.find("cudnnBackendDestroyDescriptor", functions.descriptor_destroy);
    library.find("cudnnBackendSetAttribute", functions.descriptor_set);
    library.find("cudnnBackendGetAttribute", functions.descriptor_get);
    library.find("cudnnBackendFinalize", functions.descriptor_finalize);
    library.find("cudnnBackendExecute", functions.execute);
    if (!library.problem().empty()) return;
    const auto version = static_cast<std::int64_t>(functions.version());
    if (version < kLeastVersion)
      library.refuse(fmt::format("cuDNN {} is older than {}", text(version), text(kLeastVersion)));
  }
};

const Loaded& loaded() {
  static const Loaded once;
  return once;
}

}  // namespace

const std::string& dnn_problem() {
  return loaded().library.problem();
}

const Dnn& dnn() {
  if (!dnn_problem().empty()) throw_failure(dnn_problem(), "cuDNN");
  return loaded().functions;
}

std::int64_t dnn_version() {
  return static_cast<std::int64_t>(dnn().version());
}

std::string dnn_status() {
  return dnn_problem().empty() ? text(dnn_version()) : dnn_problem();
}

void check(cudnnStatus_t status, const char* call) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  std::array<char, 512> reason{};
  dnn().last_error(reason.data(), reason.size());
  throw_failure(fmt::format("{} failed: {}: {}", call, dnn().error_string(status), reason.data()),
                "cuDNN", "CUDNN_LOGLEVEL_DBG=2 and CUDNN_LOGDEST_DBG=stderr tell more");
}

}  // namespace concertina::cuda
