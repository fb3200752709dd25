// The tensors of a model in a folder, as Hugging Face's transformers stores them: in
// model.safetensors, or in model-00001-of-00002.safetensors ... and their index.
// Invariant: a folder that is written to has the old tensors, the new ones, or none that would be
// read: never some of both.
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

/// The names of a folder's only file of tensors, and of the index of several.
inline constexpr const char* kSafetensors = "model.safetensors";
inline constexpr const char* kSafetensorsIndex = "model.safetensors.index.json";

/// Whether `folder` has tensors, whatever they are.
bool has_safetensors(const std::string& folder);

/// The tensors of a folder: of its model.safetensors, or of the files that its
/// model.safetensors.index.json names.
class SafetensorsFolder {
 public:
  /// Input errors: as of the files; an index that does not say what they have.
  explicit SafetensorsFolder(const std::string& folder);

  const std::string& folder() const { return folder_; }
  std::vector<std::string> names() const;
  /// In the order of their names.
  std::vector<std::string> files() const;
  /// Null: there is none of this name.
  const StoredTensor* find(const std::string& name) const;
  /// Which must be there. See SafetensorsFile::read().
  void read(const std::string& name, std::uint64_t first, std::span<float> out) const;
  /// Where the tensor is, for errors.
  const std::string& path_of(const std::string& name) const { return places_.at(name)->path(); }

 private:
  std::string folder_;
  std::vector<std::unique_ptr<SafetensorsFile>> files_;
  std::map<std::string, const SafetensorsFile*> places_;
};

/// Writes a folder, tensor after tensor.
class SafetensorsFolderWriter {
 public:
  /// `tensors`: as of SafetensorsWriter. Where they have more than `most` bytes they come in
  /// several files, each with as many of them, by name, as have no more than that; a tensor that
  /// has more is alone. 0: in one file. The folder must be there; what it has stays until finish().
  /// Removes the files of a writer that was killed. Bad input: another one is writing there.
  SafetensorsFolderWriter(const std::string& folder, std::vector<StoredTensor> tensors,
                          std::uint64_t most);
  ~SafetensorsFolderWriter();
  SafetensorsFolderWriter(const SafetensorsFolderWriter&) = delete;
  SafetensorsFolderWriter& operator=(const SafetensorsFolderWriter&) = delete;

  /// In the order in which they are to be appended.
  const std::vector<StoredTensor>& tensors() const { return tensors_; }
  /// The next elements, as SafetensorsWriter::append().
  void append(std::span<const float> values);
  /// After the last element: on the storage, in the place of what was there.
  void finish();

 private:
  void open_next();
  std::string file_name(std::size_t file) const;
  std::string index_text() const;
  void remove_others() const;

  std::string folder_, temporary_;  // the second is one in the first
  FileLock lock_;                   // of the second
  std::vector<StoredTensor> tensors_;
  std::vector<std::size_t> ends_;  // of the files: the tensor after their last
  std::optional<SafetensorsWriter> file_;
  std::size_t opened_ = 0;  // files
};

}  // namespace concertina
