"""What the suites of other projects have in common: servers, the proxy before one, and what they are held against.

A suite runs several times directly on a server, and once through the proxy. What it tells through the proxy and in no direct run is a
difference. Those that are known, with their reasons, are in `known.toml`; they have to be exactly the ones that are found.
"""

import collections
import contextlib
import dataclasses
import hashlib
import json
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import tomllib
import urllib.request

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
# What is installed, and what suites print, lies here.
PLACE = ROOT / "target" / "interop"

# Whatever can pass passes, so that what differs is not what somebody asked for.
CONFIGURATION = """
metrics = "127.0.0.1:{metrics}"
{top}
[log]
directory = "{log}"
[listen]
address = "127.0.0.1:{port}"
{listen}
[upstream]
address = "127.0.0.1:{server}"
[policy]
scripts = "record"
patterns = "record"
whole = "record"
too_many = "record"
[limits]
transaction = 1000000
kept = "4 MiB"
[[rules]]
key = "user:{{subject}}*"
[[rules]]
key = "h*"
hash_field = "owner"
"""

# What the proxy counts that has to be nothing: each is a hole in the log.
HOLES = ("bulla_proxy_unrecorded_total", "bulla_log_lost_total")


def from_debian(folder, suite, *arguments):
    """Has apt-get download from a suite of the distribution that apt is set up for, with its keys, whether it is set up for that suite or not."""
    for name in ("lists/partial", "cache/archives/partial"):
        (folder / "apt" / name).mkdir(parents=True)
    options = {"Dir::Etc::SourceList": folder / "apt/sources.list", "Dir::Etc::SourceParts": "-", "Dir::State::lists": folder / "apt/lists"}
    options |= {"Dir::Cache": folder / "apt/cache", "APT::Sandbox::User": "", "Acquire::Languages": "none"}
    apt = ["apt-get", "--quiet=2"] + [f"-o{name}={value}" for name, value in options.items()]
    shown = must(["apt-get", "indextargets", "--format", "$(REPO_URI) $(CODENAME)", "Created-By: Packages", "Component: main"])
    hosts = [line.split()[0] for line in shown.splitlines() if line.endswith(" bookworm")]
    if not hosts:
        raise Failed("this needs Debian 12 and `apt-get update`: apt-get knows no packages of bookworm")
    lines = [f"{kind} {hosts[0]} {suite} main" for kind in ("deb", "deb-src")]
    (folder / "apt/sources.list").write_text("\n".join(lines) + "\n")
    must([*apt, "update"])
    must([*apt, *arguments], cwd=folder)


class Failed(Exception):
    """A suite could not be run, or its end is not what it has to be."""


def say(text):
    print(f"interop: {text}", flush=True)


