#include "experiments/hugging_face/published_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <numeric>
#include <set>
#include <system_error>

#include "core/error.h"
#include "experiments/hugging_face/stored_run.h"
#include "experiments/run/planning.h"
#include "io/file.h"

namespace concertina {
namespace {

std::int64_t product(std::span<const std::int64_t> shape) {
  return std::accumulate(shape.begin(), shape.end(), std::int64_t{1}, std::multiplies{});
}

}  // namespace

std::map<std::string, std::vector<std::int64_t>> parameter_shapes(const RunConfig& config) {
  std::map<std::string, std::vector<std::int64_t>> shapes;
  const ModelSpec spec = model_of(config)->spec();
  for (const Bucket& bucket : make_buckets(spec))
    for (const BucketTensor& tensor : bucket.tensors) shapes[tensor.name] = tensor.shape;
  return shapes;
}

bool has_published_weights(const std::string& folder) {
  return std::ranges::any_of(std::array{kSafetensors, kSafetensorsIndex}, [&](const char* file) {
    std::error_code ignored;
    return std::filesystem::exists(std::filesystem::path(folder) / file, ignored);
  });
}

std::vector<std::int64_t> piece_columns(std::int64_t columns, std::size_t pieces,
                                        std::int64_t width) {
  if (pieces == 3) return {width, (columns - width) / 2, (columns - width) / 2};
  return std::vector<std::int64_t>(pieces, columns / static_cast<std::int64_t>(pieces));
}

std::string PublishedWeights::stored_name(const std::string& name) const {
  return name.starts_with(body_) ? name.substr(body_.size()) : name;
}

PublishedWeights::PublishedWeights(const std::string& folder, const PublishedConfig& published,
                                   const RunConfig& config)
    : folder_(folder) {
  const HuggingFace& table = *published.table;
  const std::vector<std::string> names = folder_.names();
  // A body alone has names without what stands before them in a model with a head.
  const bool whole =
      std::ranges::any_of(names, [&](const std::string& n) { return n.starts_with(table.body); });
  if (!whole) body_ = table.body;
  // The header says how much there is: a number of config.json is not to make tables of millions.
  if (config.model.layers > std::ssize(names))
    throw_input(fmt::format("config.json says {} layers, but there are {} tensors",
                            config.model.layers, names.size()),
                folder, "a config.json and weights that belong together");
  const std::vector<StoredElsewhere> rules = table.tensors(model_config_of(config));
  const auto shapes = parameter_shapes(config);
  for (const auto& [ours, shape] : shapes) {
    const auto rule = std::ranges::find(rules, ours, &StoredElsewhere::ours);
    CONCERTINA_CHECK(rule != rules.end(), "{} has no name elsewhere", ours);
    if (is_new(config, ours))
      missing_.push_back(ours);
    else
      match(*rule, shape, folder);
  }
  check_others(published, rules);
}

void PublishedWeights::match(const StoredElsewhere& rule, const std::vector<std::int64_t>& ours,
                             const std::string& path) {
  Source source{.names = {}, .transposed = rule.transposed, .shape = ours};
  for (const std::string& name : rule.theirs) source.names.push_back(stored_name(name));
  const auto there = std::ranges::count_if(
      source.names, [&](const std::string& name) { return folder_.find(name) != nullptr; });
  if (there == 0 && rule.optional) {
    missing_.push_back(rule.ours);
    return;
  }
  const std::int64_t columns = ours.back(), rows = product(ours) / columns;
  const std::vector<std::int64_t> shares =
      piece_columns(columns, source.names.size(), rule.transposed ? rows : ours.back() / 3);
  for (std::size_t i = 0; i < source.names.size(); ++i) {
    const std::string& name = source.names[i];
    const StoredTensor* const stored = folder_.find(name);
    if (stored == nullptr)
      throw_input(fmt::format("the tensor '{}' is missing", name), path, "the whole model");
    const std::vector<std::int64_t>& shape = stored->shape;
    const auto elements = static_cast<std::int64_t>(stored->elements());
    std::vector<std::int64_t> wanted = rule.shape.empty() ? ours : rule.shape;
    if (rule.transposed && rule.shape.empty()) wanted = {shares[i], rows};
    const bool several_biases = !rule.transposed && source.names.size() > 1;
    const bool longer = rule.first_rows && shape.size() == wanted.size() &&
                        elements >= product(wanted) && shape.back() == wanted.back();
    if (!several_biases && shape != wanted && !longer)
      throw_input(fmt::format("the tensor '{}' has the shape [{}]", name, fmt::join(shape, ", ")),
                  folder_.path_of(name), fmt::format("[{}]", fmt::join(wanted, ", ")));
  }
  if (!rule.transposed && source.names.size() > 1) {
    std::int64_t all = 0;
    for (const std::string& name : source.names)
      all += static_cast<std::int64_t>(folder_.find(name)->elements());
    if (all != product(ours))
      throw_input(fmt::format("'{}' and those after it have {} elements", source.names[0], all),
                  folder_.path_of(source.names[0]), fmt::format("{}", product(ours)));
  }
  sources_.emplace(rule.ours, std::move(source));
}

void PublishedWeights::check_others(const PublishedConfig& published,
                                    const std::vector<StoredElsewhere>& rules) {
  std::set<std::string> known;
  for (const StoredElsewhere& rule : rules)
    if (rule.optional || sources_.contains(rule.ours))
      for (const std::string& name : rule.theirs) known.insert(stored_name(name));
  std::set<std::string> used;
  for (const auto& [ours, source] : sources_) used.insert(source.names.begin(), source.names.end());
  for (const auto& [copy, of] : published.table->copies) {
    const std::string name = stored_name(std::string(copy)),
                      original = stored_name(std::string(of));
    if (folder_.find(name) != nullptr && !used.contains(name) && used.contains(original))
      copies_.emplace_back(name, original);
    known.insert(name);
  }
  for (const std::string& name : folder_.names()) {
    const bool left_out = std::ranges::any_of(
        published.table->left_out, [&](std::string_view ending) { return name.ends_with(ending); });
    if (!known.contains(name) && !left_out)
      throw_input(fmt::format("the tensor '{}' is not expected", name.substr(0, 100)),
                  folder_.path_of(name),
                  fmt::format("the tensors of a {}, as config.json describes it",
                              published.table->model_type));
  }
}

void PublishedWeights::check_copies() const {
  for (const auto& [copy, of] : copies_) check_copy(copy, of);
}

void PublishedWeights::check_copy(const std::string& copy, const std::string& of) const {
  const StoredTensor &a = *folder_.find(copy), &b = *folder_.find(of);
  constexpr std::uint64_t kChunk = 1 << 16;
  bool same = a.elements() == b.elements();
  std::vector<float> left, right;
  for (std::uint64_t at = 0; same && at < a.elements(); at += kChunk) {
    const auto n = static_cast<std::size_t>(std::min(kChunk, a.elements() - at));
    left.resize(n);
    right.resize(n);
    folder_.read(copy, at, left);
    folder_.read(of, at, right);
    same = std::ranges::equal(std::as_bytes(std::span(left)), std::as_bytes(std::span(right)));
  }
  if (!same)
    throw_input(fmt::format("'{}' and '{}' differ, but this model ties them", copy, of),
                folder_.path_of(copy), "a model whose embeddings are tied");
}

bool PublishedWeights::read(const std::string& ours, std::span<float> out) const {
  const auto found = sources_.find(ours);
  if (found == sources_.end()) return false;
  const Source& source = found->second;
  if (!source.transposed) {
    std::size_t at = 0;
    for (const std::string& name : source.names) {
      const auto n = std::min<std::size_t>(folder_.find(name)->elements(), out.size() - at);
      folder_.read(name, 0, out.subspan(at, n));
      at += n;
    }
    return true;
  }
  const auto columns = static_cast<std::size_t>(source.shape.back());
  const std::size_t rows = out.size() / columns;
  std::vector<float> row(rows);
  std::size_t column = 0;
  for (const std::string& name : source.names) {
    const std::size_t count = folder_.find(name)->elements() / rows;
    for (std::size_t i = 0; i < count; ++i, ++column) {
      folder_.read(name, i * rows, row);
      for (std::size_t r = 0; r < rows; ++r) out[r * columns + column] = row[r];
    }
  }
  return true;
}

namespace {

/// One tensor of theirs: which columns of ours it is.
struct Destination {
  const StoredElsewhere* rule = nullptr;
  std::vector<std::int64_t> ours;  // shape
  std::int64_t column = 0, columns = 0;
};

std::map<std::string, Destination> destinations(const std::vector<StoredElsewhere>& rules,
                                                const RunConfig& config,
                                                std::vector<StoredTensor>& tensors,
                                                StoredType type) {
  std::map<std::string, Destination> all;
  for (const auto& [name, shape] : parameter_shapes(config)) {
    const auto rule = std::ranges::find(rules, name, &StoredElsewhere::ours);
    CONCERTINA_CHECK(rule != rules.end(), "{} has no name elsewhere", name);
    const std::int64_t columns = shape.back(), rows = product(shape) / columns;
    const std::vector<std::int64_t> shares =
        piece_columns(columns, rule->theirs.size(), config.model.width);
    std::int64_t column = 0;
    for (std::size_t i = 0; i < rule->theirs.size(); ++i) {
      std::vector<std::int64_t> theirs = rule->shape;
      if (theirs.empty()) theirs = shape;
      if (rule->shape.empty() && rule->transposed) theirs = {shares[i], rows};
      if (!rule->transposed && rule->theirs.size() > 1) theirs = {shares[i]};
      tensors.push_back({rule->theirs[i], type, theirs, 0});
      all[rule->theirs[i]] = {&*rule, shape, column, shares[i]};
      column += shares[i];
    }
  }
  return all;
}

}  // namespace

void write_published(const std::string& folder, const RunConfig& config, StoredType type,
                     const ReadOurs& read, std::uint64_t most, const std::string& untied) {
  const std::string type_name = type == StoredType::f32 ? "float32" : "bfloat16";
  std::string text =
      kept_published_config(config, type_name).value_or(published_config_text(config, type_name));
  const std::vector<StoredElsewhere> rules =
      hugging_face_of(config).tensors(model_config_of(config));
  std::vector<StoredTensor> tensors;
  std::map<std::string, Destination> places = destinations(rules, config, tensors, type);
  StoredElsewhere embedding{.ours = untied, .theirs = {}};
  if (!untied.empty()) {
    const auto& [head, body] = hugging_face_of(config).copies[0];
    Destination& own = places.at(std::string(body));
    tensors.push_back({std::string(head), type, own.ours, 0});
    places.emplace(std::string(head), own);
    own.rule = &embedding;
    auto json = nlohmann::ordered_json::parse(text);
    json["tie_word_embeddings"] = false;
    text = json.dump(2) + "\n";
  }
  make_directories(folder);
  SafetensorsFolderWriter writer(folder, std::move(tensors), most);
  std::vector<float> ours, theirs;
  std::string loaded;
  for (const StoredTensor& tensor : writer.tensors()) {
    const Destination& place = places.at(tensor.name);
    if (loaded != place.rule->ours) {
      ours.resize(static_cast<std::size_t>(product(place.ours)));
      read(place.rule->ours, ours);
      loaded = place.rule->ours;
    }
    const auto columns = static_cast<std::size_t>(place.ours.back());
    const std::size_t rows = ours.size() / columns;
    theirs.clear();
    theirs.reserve(tensor.elements());
    const auto first = static_cast<std::size_t>(place.column);
    const std::size_t end = first + static_cast<std::size_t>(place.columns);
    if (place.rule->transposed) {
      for (std::size_t c = first; c < end; ++c)
        for (std::size_t r = 0; r < rows; ++r) theirs.push_back(ours[r * columns + c]);
    } else {
      for (std::size_t r = 0; r < rows; ++r)
        for (std::size_t c = first; c < end; ++c) theirs.push_back(ours[r * columns + c]);
    }
    writer.append(theirs);
  }
  writer.finish();
  atomic_replace((std::filesystem::path(folder) / "config.json").string(), text);
}

}  // namespace concertina
