import anyio

from cuarl.workflow.evaluation import TrainingEvaluator
from cuarl.workflow.players import scripted


def test_c38_only_the_main_process_evaluates():
    others = TrainingEvaluator(None, scripted("oracle"), None, None, None, None)
    assert anyio.run(others, 3) is None and others.last is None
