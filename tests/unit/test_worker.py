"""What a worker tells its supervisor. What it does is shown by tests/fault."""

import json
import subprocess
import sys

_PUSH = """
import threading
from walstream.worker import _push
class Worker:
    phase, answers = "polling", {}
    def report(self):
        return {"tables": {str(number): "x" * 100 for number in range(3000)}}
_push(Worker(), threading.Event(), threading.Event())
"""


def test_a_state_larger_than_a_pipe_arrives_whole() -> None:
    process = subprocess.Popen([sys.executable, "-c", _PUSH], stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        for _ in range(2):
            told = json.loads(process.stdout.readline())
            assert len(told["tables"]) == 3000
    finally:
        process.kill()
        process.communicate()
