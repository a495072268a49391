"""What the tests share: a log of its own for each, in a directory of its own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import unittest
from collections.abc import Callable
from pathlib import Path
from typing import Any

import bulla_audit

HERE = Path(__file__).parent
PATIENCE = 120
"""So many seconds anything may take on a loaded machine; nothing is to be learnt from how long it took."""


class Case(unittest.TestCase):
    """A test with an empty log."""

    maxDiff = None

    def setUp(self) -> None:
        place = tempfile.TemporaryDirectory(prefix="bulla-")
        self.addCleanup(place.cleanup)
        self.place = Path(place.name)
        self.path = self.place / "audit"
        self.key = bulla_audit.create(self.path, origin="example.com/test")

    def open(self, **settings: Any) -> bulla_audit.Log:
        log = bulla_audit.Log(self.path, **settings)
        self.addCleanup(log.close)
        return log

    def entries(self, **query: Any) -> list[dict[str, Any]]:
        """What the log has, as a reader finds it who knows the log's key."""
        return list(bulla_audit.Reader(self.path, key=self.key).query(**query))

    def payloads(self) -> list[Any]:
        return [entry.get("payload") for entry in self.entries()]

    def start(self, source: str, *arguments: object, **how: Any) -> subprocess.Popen[str]:
        """Starts a program beside the log; it is killed at the test's end."""
        words = [sys.executable, "-c", textwrap.dedent(source), *map(str, arguments)]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        process = subprocess.Popen(words, cwd=self.place, **{**pipes, **how})
        self.addCleanup(self._end, process)
        return process

    def run_program(self, source: str, *arguments: object, code: int = 0) -> subprocess.CompletedProcess[str]:
        """Runs a program beside the log; what it printed, where it ended with this code."""
        process = self.start(source, *arguments)
        output, errors = process.communicate(timeout=PATIENCE)
        self.assertEqual(process.returncode, code, f"{output}\n{errors}")
        return subprocess.CompletedProcess(process.args, process.returncode, output, errors)

    def listen(self) -> subprocess.Popen[str]:
        """Another process that has the log open, and listens at `audit.sock` until its standard input ends."""
        listener = self.start("""
            import sys
            from bulla_audit import Log
            with Log("audit") as log:
                log.listen("audit.sock")
                print("listening", flush=True)
                sys.stdin.read()
            """)
        self.assertEqual(listener.stdout.readline(), "listening\n")
        return listener

    def replaced(self) -> Callable[[], Any]:
        """Makes a producer whose second entry is refused and of which nothing is durable then, and ones behind it that take all."""

        class Receipt:
            def __init__(self, taken: list[object] | None) -> None:
                self.taken = taken

            def wait(self) -> None:
                if self.taken is not None and len(self.taken) > 1:
                    raise bulla_audit.Closed("lost")

        class Producer:
            closed = False

            def __init__(self, taken: list[object] | None) -> None:
                self.taken = taken

            def append(self, **fields: object) -> None:
                if self.taken is not None:
                    self.taken.append(fields)
                    if len(self.taken) > 1:
                        raise bulla_audit.Closed("ended")

            def flush(self) -> Receipt:
                return Receipt(self.taken)

            def close(self) -> None:
                pass

        made = iter([Producer([]), Producer(None)])
        return lambda: next(made)

    @staticmethod
    def _end(process: subprocess.Popen[str]) -> None:
        if process.poll() is None:
            process.kill()
        process.communicate()

    def in_child(self, act: Any) -> str:
        """What `act` returns in a forked child, or what it raises."""
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            # A child that hangs is no child that refuses.
            signal.alarm(PATIENCE)
            try:
                told = str(act())
            except BaseException as error:
                told = f"{type(error).__name__}: {error}"
            os.write(write, told.encode())
            os._exit(0)
        os.close(write)
        with os.fdopen(read) as pipe:
            told = pipe.read()
        self.assertEqual(os.waitpid(child, 0)[1], 0, "the child hung")
        return told
