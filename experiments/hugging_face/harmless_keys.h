// Keys of a published config.json that change no figure of any model, each with its reason.
#pragma once

#include <string_view>

namespace concertina {

/// Whether `key`, or an object that it is in, is one of them:
/// "task_specific_params.text-generation".
bool is_harmless(std::string_view key);

}  // namespace concertina
