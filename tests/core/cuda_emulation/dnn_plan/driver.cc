// A driver without a device, as far as cuDNN needs one to plan: it takes every kernel that cuDNN
// compiles, keeps its name, and runs none.
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

/// Names of the kernels that were asked for since the last call, each in front of a space.
const char* emulated_driver_kernels() {
  static std::string last;
  last = std::move(names);
  names.clear();
  return last.c_str();
}

int cuInit(unsigned) {
  return kNoDevice;
}
int cuDeviceGetCount(int* count) {  // of none, cuDNN would not load what it compiles
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

// cuDNN refuses a driver that lacks one of these; it calls none while it plans.
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
