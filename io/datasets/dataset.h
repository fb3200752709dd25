// Training data: samples of named fields (core/model/batch.h), in three splits. Invariants: the
// content of a sample is a pure function of the files and of SampleAt, so any process can write it
// at any time. Samples of different splits share no data.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/model/batch.h"
#include "core/options.h"
#include "core/registry.h"
#include "io/corpus.h"
#include "io/tokenizers/tokenizer.h"

namespace concertina {

enum class Split : std::uint8_t { train, validation, test };
inline constexpr std::string_view kSplitNames[] = {"train", "validation", "test"};
inline constexpr Split kAllSplits[] = {Split::train, Split::validation, Split::test};

/// How documents, such as rows of a table, are turned into samples: one sample each (alone),
/// concatenated into one long text (joined), or several per sample without attention across
/// documents (packed). auto: joined for next-token prediction, otherwise alone.
inline constexpr std::string_view kDocumentsNames[] = {"auto", "alone", "joined", "packed"};

/// Options of a format: keys of [data] that all formats read, and properties of the model.
struct DataOptions {
  std::string format = "text";                                // data.format
  std::vector<std::string> files{};                           // paths or globs; see files_key
  std::vector<std::string> validation_files{}, test_files{};  // data.validation_files, ...
  std::shared_ptr<const Tokenizer> tokenizer{};               // data.tokenizer; null: bytes
  // Shares of `files` to hold out unless there are separate files: data.validation, data.test.
  double validation = 0.1, test = 0;
  double most_overlap = 0.2;               // between held-out and training data (data.most_overlap)
  std::int64_t tokens_per_sample = 0;      // T (model.context)
  bool labelled = true;                    // whether the task needs a label in each row
  std::string documents = "alone";         // one of kDocumentsNames except auto (data.documents)
  std::vector<std::string> class_names{};  // data.classes; empty: taken from the labels
  TargetKind targets = TargetKind::label;  // target of a row, set by the model's task
  std::int64_t vocabulary = std::int64_t{1} << 31;  // exclusive bound on tokens (model.vocab)
  OptionValues options{};                           // of the format; defaults replace missing ones

  /// Returns the value of an option that the format declares with type T.
  template <class T>
  const T& own(std::string_view name) const {
    return std::get<T>(own_value(name));
  }

 private:
  const OptionValue& own_value(std::string_view name) const;
};

/// Identifies a sample and everything else that its content may depend on.
struct SampleAt {
  Split split = Split::train;
  std::uint64_t sample = 0;           // in [0, samples(split))
  std::uint64_t seed = 0, epoch = 0;  // of training; 0 in other splits
  /// Targets of the sample after the first `most` are ignored.
  std::int64_t most = std::numeric_limits<std::int64_t>::max();
};

struct Splits;  // io/datasets/split_files.h

class QuestionAnswers;  // io/labelled/questions.h

/// Identifies the content of a split, independent of the tokenizer: metrics on splits with the same
/// digest refer to the same data.
struct SplitContent {
  std::string sha256{};     // of its texts, labels or images
  std::uint64_t bytes = 0;  // of the text, if its tokens are the targets; otherwise 0
};

/// Every function is pure virtual, so that each dataset and each decorator (DatasetAround) must
/// define all of them explicitly. FileDataset has defaults.
class Dataset {
 public:
  virtual ~Dataset() = default;
  Dataset() = default;
  Dataset(const Dataset&) = delete;
  Dataset& operator=(const Dataset&) = delete;

  /// Returns the fields of the samples; functions that create fields are in core/model/batch.h.
  virtual std::span<const Field> fields() const = 0;
  /// Tokens are in [0, vocabulary()); 0: there are none, or the files do not specify this bound.
  virtual std::int64_t vocabulary() const = 0;
  /// Returns the names of labels 0, 1, ...; empty if there are no labels.
  virtual std::span<const std::string> classes() const = 0;
  /// Returns how items are split, with class counts; null for one long text.
  virtual const Splits* splits() const = 0;
  /// Returns the questions that the samples are created from; null if there are none.
  virtual const QuestionAnswers* questions() const = 0;
  /// Returns the number of samples of a split; for training, of the largest epoch.
  virtual std::uint64_t samples(Split split) const = 0;
  /// Returns the number of samples of one epoch: from 1 to samples(Split::train).
  virtual std::uint64_t samples_of_epoch(std::uint64_t seed, std::uint64_t epoch) const = 0;
  /// Returns the number of valid targets (the terms of a mean loss) in samples [0, sample).
  virtual std::int64_t targets_before(Split split, std::uint64_t sample) const = 0;
  /// Writes one sample. `views[i]` holds the elements of fields()[i]; an empty view is skipped.
  /// Thread-safe.
  virtual void write(const SampleAt& at, std::span<const View> views) const = 0;
  /// Whether training samples repeat, in every epoch or every views() epochs.
  virtual bool repeats() const = 0;
  virtual std::uint64_t views() const = 0;
  /// Returns all files; their bytes identify the dataset.
  virtual const Corpus& corpus() const = 0;
  /// Finds errors that write() would report only when a sample is drawn: files with a wrong hash,
  /// tokens outside the vocabulary, rows that the tokenizer rejects, undecodable images. Also
  /// compares held-out data with training data unless splits() does. Throws Error{bad_input} naming
  /// the file and position. `progress` is called regularly.
  virtual void verify(const std::function<void()>& progress) const = 0;
  /// Identifies the data of a split that has samples. `progress` is called regularly.
  virtual SplitContent content(Split split, const std::function<void()>& progress) const = 0;
  /// Returns human-readable lines: files, sizes, samples per epoch, and how the data begins.
  virtual std::string summary() const = 0;
  /// Returns log lines for a run that draws this many samples; may be empty.
  virtual std::vector<std::string> notes(std::uint64_t samples) const = 0;

