#include "parallel/generate/one_f_one_b.h"

#include <algorithm>

namespace concertina {

Rows one_f_one_b(int stages, int microbatches, int lead, Kind backward) {
  Rows rows(stages);
  for (int stage = 0; stage < stages; ++stage) {
    const int ahead = std::min(microbatches, lead * (stages - 1 - stage));
    int forward = 0;
    while (forward < ahead) rows[stage].push_back({Kind::F, stage, forward++});
    for (int m = 0; m < microbatches; ++m) {
      if (forward < microbatches) rows[stage].push_back({Kind::F, stage, forward++});
      rows[stage].push_back({backward, stage, m});
    }
  }
  return rows;
}

}  // namespace concertina
