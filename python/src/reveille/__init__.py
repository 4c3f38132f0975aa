"""Try Linux wakeup policies on hardware you don't have, and choose CPU limits."""

from reveille._errors import Error, InputError, PolicyError
from reveille._reveille import Recording, Table, __version__
from reveille._run import compare, plan, program, record, score, study, sweep
from reveille._results import Comparison, Plan, Result, Score, Sweep

__all__ = [
    "Comparison",
    "Error",
    "InputError",
    "Plan",
    "PolicyError",
    "Recording",
    "Result",
    "Score",
    "Sweep",
    "Table",
    "__version__",
    "compare",
    "plan",
    "program",
    "record",
    "score",
    "study",
    "sweep",
]
