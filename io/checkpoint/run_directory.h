// A run's directory: who may write to it. Its files are named in io/run_files.h.
// Invariant: one process owns a run and its checkpoints at a time, a directory that is no run is
// never written to, nor are checkpoints of another run.
#pragma once

#include <string>

#include "io/file_lock.h"

namespace concertina {

/// The id of the run in `directory`, which its first start makes; empty if it has none.
std::string read_run_id(const std::string& directory);
/// The key of the run in `directory`, which those who may not read its run.key do not know; empty
/// if it has none. One that others may read or write is none, and is warned of.
std::string read_run_key(const std::string& directory);

class RunDirectory {
 public:
  /// Makes or opens `root`/`name` for writing and locks it, and the directory of its checkpoints,
  /// until destruction. One process of a job only. `checkpoints`: empty for checkpoints/ inside.
  /// Errors: a name that is no plain file name; a directory that has other things in it; not
  /// writable; another process is training there; checkpoints of another run.
  RunDirectory(const std::string& root, const std::string& name,
               const std::string& checkpoints = {});
  /// A launch that is refused leaves nothing: where this has made the directory, and there is no
  /// run yet, removes it.
  ~RunDirectory();
  RunDirectory(const RunDirectory&) = delete;
  RunDirectory& operator=(const RunDirectory&) = delete;

  /// Throws what the constructor would for a wrong name, a directory that has other things in it,
  /// or one where this user cannot write. Changes nothing.
  static void require_usable(const std::string& root, const std::string& name);

  /// Whether `root`/`name` is a run: it has a config.toml.
  static bool exists(const std::string& root, const std::string& name);

  /// There was a run here before: resume.
  bool existing() const { return existing_; }

  const std::string& path() const { return path_; }
  std::string checkpoints() const { return checkpoints_; }

  /// Writes config.toml, atomically; from then on the directory is a run.
  void write_config(const std::string& toml);

 private:
  struct Place {
    std::string path, checkpoints;
  };
  explicit RunDirectory(Place place);

  std::string path_, checkpoints_;
  bool existing_ = false, made_ = false;  // made_: here, and locked
  FileLock lock_, checkpoint_lock_;
};

}  // namespace concertina
