// RAII wrappers for the HDF5 C API. This is the only header that includes hdf5.h. Invariant: HDF5
// does not access disks here. It builds files in memory (Hdf5Image), which Concertina copies out,
// because libhdf5 1.10 reports success for lost writes (H5Fclose after ENOSPC), can crash during
// clean-up after EFBIG, and never syncs.
#pragma once

#include <hdf5.h>

#include <string>
#include <vector>

#include "io/file.h"

namespace concertina {

/// Owns one HDF5 identifier and closes it with the H5*close function of its type.
class Hid {
 public:
  using Close = herr_t (*)(hid_t);
  /// Throws Error{failure} that names `call` if `id` is negative.
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

/// Throws Error{failure} that names `call` if `status` is negative.
void check_hdf5(herr_t status, const char* call, const std::string& what);

Hid make_dataspace(const std::vector<hsize_t>& dims, const std::string& what);
/// Returns the dataset name of a part of a piece in a shard.
std::string dataset_name(const std::string& tensor, const std::string& part, std::uint64_t offset);
/// Creates a dataset of 32-bit floats and its parent groups. `properties` apply on creation.
Hid make_dataset(hid_t file, const std::string& name, const std::vector<hsize_t>& dims,
                 hid_t properties);

/// Writes a one-dimensional int64 attribute of `object`.
void write_attribute(hid_t object, const std::string& name,
                     const std::vector<std::int64_t>& values);

/// An HDF5 file in memory. It is sparse: data that was never written uses no memory.
class Hdf5Image {
 public:
  enum class Access { create, read };
  /// `what` is the path of the future file, for messages; `high` is the newest allowed file format.
  Hdf5Image(std::string what, H5F_libver_t high);

  /// Opens the file. The result must be destroyed before descriptor() is used.
  Hid open(Access access) const;
  const File& file() const { return memory_; }

 private:
  std::string what_;
  H5F_libver_t high_;
  File memory_;
};

}  // namespace concertina
