// The tensors of a published model and those of ours: the same numbers under other names, some
// transposed, some side by side.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "experiments/hugging_face/published_config.h"
#include "experiments/hugging_face/published_pieces.h"
#include "io/checkpoint/safetensors_folder.h"

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
  /// Tensors of the folder, such as those of another head, that this model has no use for.
  const std::vector<std::string>& left_out() const { return left_out_; }

 private:
  /// What the names in the folder would be today.
  std::vector<std::string> names_of_today(const HuggingFace& table);
  bool is_stored(const StoredElsewhere& rule) const;
  void match(const StoredElsewhere& rule, const std::vector<std::int64_t>& ours);
  void require(const PublishedPieces& pieces, const PublishedPiece& piece) const;
  void check_others(const PublishedConfig& published, const RunConfig& config,
                    const std::vector<StoredElsewhere>& rules,
                    const std::vector<std::string>& names);
  void check_copy(const std::string& copy, const std::string& of) const;
  /// The name in the folder of a tensor in a model with a head.
  std::string stored_name(const std::string& name) const;
  const StoredTensor* find(const std::string& name) const {
    return folder_.find(stored_name(name));
  }

  SafetensorsFolder folder_;
  std::string body_;                                // what names of theirs lack
  std::map<std::string, PublishedPieces> sources_;  // by our name
  std::map<std::string, std::string> old_names_;    // in the folder, by the names of today
  std::vector<std::string> missing_, left_out_;
  std::vector<std::pair<std::string, std::string>> copies_;  // names of theirs
};

/// Shapes of the parameters of a config's model, by name.
std::map<std::string, std::vector<std::int64_t>> parameter_shapes(const RunConfig& config);

/// Elements [0, n) of our tensor, asked for whole.
using ReadOurs = std::function<void(const std::string& ours, std::span<float> out)>;

/// Writes config.json and the weights to `folder`, tensor by tensor: of `type`, f32 or bf16, in
/// files of at most `most` bytes of tensors, or with 0 in one. `untied`: untied_table().
void write_published(const std::string& folder, const RunConfig& config, StoredType type,
                     const ReadOurs& read, std::uint64_t most = 0, const std::string& untied = "");

}  // namespace concertina
