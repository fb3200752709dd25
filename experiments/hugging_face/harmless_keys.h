// Keys of a published config.json that change no figure of any model, each with its reason.
#pragma once

#include <span>
#include <string_view>

namespace concertina {

struct HarmlessKey {
  std::string_view key;  // also of objects within it: "task_specific_params.text-generation"
  std::string_view why;
};

std::span<const HarmlessKey> harmless_keys();

}  // namespace concertina
