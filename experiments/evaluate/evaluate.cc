#include "experiments/evaluate/evaluate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>

#include "core/clock.h"
#include "core/error.h"
#include "core/text/number_text.h"
#include "experiments/machine/exit.h"
#include "experiments/machine/gather.h"
#include "io/datasets/mixture.h"
#include "models/task.h"

namespace concertina {

std::int64_t final_batches(const EvalSection& eval) {
  return eval.batches < 0 ? kDefaultBatches : eval.batches;
}

std::int64_t periodic_batches(const EvalSection& eval) {
  return eval.periodic_batches > 0 ? eval.periodic_batches : final_batches(eval);
}

std::string text_share(const Validation& validation) {
  if (validation.targets == validation.of) return grouped(validation.of) + " targets";
  return fmt::format("{} of {} targets", grouped(validation.targets), grouped(validation.of));
}

std::string_view loss_unit(const RunConfig& config) {
  return task_of(config.model.family, config.model.task).targets == TargetKind::scores
             ? "per target"
             : "nats per target";
}

Measure measure_of(const RunConfig& config, const Dataset& dataset, const Tokenizer& tokenizer,
                   Split split, const std::function<void()>& progress) {
  const Task& task = task_of(config.model.family, config.model.task);
  const auto named = std::ranges::find(tasks(), &task, [](const auto& one) { return &one.value; });
  Measure measure{.data = dataset.content(split, progress), .unit = std::string(named->name)};
  if (field_index(dataset, "targets") >= 0)
    measure.unit += fmt::format(", tokens of {:.16}", tokenizer.fingerprint());
  if (task.masks) measure.unit += fmt::format(", samples of {}", config.model.context);
  return measure;
}

nlohmann::ordered_json measure_json(const Validation& validation) {
  const Measure& measure = validation.measure;
  if (measure.unit.empty()) return nlohmann::ordered_json::object();
  nlohmann::ordered_json json{{"data", measure.data.sha256}, {"measure", measure.unit}};
  if (measure.data.bytes == 0) return json;
  const auto bytes = static_cast<double>(measure.data.bytes);
  json["data_bytes"] = measure.data.bytes;
  if (validation.targets == validation.of)
    json["bits_per_byte"] =
        validation.loss * static_cast<double>(validation.targets) / (bytes * std::log(2.0));
  return json;
}

std::string metrics_text(const Validation& validation) {
  std::string text;
  for (const Metric& metric : validation.metrics)
    text += metric.share ? fmt::format(", {} {:.2f}%", metric.name, 100 * metric.value)
                         : fmt::format(", {} {}", metric.name, number_text(metric.value));
  return text;
}

nlohmann::ordered_json confusion_json(const Validation& validation,
                                      std::span<const std::string> names) {
  constexpr std::size_t kMost = 100;
  const Confusion& confusion = validation.confusion;
  if (confusion.empty() || confusion.classes > kMost) return nlohmann::ordered_json::object();
  nlohmann::ordered_json rows = nlohmann::ordered_json::array();
  for (std::size_t label = 0; label < confusion.classes; ++label)
    rows.push_back(
        std::span(confusion.counts).subspan(label * confusion.classes, confusion.classes));
  nlohmann::ordered_json json{{"confusion", rows}};
  if (names.size() == confusion.classes) json["classes"] = names;
  return json;
}

std::string confusion_text(const Validation& validation, std::span<const std::string> names) {
  constexpr std::size_t kMost = 10;
  const Confusion& confusion = validation.confusion;
  if (confusion.classes < 2 || confusion.classes > kMost) return "";
  const auto name = [&](std::size_t one) {
    return terminal_text(one < names.size() ? names[one] : std::to_string(one)).substr(0, 11);
  };
  std::string text = fmt::format("{:<12}", "predicted as");
  for (std::size_t one = 0; one < confusion.classes; ++one)
    text += fmt::format("{:>12}", name(one));
  for (std::size_t label = 0; label < confusion.classes; ++label) {
    text += fmt::format("\n{:<12}", name(label));
    for (std::size_t predicted = 0; predicted < confusion.classes; ++predicted)
      text += fmt::format("{:>12}", grouped(confusion.at(label, predicted)));
  }
  return text + "\n";
}

namespace {

/// Sends predictions for held-out samples from the ranks that run last stages to all ranks.
class Answers {
 public:
  Answers(Trainer& trainer, const std::shared_ptr<const Dataset>& dataset, Split split,
          const SampleLogits& see)
      : trainer_(trainer),
        see_(see),
        predictions_(
            make_predictions(trainer.config(), fields_of(trainer.job().model), dataset, split)) {}

  /// Starts a batch of `count` samples from sample `first`.
  void begin(std::int64_t first, std::int64_t count) {
    first_ = first;
    count_ = count;
    if (predictions_ != nullptr)
      mine_.assign(static_cast<std::size_t>(count) * predictions_->size(), 0);
  }
  /// For Trainer::evaluate().
  std::function<void(int, View)> see() {
    if (predictions_ == nullptr && !see_) return {};
    return [this](int microbatch, View logits) { take(microbatch, logits); };
  }
  /// Collective.
  void gather() {
    if (predictions_ == nullptr) return;
    const std::vector<double> all = gather_values(trainer_.world(), mine_);
    std::vector<double> sums(mine_.size());
    for (std::size_t i = 0; i < all.size(); ++i) sums[i % sums.size()] += all[i];
    all_.insert(all_.end(), sums.begin(), sums.end());
  }
  void count(Validation& result) const {
    if (predictions_ == nullptr) return;
    result.metrics = predictions_->metrics(all_);
    result.confusion = predictions_->confusion(all_);
  }

