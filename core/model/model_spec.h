// The description of a model for the rest of the system: units, parameters and costs.
// Invariant: plain values that do not depend on rank, layout or device.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/model/batch.h"
#include "core/tensor.h"

namespace concertina {

/// Initialization of a parameter tensor. Values come from Rng{seed, Purpose::init}.
struct Init {
  enum class Kind { zeros, ones, normal } kind = Kind::zeros;
  float std = 0;  // standard deviation for `normal`; the mean is 0
};

struct ParameterSpec {
  std::string name;  // unique in its unit, such as "up.weight"
  std::vector<std::int64_t> shape;
  bool decay = false;  // whether weight decay applies (by convention, to matrices)
  Init init{};
  /// If not empty, names a model-wide tensor that is shared by units (tied embedding).
  std::string shared{};
  /// Column counts of the matrices that form this tensor side by side, each of which maps hidden
  /// activations to hidden activations: {C} for a projection, {C, C, C} for queries, keys and
  /// values. Empty for all other tensors (embeddings, heads, norms, biases).
  std::vector<std::int64_t> matrices{};
  /// Whether a tensor-parallel group divides it (UnitSplit). Otherwise each device has all of it.
  bool split = false;
  /// Whether it trains, provided that its unit is not frozen (freeze_tensors()).
  bool trains = true;
  /// Whether it is in the unit's bucket of tuned tensors: adapters and, in a model with adapters,
  /// the map to the logits of classes. By default, only these train in such a model.
  bool tuned = false;

  std::int64_t count() const { return elements_of(shape); }
};

/// The parts of a unit's UnitCost, under the same names, that a tensor-parallel group divides, as
/// in Megatron-LM (Shoeybi et al. 2019): heads, hidden columns, the vocabulary. Each device has and
/// computes everything else.
struct UnitSplit {
  double flops = 0;  // fraction of the operations in F's products; also applies to I and W
  std::size_t saved_bytes = 0, grad_bytes = 0;
  double forward_moved = 0, input_moved = 0;
  std::int64_t parts = 0;  // number of parts, a multiple of the device count; 0: any device count
};

/// Analytic costs of one unit for one microbatch.
struct UnitCost {
  double forward_flops = 0, input_flops = 0, weight_flops = 0;  // F, I, W
  std::size_t saved_bytes = 0;  // kept from F until I (and W), without the unit's input
  std::size_t grad_bytes = 0;   // kept from I until W if they are separate actions
  /// Operations to recompute the saved values from the unit's input; 0 if unsupported.
  double recompute_flops = 0;
  /// Operations of F's products alone, without any attention mask. Utilization is computed from it
  /// (experiments/record/launch_figures.h).
  double model_flops = 0;
  double adapter_flops = 0;  // of W, for adapters alone

  /// Bytes that F and I read and write outside of products: norms, activations, sums, losses.
  double forward_moved = 0, input_moved = 0;
  /// Numbers of elements: query-key pairs of all heads, which are never stored; logits; and
  /// activations subject to dropout.
  double scores = 0, logits = 0, dropped = 0;
  /// FLOPs of one product of attention, with and without the mask. F computes two, I five.
  double score_flops = 0, full_score_flops = 0;
  UnitSplit split{};
  /// Bytes of activations that a tensor-parallel group sums in F and in I.
  double forward_sum = 0, input_sum = 0;
};

double total_flops(const UnitCost& cost);

/// The seconds that a unit's passes take per microbatch (`pack`: per step); 0 if unknown.
struct UnitSeconds {
  double forward = 0, input = 0, weight = 0, pack = 0;
  double frozen = 0;  // forward pass of a frozen unit, which saves nothing; if unknown, `forward`
  bool operator==(const UnitSeconds&) const = default;
};

/// The smallest part of a model that can be a stage.
struct UnitSpec {
  std::string name;  // unique, and numbered in unit order, such as "003.mlp"
  std::vector<ParameterSpec> parameters;
  UnitCost cost;
  std::vector<Field> reads{};  // batch fields that it reads, on any stage; at most kMostReads
  /// Whether only the input is kept from F to B. The saved values in `cost` are then recomputed at
  /// the start of B or I, and kept until W.
  bool recompute = false;
};

/// Maximum number of batch fields that one unit may read.
inline constexpr std::size_t kMostReads = 4;

struct ModelSpec {
  std::vector<UnitSpec> units;
  std::size_t boundary_bytes = 0;  // activations that cross a stage boundary, per microbatch
  DType activation = DType::f32;   // element type at a boundary
  std::int64_t tokens_per_sample = 0, vocabulary = 0, samples = 0;  // `samples` is per microbatch
  /// The unit after the last one of each layer, ascending. Units before the first layer belong to
  /// it; units after the last one (the head) belong to none. Empty if the model has no layers.
  std::vector<int> layer_ends{};
  /// Whether a tensor that frozen units share with the last unit continues to train in the last
  /// unit (see make_buckets()). Otherwise it is frozen everywhere.
  bool unties = false;

