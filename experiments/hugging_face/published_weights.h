// Maps the tensors of a published model to ours: the same numbers under different names, some
// transposed, some concatenated.
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
  /// `config`: the config of the model, with the values of `published`. Reads only the headers of
  /// the files and creates no model. Input errors, which give name and file: tensors that are
  /// missing, unexpected or of the wrong shape.
  PublishedWeights(const std::string& folder, const PublishedConfig& published,
                   const RunConfig& config);

  /// Input error: tensors that the folder contains twice, such as tied embeddings, differ.
  void check_copies() const;
  /// Reads one of our tensors; false if it belongs to a head that the folder lacks.
  bool read(const std::string& ours, std::span<float> out) const;
  /// The files that contain the tensors.
  std::vector<std::string> files() const { return folder_.files(); }
  /// Our tensors that the folder lacks.
  const std::vector<std::string>& missing() const { return missing_; }
  /// Tensors in the folder that this model does not use, such as those of another head.
  const std::vector<std::string>& left_out() const { return left_out_; }

 private:
  /// The names in the folder, converted to current names.
  std::vector<std::string> names_of_today(const HuggingFace& table);
  bool is_stored(const TensorMapping& rule) const;
  void match(const TensorMapping& rule, const std::vector<std::int64_t>& ours);
  void require(const PublishedPieces& pieces, const PublishedPiece& piece) const;
  void check_others(const PublishedConfig& published, const RunConfig& config,
                    const std::vector<TensorMapping>& rules, const std::vector<std::string>& names);
  void check_copy(const std::string& copy, const std::string& of) const;
  /// The folder's name for a tensor in a model with a head.
  std::string stored_name(const std::string& name) const;
  const StoredTensor* find(const std::string& name) const {
    return folder_.find(stored_name(name));
  }

  SafetensorsFolder folder_;
  std::string body_;                                // prefix that the folder's names lack
  std::map<std::string, PublishedPieces> sources_;  // by our name
  std::map<std::string, std::string> old_names_;    // names in the folder, keyed by current names
  std::vector<std::string> missing_, left_out_;
  std::vector<std::pair<std::string, std::string>> copies_;  // published names
};

/// Shapes of the parameters of a config's model without adapters, by name.
std::map<std::string, std::vector<std::int64_t>> parameter_shapes(const RunConfig& config);

/// Reads elements [0, n) of one of our tensors, where n is its size.
using ReadOurs = std::function<void(const std::string& ours, std::span<float> out)>;

/// Writes config.json and the weights to `folder`, one tensor at a time, as `type` (f32 or bf16),
/// in files of at most `most` tensor bytes each (0: in one file). `untied`: untied_table().
void write_published(const std::string& folder, const RunConfig& config, StoredType type,
                     const ReadOurs& read, std::uint64_t most = 0, const std::string& untied = "");

}  // namespace concertina
