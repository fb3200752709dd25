"""What runs, studies and checkpoints of Concertina have on disk, as DataFrames and arrays.

    import concertina
    run = concertina.Run("runs/first")
    run.metrics["loss"].plot()
    weights = run.checkpoint().read("002.mlp/up.weight")

Nothing here changes a run, but for `import_run`, which makes a new one of another program's log.
"""
import importlib
import typing

if typing.TYPE_CHECKING:
    from .checkpoint import Checkpoint, DamagedCheckpoint
    from .imports import import_run
    from .loggers import to_mlflow, to_tensorboard, to_wandb
    from .program import Picture, ProgramError, Schedule, call, train
    from .run import NotARun, Run, curves, differing_keys
    from .study import Study

__all__ = ["Checkpoint", "DamagedCheckpoint", "NotARun", "Picture", "ProgramError", "Run", "Schedule", "Study", "call", "curves",
           "differing_keys", "import_run", "to_mlflow", "to_tensorboard", "to_wandb", "train"]


def __getattr__(name: str) -> typing.Any:
    """Imports the modules when a name is asked for: subcommands of the program may need the standard library alone."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    try:
        for module in ("checkpoint", "imports", "loggers", "program", "run", "study"):
            if hasattr(found := importlib.import_module(f".{module}", __name__), name):
                return getattr(found, name)
    except ModuleNotFoundError as error:
        if error.name not in ("numpy", "pandas"):
            raise
        raise ImportError("the package concertina reads runs with numpy and pandas: pip install numpy pandas") from error
    raise AttributeError(name)
