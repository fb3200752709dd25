// A Concertina run that provides the model to export or to start another run from.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "experiments/config/config.h"
#include "experiments/run/best_commit.h"
#include "io/checkpoint/checkpoint_reader.h"

namespace concertina {

/// Takes the value of `key` from `theirs`, unless a file or --set has set it. `source`: the origin
/// to record. Input error: it is set to another value; with `at_most`, smaller numbers are allowed.
void adopt_value(const std::string& key, const RunConfig& theirs, const std::string& source,
                 bool at_most, RunConfig& config);

/// Whether `tensor` (our name) belongs to the projection to model.classes.
bool is_of_classes(const std::string& tensor);
/// Whether `tensor` (our name) is initialized and not read from model.from, due to model.head.
bool is_new(const RunConfig& config, const std::string& tensor);

struct StoredRun {
  std::string directory;  // contains config.toml
  RunConfig config;
  std::string checkpoints;    // a commit, or a directory of commits
  CheckpointChoice choice{};  // of them: the best if a run was named
};

/// The run at `path`: a run directory, or a checkpoint, a checkpoint's file or a directory of
/// checkpoints inside one. nullopt if `path` does not exist, or neither it nor a parent contains a
/// config.toml. Input error: an invalid config.toml.
std::optional<StoredRun> find_stored_run(const std::string& path);
/// Throws the input error for a `path` without a run. `instead`: additional advice, put first.
[[noreturn]] void refuse_stored(const std::string& path, const std::string& instead = "");
/// Like find_stored_run(), but throws an input error if there is no run.
StoredRun require_stored_run(const std::string& path);
/// Input error: the run's commit is missing or damaged.
CheckpointReader open_stored(const StoredRun& run);
/// The name of the embedding's separate token table in a checkpoint whose head continued to train
/// without the embedding (freeze.tied); empty if both share a table. `config`: the model's config.
std::string untied_table(const CheckpointReader& checkpoint, const RunConfig& config);
/// Returns the commit at `path`, or the newest in the run or directory of checkpoints there, even
/// if it is damaged. The directory need not be in a run. Input error: there is no commit.
std::string stored_commit(const std::string& path);

/// Takes the keys of [model] and the tokenizer from the run, unless a file or --set has set them.
/// Input error: a size is set to a different value, except for a shorter context. Another task is
/// allowed, as are other classes with model.head = "new": the head is then initialized.
void adopt_stored(const StoredRun& run, RunConfig& config);

/// Weights of a commit for another run's model. One object per rank.
class StoredWeights {
 public:
  /// `config`: the other run's. Input errors, which name the commit: tensors outside the
  /// head that are missing or left over, and tensors of the wrong shape.
  StoredWeights(const std::string& commit, const RunConfig& config);

  /// Reads a tensor of the model; false if it belongs to a head that the commit lacks.
  bool read(const std::string& tensor, std::span<float> out);
  /// Tensors of the model that the commit lacks, and tensors of the commit that are not read.
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
