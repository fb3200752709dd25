// Functions that are the same for every emulated runtime.
#include <cuda_runtime_api.h>

extern "C" {

cudaError_t cudaRuntimeGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) {
  *version = CUDART_VERSION;
  return cudaSuccess;
}

cudaError_t cudaGetLastError() {
  return cudaSuccess;
}
const char* cudaGetErrorString(cudaError_t) {
  return "emulated error";
}
const char* cudaGetErrorName(cudaError_t) {
  return "emulated";
}

}  // extern "C"
