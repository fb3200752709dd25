#include "experiments/hugging_face/published_weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "core/error.h"
#include "experiments/hugging_face/merged_weights.h"
#include "experiments/hugging_face/published_config_text.h"
#include "experiments/hugging_face/stored_run.h"
#include "experiments/run/planning.h"
#include "io/file.h"
#include "models/task.h"

namespace concertina {
std::map<std::string, std::vector<std::int64_t>> parameter_shapes(const RunConfig& config) {
  std::map<std::string, std::vector<std::int64_t>> shapes;
  for (const Bucket& bucket : make_buckets(model_of(without_adapters(config))->spec()))
    for (const BucketTensor& tensor : bucket.tensors) shapes[tensor.name] = tensor.shape;
  return shapes;
}

std::string PublishedWeights::stored_name(const std::string& name) const {
  const std::string own = name.starts_with(body_) ? name.substr(body_.size()) : name;
  const auto old = old_names_.find(own);
  return old == old_names_.end() ? own : old->second;
}

std::vector<std::string> PublishedWeights::names_of_today(const HuggingFace& table) {
  std::vector<std::string> names = folder_.names();
  for (std::string& name : names)
    for (const auto& [old, today] : table.renamed)
      if (name.ends_with(old)) {
        const std::string now = name.substr(0, name.size() - old.size()) + std::string(today);
        if (folder_.find(now) != nullptr) continue;  // has both names: the old one is unexpected
        old_names_[now] = name;
        name = now;
        break;
      }
  return names;
}

PublishedWeights::PublishedWeights(const std::string& folder, const PublishedConfig& published,
                                   const RunConfig& config)
    : folder_(folder) {
  const HuggingFace& table = *published.table;
  const std::vector<std::string> names = names_of_today(table);
  // In a body without a head, names lack the prefix that they have in a model with a head.
  const bool whole =
      std::ranges::any_of(names, [&](const std::string& n) { return n.starts_with(table.body); });
  if (!whole) body_ = table.body;
  // The header bounds the number of layers, so that config.json cannot cause huge tables.
  if (config.model.layers > std::ssize(names))
    throw_input(fmt::format("config.json specifies {} layers, but there are {} tensors",
                            config.model.layers, names.size()),
                folder, "a matching config.json and weights");
  std::vector<TensorMapping> rules = table.tensors(model_config_of(config));
  for (TensorMapping& rule : rules)
    if (rule.skipped_rows > 0) rule.skipped_rows = published.rows_before(rule.skipped_rows);
  const auto shapes = parameter_shapes(config);
  for (const auto& [ours, shape] : shapes) {
    const auto rule = std::ranges::find(rules, ours, &TensorMapping::ours);
    // If config.json names no architecture with a head, a head is read if its tensors exist.
    const bool of_task = published.task.empty() ? rule != rules.end() && is_stored(*rule)
                                                : published.task == config.model.task;
    if (is_new(config, ours) || (is_of_classes(ours) && !of_task)) {
      missing_.push_back(ours);
      continue;
    }
    CONCERTINA_CHECK(rule != rules.end(), "{} has no published name", ours);
    match(*rule, shape);
  }
  check_others(published, config, rules, names);
}

void PublishedWeights::require(const PublishedPieces& pieces, const PublishedPiece& piece) const {
  const std::string name = stored_name(piece.name);
  const StoredTensor* const stored = folder_.find(name);
  if (stored == nullptr)
    throw_input(fmt::format("the tensor '{}' is missing", name), folder_.folder(),
                "the complete model");
  if (!pieces.fits(piece, stored->shape))
    throw_input(
        fmt::format("the tensor '{}' has the shape [{}]", name, fmt::join(stored->shape, ", ")),
        folder_.path_of(name), fmt::format("[{}]", fmt::join(piece.shape, ", ")));
  if (!stored->is_real())
    throw_input(fmt::format("the tensor '{}' contains integers", name), folder_.path_of(name),
                "F64, F32, F16 or BF16");
}

bool PublishedWeights::is_stored(const TensorMapping& rule) const {
  return std::ranges::any_of(rule.theirs,
                             [&](const std::string& name) { return find(name) != nullptr; });
}

void PublishedWeights::match(const TensorMapping& rule, const std::vector<std::int64_t>& ours) {
  if (!is_stored(rule) && rule.optional) {
    missing_.push_back(rule.ours);
    return;
  }
  const PublishedPieces pieces(rule, ours);
  for (const PublishedPiece& piece : pieces.all()) require(pieces, piece);
  sources_.emplace(rule.ours, pieces);
}

void PublishedWeights::check_others(const PublishedConfig& published, const RunConfig& config,
                                    const std::vector<TensorMapping>& rules,
                                    const std::vector<std::string>& names) {
  std::set<std::string> known, used;  // names in the folder
  for (const TensorMapping& rule : rules)
    if (rule.optional || sources_.contains(rule.ours))
      for (const std::string& name : rule.theirs) known.insert(stored_name(name));
  for (const auto& [ours, source] : sources_)
    for (const PublishedPiece& piece : source.all()) used.insert(stored_name(piece.name));
  // A task without token logits does not use their projection, tied or not.
  const bool logits = task_of(config.model.family, config.model.task).vocabulary;
  for (const auto& [copy, of] : published.table->copies) {
    const std::string name = stored_name(copy), original = stored_name(of);
    if (logits && folder_.find(name) != nullptr && !used.contains(name) && used.contains(original))
      copies_.emplace_back(name, original);
    known.insert(name);
  }
  const auto is_copy = [&](const std::string& name) {
    return std::ranges::any_of(published.table->copies,
                               [&](const auto& one) { return stored_name(one.first) == name; });
  };
  for (const std::string& today : names) {
    const std::string name = stored_name(today);
    const bool left_out =
        std::ranges::any_of(published.table->left_out,
                            [&](std::string_view ending) { return today.ends_with(ending); });
    if (!known.contains(name) && !left_out)
      throw_input(fmt::format("unexpected tensor '{}'", name.substr(0, 100)), folder_.path_of(name),
                  fmt::format("the tensors of a {}, as config.json describes it", published.type));
    if (!left_out && !used.contains(name) && !is_copy(name)) left_out_.push_back(name);
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
  const PublishedPieces& pieces = found->second;
  std::vector<float> theirs;
  for (const PublishedPiece& piece : pieces.all()) {
    const auto first = static_cast<std::uint64_t>(pieces.first(piece));
    theirs.resize(static_cast<std::size_t>(pieces.count(piece)));
    folder_.read(stored_name(piece.name), first, theirs);
    pieces.place(piece, theirs, out);
  }
  return true;
}

namespace {

/// The part of one of our tensors that a published tensor fills.
struct Destination {
  const PublishedPieces* of = nullptr;
  const PublishedPiece* piece = nullptr;
};

std::vector<PublishedPieces> pieces_of(const RunConfig& config) {
  std::vector<TensorMapping> rules = hugging_face_of(config).value.tensors(model_config_of(config));
  for (TensorMapping& rule : rules)
    rule.skipped_rows = rows_before_positions(config, rule.skipped_rows);
  std::vector<PublishedPieces> all;
  for (const auto& [name, shape] : parameter_shapes(config)) {
    const auto rule = std::ranges::find(rules, name, &TensorMapping::ours);
    CONCERTINA_CHECK(rule != rules.end(), "{} has no published name", name);
    all.emplace_back(*rule, shape);
  }
  return all;
}

/// The config.json of the same model with a separate token table for the head.
std::string untied_text(const std::string& text) {
  auto json = nlohmann::ordered_json::parse(text);
  json["tie_word_embeddings"] = false;
  return json.dump(2) + "\n";
}

}  // namespace

void write_published(const std::string& folder, const RunConfig& config, StoredType type,
                     const ReadOurs& read, std::uint64_t most, const std::string& untied) {
  const std::string type_name = type == StoredType::f32 ? "float32" : "bfloat16";
  std::string text =
      kept_published_config(config, type_name).value_or(published_config_text(config, type_name));
  const std::vector<PublishedPieces> pieces = pieces_of(config);
  std::vector<StoredTensor> tensors;
  std::map<std::string, Destination> places;
  for (const PublishedPieces& one : pieces)
    for (const PublishedPiece& piece : one.all()) {
      tensors.push_back({piece.name, type, piece.shape, 0});
      places[piece.name] = {&one, &piece};
    }
  std::map<std::string, std::string> others;  // our names where they differ from rule().ours
  if (!untied.empty()) {
    const auto& [head, body] = hugging_face_of(config).value.copies[0];
    places[head] = places.at(body);
    tensors.push_back({head, type, places.at(body).piece->shape, 0});
    others[body] = untied;
    text = untied_text(text);
  }
  make_directories(folder);
  SafetensorsFolderWriter writer(folder, std::move(tensors), most);
  std::vector<float> ours, theirs;
  std::string loaded;
  for (const StoredTensor& tensor : writer.tensors()) {
    const auto& [of, piece] = places.at(tensor.name);
    const auto other = others.find(tensor.name);
    const std::string& name = other == others.end() ? of->rule().ours : other->second;
    if (loaded != name) {
      ours.resize(static_cast<std::size_t>(of->elements()));
      read(name, ours);
      loaded = name;
    }
    of->collect(*piece, ours, theirs);
    writer.append(theirs);
  }
  writer.finish();
  atomic_replace((std::filesystem::path(folder) / "config.json").string(), text);
}

}  // namespace concertina
