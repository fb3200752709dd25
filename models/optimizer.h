// The optimizers, by name.
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

/// Keys of [optimizer] that rules may use; `optimizer.lr` is the peak of the schedule.
struct OptimizerConfig {
  double beta1 = 0.9, beta2 = 0.95, eps = 1e-8;
  double weight_decay = 0.1;
  double l1 = 0;            // strength of a proximal L1 penalty on tensors with weight decay
  bool keep_zeros = false;  // whether zeros of tensors with weight decay stay zero
  double ema = 0;           // decay rate of the average of the weights; 0: none
  OptionValues options{};   // rule options; omitted ones have their defaults
};

/// Returns the arguments of one AdamW step for a tensor with or without weight decay.
AdamW adam_of(const OptimizerConfig& config, const UpdateStep& step, bool decay);

/// Name of the state tensor with the exponential moving average of the weights.
inline constexpr std::string_view kAverage = "ema";

/// An update rule: its factory, and its options in addition to the common keys.
struct OptimizerRule {
  std::unique_ptr<Optimizer> (*make)(const OptimizerConfig& config) = nullptr;
  std::vector<Option> options{};
};

using PlainUpdate = std::function<void(Backend&, const UpdateStep&, const UpdatedTensor&)>;

/// Returns an optimizer with the given `states` and no tools; `update` is Optimizer::update().
std::unique_ptr<Optimizer> plain_optimizer(std::vector<std::string_view> states, PlainUpdate update,
                                           bool whole_tensors = false);

/// Returns the rules listed in models/meson.build.
std::span<const Entry<OptimizerRule>> optimizers();

/// Throws Error{bad_input}, naming the config key, for an unknown name.
std::unique_ptr<Optimizer> make_optimizer(std::string_view name, const OptimizerConfig& config);

}  // namespace concertina
