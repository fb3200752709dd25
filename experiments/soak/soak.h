// A soak: faults at random times in a real run under `concertina run`, and what came of each.
// Invariants: the run is compared with one that nobody disturbed, of the same command; which faults
// come, and after how long, follows from the seed; only this host's processes of the run are
// touched.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

namespace concertina {

struct SoakOptions {
  std::string program, launcher;
  std::vector<std::string> args;  // train ...
  int ranks = 1;
  std::vector<std::string> kinds;  // of fault_kinds()
  double mean = 15;                // seconds from one fault to the next
  double seconds = 180;            // in which faults are made
  int most = std::numeric_limits<int>::max();
  std::uint64_t seed = 1;
  std::string directory;      // of the two runs and the page; is not there yet
  std::string checkpoints{};  // a directory for those of both runs; empty: in that one
  std::string hosts{};        // "a:2,b:2"; empty: this one
  std::string host_faults{};  // a command: `CMD cut|mend|power-off|slow|fast HOST`
  std::string disk_faults{};  // a command: `CMD full|free|slow|fast`
};

/// Seconds are from the start of the disturbed run; NaN: it did not happen.
struct SoakFault {
  std::string kind;
  double at = 0;
  double seen = std::numeric_limits<double>::quiet_NaN();  // by a rank or the supervisor
  double recovered =
      std::numeric_limits<double>::quiet_NaN();  // a step is done that was not before
  bool harmless = false;                         // it may pass unseen
  std::int64_t reached = 0;                      // the last step that was done then
  std::string host{};                            // that it was made of
};

struct SoakRun {
  std::string hash{};                 // state_sha256; empty: it is not finished
  double seconds = 0;                 // from the first launch to the end
  double step_seconds = 0;            // of its steps, each counted once
  std::vector<std::string> losses{};  // as the log has them, by step
};

struct SoakResult {
  SoakRun clean, disturbed;
  std::vector<SoakFault> faults{};
  std::vector<double> repeated{};  // steps, by restart
  std::string why{};               // the disturbed run did not end; empty: it did

  /// Whether all faults were recovered from, and nothing that was trained differs.
  bool passed() const;
  double useful(const SoakRun& run) const { return run.step_seconds / run.seconds; }
};

/// Throws Error{bad_input} if there is something at options.directory, and a failure if the run
/// ends badly without any fault.
SoakResult soak(const SoakOptions& options);

/// p50, p99 and the largest; all NaN of none. Not finite ones are left out.
struct Spread {
  double p50 = 0, p99 = 0, most = 0;
  int count = 0;
};
Spread spread_of(std::vector<double> values);

std::string soak_text(const SoakOptions& options, const SoakResult& result);
/// The share of faults that were seen, and recovered from, within so many seconds: SVG.
std::string soak_picture(const SoakResult& result);
std::string soak_page(const SoakOptions& options, const SoakResult& result);

}  // namespace concertina
