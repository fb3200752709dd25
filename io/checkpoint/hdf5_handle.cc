#include "io/checkpoint/hdf5_handle.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <utility>

#include "core/error.h"
#include "core/log.h"

namespace concertina {
namespace {

/// Stores the text of HDF5's innermost error.
herr_t innermost(unsigned, const H5E_error2_t* error, void* text) {
  if (error->desc != nullptr) *static_cast<std::string*>(text) = error->desc;
  return 0;
}

[[noreturn]] void throw_hdf5(const char* call, const std::string& what) {
  std::string reason;
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_DOWNWARD, innermost, &reason);
  throw_failure(fmt::format("{} failed{}{}", call, reason.empty() ? "" : ": ", reason), what);
}

/// Disables HDF5's error output to stderr; errors are reported through Error.
void silence() {
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
}

}  // namespace

Hid::Hid(hid_t id, Close close, const char* call, const std::string& what)
    : id_(id), close_(close), call_(call) {
  if (id < 0) throw_hdf5(call, what);
}

Hid::~Hid() {
  if (id_ >= 0 && close_(id_) < 0) log::error("HDF5 could not close an object opened by {}", call_);
}

Hid::Hid(Hid&& other) noexcept
    : id_(std::exchange(other.id_, -1)), close_(other.close_), call_(other.call_) {}

void check_hdf5(herr_t status, const char* call, const std::string& what) {
  if (status < 0) throw_hdf5(call, what);
}

Hid make_dataspace(const std::vector<hsize_t>& dims, const std::string& what) {
  return Hid(H5Screate_simple(static_cast<int>(dims.size()), dims.data(), nullptr), H5Sclose,
             "H5Screate_simple", what);
}

std::string dataset_name(const std::string& tensor, const std::string& part, std::uint64_t offset) {
  return fmt::format("{}/{}.{}", tensor, part, offset);
}

Hid make_dataset(hid_t file, const std::string& name, const std::vector<hsize_t>& dims,
                 hid_t properties) {
  const Hid links(H5Pcreate(H5P_LINK_CREATE), H5Pclose, "H5Pcreate", name);
  check_hdf5(H5Pset_create_intermediate_group(links, 1), "H5Pset_create_intermediate_group", name);
  const Hid space = make_dataspace(dims, name);
  return Hid(H5Dcreate2(file, name.c_str(), H5T_IEEE_F32LE, space, links, properties, H5P_DEFAULT),
             H5Dclose, "H5Dcreate2", name);
}

void write_attribute(hid_t object, const std::string& name,
                     const std::vector<std::int64_t>& values) {
  const Hid space = make_dataspace({values.size()}, name);
  const Hid attribute(
      H5Acreate2(object, name.c_str(), H5T_STD_I64LE, space, H5P_DEFAULT, H5P_DEFAULT), H5Aclose,
      "H5Acreate2", name);
  check_hdf5(H5Awrite(attribute, H5T_NATIVE_INT64, values.data()), "H5Awrite", name);
}

Hdf5Image::Hdf5Image(std::string what, H5F_libver_t high)
    : what_(std::move(what)), high_(high), memory_(memory_file(what_)) {
  silence();
}

Hid Hdf5Image::open(Access access) const {
  const Hid properties(H5Pcreate(H5P_FILE_ACCESS), H5Pclose, "H5Pcreate", what_);
  // Since format 1.8, metadata has checksums.
  check_hdf5(H5Pset_libver_bounds(properties, H5F_LIBVER_V18, high_), "H5Pset_libver_bounds",
             what_);
  // The default driver needs a path that it can resolve, which a file in memory does not have.
  check_hdf5(H5Pset_fapl_stdio(properties), "H5Pset_fapl_stdio", what_);
  // No other process uses this file, and HDF5 could not open it in a sandbox that forbids locks.
  check_hdf5(H5Pset_file_locking(properties, false, true), "H5Pset_file_locking", what_);
  // Align tensors to pages.
  check_hdf5(H5Pset_alignment(properties, 4096, 4096), "H5Pset_alignment", what_);
  const std::string path = fmt::format("/proc/self/fd/{}", memory_.descriptor());
  if (access == Access::read)
    return Hid(H5Fopen(path.c_str(), H5F_ACC_RDONLY, properties), H5Fclose, "H5Fopen", what_);
  return Hid(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, H5P_DEFAULT, properties), H5Fclose, "H5Fcreate",
             what_);
}

}  // namespace concertina
