// For reports: which HDF5 library this process runs with.
#pragma once

#include <string>

namespace concertina {

/// "1.10.8"
std::string hdf5_version();

}  // namespace concertina
