// cuDNN, found at run time: a program that has it in its build starts without it.
#pragma once

#include <cudnn_graph.h>

#include <cstdint>
#include <string>

namespace concertina::cuda {

/// The functions in use, under their own names.
struct Dnn {
  decltype(&::cudnnCreate) create;
  decltype(&::cudnnDestroy) destroy;
  decltype(&::cudnnSetStream) set_stream;
  decltype(&::cudnnGetVersion) version;
  decltype(&::cudnnGetErrorString) error_string;
  decltype(&::cudnnGetLastErrorString) last_error;
  decltype(&::cudnnBackendCreateDescriptor) descriptor_create;
  decltype(&::cudnnBackendDestroyDescriptor) descriptor_destroy;
  decltype(&::cudnnBackendSetAttribute) descriptor_set;
  decltype(&::cudnnBackendGetAttribute) descriptor_get;
  decltype(&::cudnnBackendFinalize) descriptor_finalize;
  decltype(&::cudnnBackendExecute) execute;
};

/// Loads the library at the first call. Throws a failure where dnn_problem() (dnn_attention.h) is
/// not empty.
const Dnn& dnn();

/// 91900 is 9.19.0.
std::int64_t dnn_version();

/// Throws a failure, with cuDNN's reason, unless `status` is success.
void check(cudnnStatus_t status, const char* call);

}  // namespace concertina::cuda
