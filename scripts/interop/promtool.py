"""promtool, Prometheus' own reader of its text format, with its rules for names and units: on the metrics of a proxy under load."""

import pathlib
import subprocess
import tempfile
import urllib.request

from common import PLACE, Failed, Found, Proxy, Server, from_debian, installed, must, say

SUITE, MAJOR = "bookworm", "2"
# The load, which takes some seconds, and how often what is told meanwhile is read.
LOAD, READINGS = ["redis-benchmark", "-q", "-c", "20", "-n", "100000", "-P", "16", "-r", "1000", "-t", "set,get,lpush,hset,mset"], 20


def install(folder):
    from_debian(folder, SUITE, "download", "prometheus")
    must(["dpkg", "-x", next(folder.glob("*.deb")), folder])
    version = must([folder / "usr/bin/promtool", "--version"]).split()[2]
    if not version.startswith(f"{MAJOR}."):
        raise Failed(f"this is about Prometheus {MAJOR}, and not about {version}")
    say(f"it is {version}")


def suites(bulla):
    promtool = installed("promtool", ["promtool.py"], install) / "usr/bin/promtool"
    kept = PLACE / "runs" / "promtool"
    kept.mkdir(parents=True, exist_ok=True)
    outcomes = {}
    with tempfile.TemporaryDirectory(prefix="bulla-interop-") as folder:
        folder = pathlib.Path(folder)
        server = Server(folder)
        proxy = None
        try:
            proxy = Proxy(bulla, folder, server)

            def read(name):
                with urllib.request.urlopen(f"http://127.0.0.1:{proxy.metrics}/metrics", timeout=10) as metrics:
                    text = metrics.read()
                checked = subprocess.run([promtool, "check", "metrics"], input=text, capture_output=True, check=False, timeout=60)
                said = checked.stdout + checked.stderr
                outcomes[name] = "failed" if checked.returncode or said else "passed"
                (kept / name).write_bytes(text + said)

            read("before any client")
            load = subprocess.Popen([*LOAD, "-p", str(proxy.port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            try:
                for reading in range(READINGS):
                    if load.poll() is not None:
                        raise Failed("the load ended before what is told meanwhile was read")
                    read(f"under load {reading + 1}")
                if load.wait(300):
                    raise Failed(f"{LOAD[0]} ended with {load.returncode}")
            finally:
                load.kill()
                load.wait()
            read("after the load")
            entries = proxy.stop()
        finally:
            if proxy:
                proxy.kill()
            server.stop()
    failed = {name: f"failed, as {kept / name} has it" for name, outcome in outcomes.items() if outcome == "failed"}
    yield Found("promtool", outcomes, failed, entries)