def free_port():
    """A port that was free, and which the system gives to nobody who does not ask for it soon again."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


def run(arguments, output=None, limit=600, **options):
    """Runs a program in a process group of its own, which ends with it; its output goes to a file, if one is named."""
    with contextlib.ExitStack() as stack:
        file = stack.enter_context(open(output, "wb")) if output else subprocess.PIPE
        process = subprocess.Popen(
            [str(it) for it in arguments], stdout=file, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, start_new_session=True, **options
        )
        try:
            out, _ = process.communicate(timeout=limit)
            return process.returncode, (out or b"").decode(errors="replace")
        except subprocess.TimeoutExpired:
            raise Failed(f"{arguments[0]} was not done in {limit} s; what it printed: {output}") from None
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def must(arguments, **options):
    """What a program printed that has to succeed."""
    code, out = run(arguments, **options)
    if code:
        raise Failed(f"{' '.join(map(str, arguments))} ended with {code}\n{out[-4000:]}")
    return out


def installed(name, pins, install):
    """The folder of something that `install` puts there, anew where the files that pin it have changed."""
    folder = PLACE / name
    digest = hashlib.sha256(b"".join(HERE.joinpath(pin).read_bytes() for pin in pins)).hexdigest()
    mark = folder / "installed"
    if not mark.exists() or mark.read_text() != digest:
        say(f"installing {name}")
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        install(folder)
        mark.write_text(digest)
    return folder


def checked(file, digest):
    """A file, if it is the one that is meant."""
    found = hashlib.sha256(file.read_bytes()).hexdigest()
    if found != digest:
        raise Failed(f"{file.name} is not what is pinned: its SHA-256 is {found}")
    return file


class Server:
    """A Redis or Valkey server without persistence."""

    def __init__(self, folder, program="redis-server", arguments=(), tls=None):
        self.log = folder / "server.log"
        self.port, self.tls_port = free_port(), None
        command = [program, "--port", self.port, "--save", "", "--dir", folder, "--logfile", self.log]
        command += ["--enable-debug-command", "yes", "--enable-protected-configs", "yes", *arguments]
        if tls:
            self.tls_port = free_port()
            command += ["--tls-port", self.tls_port, "--tls-auth-clients", "no", "--tls-ca-cert-file", tls / "ca.pem"]
            command += ["--tls-cert-file", tls / "server.pem", "--tls-key-file", tls / "server.key"]
        self.command = [str(it) for it in command]
        self.start()

    def start(self):
        self.process = subprocess.Popen(self.command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        wait_for(self.port, self.process, self.log)

    def renew(self):
        """The same server, as it began."""
        self.stop()
        self.start()

    def stop(self):
        self.process.kill()
        self.process.wait()


def wait_for(port, process, log):
    """Until something listens at a port."""
    while True:
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
            return
        if process.poll() is not None:
            raise Failed(f"{process.args[0]} ended: {log.read_text(errors='replace')[-1000:] if log.exists() else ''}")
        time.sleep(0.02)


class Proxy:
    """`bulla proxy` before a server. At its end its log is verified, and has to have whatever went through."""

    def __init__(self, bulla, folder, server, top="", listen=""):
        self.bulla, self.folder, self.log = bulla, folder, folder / "audit"
        self.port, self.metrics = free_port(), free_port()
        must([bulla, "init", self.log])
        text = CONFIGURATION.format(top=top, listen=listen, log=self.log, port=self.port, metrics=self.metrics, server=server.port)
        file = folder / "proxy.toml"
        file.write_text(text)
        self.told = folder / "proxy.log"
        with open(self.told, "wb") as told, open(folder / "proxy.json", "wb") as counted:
            self.process = subprocess.Popen([str(bulla), "proxy", str(file), "--json"], stdout=counted, stderr=told, start_new_session=True)
        wait_for(self.port, self.process, self.told)

    def stop(self):
        """Ends it in order. What it counted, and how many entries its log has."""
        if self.process.poll() is not None:
            raise Failed(f"the proxy ended by itself: {self.told.read_text()[-1000:]}")
        with urllib.request.urlopen(f"http://127.0.0.1:{self.metrics}/metrics", timeout=10) as metrics:
            lines = metrics.read().decode().splitlines()
        for name in HOLES:
            if any(line.split()[-1] != "0" for line in lines if line.startswith(name)):
                raise Failed(f"{name} is not 0 after the suite")
        self.process.terminate()
        code = self.process.wait(60)
        # 130: a client was left over that waited for something.
        if code not in (0, 130):
            raise Failed(f"the proxy ended with {code}: {self.told.read_text()[-1000:]}")
        key = json.loads(must([self.bulla, "info", self.log, "--json"]))["vkey"]
        must([self.bulla, "verify", self.log, "--key", key])
        counted = json.loads((self.folder / "proxy.json").read_text())
        return counted["recorded"]

    def kill(self):
        self.process.kill()
        self.process.wait()


@dataclasses.dataclass
class Place:
    """Where a run of a suite finds its server or the proxy before it."""

    port: int
    folder: pathlib.Path
    tls: pathlib.Path | None
    # The server itself, before which there may be the proxy.
    server: Server


@dataclasses.dataclass
class Found:
    """What came of a suite."""

    suite: str
    tests: dict
    differs: dict
    entries: int


def certificates(folder):
    """An authority, and a certificate of it for 127.0.0.1 and localhost."""
    folder.mkdir()
    new = ["openssl", "req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    ca, key = folder / "ca.pem", folder / "ca.key"
    must([*new, "-x509", "-days", "2", "-subj", "/CN=authority", "-keyout", key, "-out", ca])
    request = folder / "server.csr"
    must([*new, "-subj", "/CN=localhost", "-keyout", folder / "server.key", "-out", request])
    (folder / "names").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1\nextendedKeyUsage=serverAuth\n")
    sign = ["openssl", "x509", "-req", "-days", "2", "-in", request, "-CA", ca, "-CAkey", key, "-CAcreateserial"]
    must([*sign, "-extfile", folder / "names", "-out", folder / "server.pem"])
    return folder


def alone(name, tests, program, arguments, tls, bulla=None, top=""):
    """One run: directly, or through the proxy where there is a `bulla`. What every test came to, and how many entries there are."""
    folder = PLACE / "runs" / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    # A server's files and sockets lie where paths are short.
    with tempfile.TemporaryDirectory(prefix="bulla-interop-") as short:
        short = pathlib.Path(short)
        keys = certificates(short / "tls") if tls else None
        server = Server(short, program, arguments, keys)
        proxy = None
        try:
            port, entries = (server.tls_port if tls else server.port), 0
            if bulla:
                listen = f'[listen.tls]\ncertificate = "{keys}/server.pem"\nkey = "{keys}/server.key"' if tls else ""
                proxy = Proxy(bulla, short, server, top, listen)
                port = proxy.port
            begun = time.monotonic()
            outcomes = tests(Place(port, folder, keys, server))
            if "passed" not in outcomes.values():
                raise Failed(f"no test passed; what it printed is in {folder}")
            if proxy:
                entries = proxy.stop()
            say(f"{name}: {counted(outcomes)}, {time.monotonic() - begun:.0f} s")
            return outcomes, entries
        finally:
            if proxy:
                shutil.copy(proxy.told, folder)
                proxy.kill()
            server.stop()


def counted(outcomes):
    counts = collections.Counter(outcomes.values())
    return ", ".join(f"{counts[it]} {it}" for it in ("passed", "failed", "skipped"))


def compared(suite, tests, bulla, program="redis-server", arguments=(), tls=False, direct=3, top=""):
    """Runs a suite directly, so often, and through the proxy, all at once, each on a server of its own."""
    results = {}

    def one(name, bulla):
        try:
            results[name] = alone(f"{suite}, {name}", tests, program, arguments, tls, bulla, top)
        except BaseException as error:
            results[name] = error

    runs = [(f"direct {number + 1}", None) for number in range(direct)] + [("proxy", bulla)]
    threads = [threading.Thread(target=one, args=it) for it in runs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for name, result in results.items():
        if isinstance(result, BaseException):
            raise Failed(f"{suite}, {name}: {result}") from result
    outcomes, entries = results.pop("proxy")
    directly = [result[0] for result in results.values()]
    differs = {}
    for test in sorted(set(outcomes).union(*directly)):
        allowed = {it.get(test, "missing") for it in directly}
        found = outcomes.get(test, "missing")
        if found != "passed" and found not in allowed:
            differs[test] = f"{found}, and directly {' or '.join(sorted(allowed))}"
    return Found(suite, outcomes, differs, entries)


def surprises(found, known):
    """What differs and is not known, and what is known and does not differ. In what is known `*` stands for anything."""
    unused, surprises = set(known), []
    for test, how in found.differs.items():
        fits = [it for it in known if re.fullmatch(".*".join(map(re.escape, it.split("*"))), test)]
        unused -= set(fits)
        if not fits:
            surprises.append(f"{test}: {how}")
    return surprises + [f"{it}: is known to differ, and does not" for it in sorted(unused)]


def known(suite):
    """The differences of a suite that are known, each with its reason."""
    return tomllib.loads((HERE / "known.toml").read_text()).get(suite, {})
