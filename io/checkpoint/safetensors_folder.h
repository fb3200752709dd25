// The tensors of a model in a folder, in the format of Hugging Face's transformers: in
// model.safetensors, or in model-00001-of-00002.safetensors ... and an index. Invariant: during
// writing, a folder contains the old tensors, the new ones, or no readable ones, but never a mix.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "io/checkpoint/safetensors.h"
#include "io/file_lock.h"

namespace concertina {

/// The file names of a single tensor file and of the index of several files.
inline constexpr const char* kSafetensors = "model.safetensors";
inline constexpr const char* kSafetensorsIndex = "model.safetensors.index.json";

/// Whether `folder` contains a tensor file or an index.
bool has_safetensors(const std::string& folder);

/// The tensors of a folder, from model.safetensors or the files listed in
/// model.safetensors.index.json.
class SafetensorsFolder {
 public:
  /// Throws like SafetensorsFile; also throws if the index does not match the files.
  explicit SafetensorsFolder(const std::string& folder);

  const std::string& folder() const { return folder_; }
  std::vector<std::string> names() const;
  /// Returns the files in name order.
  std::vector<std::string> files() const;
  /// Returns null if there is no tensor of this name.
  const StoredTensor* find(const std::string& name) const;
  /// Reads a tensor that must exist. See SafetensorsFile::read().
  void read(const std::string& name, std::uint64_t first, std::span<float> out) const;
  /// Returns the file of the tensor, for errors.
  const std::string& path_of(const std::string& name) const { return places_.at(name)->path(); }

 private:
  std::string folder_;
  std::vector<std::unique_ptr<SafetensorsFile>> files_;
  std::map<std::string, const SafetensorsFile*> places_;
};

/// Writes a folder, tensor by tensor.
class SafetensorsFolderWriter {
 public:
  /// `tensors` are as for SafetensorsWriter. They are distributed by name over files of at most
  /// `most` bytes (0: a single file); a larger tensor gets its own file. The folder must exist and
  /// keeps its content until finish(). Removes files left by a killed writer. Throws
  /// Error{bad_input} if another process is writing there.
  SafetensorsFolderWriter(const std::string& folder, std::vector<StoredTensor> tensors,
                          std::uint64_t most);
  ~SafetensorsFolderWriter();
  SafetensorsFolderWriter(const SafetensorsFolderWriter&) = delete;
  SafetensorsFolderWriter& operator=(const SafetensorsFolderWriter&) = delete;

  /// Returns the tensors in the order in which they must be appended.
  const std::vector<StoredTensor>& tensors() const { return tensors_; }
  /// Appends the next elements; see SafetensorsWriter::append().
  void append(std::span<const float> values);
  /// Syncs the files after the last element and replaces the old content.
  void finish();

 private:
  void open_next();
  std::string file_name(std::size_t file) const;
  std::string index_text() const;
  void remove_others() const;

  std::string folder_, temporary_;  // the second is inside the first
  FileLock lock_;                   // for temporary_
  std::vector<StoredTensor> tensors_;
  std::vector<std::size_t> ends_;  // for each file, the index after its last tensor
  std::optional<SafetensorsWriter> file_;
  std::size_t opened_ = 0;  // number of files
};

}  // namespace concertina
