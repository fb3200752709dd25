// The page that `report --serve` shows: it asks for the state of a run, or study, every two seconds
// and draws it. Invariants: as of io/figure/page.h, but for its need of the server that sent it.
#pragma once

#include <string>

namespace concertina {

/// `study`: it begins with the trials of a study.
std::string live_page(const std::string& name, bool study);

}  // namespace concertina
