// A task is what a model is trained for: which head ends it, and which targets that reads.
// Invariant: a task knows no family; a family says what it hands over (Trunk).
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "core/registry.h"
#include "models/units/head.h"

namespace concertina {

/// The trunk that a family hands to the head: rows [R,C], and how they came about.
struct Trunk {
  UnitShape shape;
  std::int64_t vocabulary = 0, classes = 0;
  bool tied = true;          // the logits of tokens are products with the token table
  bool logits_bias = false;  // of a causal model's
  bool causal = false;       // a row knows nothing of those after it
  Epilogue::Kind activation = Epilogue::Kind::gelu_erf;  // of a transform before logits of tokens
  bool pools = false;  // classes are told from a transform of the first row (BERT)
  std::optional<Epilogue::Kind> pooler{};  // the transform's activation; none: tanh
  std::optional<NormSpec> norm{};          // that is still due (pre-norm)
  float norm_eps = 1e-5F;                  // of norms within the head
  float std = 0.02F;                       // of the head's init
  std::int64_t targets = 0;                // of a sample, at most; 0: any row may have one
};

struct Task {
  /// Throws Error{bad_input} where the family cannot do the task.
  UnitPlan (*head)(const Trunk& trunk);
  std::string_view about;
  bool masks = false;  // targets are tokens that the model reads masked
  /// The rows that its head reads.
  RowsRead (*reads)(const Trunk& trunk) = [](const Trunk&) { return RowsRead{}; };
  TargetKind targets = TargetKind::label;
  bool classes = false;     // its head has model.classes logits
  bool vocabulary = false;  // its head has logits of tokens
};

/// The tasks that models/meson.build lists.
std::span<const Entry<Task>> tasks();

const Task& find_task(std::string_view name);
/// The task of model.family and model.task, where the latter may be "auto".
const Task& task_of(std::string_view family, std::string_view task);

/// The map to logits over the vocabulary, with a bias: the token table, or "head".
DenseSpec token_logits(const Trunk& trunk);

/// The rows that tell of a whole sample: its first, or in causal families the last token that is
/// not padding.
RowsRead one_row(const Trunk& trunk);
/// A head of model.classes logits per sample, from one_row(): a pooler (a map and an activation)
/// and dropout may come before them (BERT); in causal families the map has no bias, as transformers
/// has it (GPT-2, Llama).
HeadSpec sample_head(const Trunk& trunk, HeadSpec::Loss loss, const Field& reads);

/// Throws Error{bad_input} that says that `task` needs a family whose rows see the whole sample.
void require_whole_sample(const Trunk& trunk, std::string_view task);

}  // namespace concertina
