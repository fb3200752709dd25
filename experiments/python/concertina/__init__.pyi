from .checkpoint import Checkpoint as Checkpoint, DamagedCheckpoint as DamagedCheckpoint
from .errors import InputError as InputError
from .imports import import_run as import_run
from .live import serve as serve
from .monitoring import Drift as Drift, drift as drift, drift_text as drift_text
from .program import Picture as Picture, ProgramError as ProgramError, Schedule as Schedule, call as call, train as train
from .quantization import quantize as quantize
from .results import RunSummary as RunSummary, StudyResults as StudyResults, study_results as study_results
from .run import NotARun as NotARun, Run as Run, Study as Study, curves as curves, differing_keys as differing_keys, to_mlflow as to_mlflow, to_tensorboard as to_tensorboard, to_wandb as to_wandb
from .run_comparison import compare as compare
from .run_report import write_report as write_report
from .study_plot import StudyPlot as StudyPlot, plot as plot
from .study_power import power as power
from .study_table import StudyTable as StudyTable, table as table
