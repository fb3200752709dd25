// A file for which other ranks look: whether all hosts see one directory.
// Invariant: nothing is left in any directory.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>

namespace concertina {

/// An empty file in the deepest directory on the way to `path` that exists.
class ProbeFile {
 public:
  /// Throws an Error where no file can be made there.
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

/// The file of the ProbeFile that `place` is of, where it would be on the way to this rank's
/// `path`; empty if it has not come after kProbeSeconds: network file systems remember for a while
/// what was not there.
constexpr double kProbeSeconds = 3;
std::string find_probe(const nlohmann::json& place, const std::string& path);

}  // namespace concertina
