// A run's directory and who may write to it. Its files are named in io/run_files.h. Invariant: one
// process at a time owns a run and its checkpoints. A directory that is not a run is never written
// to, nor are the checkpoints of another run.
#pragma once

#include <string>

#include "io/file_lock.h"

namespace concertina {

/// Returns the id of the run in `directory`, created by its first start; empty if there is none.
std::string read_run_id(const std::string& directory);
/// Returns the secret key of the run in `directory`; empty if there is none. A run.key that other
/// users can read or write is ignored with a warning.
std::string read_run_key(const std::string& directory);

class RunDirectory {
 public:
  /// Creates or opens `root`/`name` for writing and locks it and its checkpoint directory until
  /// destruction. Call it in only one process of a job. Empty `checkpoints` means checkpoints/ in
  /// the run directory. Throws if the name is not a plain file name, the directory is not writable,
  /// contains foreign files or is in use by another process, or the checkpoints are another run's.
  RunDirectory(const std::string& root, const std::string& name,
               const std::string& checkpoints = {});
  /// Removes the directory if this object created it and the launch was rejected before the run
  /// existed.
  ~RunDirectory();
  RunDirectory(const RunDirectory&) = delete;
  RunDirectory& operator=(const RunDirectory&) = delete;

  /// Throws, as the constructor does, if the name is invalid, or the directory contains foreign
  /// files or is not writable. Changes nothing.
  static void require_usable(const std::string& root, const std::string& name);

  /// Whether `root`/`name` is a run, that is, contains a config.toml.
  static bool exists(const std::string& root, const std::string& name);

  /// Whether the run existed before and must be resumed.
  bool existing() const { return existing_; }

  const std::string& path() const { return path_; }
  std::string checkpoints() const { return checkpoints_; }

  /// Writes config.toml atomically; this makes the directory a run.
  void write_config(const std::string& toml);

 private:
  struct Place {
    std::string path, checkpoints;
  };
  explicit RunDirectory(Place place);

  std::string path_, checkpoints_;
  bool existing_ = false, made_ = false;  // made_: created and locked by this object
  FileLock lock_, checkpoint_lock_;
};

}  // namespace concertina
