"""The annotations: mypy finds nothing in the package, and the stub says what the compiled module has."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import bulla_audit
from common import HERE, PATIENCE, Case

PACKAGE = Path(bulla_audit.__file__).parent

RIGHT = """
import asyncio
import datetime
import logging
from pathlib import Path
import bulla_audit
from bulla_audit import Entry, Log, LoggedEntry, Reader, context
from bulla_audit.handler import Handler

entry: Entry = {"operation": "read", "subject": ["a"], "time": datetime.datetime.now(datetime.timezone.utc)}
with Log(Path("audit"), memory="64 MiB") as log, log.producer() as producer, context(actor="ada"):
    producer.append("read", b"x", subject="a", status=200)
    count: int = producer.append_batch([entry, {"operation": "read"}])
    waited: bool = producer.flush().wait(1.5)
    logging.getLogger().addHandler(Handler(log, durable_level=logging.ERROR))

async def act() -> None:
    await producer.flush().durable()

each: LoggedEntry
number: int
subjects: list[str]
for each in Reader("audit", key="x").query(subject=["a"], status=range(200, 300), prefix={"location": b"x"}):
    number = each["entry"] + each["time"] + each["status"]
    subjects = each["subject"]
checked = bulla_audit.check(Reader("audit").prove(subject="a"), key="x")
subjects = checked.disclosed[0].get("subject", [])
token = bulla_audit.bind(purpose="x")
bulla_audit.unbind(token)
"""

HEADER = """from bulla_audit import Log, Reader, context
from bulla_audit.handler import Handler
producer = Log("audit").producer()
"""

WRONG = {
    "append": "producer.append(5)",
    "field": 'producer.append("read", colour="red")',
    "context": 'context(colour="red")',
    "payload": 'context(payload="x")',
    "target": 'Handler("audit")',
    "query": 'Reader("audit").query(status="200")',
    "logged": 'for each in Reader("audit").query(): each["subject"].upper()',
    "level": "Handler(Log('audit'), durable_level=0.5)",
}


class Types(Case):
    def mypy(self, *words: object, module: str = "mypy") -> subprocess.CompletedProcess[str]:
        # The package is looked through where it is installed.
        environment = {**os.environ, "MYPYPATH": str(PACKAGE.parent)}
        command = [sys.executable, "-m", module, *map(str, words)]
        how = {"capture_output": True, "text": True, "timeout": 5 * PATIENCE, "check": False}
        return subprocess.run(command, cwd=self.place, env=environment, **how)

    def test_the_package_and_who_uses_it(self) -> None:
        (self.place / "right.py").write_text(RIGHT)
        for name, line in WRONG.items():
            (self.place / f"wrong_{name}.py").write_text(HEADER + line + "\n")
        options = ["--strict", "--python-version", "3.10", "--explicit-package-bases", "--ignore-missing-imports"]
        found = self.mypy(*options, "-p", "bulla_audit")
        self.assertEqual(found.returncode, 0, found.stdout + found.stderr)
        found = self.mypy(*options, *sorted(self.place.glob("*.py")))
        lines = found.stdout.splitlines()
        self.assertEqual([line for line in lines if "right.py" in line], [])
        for name in WRONG:
            self.assertTrue(
                any(line.startswith(f"wrong_{name}.py:4: error:") for line in lines), f"{name}\n{found.stdout}"
            )

    def test_the_demo_and_the_programs_of_the_documents(self) -> None:
        project = Path(__file__).parents[3]
        programs = {"demo.py": (HERE.parent / "demo/demo.py").read_text()}
        for document in ["README.md", "crates/bulla-python/README.md", "docs/python.md"]:
            text = (project / document).read_text()
            programs[document.replace("/", "_").replace(".md", ".py")] = text.split("```python\n")[1].split("```")[0]
        for name, program in programs.items():
            (self.place / name).write_text(program)
            found = self.mypy("--strict", "--python-version", "3.10", name)
            self.assertEqual(found.returncode, 0, f"{name}: {found.stdout}{found.stderr}")

    def test_the_stub_says_what_the_module_has(self) -> None:
        found = self.mypy("bulla_audit._native", "--ignore-missing-stub", module="mypy.stubtest")
        self.assertEqual(found.returncode, 0, found.stdout + found.stderr)
