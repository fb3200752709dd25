#include "io/images/webdataset_samples.h"

#include <algorithm>
#include <unordered_set>

#include "core/error.h"
#include "core/text/number_text.h"
#include "io/images/image_codec.h"

namespace concertina {
namespace {

constexpr std::uint64_t kMostFiles = std::uint64_t{1} << 20;

/// The members of one key seen so far.
struct OpenSample {
  std::string key;
  std::vector<std::string> extensions;
  const TarMember* first = nullptr;
  ShardSample sample;
};

[[noreturn]] void refuse_sample(const std::string& what, const TarShard& shard,
                                const TarMember& member, const std::string& key) {
  throw_input(fmt::format("{} in sample '{}'", what, key), member_place(shard, member),
              "use one image (.png, .jpg or .jpeg) and one label (.cls) per key, adjacent "
              "in the tar, as written by `tar --sort=name`");
}

void close(const TarShard& shard, const OpenSample& open, std::vector<ShardSample>& samples) {
  if (open.first == nullptr) return;
  if (open.sample.image == nullptr) refuse_sample("no image", shard, *open.first, open.key);
  if (open.sample.label == nullptr) refuse_sample("no .cls", shard, *open.first, open.key);
  samples.push_back(open.sample);
}

void add(const TarShard& shard, const TarMember& member, const std::string& extension,
         OpenSample& open) {
  if (std::ranges::find(open.extensions, extension) != open.extensions.end())
    refuse_sample(fmt::format("duplicate extension '{}'", extension), shard, member, open.key);
  open.extensions.push_back(extension);
  if (open.first == nullptr) open.first = &member;
  if (extension == "cls") open.sample.label = &member;
  if (codec_of(extension) == nullptr) return;
  if (open.sample.image != nullptr) refuse_sample("second image", shard, member, open.key);
  open.sample.image = &member;
}

bool is_number(std::string_view text) {
  return text.size() <= 18 && parse_number<std::uint64_t>(text).has_value();
}

/// The first {FIRST..LAST} in a pattern: its position and its two numbers.
struct BraceList {
  std::size_t begin = std::string::npos, end = 0;
  std::string_view first, last;
};

BraceList find_braces(std::string_view pattern) {
  for (std::size_t open = pattern.find('{'); open != std::string_view::npos;
       open = pattern.find('{', open + 1)) {
    const std::size_t closed = pattern.find('}', open);
    if (closed == std::string_view::npos) break;
    const std::string_view inside = pattern.substr(open + 1, closed - open - 1);
    const std::size_t dots = inside.find("..");
    if (dots == std::string_view::npos) continue;
    const BraceList list{open, closed + 1, inside.substr(0, dots), inside.substr(dots + 2)};
    if (is_number(list.first) && is_number(list.last)) return list;
  }
  return {};
}

}  // namespace

MemberKey member_key(std::string_view name) {
  const std::string_view root = name.substr(0, name.find('/'));
  if (root.size() >= 4 && root.starts_with("__") && root.ends_with("__")) return {};
  for (std::size_t at = 0; at < name.size(); at = std::min(name.find('/', at), name.size() - 1) + 1)
    if (name[at] == '.' && !name.substr(at).starts_with("./") &&
        !name.substr(at).starts_with("../"))
      return {};  // hidden, like .ipynb_checkpoints/1.png
  const std::size_t slash = name.rfind('/');
  const std::size_t base = slash == std::string_view::npos ? 0 : slash + 1;
  const std::size_t dot = name.find('.', base);
  if (dot == std::string_view::npos || dot == base) return {};
  MemberKey key{name.substr(0, dot), std::string(name.substr(dot + 1))};
  for (char& c : key.extension)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return key;
}

std::vector<ShardSample> shard_samples(const TarShard& shard) {
  std::vector<ShardSample> samples;
  std::unordered_set<std::string_view> keys;
  OpenSample open;
  for (const TarMember& member : shard.members()) {
    const MemberKey key = member_key(member.name);
    if (key.key.empty()) continue;
    if (open.first == nullptr || open.key != key.key) {
      close(shard, open, samples);
      open = {};
      open.key = key.key;
      if (!keys.insert(key.key).second)
        refuse_sample("members that are not adjacent", shard, member, open.key);
    }
    add(shard, member, key.extension, open);
  }
  close(shard, open, samples);
  return samples;
}

bool is_image_or_label(std::string_view name) {
  const MemberKey key = member_key(name);
  return key.extension == "cls" || codec_of(key.extension) != nullptr;
}

std::string member_place(const TarShard& shard, const TarMember& member) {
  return fmt::format("{}: member '{}'", shard.path(), member.name);
}

std::vector<std::string> expand_braces(const std::string& pattern, const std::string& where) {
  const BraceList list = find_braces(pattern);
  if (list.begin == std::string::npos) return {pattern};
  const auto first = parse_number<std::uint64_t>(list.first).value(),
             last = parse_number<std::uint64_t>(list.last).value();
  if (last < first || last - first >= kMostFiles)
    throw_input(fmt::format("'{}' has an invalid range", pattern), where,
                fmt::format("use an ascending {{FIRST..LAST}} of at most {} files", kMostFiles));
  const std::vector<std::string> rests = expand_braces(pattern.substr(list.end), where);
  if (rests.size() > kMostFiles / (last - first + 1))
    throw_input(fmt::format("'{}' expands to too many files", pattern), where,
                fmt::format("use at most {} files", kMostFiles));
  std::vector<std::string> names;
  for (std::uint64_t i = first; i <= last; ++i)
    for (const std::string& rest : rests)
      names.push_back(
          fmt::format("{}{:0{}}{}", pattern.substr(0, list.begin), i, list.first.size(), rest));
  return names;
}

}  // namespace concertina
