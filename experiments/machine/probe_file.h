// A file that other ranks look for, to find out whether all hosts share a directory. Invariant: no
// file is left in any directory.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

namespace concertina {

/// An empty file in the deepest existing directory of `path`.
class ProbeFile {
 public:
  /// Throws an Error if no file can be created there.
  explicit ProbeFile(const std::string& path);
  ~ProbeFile();
  ProbeFile(const ProbeFile&) = delete;
  ProbeFile& operator=(const ProbeFile&) = delete;

  std::string path() const { return file_.string(); }
  /// For find_probe().
  nlohmann::json place() const;

 private:
  std::filesystem::path file_, below_;
};

/// The path of the ProbeFile with this `place`, as found from this rank's `path`; empty if it does
/// not appear within kProbeSeconds. Network file systems may cache its absence for a while.
constexpr double kProbeSeconds = 3;
std::string find_probe(const nlohmann::json& place, const std::string& path);

}  // namespace concertina
