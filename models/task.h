// A task is what a model is trained for: it determines the head and its targets.
// Invariant: a task does not depend on a family; a family describes what it hands over (Trunk).
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "core/registry.h"
#include "models/units/head.h"

namespace concertina {

/// What a family hands to the head: rows [R,C], and properties of the model that produced them.
struct Trunk {
  UnitShape shape;
  std::int64_t vocabulary = 0, classes = 0;
  bool tied = true;          // token logits are products with the token table
  bool logits_bias = false;  // causal models only
  bool causal = false;       // rows do not depend on later rows
  Epilogue::Kind activation = Epilogue::Kind::gelu_erf;  // for the transform before token logits
  bool pools = false;  // classification reads a transform of the first row (BERT)
  std::optional<Epilogue::Kind> pooler{};  // the activation of that transform; none: tanh
  std::optional<NormSpec> norm{};          // still to be applied (pre-norm)
  float norm_eps = 1e-5F;                  // for norms within the head
  float std = 0.02F;                       // for the initial weights of the head
  std::int64_t targets = 0;                // maximum per sample; 0: no limit
};

struct Task {
  /// Throws Error{bad_input} if the family does not support the task.
  UnitPlan (*head)(const Trunk& trunk);
  std::string_view about;
  bool masks = false;  // targets are tokens that are masked in the input
  /// Returns the rows that the head reads.
  RowsRead (*reads)(const Trunk& trunk) = [](const Trunk&) { return RowsRead{}; };
  TargetKind targets = TargetKind::label;
  bool classes = false;     // the head has model.classes logits
  bool vocabulary = false;  // the head has token logits
};

/// Returns the tasks listed in models/meson.build.
std::span<const Entry<Task>> tasks();

const Task& find_task(std::string_view name);
/// Returns the task for model.family and model.task; the latter may be "auto".
const Task& task_of(std::string_view family, std::string_view task);

/// Returns the map to the logits over the vocabulary, with a bias: the token table, or "head".
DenseSpec token_logits(const Trunk& trunk);

/// Returns the row that represents a whole sample: the first, or in causal families the last token
/// that is not padding.
RowsRead one_row(const Trunk& trunk);
/// Returns a head with model.classes logits per sample, computed from one_row(). A pooler (a linear
/// map and an activation) and dropout may precede them (BERT). In causal families the map has no
/// bias, as in transformers (GPT-2, Llama).
HeadSpec sample_head(const Trunk& trunk, HeadSpec::Loss loss, const Field& reads);

/// Throws Error{bad_input} if the rows do not depend on the whole sample, as `task` requires.
void require_whole_sample(const Trunk& trunk, std::string_view task);

}  // namespace concertina
