// What a run decided between its steps without a change of its layout or its frozen layers: which
// weight gradients it leaves out, and whether cached activations are read.
// Invariant: pure; lines of any version of the program make notes.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace concertina {

struct RunNote {
  double step = 0;  // after which
  std::string text;
};

/// `events`: lines of events.jsonl. A decision that says the same as the one before is left out.
std::vector<RunNote> notes_of(const std::vector<nlohmann::json>& events,
                              const std::vector<int>& layer_ends);

}  // namespace concertina
