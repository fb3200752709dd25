// The identity of a run: everything that its exact results depend on. Invariant: pure; a checkpoint
// stores the identity of its run, and a launch with a different one is refused.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "experiments/config/config.h"

namespace concertina {

/// Key in an identity: the SHA-256 of the whole text.
inline constexpr const char* kWholeText = "data.text.sha256";

/// Key in a checkpoint's metadata next to its identity: the state of everything that makes
/// decisions during the run.
inline constexpr const char* kProgress = "progress";

/// Key in that progress: the unreadable data that ended the launch ("where"), and the argument of
/// the evaluation that read it ("evaluates"; -1: none). After a repair, the data is different.
inline constexpr const char* kUnread = "unread";

/// Returns the values of a config and its data that determine a run's exact results. A checkpoint
/// stores them, and resuming with other values is refused, except for keys that may_change().
nlohmann::json numerics_identity(const RunConfig& config, const std::string& data_fingerprint);

/// Whether a run may resume, with a message, although this identity key differs: the precision, the
/// device, the instruction set, oneDNN's version, the end of the learning-rate schedule.
bool may_change(std::string_view key);

/// Returns the value of a key in the identity `stored`, or the default of a config key that did not
/// exist in the version that wrote it.
nlohmann::json value_then(const nlohmann::json& stored, const std::string& key);

/// Throws Error{bad_input} if the version that wrote the checkpoint in `path` is so old that keys
/// missing from its identity `stored` may not have had today's default values.
void require_version(const nlohmann::json& stored, const nlohmann::json& now,
                     const std::string& path);

/// Throws Error{bad_input} unless the identities `stored` (of the checkpoint in `path`) and `now`
/// are of the same run, ignoring keys that may change.
void check_identity(const nlohmann::json& stored, const nlohmann::json& now,
                    const std::string& path);

}  // namespace concertina
