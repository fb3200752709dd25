// RAII over the HDF5 C API, the only header that includes hdf5.h.
// Invariant: HDF5 never touches a disk here. It builds files in memory (Hdf5Image) and our own
// code copies them out, because libhdf5 1.10 reports success for lost writes (H5Fclose after
// ENOSPC), can crash in its own clean-up after EFBIG, and never syncs.
#pragma once

#include <hdf5.h>

#include <string>
#include <vector>

#include "io/file.h"

namespace concertina {

/// Owns one HDF5 identifier, closed by its type's H5*close.
class Hid {
 public:
  using Close = herr_t (*)(hid_t);
  /// Throws a failure that names `call` if `id` is negative.
  Hid(hid_t id, Close close, const char* call, const std::string& what);
  ~Hid();
  Hid(Hid&& other) noexcept;
  Hid(const Hid&) = delete;
  Hid& operator=(const Hid&) = delete;
  Hid& operator=(Hid&&) = delete;

  operator hid_t() const { return id_; }

 private:
  hid_t id_;
  Close close_;
  const char* call_;
};

/// Throws a failure that names `call` if `status` is negative.
void check_hdf5(herr_t status, const char* call, const std::string& what);

Hid make_dataspace(const std::vector<hsize_t>& dims, const std::string& what);
/// The name of the dataset of a part of a piece in a shard.
std::string dataset_name(const std::string& tensor, const std::string& part, std::uint64_t offset);
/// A dataset of 32-bit floats, with the groups on the way. `properties`: of its creation.
Hid make_dataset(hid_t file, const std::string& name, const std::vector<hsize_t>& dims,
                 hid_t properties);

/// A one-dimensional int64 attribute of `object`.
void write_attribute(hid_t object, const std::string& name,
                     const std::vector<std::int64_t>& values);

/// An HDF5 file in memory: sparse, so that data that was never written costs nothing.
class Hdf5Image {
 public:
  enum class Access { create, read };
  /// `what`: the file that this will become, for messages. `high`: newest file format allowed.
  Hdf5Image(std::string what, H5F_libver_t high);

  /// The file, open; close it (end of scope) before using descriptor().
  Hid open(Access access) const;
  const File& file() const { return memory_; }

 private:
  std::string what_;
  H5F_libver_t high_;
  File memory_;
};

}  // namespace concertina
