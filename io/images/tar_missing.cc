#include "core/error.h"
#include "io/images/tar_shard.h"

namespace concertina {

bool has_libarchive() {
  return false;
}

std::vector<TarMember> list_tar(std::span<const std::byte> /*file*/, const std::string& path,
                                bool (* /*wanted*/)(std::string_view name),
                                std::string& /*unpacked*/) {
  throw_input("this program was built without libarchive", path,
              "install libarchive-dev and rebuild");
}

}  // namespace concertina
