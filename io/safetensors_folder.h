// A model's tensors in a folder, as Hugging Face's transformers names them: model.safetensors, or
// model-00001-of-0000N.safetensors and model.safetensors.index.json, which says where each tensor
// is.
// Invariant: a folder in which a write was cut short has the model that it had, or none: its index
// never names files of two models.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "io/safetensors.h"

namespace concertina {

/// The tensors of a folder: of its model.safetensors, or of the files that its
/// model.safetensors.index.json names.
class SafetensorsFolder {
 public:
  /// Input errors: as of the files; an index that does not say what they have.
  explicit SafetensorsFolder(const std::string& folder);

  std::vector<std::string> names() const;
  /// Null: there is none of this name.
  const StoredTensor* find(const std::string& name) const;
  /// Which must be there. See SafetensorsFile::read().
  void read(const std::string& name, std::uint64_t first, std::span<float> out) const;
  /// Where the tensor is, for errors.
  const std::string& path_of(const std::string& name) const;

 private:
  std::vector<std::unique_ptr<SafetensorsFile>> files_;
  std::map<std::string, const SafetensorsFile*> places_;
};

/// Writes the tensors of a model, one after the other. What such files an earlier model left in the
/// folder goes.
class SafetensorsFolderWriter {
 public:
  /// `tensors`: all of them, in the order in which they fill the files. A file has as many of them
  /// as make up at most `file_bytes` bytes, but at least one; if all fit, it is model.safetensors.
  SafetensorsFolderWriter(std::string folder, std::vector<StoredTensor> tensors,
                          std::uint64_t file_bytes);
  /// Without finish(), the files that were written go.
  ~SafetensorsFolderWriter();
  SafetensorsFolderWriter(const SafetensorsFolderWriter&) = delete;
  SafetensorsFolderWriter& operator=(const SafetensorsFolderWriter&) = delete;

  /// In the order in which they are to be appended.
  const std::vector<StoredTensor>& tensors() const { return tensors_; }
  /// The next tensor, whole.
  void append(std::span<const float> tensor);
  /// After the last tensor: all is on the storage, under its names.
  void finish();
  /// How many files have tensors.
  std::size_t files() const { return starts_.size(); }

 private:
  std::string name_of(std::size_t file) const;
  std::string path_of(const std::string& name) const;
  std::size_t end_of(std::size_t file) const;
  void open_next();
  void write_index() const;
  void remove_others() const;

  std::string folder_;
  std::vector<StoredTensor> tensors_;  // by file, of a file by name
  std::vector<std::size_t> starts_;    // of files: the first tensor
  std::size_t next_ = 0;               // the tensor that is appended next
  std::size_t opened_ = 0;             // files
  std::unique_ptr<SafetensorsWriter> file_;
  bool finished_ = false;
};

}  // namespace concertina
