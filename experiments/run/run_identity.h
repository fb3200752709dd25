// The identity of a run: all that decides its bits.
// Invariant: pure; a checkpoint keeps the identity of its run, and a launch with another one is
// refused key by key.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "experiments/config/config.h"

namespace concertina {

/// Key of an identity: the SHA-256 of the whole text.
inline constexpr const char* kWholeText = "data.text.sha256";

/// Key of a checkpoint's metadata beside its identity: how far what decides during the run has
/// come.
inline constexpr const char* kProgress = "progress";

/// Key of that progress: the data that ended the launch ("where"), and the steps before the
/// evaluation that met it ("evaluates"; -1: none). Data that was repaired is then other data.
inline constexpr const char* kUnread = "unread";

/// Returns the values of a config and its data that decide the bits of a run: a checkpoint keeps
/// it, and a resume with another one is refused key by key, but for what a resume may change
/// (may_change()).
nlohmann::json numerics_identity(const RunConfig& config, const std::string& data_fingerprint);

/// Whether a run may resume with another value of this key of its identity: the precision, the
/// device, the instruction set, oneDNN's version, the end of the learning rate. The log says so.
bool may_change(std::string_view key);

/// Returns the value of a key in the identity `stored`: the default of a config key that the
/// version that wrote it did not have.
nlohmann::json value_then(const nlohmann::json& stored, const std::string& key);

/// Throws bad input if the version that wrote the checkpoint in `path` is too old: keys that its
/// identity `stored` lacks did not have their defaults.
void require_version(const nlohmann::json& stored, const nlohmann::json& now,
                     const std::string& path);

/// Throws unless a checkpoint, in `path`, whose run was `stored` is of a run that is `now`, but for
/// keys that may change.
void check_identity(const nlohmann::json& stored, const nlohmann::json& now,
                    const std::string& path);

}  // namespace concertina
