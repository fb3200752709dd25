#include "core/cuda/dnn/dnn.h"

#include <fmt/format.h>

#include <array>

#include "core/cuda/dnn/attention.h"
#include "core/error.h"

namespace concertina::cuda {
namespace {

// In earlier versions, masked scores are not minus infinity (cuDNN's release notes, 9.10).
constexpr std::int64_t kLeastVersion = 91000;

struct Loaded : Library {
  Dnn functions{};

  Loaded() : Library("cuDNN", fmt::format("libcudnn.so.{}", CUDNN_MAJOR)) {
    CONCERTINA_CUDNN(CONCERTINA_LIBRARY_FIND)
    if (!problem().empty()) return;
    const auto version = static_cast<std::int64_t>(functions.version());
    if (version < kLeastVersion)
      refuse(fmt::format("cuDNN {} is older than {}", version_text(version),
                         version_text(kLeastVersion)));
  }
};

}  // namespace

const std::string& dnn_problem() {
  return loaded<Loaded>().problem();
}

const Dnn& dnn() {
  if (!dnn_problem().empty()) throw_failure(dnn_problem(), "cuDNN");
  return loaded<Loaded>().functions;
}

std::int64_t dnn_version() {
  return static_cast<std::int64_t>(dnn().version());
}

std::string dnn_version_text() {
  return version_text(dnn_version());
}

void check(cudnnStatus_t status, const char* call) {
  if (status == CUDNN_STATUS_SUCCESS) return;
  std::array<char, 512> reason{};
  dnn().last_error(reason.data(), reason.size());
  throw_failure(fmt::format("{} failed: {}: {}", call, dnn().error_string(status), reason.data()),
                "cuDNN",
                "numerics.attention = \"own\" avoids cuDNN; CUDNN_LOGLEVEL_DBG=2 and "
                "CUDNN_LOGDEST_DBG=stderr show more");
}

DnnDescriptor::DnnDescriptor(cudnnBackendDescriptorType_t type) {
  check(dnn().descriptor_create(type, &raw_), "cudnnBackendCreateDescriptor");
}

DnnDescriptor::~DnnDescriptor() {
  if (raw_ != nullptr) (void)dnn().descriptor_destroy(raw_);
}

void DnnDescriptor::set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                        std::int64_t count, const void* values) {
  check(dnn().descriptor_set(raw_, name, type, count, values), "cudnnBackendSetAttribute");
}

std::int64_t DnnDescriptor::get(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                                std::int64_t most, void* values) const {
  std::int64_t count = 0;
  check(dnn().descriptor_get(raw_, name, type, most, &count, values), "cudnnBackendGetAttribute");
  return count;
}

void DnnDescriptor::finalize() {
  check(dnn().descriptor_finalize(raw_), "cudnnBackendFinalize");
}

}  // namespace concertina::cuda
