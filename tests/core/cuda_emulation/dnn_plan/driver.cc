// A driver without a device, with only what cuDNN needs to plan: it accepts every kernel that cuDNN
// compiles, records its name, and runs none.
#include <string>

namespace {

constexpr int kSuccess = 0, kNoDevice = 100, kNotSupported = 801;
int handle;
std::string names;

int give(void** to) {
  *to = &handle;
  return kSuccess;
}

}  // namespace

extern "C" {

/// Names of the kernels requested since the last call, each preceded by a space.
const char* emulated_driver_kernels() {
  static std::string last;
  last = std::move(names);
  names.clear();
  return last.c_str();
}

int cuInit(unsigned) {
  return kNoDevice;
}
int cuDeviceGetCount(int* count) {  // with none, cuDNN would not load its kernels
  *count = 1;
  return kSuccess;
}
int cuDriverGetVersion(int* version) {
  *version = 13000;
  return kSuccess;
}
int cuLibraryLoadData(void** library) {
  return give(library);
}
int cuLibraryGetKernel(void** kernel, void*, const char* name) {
  names += std::string(name) + " ";
  return give(kernel);
}
int cuKernelGetFunction(void** function, void*) {
  return give(function);
}
int cuLibraryUnload(void*) {
  return kSuccess;
}
int cuKernelSetAttribute(int, int, void*, int) {
  return kSuccess;
}

// cuDNN rejects a driver that lacks one of these, but does not call them while planning.
#define LACKING(name)     \
  int name() {            \
    return kNotSupported; \
  }
LACKING(cuCtxGetCurrent)
LACKING(cuCtxGetLimit)
LACKING(cuCtxPopCurrent)
LACKING(cuCtxPushCurrent)
LACKING(cuDeviceGet)
LACKING(cuDeviceGetAttribute)
LACKING(cuFuncGetAttribute)
LACKING(cuFuncSetAttribute)
LACKING(cuGetErrorName)
LACKING(cuGetErrorString)
LACKING(cuKernelGetAttribute)
LACKING(cuLaunchCooperativeKernel)
LACKING(cuLaunchKernel)
LACKING(cuLaunchKernelEx)
LACKING(cuLibraryLoadFromFile)
LACKING(cuLinkAddData)
LACKING(cuLinkComplete)
LACKING(cuLinkCreate)
LACKING(cuLinkDestroy)
LACKING(cuModuleGetFunction)
LACKING(cuModuleLoadData)
LACKING(cuModuleUnload)
LACKING(cuOccupancyMaxActiveBlocksPerMultiprocessor)
LACKING(cuOccupancyMaxPotentialClusterSize)
LACKING(cuStreamGetCtx)
LACKING(cuTensorMapEncodeTiled)
}
