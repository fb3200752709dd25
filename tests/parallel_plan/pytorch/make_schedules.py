"""Makes the CSV files of this folder with PyTorch: python3 make_schedules.py

<schedule>-p<ranks>-m<microbatches>.compute.csv is the order given by the schedule; .comms.csv is
what PyTorch's runtime makes of it. No process group is needed: the schedules read only a few
attributes of their stages. Made with PyTorch 2.15.0.
"""

import csv
import pathlib
from types import SimpleNamespace

from torch import nn
from torch.distributed.pipelining import schedules

FOLDER = pathlib.Path(__file__).parent


def stages(ranks, chunks):
    """Returns the stages of rank 0 with the attributes that a schedule reads."""
    return [
        SimpleNamespace(
            num_stages=ranks * chunks, group_size=ranks, group_rank=0, stage_index=chunk * ranks,
            is_first=chunk == 0, is_last=False, submod=nn.Identity(), has_backward=True)
        for chunk in range(chunks)
    ]


def write_single(name, cls, ranks, microbatches):
    """Schedules with one stage per rank have an order, but cannot export it."""
    schedule = cls(stages(ranks, 1)[0], microbatches, loss_fn=lambda *_: None)
    order = schedule._get_pipeline_order()
    with open(FOLDER / f"{name}-p{ranks}-m{microbatches}.compute.csv", "w", newline="") as file:
        csv.writer(file).writerows(order[rank] for rank in sorted(order))


def write_multi(name, cls, ranks, chunks, microbatches):
    schedule = cls(stages(ranks, chunks), microbatches, loss_fn=lambda *_: None)
    for kind, form in (("compute", "compute_only"), ("comms", "compute_comms")):
        path = FOLDER / f"{name}-p{ranks}-m{microbatches}.{kind}.csv"
        schedule._dump_csv(str(path), format=form)


write_single("gpipe", schedules.ScheduleGPipe, 3, 4)
write_single("1f1b", schedules.Schedule1F1B, 3, 5)
write_multi("looped-bfs", schedules.ScheduleLoopedBFS, 2, 1, 4)
write_multi("looped-bfs-2", schedules.ScheduleLoopedBFS, 2, 2, 4)
write_multi("1f1b-runtime", schedules.ScheduleInterleaved1F1B, 3, 1, 6)
write_multi("interleaved-1f1b", schedules.ScheduleInterleaved1F1B, 2, 2, 4)
write_multi("interleaved-1f1b", schedules.ScheduleInterleaved1F1B, 4, 2, 8)
write_multi("interleaved-zb", schedules.ScheduleInterleavedZeroBubble, 2, 2, 4)
write_multi("interleaved-zb", schedules.ScheduleInterleavedZeroBubble, 4, 2, 8)
write_multi("zbv", schedules.ScheduleZBVZeroBubble, 2, 2, 4)
write_multi("zbv", schedules.ScheduleZBVZeroBubble, 4, 2, 8)
write_multi("dualpipe-v", schedules.ScheduleDualPipeV, 2, 2, 4)
write_multi("dualpipe-v", schedules.ScheduleDualPipeV, 4, 2, 10)
