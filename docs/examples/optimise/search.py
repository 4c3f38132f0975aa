"""Optuna over scheduler features and a constant of a policy file, scored by Reveille.

python search.py [TRIALS]: the best is then scored by the hold-out, which the search has not seen.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import optuna

REVEILLE = os.environ.get("REVEILLE", "reveille")
FEATURES = ["SIS_SHORT", "SIS_NODE", "SIS_FILTER", "SIS_LIMITED_CORES", "SIS_SHORT_V4"]
POLICY = Path(__file__).with_name("queue.c").read_text()


def score(candidate, *options):
    command = [REVEILLE, "score", candidate, "--json", *options]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode in (1, 2):
        raise RuntimeError(done.stderr)
    return json.loads(done.stdout)


def candidate(params, directory):
    """The policy file with its constant, if it is not negative, and features."""
    features = [f"+{name}" for name in FEATURES if params[name]]
    if params["most"] < 0:
        return ",".join(features)
    path = Path(directory) / "queue.c"
    path.write_text(POLICY.replace("#define MOST 0", f"#define MOST {params['most']}"))
    return ",".join([str(path), *features])


def main(trials):
    with tempfile.TemporaryDirectory() as directory:

        def objective(trial):
            for name in FEATURES:
                trial.suggest_categorical(name, [False, True])
            trial.suggest_int("most", -1, 3)
            result = score(candidate(trial.params, directory))
            trial.set_user_attr("why", result["artifacts"].get("guardrails", ""))
            return result["metrics"]["combined_score"]

        sampler = optuna.samplers.TPESampler(seed=1)
        study = optuna.create_study(direction="maximize", sampler=sampler)
        study.optimize(objective, n_trials=trials)
        best = candidate(study.best_params, directory)
        print(f"best of {trials}: {study.best_params}")
        print(f"score {study.best_value:.3f}")
        print(study.best_trial.user_attrs["why"], end="")
        result = score(best, "--holdout", "--stage", "2")
        print(f"hold-out {result['metrics']['combined_score']:.3f}: {result['status']}")
        print(result["artifacts"].get("guardrails", ""), end="")


if __name__ == "__main__":
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20)
