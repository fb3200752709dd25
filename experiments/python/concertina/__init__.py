"""Reads Concertina's runs, studies and checkpoints as DataFrames and arrays.

    import concertina
    run = concertina.Run("runs/first")
    run.metrics["loss"].plot()
    weights = run.checkpoint().read("002.mlp/up.weight")
    concertina.table("studies/schedules", metrics=["loss"]).frame()

Nothing here changes a run, except that `import_run` creates one from another program's log. This module requires only Python; names that
require numpy, scipy or pandas import them when first used.
"""
import typing

# Type checkers read __init__.pyi.
_HOMES = {
    "checkpoint": ("Checkpoint", "DamagedCheckpoint"), "errors": ("InputError",), "imports": ("import_run",), "live": ("serve",), "monitoring": ("Drift", "drift", "drift_text"), "quantization": ("quantize",),
    "program": ("Picture", "ProgramError", "Schedule", "call", "train"), "results": ("RunSummary", "StudyResults", "study_results"),
    "run": ("NotARun", "Run", "Study", "curves", "differing_keys", "to_mlflow", "to_tensorboard", "to_wandb"),
    "run_comparison": ("compare",), "run_report": ("write_report",), "study_plot": ("StudyPlot", "plot"), "study_power": ("power",),
    "study_table": ("StudyTable", "table")}
__all__ = [name for names in _HOMES.values() for name in names]


def __getattr__(name: str) -> typing.Any:
    home = next((home for home, names in _HOMES.items() if name in names), None)
    if home is None:
        raise AttributeError(f"module 'concertina' has no attribute {name!r}")
    from .errors import library
    return getattr(library(f"{__name__}.{home}"), name)
