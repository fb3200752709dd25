// How often a trial was cut short, and would go on, without getting anywhere.
// Invariant: launches in a row that committed no later checkpoint than before are counted across
// processes, in requeues.json of the trial's folder; one that did begins anew.
#pragma once

#include <string>

namespace concertina {

inline constexpr int kMostRequeues = 3;  // in a row without a later checkpoint

/// Counts a launch of the trial in folder `trial` that was cut short. Returns how many there were
/// in a row without a later checkpoint, this one included; 0 if it has one.
int count_requeue(const std::string& trial);
/// Begins anew, if anything was counted.
void forget_requeues(const std::string& trial);

}  // namespace concertina
