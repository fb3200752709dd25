// Training data: samples of named fields (core/model/batch.h), in three splits.
// Invariants: what a sample holds is a pure function of the files and of SampleAt, so any process
// writes it at any time; no sample of one split has anything of another.
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

/// What becomes of documents, as the rows of a table: each is a sample of its own (alone), they
/// follow each other in one long text (joined), or several share a sample and do not see each other
/// (packed). auto: joined where the next token is predicted, else alone.
inline constexpr std::string_view kDocumentsNames[] = {"auto", "alone", "joined", "packed"};

/// What a format is asked for: keys of [data] that all formats read, and what the model says.
struct DataOptions {
  std::string format = "text";                                // data.format
  std::vector<std::string> files{};                           // paths or globs; see files_key
  std::vector<std::string> validation_files{}, test_files{};  // data.validation_files, ...
  std::shared_ptr<const Tokenizer> tokenizer{};               // data.tokenizer; null: bytes
  // Shares of `files` that are held out where no files are: data.validation, data.test.
  double validation = 0.1, test = 0;
  double most_overlap = 0.2;               // of what is held out, with training (data.most_overlap)
  std::int64_t tokens_per_sample = 0;      // T (model.context)
  bool labelled = true;                    // the task needs a label in each row
  std::string documents = "alone";         // of kDocumentsNames, but auto (data.documents)
  std::vector<std::string> class_names{};  // data.classes; empty: numbered as they come
  TargetKind targets = TargetKind::label;  // what the model's task says that a row tells
  std::int64_t vocabulary = std::int64_t{1} << 31;  // tokens are below it (model.vocab)
  OptionValues options{};  // of the format; those that are not set have their defaults

  /// The value of an option that a format declares, which is of this type.
  template <class T>
  const T& own(std::string_view name) const {
    return std::get<T>(own_value(name));
  }

 private:
  const OptionValue& own_value(std::string_view name) const;
};

/// Which sample, and all else that what it holds may depend on.
struct SampleAt {
  Split split = Split::train;
  std::uint64_t sample = 0;           // in [0, samples(split))
  std::uint64_t seed = 0, epoch = 0;  // of training; 0 in other splits
  /// Targets after the first `most` of the sample are ignored.
  std::int64_t most = std::numeric_limits<std::int64_t>::max();
};

struct Splits;  // io/datasets/split_files.h

class QuestionAnswers;  // io/labelled/questions.h

/// What a split holds, whatever the tokenizer: figures on splits of one digest are of the same
/// data.
struct SplitContent {
  std::string sha256{};     // of its texts, labels or pictures
  std::uint64_t bytes = 0;  // of the text whose tokens are the targets; 0: they are not all of it
};

/// Invariant: every function is pure, so that no dataset and no decorator (DatasetAround) compiles
/// before it has said what each of them means for it. Defaults are those of FileDataset.
class Dataset {
 public:
  virtual ~Dataset() = default;
  Dataset() = default;
  Dataset(const Dataset&) = delete;
  Dataset& operator=(const Dataset&) = delete;

  /// The fields of its samples; the makers are in core/model/batch.h.
  virtual std::span<const Field> fields() const = 0;
  /// Tokens are in [0, vocabulary()); 0: it has none, or its files do not say.
  virtual std::int64_t vocabulary() const = 0;
  /// The names of labels 0, 1, ...; empty: it has no labels.
  virtual std::span<const std::string> classes() const = 0;
  /// How its items are split, with the counts of classes; null: it is one long text.
  virtual const Splits* splits() const = 0;
  /// The questions that its samples are cut from; null: it has none.
  virtual const QuestionAnswers* questions() const = 0;
  /// Samples of a split; of the largest epoch of training.
  virtual std::uint64_t samples(Split split) const = 0;
  /// Samples of one epoch: at least 1, at most samples(Split::train).
  virtual std::uint64_t samples_of_epoch(std::uint64_t seed, std::uint64_t epoch) const = 0;
  /// Valid targets of samples [0, sample) of a split, in any epoch: what a loss is a mean over.
  virtual std::int64_t targets_before(Split split, std::uint64_t sample) const = 0;
  /// Writes one sample; `views[i]` has the elements of fields()[i]. An empty view is not wanted.
  /// For several threads at once.
  virtual void write(const SampleAt& at, std::span<const View> views) const = 0;
  /// Whether a sample of training comes again: is the same in each epoch, or each views() epochs.
  virtual bool repeats() const = 0;
  virtual std::uint64_t views() const = 0;
  /// All its files: their bytes are its identity.
  virtual const Corpus& corpus() const = 0;
  /// Reads ahead what write() would otherwise find bad only when a sample is drawn: files that
  /// state their own hash, tokens beyond the vocabulary, rows that the tokenizer does not read,
  /// images that cannot be decoded; and compares what is held out with what is trained on where
  /// splits() does not. Throws an input error with the file and the place. `progress` is called now
  /// and then.
  virtual void verify(const std::function<void()>& progress) const = 0;
  /// Identifies the data of a split that has samples. `progress` is called now and then.
  virtual SplitContent content(Split split, const std::function<void()>& progress) const = 0;
  /// Some lines for a person: files, sizes, samples per epoch, how it begins.
  virtual std::string summary() const = 0;
  /// Lines for the log of a run that draws so many samples; none where there is nothing to say.
  virtual std::vector<std::string> notes(std::uint64_t samples) const = 0;

  std::int64_t targets(Split split) const { return targets_before(split, samples(split)); }
};

/// Base of the datasets that read files: the features that most of them do not have.
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
  /// Where splits() does not identify the data, two splits are the same if their samples are.
  SplitContent content(Split split, const std::function<void()>& progress) const override;
  std::vector<std::string> notes(std::uint64_t) const override { return {}; }
};

/// Base of the decorators: all is as the inner dataset has it, but for what they override.
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

/// Why samples do not come again, as keys: `now` is what makes them others in each epoch, `instead`
/// is what would not.
struct Variation {
  std::string now, instead;
};

struct DatasetFormat {
  /// Input errors name the file and the place in it, or the key of [data].
  std::unique_ptr<Dataset> (*make)(const DataOptions& options) = nullptr;
  /// Null, or a null answer: samples come again.
  std::optional<Variation> (*varies)(const DataOptions& options) = nullptr;
  std::string_view files_key = "data.files";  // the key that names the files
  /// Other keys of [data] that it reads and not all formats do.
  std::vector<std::string_view> keys{};
  bool binary = false;  // its files are not text, and may begin as UTF-16 does
  /// The keys data.<name>. Formats that declare an option of one name declare the same option.
  std::vector<Option> options{};
  /// Throws an input error for options that contradict each other; null: none do.
  void (*check)(const OptionValues& options) = nullptr;
};

/// The formats that io/meson.build lists.
std::span<const Entry<DatasetFormat>> dataset_formats();
const DatasetFormat& find_format(const std::string& name);
/// The defaults of the options of all formats.
OptionValues default_data_options();
/// Throws an input error for an unknown format and for all that the format refuses.
std::shared_ptr<const Dataset> open_dataset(const DataOptions& options);

/// The place of field `name` in `dataset`, or -1.
int field_index(const Dataset& dataset, std::string_view name);

}  // namespace concertina
