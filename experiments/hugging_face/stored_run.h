// A run of our own as a model that another run starts from, or that is exported.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "experiments/config/config.h"
#include "experiments/run/best_commit.h"
#include "io/checkpoint/checkpoint_reader.h"

namespace concertina {

/// Takes the value of `key` from `theirs`, unless a file or --set has set it. `source`: where it is
/// from. Input error: it is set to something else; with `at_most` a smaller number will do.
void adopt_value(const std::string& key, const RunConfig& theirs, const std::string& source,
                 bool at_most, RunConfig& config);

/// Whether `tensor`, by our name, is of the map to model.classes.
bool is_of_classes(const std::string& tensor);
/// Whether `tensor`, by our name, is drawn anew and not read from model.from: model.head says so.
bool is_new(const RunConfig& config, const std::string& tensor);

struct StoredRun {
  std::string directory;  // has config.toml
  RunConfig config;
  std::string checkpoints;         // a commit, or a directory of commits
  Chosen chosen = Chosen::newest;  // which of them is meant: the best, where the run was named
};

/// The run that `path` is: a run directory, or a checkpoint, a file of one or a directory of
/// checkpoints in one. Nothing if `path` is not there, or no config.toml is here or above. Input
/// error: a config.toml that is not right.
std::optional<StoredRun> find_stored_run(const std::string& path);
/// The input error of a `path` at which no run is found. `instead`: what else would be right, ahead
/// of the rest.
[[noreturn]] void refuse_stored(const std::string& path, const std::string& instead = "");
/// As above, and none is an input error.
StoredRun require_stored_run(const std::string& path);
/// Input error: it has no commit, or a damaged one.
CheckpointReader open_stored(const StoredRun& run);
/// The name of the embedding's own token table in a checkpoint, where the head has trained on
/// without it (freeze.tied); empty where there is one for both. `config`: of a model of these
/// tensors.
std::string untied_table(const CheckpointReader& checkpoint, const RunConfig& config);
/// Returns the commit at `path`, even if it is damaged: the newest of a run or of a directory of
/// checkpoints. A checkpoint needs no run here. Input errors as of require_stored_run() and
/// open_stored().
std::string stored_commit(const std::string& path);

/// Keys of [model] that follow from the run's, and its tokenizer, where no file or --set has set
/// them. Input error: a size that is set to something else, but for a shorter context. Another task
/// is none, nor are other classes with model.head = "new": the head is made anew.
void adopt_stored(const StoredRun& run, RunConfig& config);

/// Weights of a commit for another run's model. One per rank.
class StoredWeights {
 public:
  /// `config`: of that model. Input errors: a tensor that is missing or left over and is not of the
  /// head, or of another shape, with the commit.
  StoredWeights(const std::string& commit, const RunConfig& config);

  /// Writes a tensor of the model; false if it is of a head that the commit does not have.
  bool read(const std::string& tensor, std::span<float> out);
  /// Tensors of the model that the commit does not have, and of the commit that are not read.
  const std::vector<std::string>& missing() const { return missing_; }
  const std::vector<std::string>& left_out() const { return left_out_; }
  std::int64_t step() const { return reader_.manifest().step; }
  /// `beat` is called after each chunk that is read.
  void on_beat(Beat beat) { reader_.on_beat(std::move(beat)); }

 private:
  void require_shape(const std::string& tensor, const std::vector<std::int64_t>& shape,
                     bool first_rows) const;

  CheckpointReader reader_;
  std::string untied_table_;  // see untied_table()
  std::vector<std::string> missing_, left_out_;
};

}  // namespace concertina
