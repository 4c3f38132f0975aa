"""OpenEvolve's evaluator of wakeup policies: each stage is one `reveille score`."""

import json
import os
import subprocess

from openevolve.evaluation_result import EvaluationResult

REVEILLE = os.environ.get("REVEILLE", "reveille")


def score(path, stage):
    command = [REVEILLE, "score", path, "--stage", str(stage), "--json", "--time-limit", "120s"]
    done = subprocess.run(command, capture_output=True, text=True)
    # 1 and 2 are failures of the set-up, not of the policy.
    if done.returncode in (1, 2):
        raise RuntimeError(done.stderr)
    result = json.loads(done.stdout)
    return EvaluationResult(metrics=result["metrics"], artifacts=result["artifacts"])


def evaluate_stage1(program_path):
    return score(program_path, 1)


def evaluate_stage2(program_path):
    return score(program_path, 2)


def evaluate(program_path):
    return evaluate_stage2(program_path)
