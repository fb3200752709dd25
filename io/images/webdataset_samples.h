// The samples of webdataset's shards: tars in which a sample is a run of members with one key.
// Source: github.com/webdataset/webdataset, tariterators.py.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "io/images/tar_shard.h"

namespace concertina {

/// A member's name up to the first dot of its base name, and what is after that dot in lower case.
/// Both are empty for what belongs to no sample: no dot, nothing before it, a root `__*__`, or what
/// is hidden or in a hidden folder.
struct MemberKey {
  std::string_view key;
  std::string extension;
};
MemberKey member_key(std::string_view name);

/// The members of one sample that are read.
struct ShardSample {
  const TarMember* image = nullptr;
  const TarMember* label = nullptr;
};

/// The samples of `shard` in order. Input errors name the tar, the member and the key: a key
/// that comes again after another, an extension that comes twice within a key, a sample without an
/// image or `cls`, or with two images.
std::vector<ShardSample> shard_samples(const TarShard& shard);
/// Whether shard_samples() needs what is in a member.
bool is_image_or_label(std::string_view name);

/// "PATH: member 'NAME'".
std::string member_place(const TarShard& shard, const TarMember& member);

/// `pattern` with each {FIRST..LAST} of it counted out, as many digits as FIRST has; 2^20 at most.
/// Input errors name `where`.
std::vector<std::string> expand_braces(const std::string& pattern, const std::string& where);

}  // namespace concertina
