"""Four workers of gunicorn, with Django and with FastAPI, under load, killed and stopped."""

from __future__ import annotations

import contextlib
import http.client
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path

import bulla_audit
from bulla_audit.gunicorn import hooks
from common import PATIENCE, Case

CONFIGURATION = """
from bulla_audit.gunicorn import hooks

bind = "unix:web.sock"
workers = 4
timeout = 100
graceful_timeout = 100
globals().update(hooks({hooks}))
{more}
"""

FASTAPI = """
import logging, os
import bulla_audit.gunicorn
from bulla_audit.asgi import Middleware, peer
from bulla_audit.handler import Handler
from fastapi import FastAPI

app = FastAPI()
app.add_middleware(Middleware, target=bulla_audit.gunicorn.producer, durable=%(durable)r, purpose="support")
logger = logging.getLogger("shop")
logger.addHandler(Handler(bulla_audit.gunicorn.producer))
logger.setLevel("INFO")

@app.post("/people/{person}")
async def create(person: str) -> int:
    logger.info("in the view", extra={"subject": person})
    return os.getpid()

@app.get("/threaded/{person}")
def read(person: str) -> int:
    return os.getpid()
"""

DJANGO = """
import logging, os
import bulla_audit.gunicorn
import django
from bulla_audit.handler import Handler
from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.http import HttpResponse
from django.urls import path

def view(request, person):
    logger.info("in the view", extra={"subject": person})
    return HttpResponse(str(os.getpid()))

urlpatterns = [path("people/<str:person>", view)]
settings.configure(
    MIDDLEWARE=["bulla_audit.django.Middleware"], ROOT_URLCONF=__name__, ALLOWED_HOSTS=["*"], SECRET_KEY="x",
    BULLA_AUDIT={"target": "bulla_audit.gunicorn.producer", "durable": %(durable)r},
)
app = get_wsgi_application()
logger = logging.getLogger("shop")
logger.addHandler(Handler(bulla_audit.gunicorn.producer))
logger.setLevel("INFO")
"""


DJANGO_ALONE = DJANGO.replace('    logger.info("in the view", extra={"subject": person})\n', "")
"""The middleware alone has something to record."""


def running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


class Web(http.client.HTTPConnection):
    """A connection to the server's socket."""

    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=PATIENCE)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(PATIENCE)
        self.sock.connect(str(self._path))


class Load:
    """Clients in threads, and what they were told."""

    def __init__(self, server: Path) -> None:
        self.server = server
        self.sent: list[str] = []
        self.done: list[str] = []
        self.refused: list[str] = []
        self.workers: Counter[int] = Counter()
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._work, args=[number]) for number in range(6)]

    def start(self) -> Load:
        for thread in self._threads:
            thread.start()
        return self

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def until(self, done: int, workers: int = 0) -> None:
        """Waits until so many requests have been responded to, by so many workers at the least."""
        deadline = time.monotonic() + PATIENCE
        while len(self.done) < done or len(self.workers) < workers:
            if time.monotonic() > deadline:
                told = f"{len(self.done)} of {done} requests in time by {self.workers}; {len(self.refused)} refused"
                raise AssertionError(told)
            time.sleep(0.01)

    def _work(self, thread: int) -> None:
        number = 0
        while not self._stop.is_set():
            number += 1
            path = f"/people/{thread}-{number}"
            self.sent.append(path)
            connection = Web(self.server)
            try:
                connection.request("POST", path + "?secret=1")
                response = connection.getresponse()
                body = response.read()
            except (OSError, http.client.HTTPException):
                # A worker was killed, or the server ends.
                time.sleep(0.01)
                continue
            finally:
                connection.close()
            if response.status == 200:
                self.done.append(path)
                self.workers[int(body)] += 1
            else:
                self.refused.append(path)


