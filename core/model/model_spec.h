// A model as the rest of the system knows it: its units, their parameters and their costs.
// Invariant: pure values; nothing here depends on rank, layout or device.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "core/model/batch.h"
#include "core/tensor.h"

namespace concertina {

/// How a parameter tensor starts. Values come from Rng{seed, Purpose::init}.
struct Init {
  enum class Kind { zeros, ones, normal } kind = Kind::zeros;
  float std = 0;  // of `normal`, mean 0
};

struct ParameterSpec {
  std::string name;  // unique in its unit, e.g. "up.weight"
  std::vector<std::int64_t> shape;
  bool decay = false;  // weight decay applies (matrices, by custom)
  Init init;
  /// Non-empty: one tensor of the whole model, held by every unit that names it (tied embedding).
  std::string shared;
  /// Columns of the matrices that stand side by side in it, each of which maps hidden activations
  /// to hidden activations: {C} for a projection, {C, C, C} for queries, keys and values. Empty: it
  /// is no such matrix (an embedding, a head, a norm, a bias).
  std::vector<std::int64_t> matrices{};
  /// Each device of a tensor-parallel group has its part (UnitSplit); else all of it.
  bool split = false;
  /// Its values change in training, if its unit is not frozen (freeze_tensors()).
  bool trains = true;

  std::int64_t count() const;
};

/// The parts of a unit's UnitCost, by its names, that a tensor-parallel group of devices divides,
/// as Megatron-LM does (Shoeybi et al. 2019): heads, hidden columns, the vocabulary. Each device
/// has and does all the rest as a whole.
struct UnitSplit {
  double flops = 0;  // share of the products of F, and so of those of I and W
  std::size_t saved_bytes = 0, grad_bytes = 0;
  double forward_moved = 0, input_moved = 0;
  std::int64_t parts = 0;  // that there are: the devices divide it; 0: any number
};

/// Analytic costs of one unit for one microbatch.
struct UnitCost {
  double forward_flops = 0, input_flops = 0, weight_flops = 0;  // F, I, W
  std::size_t saved_bytes = 0;  // kept from F until I (and W), without the unit's input
  std::size_t grad_bytes = 0;   // kept from I until W where they are separate actions
  /// Operations that recompute the kept values from the unit's input; 0: it cannot be done.
  double again_flops = 0;
  /// The products of F alone, attention's as if no mask hid a key; utilization is computed from
  /// them (experiments/record/launch_figures.h).
  double model_flops = 0;

  /// Bytes that F and I read and write besides their products: norms, activations, sums, losses.
  double forward_moved = 0, input_moved = 0;
  /// Elements: pairs of queries and keys of all heads, which no kernel here keeps; of the logits;
  /// that pass a dropout.
  double scores = 0, logits = 0, dropped = 0;
  /// FLOPs of one of attention's products, as far as the mask leaves pairs, and as if it hid none.
  /// F has two of the first, I five.
  double score_flops = 0, full_score_flops = 0;
  UnitSplit split{};
  /// Bytes of activations that a tensor-parallel group's devices sum in F and in I.
  double forward_sum = 0, input_sum = 0;
};

double total_flops(const UnitCost& cost);

/// Seconds of a unit for one microbatch (pack: once per step); 0 where it is not known.
struct UnitSeconds {
  double forward = 0, input = 0, weight = 0, pack = 0;
  double frozen = 0;  // its forward pass where it is frozen, and keeps nothing; not known: forward
  bool operator==(const UnitSeconds&) const = default;
};

/// The smallest thing that a stage boundary may cut.
struct UnitSpec {
  std::string name;  // e.g. "003.mlp"; unique, sorts in unit order
  std::vector<ParameterSpec> parameters;
  UnitCost cost;
  std::vector<Field> reads{};  // of the batch, on whatever stage the unit is; at most kMostReads
  /// Keeps nothing from F to B but its input: what `cost` says of saved bytes is computed again at
  /// the start of B or I, and lives from there to W.
  bool recompute = false;
};

/// Fields of a batch that one unit may read.
inline constexpr std::size_t kMostReads = 4;

struct ModelSpec {
  std::vector<UnitSpec> units;
  std::size_t boundary_bytes = 0;  // activations that cross any stage boundary, a microbatch
  DType activation = DType::f32;   // of their elements
  std::int64_t tokens_per_sample = 0, vocabulary = 0, samples = 0;  // samples of one microbatch
  /// The unit after the last one of each layer, ascending: what comes before the first layer
  /// belongs to it, what comes after the last one (the head) to none. Empty: the model has no
  /// layers.
  std::vector<int> layer_ends{};
  /// A tensor that frozen units share with the last one trains on there, see make_buckets(); else
  /// it is frozen wherever it is used.
  bool unties = false;

