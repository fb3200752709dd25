// Samples of webdataset shards: tars in which consecutive members with the same key form a sample.
// Source: github.com/webdataset/webdataset, tariterators.py.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "io/images/tar_shard.h"

namespace concertina {

/// The part of a member's path up to the first dot of its base name, and the rest after that dot in
/// lower case. Both are empty for members outside of samples: names without a dot or with nothing
/// before it, a root `__*__`, and hidden files or folders.
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

/// Returns the samples of `shard` in order. Throws Error{bad_input} naming the tar, member and key
/// if a key is not contiguous, an extension occurs twice for a key, or a sample lacks an image or
/// `cls` or has two images.
std::vector<ShardSample> shard_samples(const TarShard& shard);
/// Whether shard_samples() needs the content of a member.
bool is_image_or_label(std::string_view name);

/// Returns "PATH: member 'NAME'".
std::string member_place(const TarShard& shard, const TarMember& member);

/// Expands each {FIRST..LAST} in `pattern` to numbers with as many digits as FIRST. Throws
/// Error{bad_input} with `where` if a range is invalid or there are more than 2^20 names.
std::vector<std::string> expand_braces(const std::string& pattern, const std::string& where);

}  // namespace concertina