 private:
  void take(int microbatch, View logits) {
    const std::int64_t samples = trainer_.job().model.samples;
    const std::vector<float> values =
        to_floats(host_view(trainer_.tensor_memory(), logits, scratch_));
    const std::size_t each = values.size() / static_cast<std::size_t>(samples);
    for (std::int64_t s = 0; s < samples; ++s) {
      const std::int64_t at = microbatch * samples + s;
      if (at >= count_) return;  // padding
      const auto sample = static_cast<std::uint64_t>(first_ + at);
      const auto logits_of_it = std::span(values).subspan(static_cast<std::size_t>(s) * each, each);
      if (see_) see_(sample, logits_of_it);
      if (predictions_ == nullptr) continue;
      const std::size_t size = predictions_->size();
      predictions_->answer(sample, logits_of_it,
                           std::span(mine_).subspan(static_cast<std::size_t>(at) * size, size));
    }
  }

  Trainer& trainer_;
  const SampleLogits& see_;
  std::unique_ptr<Predictions> predictions_;
  std::int64_t first_ = 0, count_ = 0;
  std::vector<double> mine_, all_;  // for this batch (0 if on another rank); for all samples
  std::vector<std::byte> scratch_;
};

}  // namespace

namespace {

/// A metric's name, with '_' for characters other than letters and digits.
std::string metric_name(std::string_view source) {
  std::string name = "loss";
  bool gap = true;
  for (const char c : source) {
    const bool plain = std::isalnum(static_cast<unsigned char>(c)) != 0;
    if (plain && gap) name += '_';
    if (plain) name += c;
    gap = !plain;
  }
  return name;
}

/// Evaluates each source separately, and all targets together.
Validation evaluate_mixture(Trainer& trainer, const Mixture& mixture, const HeldOut& held_out,
                            const std::function<bool()>& stop, const SampleLogits& see) {
  Validation all;
  for (std::size_t s = 0; s < mixture.sources().size(); ++s) {
    const MixSource& source = mixture.sources()[s];
    const std::uint64_t first = mixture.first(held_out.split, s);
    SampleLogits see_numbered;
    if (see)
      see_numbered = [&](std::uint64_t sample, std::span<const float> logits) {
        see(first + sample, logits);
      };
    const Validation one = evaluate(trainer, source.dataset, held_out, stop, see_numbered);
    all.loss += one.loss * static_cast<double>(one.targets);
    all.tokens = one.tokens;
    all.targets += one.targets;
    all.of += one.of;
    all.seconds += one.seconds;
    all.samples += one.samples;
    if (one.targets > 0)
      all.metrics.push_back(
          {metric_name(source.name), one.loss, /*minimise=*/true, /*share=*/false});
  }
  if (all.targets > 0) all.loss /= static_cast<double>(all.targets);
  return all;
}

}  // namespace

Validation evaluate(Trainer& trainer, std::shared_ptr<const Dataset> dataset,
                    const HeldOut& held_out, const std::function<bool()>& stop,
                    const SampleLogits& see) {
  if (const Mixture* const mixture = mixture_of(*dataset))
    return evaluate_mixture(trainer, *mixture, held_out, stop, see);
  const double start = now();
  const Job& job = trainer.job();
  const std::int64_t samples = job.batch(), microbatch = job.model.samples;
  Validation result;
  result.of = dataset->targets(held_out.split);
  result.tokens = field_index(*dataset, "targets") >= 0;
  Answers answers(trainer, dataset, held_out.split, see);
  ValidationSource source(std::move(dataset), samples, held_out.batches * kEvaluationBatch,
                          held_out.split);
  const int together = trainer.assignment().batches;
  std::int64_t done = 0;  // targets
  for (std::int64_t batch = 0; batch < source.batches(); batch += together) {
    // Microbatches that consist of padding are skipped.
    std::int64_t valid = 0;
    for (std::int64_t b = batch; b < std::min(batch + together, source.batches()); ++b) {
      valid += source.samples(b);
      done += source.valid_targets(b, samples);
    }
    const auto count = static_cast<int>((valid + microbatch - 1) / microbatch);
    answers.begin(batch * samples, valid);
    result.samples += valid;
    std::vector<double> mine = trainer.evaluate(batch, count, source, answers.see());
    mine.push_back(trainer.engine().unread() ? 1 : 0);
    if (trainer.watchdog() != nullptr) trainer.watchdog()->at("gather of held-out losses");
    const std::vector<double> all = gather_values(trainer.world(), mine);
    const std::size_t each = mine.size();
    for (std::size_t i = each - 1; i < all.size(); i += each)
      if (all[i] > 0) trainer.throw_unread();
    // One rank holds a microbatch's loss and the others hold 0, so the sum is in microbatch order.
    for (std::size_t m = 0; m + 1 < each; ++m)
      for (std::size_t i = m; i < all.size(); i += each) result.loss += all[i];
    answers.gather();
    if (held_out.progress) held_out.progress(done, source.targets(), now() - start);
    if (stop && stop()) break;
  }
  result.targets = source.targets();
  if (result.targets > 0) result.loss /= static_cast<double>(result.targets);
  if (result.targets > 0) answers.count(result);
  result.seconds = now() - start;
  return result;
}

void require_finite(const Validation& validation, std::int64_t step) {
  if (std::isfinite(validation.loss)) return;
  throw_failure(fmt::format("the held-out loss is {}: the weights have diverged",
                            number_text(validation.loss)),
                fmt::format("step {}", step),
                "a new run with a lower optimizer.lr or a longer lr.warmup");
}

}  // namespace concertina
