#include "experiments/evaluate/decoder.h"

#include <algorithm>

#include "core/error.h"
#include "core/index.h"
#include "experiments/run/planning.h"

namespace concertina {
namespace {

constexpr std::size_t kMany = 64;  // tokens per text of a pass over a prompt

std::size_t bytes_of(const Field& field, std::size_t samples) {
  return samples * static_cast<std::size_t>(field.elements()) * size_of(field.type);
}

/// Microbatch 0 belongs to the pipeline that starts the step.
const Pipeline& first_pipeline(const Layout& layout) {
  return *std::ranges::find(layout.pipelines, 0, &Pipeline::first_microbatch);
}

}  // namespace

Decoder::Decoder(const DecodedModel& model, std::size_t texts, Backend& backend)
    : model_(model),
      backend_(backend),
      most_(texts),
      context_(static_cast<std::size_t>(model.config.model.context)),
      stages_(first_pipeline(model.assignment.layout).stages),
      last_rank_(stages_.back().rank),
      caches_(stages_.size()),
      many_(make_pass(std::min(kMany, context_))),
      one_(make_pass(1)) {
  std::size_t bytes = align_up(backend.workspace_bytes());
  for (const Pass* pass : {&many_, &one_}) {
    for (const Field& field : pass->fields) bytes += align_up(bytes_of(field, most_));
    bytes += 2 * align_up(pass->model->spec().boundary_bytes);
    std::size_t forward = 0;
    for (const auto& stage : pass->stages) {
      if (stage == nullptr) continue;
      const StageMemory memory = stage->memory();
      forward = std::max(forward, memory.forward_bytes);
      bytes += align_up(stage->packed_bytes()) + (pass == &one_ ? align_up(memory.cache_bytes) : 0);
    }
    bytes += align_up(forward);
  }
  arena_.reserve(bytes, backend.memory());
  backend.set_workspace(arena_.take(backend.workspace_bytes(), "kernel workspace"));
  for (std::size_t s = 0; s < stages_.size(); ++s)
    if (one_.stages[s] != nullptr)
      caches_[s] = arena_.take(one_.stages[s]->memory().cache_bytes, "keys and values");
  attach(many_);
  attach(one_);
}

Decoder::~Decoder() {
  many_ = {};
  one_ = {};
  backend_.forget_operators();
}

Decoder::Pass Decoder::make_pass(std::size_t tokens) const {
  ModelConfig config = model_config_of(model_.config);
  config.samples = static_cast<std::int64_t>(most_);
  config.decoded = static_cast<std::int64_t>(tokens);
  config.dropout = config.attention_dropout = 0;
  config.distillation = {};
  config.recompute.clear();
  Pass pass{.tokens = tokens, .model = make_model(model_.config.model.family, config)};
  pass.fields = fields_of(pass.model->spec());
  const int units = static_cast<int>(pass.model->spec().units.size());
  for (const StagePlacement& stage : stages_)
    pass.stages.push_back(
        stage.rank == model_.world.rank()
            ? std::make_unique<ModelStage>(backend_, *pass.model, model_.assignment.buckets,
                                           stage.first_unit, stage.last_unit, units)
            : nullptr);
  return pass;
}

void Decoder::attach(Pass& pass) {
  const ModelSpec& spec = pass.model->spec();
  for (const Field& field : pass.fields)
    pass.batch.push_back(
        arena_.take(bytes_of(field, most_) / size_of(field.type), field.type, field.name));
  const std::size_t boundary = spec.boundary_bytes / size_of(spec.activation);
  pass.input = arena_.take(boundary, spec.activation, "stage input");
  pass.output = arena_.take(boundary, spec.activation, "stage output");
  std::size_t scratch = 0;
  for (const auto& stage : pass.stages)
    if (stage != nullptr) scratch = std::max(scratch, stage->memory().forward_bytes);
  void* const forward = arena_.take(scratch, "scratch of forward passes");
  for (const auto& stage : pass.stages) {
    if (stage == nullptr) continue;
    stage->attach(model_.weights, arena_.take(stage->packed_bytes(), "packed weights"));
    stage->set_workspace(nullptr, forward);
    stage->refresh();
  }
  pass.io.fields = pass.batch;
  pass.io.training = false;
}

void Decoder::start(std::vector<Tokens> texts) {
  CONCERTINA_CHECK(texts.size() <= most_, "{} texts of at most {}", texts.size(), most_);
  texts_.clear();
  for (Tokens& tokens : texts) {
    const std::size_t begin = tokens.size() > context_ ? tokens.size() - context_ : 0;
    texts_.push_back({std::move(tokens), begin});
  }
}

/// Fills the rows of each text with its next tokens, and the rest with copies of the last one,
/// whose keys and values are written again.
void Decoder::load(Pass& pass) {
  const std::size_t rows = most_ * pass.tokens;
  std::vector<std::int32_t> tokens(rows), starts(rows), targets(rows, kIgnored);
  for (std::size_t t = 0; t < texts_.size(); ++t) {
    Text& text = texts_[t];
    const std::size_t count = std::min(pass.tokens, text.unread());
    for (std::size_t i = 0; i < pass.tokens; ++i) {
      const std::size_t position = text.read + std::min(i, count) - (i < count ? 0 : 1);
      const std::size_t row = t * pass.tokens + i;
      tokens[row] = text.tokens[text.begin + position];
      starts[row] = static_cast<std::int32_t>(i) - static_cast<std::int32_t>(position);
    }
    text.read += count;
  }
  for (std::size_t f = 0; f < pass.fields.size(); ++f) {
    const std::string& name = pass.fields[f].name;
    const auto& values = name == "tokens" ? tokens : name == "targets" ? targets : starts;
    backend_.memory().copy(values.data(), pass.batch[f].data, pass.batch[f].bytes());
  }
}

void Decoder::run_stage(Pass& pass, std::size_t stage) {
  const int rank = model_.world.rank();
  const bool first = stage == 0, last = stage + 1 == stages_.size();
  const auto elsewhere = [&](std::size_t other) { return stages_[other].rank != rank; };
  if (model_.watchdog != nullptr) model_.watchdog->at("generating text", static_cast<int>(stage));
  if (!first && elsewhere(stage - 1))
    model_.tensors.irecv(bytes_of(pass.input), stages_[stage - 1].rank).wait();
  pass.io.input = first ? View{} : pass.input;
  pass.io.output = last ? View{} : pass.output;
  pass.io.cache = caches_[stage];
  pass.stages[stage]->forward(pass.io);
  if (last) return;
  backend_.synchronize();
  if (elsewhere(stage + 1))
    model_.tensors.isend(bytes_of(pass.output), stages_[stage + 1].rank).wait();
  else
    std::swap(pass.input, pass.output);
}

void Decoder::run(Pass& pass) {
  load(pass);
  for (std::size_t s = 0; s < stages_.size(); ++s)
    if (pass.stages[s] != nullptr) run_stage(pass, s);
  last_ = &pass;
}

void Decoder::read() {
  for (Text& text : texts_)
    if (text.read + text.unread() > context_)
      text.begin = text.tokens.size() - std::max<std::size_t>(1, context_ / 2), text.read = 0;
  const auto most_unread = [&] {
    std::size_t most = 0;
    for (const Text& text : texts_) most = std::max(most, text.unread());
    return most;
  };
  for (std::size_t unread = most_unread(); unread > 0; unread = most_unread())
    run(unread > 1 ? many_ : one_);
}

std::vector<float> Decoder::logits(std::size_t text) const {
  const View all = last_->stages.back()->logits(last_->io);
  const std::size_t row = all.count / (most_ * last_->tokens);
  backend_.synchronize();
  std::vector<std::byte> scratch;
  return to_floats(host_view(backend_.memory(),
                             all.slice(((text + 1) * last_->tokens - 1) * row, row), scratch));
}

}  // namespace concertina
