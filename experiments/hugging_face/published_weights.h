// The tensors of a published model and those of ours: the same numbers under other names, some
// transposed, some side by side.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "experiments/hugging_face/published_config.h"
#include "io/safetensors_folder.h"

namespace concertina {

class PublishedWeights {
 public:
  /// `config`: of the model, which has what `published` says. Reads the headers of the files alone,
  /// and makes no model. Input errors: tensors that are missing, not expected, or of another shape,
  /// by name and file.
  PublishedWeights(const std::string& folder, const PublishedConfig& published,
                   const RunConfig& config);

  /// Input error: what the folder has twice, as of tied embeddings, is not the same.
  void check_copies() const;
  /// Writes a tensor of ours; false if it is of a head that the folder does not have.
  bool read(const std::string& ours, std::span<float> out) const;
  /// That the tensors are in.
  std::vector<std::string> files() const { return folder_.files(); }
  /// Tensors of ours that the folder does not have.
  const std::vector<std::string>& missing() const { return missing_; }

 private:
  void match(const StoredElsewhere& rule, const std::vector<std::int64_t>& ours,
             const std::string& path);
  void check_others(const PublishedConfig& published, const std::vector<StoredElsewhere>& rules);
  void check_copy(const std::string& copy, const std::string& of) const;
  std::string stored_name(const std::string& name) const;

  struct Source {
    std::vector<std::string> names;
    bool transposed = false;
    std::vector<std::int64_t> shape;  // of ours
  };
  SafetensorsFolder folder_;
  std::string body_;                       // what names of theirs lack
  std::map<std::string, Source> sources_;  // by our name
  std::vector<std::string> missing_;
  std::vector<std::pair<std::string, std::string>> copies_;  // names of theirs
};

/// Does `folder` have weights, whatever they are?
bool has_published_weights(const std::string& folder);

/// Columns of each of `pieces` tensors that make up `columns` of ours: a query and then key and
/// value of the same width, or equal shares.
std::vector<std::int64_t> piece_columns(std::int64_t columns, std::size_t pieces,
                                        std::int64_t width);

/// Shapes of the parameters of a config's model, by name.
std::map<std::string, std::vector<std::int64_t>> parameter_shapes(const RunConfig& config);

/// Elements [0, n) of our tensor, asked for whole.
using ReadOurs = std::function<void(const std::string& ours, std::span<float> out)>;

/// Writes config.json and the weights to `folder`, tensor by tensor: of `type`, f32 or bf16, in
/// files of at most `most` bytes of tensors, or with 0 in one. `untied`: untied_table().
void write_published(const std::string& folder, const RunConfig& config, StoredType type,
                     const ReadOurs& read, std::uint64_t most = 0, const std::string& untied = "");

}  // namespace concertina
