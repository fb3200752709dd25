#include "parallel/comm/nccl_library.h"

#include <dlfcn.h>
#include <fmt/ranges.h>

#include <filesystem>
#include <vector>

#include "core/error.h"

namespace concertina {
namespace {

constexpr int kLeastVersion = 21803;  // 2.18.3: ncclCommSplit

/// The loader's own places, then the lib folder beside the program's, then the toolkit's usual one.
std::vector<std::string> candidates() {
  const std::string name = fmt::format("libnccl.so.{}", NCCL_MAJOR);
  std::error_code error;
  const auto program = std::filesystem::read_symlink("/proc/self/exe", error);
  std::vector<std::string> paths{name};
  if (!error) paths.push_back(program.parent_path().parent_path() / "lib" / name);
  paths.push_back("/usr/local/cuda/lib64/" + name);
  return paths;
}

struct Library {
  Nccl functions{};
  std::string problem;

  Library() {
    void* library = nullptr;  // stays for the life of the program
    for (const std::string& path : candidates())
      if (library == nullptr) library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) {
      problem = fmt::format("NCCL is not there (looked for {})", fmt::join(candidates(), ", "));
      return;
    }
    load(library);
    if (!problem.empty()) return;
    int version = 0;
    functions.get_version(&version);
    if (version < kLeastVersion)
      problem = fmt::format("NCCL's version {} is older than {}", version, kLeastVersion);
  }

  void load(void* library) {
    const auto find = [&](const char* name, auto& function) {
      function =
          reinterpret_cast<std::remove_reference_t<decltype(function)>>(dlsym(library, name));
      if (function == nullptr) problem = fmt::format("NCCL lacks {}", name);
    };
    find("ncclGetVersion", functions.get_version);
    find("ncclGetUniqueId", functions.get_unique_id);
    find("ncclCommInitRankConfig", functions.comm_init);
    find("ncclCommSplit", functions.comm_split);
    find("ncclCommFinalize", functions.comm_finalize);
    find("ncclCommDestroy", functions.comm_destroy);
    find("ncclCommAbort", functions.comm_abort);
    find("ncclCommGetAsyncError", functions.comm_state);
    find("ncclGetErrorString", functions.error_string);
    find("ncclGetLastError", functions.last_error);
    find("ncclGroupStart", functions.group_start);
    find("ncclGroupEnd", functions.group_end);
    find("ncclSend", functions.send);
    find("ncclRecv", functions.receive);
    find("ncclBroadcast", functions.broadcast);
  }
};

const Library& library() {
  static const Library loaded;
  return loaded;
}

}  // namespace

std::string nccl_problem() {
  return library().problem;
}

const Nccl& nccl() {
  CONCERTINA_CHECK(library().problem.empty(), "{}", library().problem);
  return library().functions;
}

}  // namespace concertina