  /// Returns the number of tokens per microbatch.
  std::int64_t rows() const { return samples * tokens_per_sample; }
};

/// Returns the fields that the units of `model` read, without duplicates, in unit order.
std::vector<Field> fields_of(const ModelSpec& model);
/// Returns the indices of `unit`'s reads in `fields`, which must be fields_of(its model).
std::vector<int> read_indices(const UnitSpec& unit, const std::vector<Field>& fields);

/// A tensor inside a bucket.
struct BucketTensor {
  int unit = 0;       // the first unit that uses it
  int parameter = 0;  // index in that unit's list
  std::string name;   // "003.mlp/up.weight", or the shared name
  std::vector<std::int64_t> shape;
  std::size_t offset = 0, count = 0;  // in elements of the bucket; offset is a multiple of 16
  bool decay = false;
  Init init;
  std::vector<std::int64_t> matrices{};  // see ParameterSpec
  bool trains = true;                    // otherwise it is neither updated nor part of the norm
};

/// Tensors that are reduced, clipped and updated together: all unshared parameters of one unit (in
/// a model with adapters, all that are tuned, or all others), or one shared tensor. `uses` are the
/// units that contribute a gradient, ascending. The gradient of a shared tensor is the sum over its
/// uses in this order.
struct Bucket {
  std::string name;
  std::vector<int> uses;
  std::vector<BucketTensor> tensors;
  std::size_t elements = 0;  // includes the padding between tensors, which is always zero
  /// Whether its values are constant: no gradient, no optimizer state, not part of the norm.
  bool frozen = false;
  /// The bucket from which it was copied when its uses were frozen; -1: none.
  int copy_of = -1;
};

/// Returns all buckets in canonical order: by first use, with a unit's private buckets before
/// shared ones. In a model with adapters, a bucket in which nothing trains is frozen. Units [0,
/// frozen_units) and all tensors that they use are frozen. If `model.unties` is set, a tensor that
/// the last unit also uses continues to train there, and the frozen units use a frozen copy, which
/// is named after the first of these units and comes after all other buckets.
std::vector<Bucket> make_buckets(const ModelSpec& model, int frozen_units = 0);

/// Marks the tensors that do not train. `patterns` match names ("003.mlp/up.weight", or "wte" for a
/// shared one): `*` matches any text, and a leading `!` marks them as trained. The last match
/// counts, as in .gitignore. Throws Error{bad_input} if a pattern has no match, or nothing trains.
void freeze_tensors(ModelSpec& model, const std::vector<std::string>& patterns);
/// Whether the model has adapters (models/units/adapter.h).
bool is_adapted(const ModelSpec& model);
/// Freezes all tensors of a model with adapters that are not tuned.
void freeze_base(ModelSpec& model);
/// Returns the number of leading units that have no trained tensor.
int untrained_units(const ModelSpec& model);
/// Returns the numbers of trained and total parameters, counting shared tensors once.
std::pair<std::int64_t, std::int64_t> trained_and_all(const ModelSpec& model);
/// Describes what trains after freeze_tensors() if units [0, frozen_units) are frozen, and how to
/// skip the backward pass of more units. Empty if everything trains.
std::string trained_text(const ModelSpec& model, int frozen_units);

/// Returns the number of leading units that make up the first `layers` layers, 0 for 0 layers.
/// Throws an error if the model has fewer layers.
int units_of_layers(const ModelSpec& model, int layers);
/// Returns the number of complete layers in the first `units` units.
int layers_of_units(const ModelSpec& model, int units);
/// Describes the frozen units: "7 of 12 layers frozen", or "2 of 26 units frozen" if they are not
/// complete layers; empty if no unit is frozen.
std::string frozen_text(const ModelSpec& model, int units);
/// Names frozen parts: "layers 1-2, and the token table (wte), which is also the output matrix".
std::string frozen_names(const ModelSpec& model, int units);
/// Returns the maximum number of layers that can be frozen while some parameter still trains.
int most_frozen_layers(const ModelSpec& model);

/// Returns the model FLOPs of `microbatches` microbatches: three times those of the units' forward
/// pass (UnitCost::model_flops), because a backward pass costs twice as much. Only products count:
/// linear maps (in the head, only for rows that have a loss), and the two attention products, in
/// full even with a causal mask or padding. For GPT-2 this is 72 B s l h^2 (1 + s/(6h) + V/(12 l
/// h)) with B sequences of s tokens, l layers of width h and a vocabulary of V tokens, which is
/// equation 3 of Narayanan et al. 2021 ("Efficient Large-Scale Language Model Training on GPU
/// Clusters Using Megatron-LM") without the second forward pass of recomputation.
double model_flops(const ModelSpec& model, int microbatches);

/// Returns each unit's cost for one microbatch if units [0, frozen_units) are frozen. Frozen units
/// only run F and save nothing. For other units, the cost of weight gradients is proportional to
/// the trained parameters. Units that recompute save less and cost more than UnitSpec::cost says.
std::vector<UnitCost> training_costs(const ModelSpec& model, int frozen_units);

/// Returns `cost` adjusted for a unit that keeps only its input (UnitSpec::recompute).
UnitCost recomputed(UnitCost cost);

/// Elements per block. Norms are summed, states are hashed and owners are assigned per block.
inline constexpr std::size_t kBlock = 4096;

/// A run of at most kBlock elements of one tensor. Padding does not belong to a block.
struct Block {
  int tensor = 0;          // index in Bucket::tensors
  std::size_t offset = 0;  // in elements of the bucket
  std::size_t count = 0;
};
/// Blocks are numbered tensor by tensor. Both functions compute them from the tensors of the
/// bucket, because a list of all blocks of a large model would be too long for each rank.
std::size_t block_count(const BucketTensor& tensor);
std::size_t block_count(const Bucket& bucket);
Block block_at(const Bucket& bucket, std::size_t index);

}  // namespace concertina
