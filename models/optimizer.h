// The optimizers that there are, by name.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "core/model/optimizer.h"
#include "core/options.h"
#include "core/registry.h"

namespace concertina {

/// Keys of [optimizer] that rules may use; `optimizer.lr` is the schedule's peak.
struct OptimizerConfig {
  double beta1 = 0.9, beta2 = 0.95, eps = 1e-8;
  double weight_decay = 0.1;
  OptionValues options{};  // of the rule; those left out have their defaults
};

/// Adam's numbers for one step of a tensor that decays or not.
AdamW adam_of(const OptimizerConfig& config, const UpdateStep& step, bool decay);

/// An update rule: how it is made, and its own options beside the keys of all.
struct OptimizerRule {
  std::unique_ptr<Optimizer> (*make)(const OptimizerConfig& config) = nullptr;
  std::vector<Option> options{};
};

using PlainUpdate = std::function<void(Backend&, const UpdateStep&, const UpdatedTensor&)>;

/// An optimizer that has `states` and needs no tools: `update` is Optimizer::update().
std::unique_ptr<Optimizer> plain_optimizer(std::vector<std::string_view> states, PlainUpdate update,
                                           bool whole_tensors = false);

/// The rules that models/meson.build lists.
std::span<const Entry<OptimizerRule>> optimizers();

/// Throws Error{bad_input} for an unknown name or values out of range, with the config key.
std::unique_ptr<Optimizer> make_optimizer(std::string_view name, const OptimizerConfig& config);

}  // namespace concertina