  std::int64_t targets(Split split) const { return targets_before(split, samples(split)); }
};

/// Base of datasets that read files: defaults for features that most of them lack.
class FileDataset : public Dataset {
 public:
  std::int64_t vocabulary() const override { return 0; }
  std::span<const std::string> classes() const override { return {}; }
  const Splits* splits() const override { return nullptr; }
  const QuestionAnswers* questions() const override { return nullptr; }
  std::uint64_t samples_of_epoch(std::uint64_t, std::uint64_t) const override {
    return samples(Split::train);
  }
  std::uint64_t views() const override { return 1; }
  /// Identifies a split by hashing its samples if splits() does not identify the data.
  SplitContent content(Split split, const std::function<void()>& progress) const override;
  std::vector<std::string> notes(std::uint64_t) const override { return {}; }
};

/// Base of decorators: forwards everything that is not overridden to the inner dataset.
class DatasetAround : public Dataset {
 public:
  explicit DatasetAround(std::shared_ptr<const Dataset> inner) : inner_(std::move(inner)) {}

  std::span<const Field> fields() const override { return inner_->fields(); }
  std::int64_t vocabulary() const override { return inner_->vocabulary(); }
  std::span<const std::string> classes() const override { return inner_->classes(); }
  const Splits* splits() const override { return inner_->splits(); }
  const QuestionAnswers* questions() const override { return inner_->questions(); }
  std::uint64_t samples(Split split) const override { return inner_->samples(split); }
  std::uint64_t samples_of_epoch(std::uint64_t seed, std::uint64_t epoch) const override {
    return inner_->samples_of_epoch(seed, epoch);
  }
  std::int64_t targets_before(Split split, std::uint64_t sample) const override {
    return inner_->targets_before(split, sample);
  }
  void write(const SampleAt& at, std::span<const View> views) const override {
    inner_->write(at, views);
  }
  bool repeats() const override { return inner_->repeats(); }
  std::uint64_t views() const override { return inner_->views(); }
  const Corpus& corpus() const override { return inner_->corpus(); }
  void verify(const std::function<void()>& progress) const override { inner_->verify(progress); }
  SplitContent content(Split split, const std::function<void()>& progress) const override {
    return inner_->content(split, progress);
  }
  std::string summary() const override { return inner_->summary(); }
  std::vector<std::string> notes(std::uint64_t samples) const override {
    return inner_->notes(samples);
  }

 protected:
  const Dataset& inner() const { return *inner_; }

 private:
  std::shared_ptr<const Dataset> inner_;
};

/// Why samples do not repeat, as config keys: `now` makes them differ between epochs, `instead`
/// would not.
struct Variation {
  std::string now, instead;
};

struct DatasetFormat {
  /// Throws Error{bad_input} naming the file and position, or the key in [data].
  std::unique_ptr<Dataset> (*make)(const DataOptions& options) = nullptr;
  /// If null, or if it returns nothing, samples repeat.
  std::optional<Variation> (*varies)(const DataOptions& options) = nullptr;
  std::string_view files_key = "data.files";  // key that names the files
  /// Other keys of [data] that this format reads, but not all formats do.
  std::vector<std::string_view> keys{};
  bool binary = false;  // files are not text, and may begin like UTF-16
  /// The keys `data.<name>`. An option must be identical in all formats that declare its name.
  std::vector<Option> options{};
  /// Throws Error{bad_input} for conflicting options; may be null.
  void (*check)(const OptionValues& options) = nullptr;
};

/// Returns the formats listed in io/meson.build.
std::span<const Entry<DatasetFormat>> dataset_formats();
const DatasetFormat& find_format(const std::string& name);
/// Returns the default values of all formats' options.
OptionValues default_data_options();
/// Throws Error{bad_input} for an unknown format or for options that the format rejects.
std::shared_ptr<const Dataset> open_dataset(const DataOptions& options);

/// Returns the index of field `name` in `dataset`, or -1.
int field_index(const Dataset& dataset, std::string_view name);

}  // namespace concertina
