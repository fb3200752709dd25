#include "core/cuda/dnn/descriptor.h"

namespace concertina::cuda {

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
