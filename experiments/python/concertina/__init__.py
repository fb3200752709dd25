"""What runs, studies and checkpoints of Concertina have on disk, as DataFrames and arrays.

    import concertina
    run = concertina.Run("runs/first")
    run.metrics["loss"].plot()
    weights = run.checkpoint().read("002.mlp/up.weight")

Nothing here changes a run, but for `import_run`, which makes a new one of another program's log.
"""
try:
    import numpy as _numpy, pandas as _pandas  # noqa: E401, F401
except ImportError as error:
    raise ImportError("the package concertina reads runs with numpy and pandas: pip install numpy pandas") from error

from .checkpoint import Checkpoint, DamagedCheckpoint
from .imports import import_run
from .loggers import to_mlflow, to_tensorboard, to_wandb
from .program import Picture, ProgramError, Schedule, call, train
from .run import NotARun, Run, curves, differing_keys
from .study import Study

__all__ = ["Checkpoint", "DamagedCheckpoint", "NotARun", "Picture", "ProgramError", "Run", "Schedule", "Study", "call", "curves",
           "differing_keys", "import_run", "to_mlflow", "to_tensorboard", "to_wandb", "train"]