class Gunicorn(Case):
    def serve(self, application: str, hooks: str, *, durable: bool, more: str = "") -> subprocess.Popen[str]:
        (self.place / "shop.py").write_text(application % {"durable": durable})
        (self.place / "gunicorn.conf.py").write_text(CONFIGURATION.format(hooks=hooks, more=more))
        self.told = self.place / "gunicorn.log"
        with self.told.open("w") as told:
            words = [sys.executable, "-m", "gunicorn", "-c", "gunicorn.conf.py", "shop:app"]
            server = subprocess.Popen(
                words, cwd=self.place, stdout=told, stderr=told, text=True, start_new_session=True
            )
        self.addCleanup(self.kill_all, server)
        deadline = time.monotonic() + PATIENCE
        while True:
            self.assertIsNone(server.poll(), self.told.read_text())
            self.assertLess(time.monotonic(), deadline, self.told.read_text())
            with (
                contextlib.suppress(OSError, http.client.HTTPException),
                contextlib.closing(Web(self.place / "web.sock")) as connection,
            ):
                connection.request("GET", "/nowhere")
                connection.getresponse().read()
                return server
            time.sleep(0.05)

    @staticmethod
    def kill_all(server: subprocess.Popen[str]) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(server.pid, signal.SIGKILL)
        server.wait()

    def stop(self, server: subprocess.Popen[str]) -> None:
        server.terminate()
        self.assertEqual(server.wait(PATIENCE), 0, self.told.read_text())

    def check(self, load: Load, *, all_views: bool = True) -> None:
        """What was acknowledged is in the log once, and nothing is that was not sent."""
        found = self.entries()
        requests = Counter(entry["location"] for entry in found if entry["operation"] == "create")
        self.assertEqual(set(load.done) - set(requests), set(), self.told.read_text())
        self.assertEqual(set(requests) - set(load.sent), set())
        self.assertEqual([path for path, count in requests.items() if count > 1], [])
        views = Counter(entry["subject"][0] for entry in found if entry.get("payload") == "in the view")
        self.assertEqual([person for person, count in views.items() if count > 1], [])
        if all_views:
            self.assertEqual({path.rpartition("/")[2] for path in load.done} - set(views), set(), self.told.read_text())
        self.assertTrue(bulla_audit.verify(self.path, key=self.key).ok)

    def kill_a_worker(self, load: Load) -> None:
        load.until(200)
        victim, _ = load.workers.most_common(1)[0]
        seen = len(load.workers)
        os.kill(victim, signal.SIGKILL)
        # One that starts in its place is among those that respond, or one that had nothing to do before.
        load.until(len(load.done) + 300, seen + 1)

    def check_kill(self, application: str, more: str = "") -> None:
        server = self.serve(application, '"audit", socket="audit.sock"', durable=True, more=more)
        load = Load(self.place / "web.sock").start()
        try:
            self.kill_a_worker(load)
            # Some are under way when it is told to stop.
            self.stop(server)
        finally:
            load.stop()
        self.assertEqual(load.refused, [])
        # The view's entries are on a producer of their own, which nobody has waited for when the worker is killed.
        self.check(load, all_views=False)

    def check_end(self, application: str, more: str = "") -> None:
        server = self.serve(application, '"audit", socket="audit.sock"', durable=False, more=more)
        load = Load(self.place / "web.sock").start()
        try:
            load.until(300)
            self.stop(server)
        finally:
            load.stop()
        self.assertEqual(load.refused, [])
        self.check(load)

    def ask(self, server: subprocess.Popen[str]) -> int:
        """The status of a request that is sent anew until it is responded to."""
        deadline = time.monotonic() + PATIENCE
        while True:
            connection = Web(self.place / "web.sock")
            try:
                connection.request("POST", "/people/1")
                return connection.getresponse().status
            except (OSError, http.client.HTTPException):
                self.assertIsNone(server.poll(), self.told.read_text())
                self.assertLess(time.monotonic(), deadline, self.told.read_text())
                time.sleep(0.05)
            finally:
                connection.close()

    def workers(self, server: subprocess.Popen[str]) -> set[int]:
        children = Path(f"/proc/{server.pid}/task/{server.pid}/children").read_text()
        return {int(pid) for pid in children.split()}

    def test_a_worker_that_starts_while_the_service_is_away_responds(self) -> None:
        listener = self.listen()
        server = self.serve(DJANGO_ALONE, 'socket="audit.sock"', durable=False, more="workers = 1")
        self.assertEqual(self.ask(server), 200)
        listener.communicate(timeout=PATIENCE)
        victims = self.workers(server)
        for victim in victims:
            os.kill(victim, signal.SIGKILL)
        deadline = time.monotonic() + PATIENCE
        while not self.workers(server) - victims and server.poll() is None and time.monotonic() < deadline:
            time.sleep(0.05)
        self.assertEqual(self.ask(server), 503, self.told.read_text())
        self.assertIsNone(server.poll(), self.told.read_text())
        told = self.told.read_text()
        self.assertIn("nothing can be recorded until this worker can connect", told)
        self.assertIn("a request cannot be recorded: Unavailable: ", told)
        self.listen()
        self.assertEqual(self.ask(server), 200, self.told.read_text())
        self.stop(server)

    def test_a_server_does_not_start_where_nobody_listens(self) -> None:
        with self.assertRaisesRegex(AssertionError, "nobody listens there"):
            self.serve(DJANGO_ALONE, 'socket="audit.sock"', durable=False)

    def test_workers_end_without_their_arbiter(self) -> None:
        for worker in ["", self.UVICORN]:
            with self.subTest(worker=worker):
                application = FASTAPI if worker else DJANGO_ALONE
                server = self.serve(application, '"audit", socket="audit.sock"', durable=False, more=worker)
                workers = self.workers(server)
                server.kill()
                server.wait()
                deadline = time.monotonic() + PATIENCE
                while any(running(pid) for pid in workers):
                    self.assertLess(time.monotonic(), deadline, "workers are left")
                    time.sleep(0.05)

    UVICORN = 'worker_class = "uvicorn_worker.UvicornWorker"'

    def test_django_with_a_worker_that_is_killed(self) -> None:
        self.check_kill(DJANGO)

    def test_fastapi_with_a_worker_that_is_killed(self) -> None:
        self.check_kill(FASTAPI, self.UVICORN)

    def test_django_in_threads_of_workers_that_end(self) -> None:
        self.check_end(DJANGO, 'worker_class = "gthread"; threads = 4')

    def test_django_that_was_loaded_before_the_fork(self) -> None:
        self.check_end(DJANGO, "preload_app = True")

    def test_fastapi_of_workers_that_end(self) -> None:
        self.check_end(FASTAPI, self.UVICORN)

    def test_the_arbiter_is_killed(self) -> None:
        server = self.serve(FASTAPI, '"audit", socket="audit.sock"', durable=True, more=self.UVICORN)
        load = Load(self.place / "web.sock").start()
        try:
            load.until(100)
            server.kill()
            server.wait()
        finally:
            # The workers end, too: whoever they have not accepted would wait for them.
            self.kill_all(server)
            load.stop()
        deadline = time.monotonic() + PATIENCE
        while True:
            with contextlib.suppress(bulla_audit.Locked):
                bulla_audit.Log(self.path).close()
                break
            # Its lock is given up with the last worker, which was forked with it.
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)
        self.check(load, all_views=False)

    def test_the_log_of_a_service_that_is_started_anew(self) -> None:
        listener = self.listen()
        server = self.serve(FASTAPI, 'socket="audit.sock"', durable=True, more=self.UVICORN)
        load = Load(self.place / "web.sock").start()
        try:
            load.until(100)
            listener.communicate(timeout=PATIENCE)
            self.assertEqual(listener.returncode, 0)
            deadline = time.monotonic() + PATIENCE
            while not load.refused:
                self.assertLess(time.monotonic(), deadline, "nothing was refused while the log was closed")
                time.sleep(0.01)
            listener = self.listen()
            load.until(len(load.done) + 200)
            self.stop(server)
        finally:
            load.stop()
        listener.communicate(timeout=PATIENCE)
        self.assertEqual(listener.returncode, 0)
        self.assertRegex(self.told.read_text(), "bulla_audit: .*may be missing")
        # What was refused may be in the log, or not: the connection ended before it was acknowledged.
        self.check(load, all_views=False)

    def test_what_is_responded_to_behind_the_restart_of_a_service_is_recorded(self) -> None:
        listener = self.listen()
        server = self.serve(FASTAPI, 'socket="audit.sock"', durable=False, more=self.UVICORN)
        load = Load(self.place / "web.sock").start()
        try:
            load.until(100)
            # Workers have entries that they have not sent.
            listener.kill()
            listener.communicate()
            listener = self.listen()
            behind = len(load.done)
            load.until(behind + 200)
            self.stop(server)
        finally:
            load.stop()
        listener.communicate(timeout=PATIENCE)
        requests = Counter(entry["location"] for entry in self.entries() if entry["operation"] == "create")
        self.assertEqual(set(load.done[behind:]) - set(requests), set(), self.told.read_text())
        # What was lost before is said, and is no defect of the worker's end.
        self.assertNotIn("during worker exit", self.told.read_text())

    def test_errors_end_the_start(self) -> None:
        for hooks, reason in [('"nowhere", socket="audit.sock"', "nowhere"), ('socket="nowhere.sock"', "nowhere.sock")]:
            (self.place / "shop.py").write_text(FASTAPI % {"durable": True})
            (self.place / "gunicorn.conf.py").write_text(CONFIGURATION.format(hooks=hooks, more=self.UVICORN))
            words = [sys.executable, "-m", "gunicorn", "-c", "gunicorn.conf.py", "shop:app"]
            ended = subprocess.run(words, cwd=self.place, capture_output=True, text=True, timeout=PATIENCE, check=False)
            self.assertNotEqual(ended.returncode, 0)
            self.assertRegex(ended.stderr, re.escape(reason))

    def test_settings_that_would_be_ignored_are_refused(self) -> None:
        for given in [{"colour": "red"}, {"keys": "audit.keys"}, {"clients": 64}, {"memory": None, "clients": 0}]:
            with self.assertRaisesRegex(TypeError, f"settings: .*{next(iter(given))}"):
                hooks(socket="audit.sock", **given)
        for wrong in ["1 parsec", "10 s", -1, float("nan"), float("inf"), 1e300, (1 << 64) - 1, None]:
            for directory in [None, "audit"]:
                with self.assertRaisesRegex(bulla_audit.Invalid, "^`append_timeout` has to be a number of seconds"):
                    hooks(directory, socket="audit.sock", append_timeout=wrong)
        hooks("audit", socket="audit.sock", keys="audit.keys", clients=5, memory="64 MiB", append_timeout=1)

    def test_workers_wait_for_their_connections_as_long_as_is_set(self) -> None:
        told = self.run_program("""
            import os
            from unittest.mock import Mock
            import bulla_audit.gunicorn as audit
            audit.connect = Mock()
            for directory in [None, "audit"]:
                hooks = audit.hooks(directory, socket="audit.sock", append_timeout=0.25)
                hooks["on_starting"](None)
                hooks["on_exit"](None)
                audit._State.connection = None
                # This is a worker from here on.
                audit._State.arbiter = None
                hooks["post_fork"](Mock(pid=os.getppid()), None)
                print([call.kwargs for call in audit.connect.call_args_list])
                audit.connect.reset_mock()
            """).stdout.splitlines()
        one = "{'append_timeout': 0.25}"
        self.assertEqual(told, [f"[{one}, {one}]", f"[{one}]"])

    def test_nobody_waits_for_what_has_just_kept_another_one_waiting(self) -> None:
        told = self.run_program("""
            import bulla_audit
            import bulla_audit.gunicorn as audit

            class Clock:
                now = 0.0

                def monotonic(self):
                    return self.now

            def connect(path, append_timeout):
                tries.append(clock.now)
                clock.now += wait
                raise bulla_audit.Unavailable(f"try {len(tries)}")

            def asked():
                try:
                    audit.producer()
                except bulla_audit.Unavailable as error:
                    return str(error)

            clock, tries = Clock(), []
            audit.time, audit.connect = clock, connect
            audit._State.socket = "audit.sock"
            wait = 0.125
            print([asked() for _ in range(2)])
            wait = 1.0
            print([asked() for _ in range(3)])
            clock.now += 0.875
            print([asked()])
            clock.now += 0.125
            print([asked() for _ in range(2)])
            """).stdout.splitlines()
        self.assertEqual(
            told,
            ["['try 1', 'try 2']", "['try 3', 'try 3', 'try 3']", "['try 3']", "['try 4', 'try 4']"],
        )

    def test_a_producer_outside_of_a_worker_is_refused(self) -> None:
        told = self.run_program("""
            import bulla_audit.gunicorn as audit
            for act in [lambda: None, lambda: audit.hooks("audit", socket="audit.sock")["on_starting"](None)]:
                act()
                try:
                    audit.producer()
                except RuntimeError as error:
                    print(error)
            audit.hooks("audit", socket="audit.sock")["on_exit"](None)
            """).stdout.splitlines()
        self.assertIn("gunicorn.conf.py", told[0])
        self.assertIn("arbiter", told[1])
