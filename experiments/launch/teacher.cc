#include "experiments/launch/teacher.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "experiments/config/config_toml.h"
#include "experiments/hugging_face/kept_files.h"
#include "experiments/hugging_face/model_from.h"
#include "experiments/machine/gather.h"
#include "experiments/run/devices.h"
#include "experiments/run/planning.h"
#include "experiments/run/state_hash.h"

namespace concertina {
namespace {

constexpr const char* kKey = "distill.teacher";

/// The teacher's model for one sample at a time. It is not trained, so its rule keeps no state.
RunConfig config_of_teacher(const RunConfig& student) {
  RunConfig config;
  config.run.device = student.run.device;
  config.numerics = student.numerics;
  config.numerics.leaves = 0;
  config.batch.global = config.batch.microbatches = 1;
  config.optimizer.name = "sgd";
  config.model.from = student.distill.teacher;
  const std::vector<Field> reads = fields_of(model_of(student)->spec());
  if (std::ranges::find(reads, "tokens", &Field::name) != reads.end())
    set_config(fmt::format("model.context={}", student.model.context), config);
  adopt_model_from(config);
  config.data.documents = student.data.documents;
  config.model.dropout = config.model.attention_dropout = 0;
  return config;
}

/// Throws Error{bad_input} unless token and class numbers mean the same to both models.
void require_same_meaning(const RunConfig& teacher, const Dataset& data,
                          const Tokenizer& tokenizer) {
  if (field_index(data, "tokens") >= 0 &&
      tokenizer_of(teacher)->fingerprint() != tokenizer.fingerprint())
    throw_input(
        fmt::format("the teacher was trained with the tokenizer '{}'", teacher.data.tokenizer),
        kKey, fmt::format("data.tokenizer = \"{}\"", teacher.data.tokenizer));
  const std::optional<StoredRun> run = model_from_run(teacher);
  const std::vector<std::string> theirs = run ? kept_classes(run->config) : teacher.data.classes;
  const std::span<const std::string> ours = data.classes();
  if (!theirs.empty() && !std::ranges::equal(theirs, ours))
    throw_input(fmt::format("the teacher's classes are {}, but the data has {}",
                            fmt::join(theirs, ", "), fmt::join(ours, ", ")),
                kKey, "data.classes in the teacher's order");
}

class Taught final : public DatasetAround {
 public:
  Taught(std::shared_ptr<const Dataset> dataset, const Field& field,
         std::shared_ptr<Teacher> teacher)
      : DatasetAround(std::move(dataset)),
        fields_(inner().fields().begin(), inner().fields().end()),
        teacher_(std::move(teacher)) {
    fields_.push_back(field);
  }

  std::span<const Field> fields() const override { return fields_; }
  void write(const SampleAt& at, std::span<const View> views) const override {
    inner().write(at, views.first(views.size() - 1));
    if (!views.back().empty()) teacher_->answer(inner(), at, views.back());
  }

 private:
  std::vector<Field> fields_;
  std::shared_ptr<Teacher> teacher_;
};

}  // namespace

void Teacher::Question::load(std::int64_t, std::int64_t, std::int64_t,
                             std::span<const View> views) {
  std::vector<View> wanted(data_->fields().size());
  for (std::size_t f = 0; f < views.size(); ++f)
    wanted[static_cast<std::size_t>(places_[f])] = views[f];
  data_->write(at_, wanted);
}

void Teacher::start(const RunConfig& student, const Dataset& data, const Tokenizer& tokenizer,
                    int threads, Communicator& world) {
  alone_ = world.split(world.rank(), 0);
  backend_ = make_backend(student, threads, world);
  together(world, [&] {
    try {
      config_ = config_of_teacher(student);
      require_same_meaning(config_, data, tokenizer);
      model_ = std::make_unique<Trainer>(config_, *backend_, *alone_);
      question_.fields_ = fields_of(model_->job().model);
      question_.places_.resize(question_.fields_.size());
      find_fields(data.fields(), question_.fields_, question_.places_);
      model_->start();
      model_->initialize();
      start_from(*model_, config_);
      sha256_ = state_sha256(*model_);
      std::vector<float> trial(static_cast<std::size_t>(
          data.fields()[static_cast<std::size_t>(field_index(data, "teacher"))].elements()));
      answer(data, {}, {trial.data(), trial.size(), DType::f32});
    } catch (const Error& error) {
      throw Error(error.code(), "the teacher: " + error.message(),
                  fmt::format("{} ({})", kKey, error.where()), error.fix());
    }
  });
  const std::vector<nlohmann::json> hashes = gather_json(world, sha256_);
  const auto other =
      std::ranges::find_if(hashes, [&](const auto& one) { return one != hashes[0]; });
  if (other != hashes.end())
    throw_input(fmt::format("ranks 0 and {} read different teachers", other - hashes.begin()), kKey,
                "the same files on every host");
}

void Teacher::answer(const Dataset& data, const SampleAt& at, View logits) {
  if (at.split != Split::train) {
    std::fill_n(logits.f32(), logits.count, 0.0F);
    return;
  }
  const std::lock_guard<std::mutex> guard(mutex_);
  question_.data_ = &data;
  question_.at_ = at;
  model_->evaluate(0, 1, question_, [&](int, View theirs) {
    const std::vector<float> values = to_floats(host_view(backend_->memory(), theirs, scratch_));
    if (values.size() != logits.count)
      throw_input(fmt::format("it has {} logits for each sample, but the student has {}",
                              values.size(), logits.count),
                  config_.model.from, "a teacher with the same task, vocabulary and classes");
    std::ranges::copy(values, logits.f32());
  });
}

std::shared_ptr<const Dataset> taught(std::shared_ptr<const Dataset> dataset,
                                      const RunConfig& config, std::shared_ptr<Teacher> teacher) {
  const std::vector<Field> fields = fields_of(model_of(config)->spec());
  const auto field = std::ranges::find(fields, "teacher", &Field::name);
  return std::make_shared<const Taught>(std::move(dataset), *field, std::move(teacher));
}

}  // namespace concertina
