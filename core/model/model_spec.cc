#include "core/model/model_spec.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string_view>
#include <utility>

#include "core/error.h"

namespace concertina {
namespace {

constexpr std::size_t kTensorAlignment = 16;  // elements: one AVX-512 register of fp32

void append(Bucket& bucket, int unit, int index, const ParameterSpec& parameter,
            const std::string& name) {
  BucketTensor tensor{unit, index,           name,           parameter.shape,    0,
                      0,    parameter.decay, parameter.init, parameter.matrices, parameter.trains};
  tensor.offset = bucket.elements;
  tensor.count = static_cast<std::size_t>(parameter.count());
  bucket.elements =
      (tensor.offset + tensor.count + kTensorAlignment - 1) / kTensorAlignment * kTensorAlignment;
  bucket.tensors.push_back(std::move(tensor));
}

/// Removes the uses by frozen units from the bucket at `index`, and returns a copy for these units.
Bucket untie(const ModelSpec& model, Bucket& bucket, int index, int frozen_units) {
  Bucket copy = bucket;
  const auto trained = std::lower_bound(bucket.uses.begin(), bucket.uses.end(), frozen_units);
  copy.uses.assign(bucket.uses.begin(), trained);
  bucket.uses.erase(bucket.uses.begin(), trained);
  BucketTensor& tensor = copy.tensors[0];
  const UnitSpec& unit = model.units[static_cast<std::size_t>(tensor.unit)];
  tensor.name = unit.name + "/" + unit.parameters[static_cast<std::size_t>(tensor.parameter)].name;
  copy.name = tensor.name;
  copy.frozen = true;
  copy.copy_of = index;
  return copy;
}

/// Returns the shared tensors that are frozen with the units. Equivalent to make_buckets() but
/// cheaper, because a layout search calls it for every layout.
std::set<std::string_view> frozen_shared(const ModelSpec& model, int frozen_units) {
  std::set<std::string_view> names;
  for (int u = 0; u < frozen_units; ++u)
    for (const ParameterSpec& one : model.units[static_cast<std::size_t>(u)].parameters)
      if (!one.shared.empty()) names.insert(one.shared);
  if (model.unties)
    for (const ParameterSpec& one : model.units.back().parameters) names.erase(one.shared);
  return names;
}

}  // namespace

bool is_adapted(const ModelSpec& model) {
  return std::ranges::any_of(model.units, [](const UnitSpec& unit) {
    return std::ranges::any_of(unit.parameters, &ParameterSpec::tuned);
  });
}

std::vector<Field> fields_of(const ModelSpec& model) {
  std::vector<Field> fields;
  for (const UnitSpec& unit : model.units) {
    CONCERTINA_CHECK(unit.reads.size() <= kMostReads, "{} reads {} fields", unit.name,
                     unit.reads.size());
    for (const Field& field : unit.reads) {
      const auto known = std::find_if(fields.begin(), fields.end(),
                                      [&](const Field& one) { return one.name == field.name; });
      if (known == fields.end())
        fields.push_back(field);
      else
        CONCERTINA_CHECK(*known == field, "conflicting definitions of field {}", field.name);
    }
  }
  return fields;
}

std::vector<int> read_indices(const UnitSpec& unit, const std::vector<Field>& fields) {
  std::vector<int> indices;
  for (const Field& field : unit.reads)
    indices.push_back(
        static_cast<int>(std::find(fields.begin(), fields.end(), field) - fields.begin()));
  return indices;
}

std::vector<Bucket> make_buckets(const ModelSpec& model, int frozen_units) {
  std::vector<Bucket> buckets;
  std::map<std::string, std::size_t> shared;  // name -> index in buckets
  const bool adapted = is_adapted(model);
  for (int unit = 0; unit < static_cast<int>(model.units.size()); ++unit) {
    const UnitSpec& spec = model.units[static_cast<std::size_t>(unit)];
    Bucket own{spec.name, {unit}, {}, 0}, tuned{spec.name + ".tuned", {unit}, {}, 0};
    std::vector<Bucket> first_shared;
    for (int i = 0; i < static_cast<int>(spec.parameters.size()); ++i) {
      const ParameterSpec& parameter = spec.parameters[static_cast<std::size_t>(i)];
      if (parameter.shared.empty()) {
        append(parameter.tuned ? tuned : own, unit, i, parameter, spec.name + "/" + parameter.name);
      } else if (const auto known = shared.find(parameter.shared); known != shared.end()) {
        Bucket& bucket = buckets[known->second];
        CONCERTINA_CHECK(bucket.tensors[0].shape == parameter.shape,
                         "shared tensor {} has conflicting shapes", parameter.shared);
        bucket.uses.push_back(unit);
      } else {
        Bucket bucket{parameter.shared, {unit}, {}, 0};
        append(bucket, unit, i, parameter, parameter.shared);
        bucket.frozen = adapted && !parameter.trains;
        first_shared.push_back(std::move(bucket));
      }
    }
    own.frozen = adapted && std::ranges::none_of(own.tensors, &BucketTensor::trains);
    for (Bucket* const bucket : {&own, &tuned})
      if (!bucket->tensors.empty()) buckets.push_back(std::move(*bucket));
    for (Bucket& bucket : first_shared) {
      shared.emplace(bucket.name, buckets.size());
      buckets.push_back(std::move(bucket));
    }
  }
  const std::size_t own = buckets.size();
  for (std::size_t b = 0; b < own; ++b) {
    if (buckets[b].uses.front() >= frozen_units || buckets[b].frozen) continue;
    if (model.unties && buckets[b].uses.back() == std::ssize(model.units) - 1 &&
        buckets[b].uses.size() > 1)
      buckets.push_back(untie(model, buckets[b], static_cast<int>(b), frozen_units));
    else
      buckets[b].frozen = true;
  }
  return buckets;
}

int units_of_layers(const ModelSpec& model, int layers) {
  const int most = static_cast<int>(model.layer_ends.size());
  CONCERTINA_CHECK(layers >= 0 && layers <= most, "{} layers requested, {} found", layers, most);
  return layers == 0 ? 0 : model.layer_ends[static_cast<std::size_t>(layers) - 1];
}

int layers_of_units(const ModelSpec& model, int units) {
  const std::vector<int>& ends = model.layer_ends;
  return static_cast<int>(std::upper_bound(ends.begin(), ends.end(), units) - ends.begin());
}

std::string frozen_text(const ModelSpec& model, int units) {
  if (units == 0) return "";
  const int layers = layers_of_units(model, units);
  if (layers > 0 && units_of_layers(model, layers) == units)
    return fmt::format("{} of {} layers frozen", layers, model.layer_ends.size());
  return fmt::format("{} of {} units frozen", units, model.units.size());
}

std::string frozen_names(const ModelSpec& model, int units) {
  if (units == 0) return "no layer";
  const int layers = layers_of_units(model, units);
  std::string text = layers == 1 ? "layer 1" : fmt::format("layers 1-{}", layers);
  if (layers == 0 || units_of_layers(model, layers) != units)
    text = fmt::format("the first {} of {} units", units, model.units.size());
  const std::vector<Bucket> buckets = make_buckets(model, units);
  for (const Bucket& bucket : buckets)
    if (bucket.copy_of >= 0)
      text += fmt::format(
          ", with a copy of the current token table; the output matrix ({}) continues to train",
          buckets[static_cast<std::size_t>(bucket.copy_of)].name);
    else if (bucket.frozen && bucket.uses.back() == std::ssize(model.units) - 1)
      text +=
          fmt::format(", and the token table ({}), which is also the output matrix", bucket.name);
  return text;
}

int most_frozen_layers(const ModelSpec& model) {
  for (int layers = static_cast<int>(model.layer_ends.size()); layers > 0; --layers) {
    const std::vector<Bucket> buckets = make_buckets(model, units_of_layers(model, layers));
    if (std::any_of(buckets.begin(), buckets.end(), [](const Bucket& b) { return !b.frozen; }))
      return layers;
  }
  return 0;
}

double total_flops(const UnitCost& cost) {
  return cost.forward_flops + cost.input_flops + cost.weight_flops;
}

double model_flops(const ModelSpec& model, int microbatches) {
  double forward = 0;
  for (const UnitSpec& unit : model.units) forward += unit.cost.model_flops;
  return 3 * forward * microbatches;
}

UnitCost recomputed(UnitCost cost) {
  cost.input_flops += cost.recompute_flops;
  cost.input_moved += cost.forward_moved;
  cost.split.input_moved += cost.split.forward_moved;
  if (cost.recompute_flops >= cost.forward_flops) cost.input_sum += cost.forward_sum;
  cost.grad_bytes += std::exchange(cost.saved_bytes, 0);
  cost.split.grad_bytes += std::exchange(cost.split.saved_bytes, 0);
  return cost;
}

std::vector<UnitCost> training_costs(const ModelSpec& model, int frozen_units) {
  const std::set<std::string_view> frozen = frozen_shared(model, frozen_units);
  const bool adapted = is_adapted(model);
  std::vector<UnitCost> costs;
  costs.reserve(model.units.size());
  for (int u = 0; u < static_cast<int>(model.units.size()); ++u) {
    const UnitSpec& unit = model.units[static_cast<std::size_t>(u)];
    UnitCost& cost = costs.emplace_back(unit.cost);
    if (u < frozen_units) {
      cost = {.forward_flops = unit.cost.forward_flops, .forward_moved = unit.cost.forward_moved};
      continue;
    }
    double all = 0, trained = 0;
    for (const ParameterSpec& parameter : unit.parameters) {
      const auto count = static_cast<double>(parameter.count());
      if (parameter.tuned && unit.cost.adapter_flops > 0) continue;
      all += count;
      if (adapted ? parameter.trains : !frozen.contains(parameter.shared)) trained += count;
    }
    if (trained < all) cost.weight_flops *= trained / all;
    cost.weight_flops += cost.adapter_flops;
    if (!unit.recompute) continue;
    cost = recomputed(cost);
  }
  return costs;
}

std::size_t block_count(const BucketTensor& tensor) {
  return (tensor.count + kBlock - 1) / kBlock;
}

std::size_t block_count(const Bucket& bucket) {
  std::size_t count = 0;
  for (const BucketTensor& tensor : bucket.tensors) count += block_count(tensor);
  return count;
}

Block block_at(const Bucket& bucket, std::size_t index) {
  for (int t = 0; t < static_cast<int>(bucket.tensors.size()); ++t) {
    const BucketTensor& tensor = bucket.tensors[static_cast<std::size_t>(t)];
    if (index < block_count(tensor)) {
      const std::size_t begin = index * kBlock;
      return {t, tensor.offset + begin, std::min(kBlock, tensor.count - begin)};
    }
    index -= block_count(tensor);
  }
  CONCERTINA_CHECK(false, "{} has fewer than {} blocks", bucket.name, index + 1);
}

}  // namespace concertina
