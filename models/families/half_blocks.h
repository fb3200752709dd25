// Shared by most families: common options, and layers that consist of an attention and an MLP
// half-block. Units: 0 embedding; 1 + 2l attention and 2 + 2l MLP of layer l; 2L + 1 head.
#pragma once

#include "models/model.h"
#include "models/task.h"
#include "models/units/attention.h"
#include "models/units/embedding.h"
#include "models/units/mlp.h"

namespace concertina::families {

/// Options that several families declare, under the names that the functions below read.
Option hidden_option(std::string_view help = "hidden size of the MLP (0: 4 times the width)");
Option norm_eps_option(double default_value,
                       std::string_view help = "epsilon added to the variance in the layer norms");
Option activation_option(std::string_view default_value);
Option tied_option();
Option rope_theta_option();

/// Returns the norm whose epsilon is the norm_eps option.
NormSpec norm_of(const ModelConfig& config, NormSpec::Kind kind = NormSpec::Kind::layer);
/// Returns the MLP described by the options hidden and, unless it is gated, activation. Its initial
/// weights have standard deviation model.init_std, or `residual_std` before the skip connection.
MlpSpec mlp_of(const ModelConfig& config, float residual_std, bool gated = false);
/// Returns a tied, bidirectional trunk that needs no final norm.
Trunk trunk_of(const ModelConfig& config);

/// The units of a model whose layers consist of two half-blocks each.
struct HalfBlocks {
  UnitPlan embedding;
  NormPlace place = NormPlace::before_branch;
  NormSpec norm;  // shared by all half-blocks
  AttentionSpec attention;
  MlpSpec mlp;
  Trunk trunk;
};
std::unique_ptr<Model> build(const ModelConfig& config, HalfBlocks parts);

}  // namespace concertina::families
