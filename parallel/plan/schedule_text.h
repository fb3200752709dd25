// The text form of schedules: PyTorch's pipelining CSV, one row per rank, one cell per action.
// Invariant: parse_schedule(to_text(x)) == x, and to_text(parse_schedule(t)) has t's tokens, idle
// cells and all (blanks around a token are dropped, lines end with \n).
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "parallel/plan/schedule.h"

namespace concertina {

/// `actions`: one; an overlapped F and the B or I after it, "(0F1;1B0)OVERLAP_F_B"; or none. Then
/// `note` is empty in an idle cell, or it is an action that PyTorch's runtime has and that means
/// nothing here: <stage>UNSHARD, RESHARD (weights are whole), <stage>WAIT_SEND_F<microbatch>,
/// WAIT_SEND_B (a buffer is waited for where it is needed again) and <stage>WAIT_REDUCE_GRAD (STEP
/// waits).
struct Cell {
  std::vector<Action> actions;
  std::string note;
  bool operator==(const Cell&) const = default;
};

/// A file, token for token. torch.distributed.pipelining.schedules, `_dump_csv` and `_load_csv`, in
/// both formats, with STEP added.
struct ScheduleText {
  std::vector<std::vector<Cell>> rows;
  bool operator==(const ScheduleText&) const = default;
};

/// `where` names the source in errors, which give row and column from 1 and the token. Blank lines
/// at the end are nothing; one before a row is an error. PyTorch's csv.reader takes it for an idle
/// rank, but none of its schedules has such a rank, and no layout here does.
ScheduleText parse_schedule(std::string_view text, const std::string& where);
std::string to_text(const ScheduleText& schedule);

/// The actions alone, without idle cells and notes.
Plan plan_of(const ScheduleText& schedule);

}  // namespace concertina