  /// Tokens of one microbatch.
  std::int64_t rows() const { return samples * tokens_per_sample; }
};

/// The fields that the units of `model` read, each once, in the order of the units.
std::vector<Field> fields_of(const ModelSpec& model);
/// The index of each of `unit`'s reads in `fields`, which are fields_of() its model.
std::vector<int> read_indices(const UnitSpec& unit, const std::vector<Field>& fields);

/// A run of one tensor inside a bucket.
struct BucketTensor {
  int unit = 0;       // first unit that holds it
  int parameter = 0;  // index in that unit's list
  std::string name;   // "003.mlp/up.weight", or the shared name
  std::vector<std::int64_t> shape;
  std::size_t offset = 0, count = 0;  // elements in the bucket; offset is a multiple of 16
  bool decay = false;
  Init init;
  std::vector<std::int64_t> matrices{};  // as in ParameterSpec
  bool trains = true;                    // else it has no update and no part in the norm
};

/// Tensors that are reduced, clipped and updated together: all of one unit's own parameters, or
/// one shared tensor. `uses` are the units that contribute a gradient, ascending; a shared
/// tensor's gradient is the sum of its uses' gradients in this order.
struct Bucket {
  std::string name;
  std::vector<int> uses;
  std::vector<BucketTensor> tensors;
  std::size_t elements = 0;  // padding between tensors included (always zero)
  /// Its values never change: no gradient, no optimizer state, no part in the norm.
  bool frozen = false;
  /// The bucket whose values it has had since its uses froze; -1: none.
  int copy_of = -1;
};

/// All buckets in canonical order: by first use; a unit's own bucket before shared ones. Units
/// [0, frozen_units) are frozen, and with them each tensor that one of them uses. Where the model
/// unties, a tensor that the last unit uses too trains on without the frozen ones. These have a
/// frozen copy of it as it was, by the name of the first one's own, after all other buckets.
std::vector<Bucket> make_buckets(const ModelSpec& model, int frozen_units = 0);

/// Marks what does not train. `patterns` name tensors ("003.mlp/up.weight", shared ones as "wte"):
/// `*` stands for any text, `!` in front says that these do train; the last that fits counts, as in
/// .gitignore. Error{bad_input} at `freeze.tensors`: a pattern fits no tensor, or nothing trains.
void freeze_tensors(ModelSpec& model, const std::vector<std::string>& patterns);
/// Parameters, each shared tensor once: those of which `trains` is true, and all.
std::pair<std::int64_t, std::int64_t> trained_and_all(const ModelSpec& model);
/// What trains by freeze_tensors() where [0, frozen_units) are frozen too, in words, and how to
/// save the backward pass of more units; empty: all of them train.
std::string trained_text(const ModelSpec& model, int frozen_units);

/// The leading units that make up the first `layers` layers; 0 layers are 0 units. Error: the model
/// has fewer layers.
int units_of_layers(const ModelSpec& model, int layers);
/// The leading layers that lie within the first `units` units as a whole.
int layers_of_units(const ModelSpec& model, int units);
/// The frozen units in words: "7 of 12 layers frozen", or "2 of 26 units frozen" where these are
/// not whole layers; empty for no units.
std::string frozen_text(const ModelSpec& model, int units);
/// The same by name: "layers 1-2, and the token table (wte), which is also the output matrix".
std::string frozen_names(const ModelSpec& model, int units);
/// The most layers that can be frozen while some parameter still trains.
int most_frozen_layers(const ModelSpec& model);

/// Model FLOPs of so many microbatches, of any family and task: three times those of its units'
/// forward pass (UnitCost::model_flops), as a backward pass has twice its forward pass. What counts
/// is products: linear maps, of the head only for the rows that have a loss, and attention's two,
/// in full even where a causal mask needs half of them or samples are padded. Lookups, norms and
/// all else that is elementwise count nothing. Of GPT-2 that is 72 B s l h^2 (1 + s/(6h) +
/// V/(12 l h)) for B sequences of s tokens, l layers of width h and V tokens in the vocabulary:
/// Narayanan et al. 2021 ("Efficient Large-Scale Language Model Training on GPU Clusters Using
/// Megatron-LM"), equation 3, without the second forward pass of recomputation.
double model_flops(const ModelSpec& model, int microbatches);

/// The cost of one microbatch by unit, where units [0, frozen_units) are frozen. Frozen units only
/// run F and save nothing. Weight gradients of the others cost in proportion to the parameters that
/// train; units that recompute save less and cost more than UnitSpec::cost.
std::vector<UnitCost> training_costs(const ModelSpec& model, int frozen_units);

/// `cost` of a unit that keeps nothing but its input (UnitSpec::recompute).
UnitCost recomputed(UnitCost cost);

/// Elements of the canonical grid: norms are summed, states hashed and owners cut by block.
inline constexpr std::size_t kBlock = 4096;

/// A run of at most kBlock elements of one tensor; padding belongs to no block.
struct Block {
  int tensor = 0;          // index in Bucket::tensors
  std::size_t offset = 0;  // elements, in the bucket
  std::size_t count = 0;
};
/// Blocks are numbered tensor by tensor. Both by arithmetic, in proportion to the bucket's tensors:
/// a list of all blocks of a large model would be too long for each rank.
std::size_t block_count(const BucketTensor& tensor);
std::size_t block_count(const Bucket& bucket);
Block block_at(const Bucket& bucket, std::size_t index);

}  // namespace concertina
