#!/usr/bin/env python3
"""Has `bulla append --follow` follow what programs of others write, while they write it and rotate it and while the follower is killed, and
compares each record that went in with what they wrote.

    interop/follow/run.py BULLA [SUITE...]

As root: servers are started as their own users. What they write lies in a temporary directory, and nothing of the system is changed, but that
missing Debian packages are installed. auditd is the exception: while it runs, the kernel audits what it is told to.
"""

import collections
import contextlib
import csv
import gzip
import json
import os
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time

PACKAGES = {
    "logrotate": ["logrotate"],
    "rsyslogd": ["rsyslog"],
    "sshd": ["openssh-server", "openssh-client"],
    "nginx": ["nginx-light"],
    "auditd": ["auditd"],
    "/usr/lib/postgresql/15/bin/pgbench": ["postgresql-15"],
    "/usr/lib/postgresql/15/lib/pgaudit.so": ["postgresql-15-pgaudit"],
}
SEARCHED = "/usr/sbin:/usr/bin:/sbin:/bin"


class Wrong(Exception):
    """What is in the log is not what was written."""


def say(text):
    print(text, flush=True)


def install():
    is_there = lambda tool: os.path.exists(tool) or shutil.which(tool, path=SEARCHED)
    missing = [package for tool, packages in PACKAGES.items() if not is_there(tool) for package in packages]
    if missing:
        say(f"installing {' '.join(missing)}")
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "RUNLEVEL": "1"}
        subprocess.run(["apt-get", "install", "-y", "-qq", "--no-install-recommends", *missing], check=True, env=environment, stdout=subprocess.DEVNULL)


class Log:
    """A log that sources are followed into."""

    def __init__(self, bulla, folder, sources, *options):
        self.bulla, self.folder, self.sources, self.options = bulla, folder, sources, options
        self.told = open(folder / "told.txt", "ab")
        self.follower = None
        self.kills = 0
        self.run("init")

    def run(self, command, *more, **how):
        words = [self.bulla, command, self.folder / "audit", *more]
        return subprocess.run(words, check=True, stdout=subprocess.PIPE, stderr=self.told, **how).stdout.decode()

    def words(self, *more):
        return [self.bulla, "append", self.folder / "audit", *self.options, "--follow", *more, *self.sources]

    def follow(self):
        self.follower = subprocess.Popen(self.words(), stdout=self.told, stderr=self.told)

    def await_entries(self):
        """Waits until the log has something: what is rotated before it has heard of a path is not looked for."""
        while json.loads(self.run("info", "--json"))["entries"] == 0:
            time.sleep(0.05)

    def kill(self):
        """Kills the follower, and starts another one."""
        self.follower.kill()
        self.follower.wait()
        self.kills += 1
        self.follow()

    def end(self):
        """Ends the follower in order, has the rest read, and gives all entries."""
        self.follower.send_signal(signal.SIGTERM)
        # One that had not begun yet is interrupted.
        ended = self.follower.wait(60)
        codes = [0 if ended in (130, -signal.SIGTERM) else ended, subprocess.run(self.words("--once"), stdout=self.told, stderr=self.told).returncode]
        if any(code != 0 for code in codes):
            raise Wrong(f"following ended with {codes}:\n" + "".join((self.folder / "told.txt").read_text(errors="replace").splitlines(True)[-12:]))
        self.run("verify")
        exported = self.run("export", "--identity", self.folder / "audit.keys" / "identity.age")
        return [json.loads(line) for line in exported.splitlines()]


def exactly(found, written, what):
    """Whether two collections have the same, each as often."""
    found, written = collections.Counter(found), collections.Counter(written)
    if found != written:
        missing, more = written - found, found - written
        some = f"{list(missing.items())[:3]} missing, {list(more.items())[:3]} too often"[:600]
        raise Wrong(f"{what}: {sum(missing.values())} missing, {sum(more.values())} too often: {some}")


def content(path):
    data = path.read_bytes()
    return gzip.decompress(data) if path.suffix == ".gz" else data


@contextlib.contextmanager
def place():
    with tempfile.TemporaryDirectory(prefix="bulla-follow-") as folder:
        folder = pathlib.Path(folder)
        folder.chmod(0o755)
        yield folder


MODES = {
    "renamed": "create",
    "copied and truncated": "copytruncate",
    "renamed, compressed later": "create\ncompress\ndelaycompress",
    "renamed to a date, compressed at once": "create\ncompress\ndateext\ndateformat -%Y%m%d-%s",
}


class Writer(threading.Thread):
    """Writes numbered lines as fast as it is let, and opens its file anew some time after it is told to, by a file, as a server does."""

    def __init__(self, path, told):
        super().__init__()
        self.path, self.told, self.ends, self.lines = path, told, False, 0

    def run(self):
        chance, file = random.Random(1), open(self.path, "ab", buffering=0)
        while not self.ends:
            if self.told.exists() and chance.random() < 0.2:
                self.told.unlink()
                file.close()
                file = open(self.path, "ab", buffering=0)
            several = chance.randrange(1, 40)
            file.write(b"".join(b"line %d %s\n" % (number, b"x" * (number % 50)) for number in range(self.lines, self.lines + several)))
            self.lines += several
            time.sleep(0.001)
        file.close()


def logrotate(bulla):
    for name, mode in MODES.items():
        with place() as folder:
            logs = folder / "logs"
            logs.mkdir(mode=0o755)
            path = logs / "app.log"
            path.write_bytes(b"the first line\n")
            told = folder / "reopen"
            script = "" if mode == "copytruncate" else f"postrotate\ntouch {told}\nsleep 0.1\nendscript\n"
            (folder / "conf").write_text(f"{path} {{\nrotate 1000\nsize 1\n{mode}\n{script}}}\n")
            (folder / "conf").chmod(0o644)
            log = Log(bulla, folder, [logs / "app.log"], "--format", "raw")
            log.follow()
            log.await_entries()
            writer = Writer(path, told)
            writer.start()
            for rotation in range(25):
                time.sleep(1.05 if "dateext" in mode else 0.25)
                subprocess.run(["logrotate", "-f", "-s", folder / "state", folder / "conf"], check=True)
                if rotation % 4 == 3:
                    log.kill()
            writer.ends = True
            writer.join()
            entries = log.end()
            kept = [line for file in logs.iterdir() for line in content(file).splitlines()]
            lost = writer.lines + 1 - len(kept)
            found = collections.Counter(entry["payload"] for entry in entries)
            # What was written between copy and truncation is in no file; a follower may have read it before it went.
            kept = collections.Counter(line.decode() for line in kept)
            saved = sum((found - kept).values())
            if max(found.values()) > 1:
                raise Wrong(f"{name}: {sum(count > 1 for count in found.values())} lines more than once")
            exactly(found & kept, kept, name)
            by_logrotate = f"; {lost} were written while logrotate copied or compressed and are in no file, of which {saved} had been read" if lost else ""
            yield f"logrotate, {name}: 25 rotations, {log.kills} kills, {sum(kept.values())} lines each once{by_logrotate}"


@contextlib.contextmanager
def started(*words, ready, **how):
    process = subprocess.Popen(words, **how)
    try:
        for _ in range(200):
            if ready():
                break
            if process.poll() is not None:
                raise Wrong(f"{words[0]} ended with {process.returncode}")
            time.sleep(0.05)
        yield process
    finally:
        process.terminate()
        process.wait(30)


def rsyslog_configuration(folder, system):
    own = f'SysSock.Name="{system}"' if system else 'SysSock.Use="off"'
    return f"""
module(load="imuxsock" {own})
global(workDirectory="{folder}")
input(type="imuxsock" Socket="{folder}/log.sock")
action(type="omfile" file="{folder}/logs/traditional.log" template="RSYSLOG_TraditionalFileFormat")
action(type="omfile" file="{folder}/logs/protocol.log" template="RSYSLOG_SyslogProtocol23Format")
"""


def rsyslog(bulla):
    with place() as folder:
        (folder / "logs").mkdir()
        (folder / "conf").write_text(rsyslog_configuration(folder, None))
        log = Log(bulla, folder, [folder / "logs" / "*.log"], "--format", "syslog")
        log.follow()
        sent = []
        with started("rsyslogd", "-n", "-f", folder / "conf", "-i", folder / "pid", ready=(folder / "log.sock").exists):
            for number in range(300):
                message = f"message {number} {['plain', 'ä ö 日本', 'a: b [c] d', 'x' * 700][number % 4]}"
                # As programs write to /dev/log: rsyslog takes neither of the RFCs' formats there.
                subprocess.run(["logger", "--socket", folder / "log.sock", "--tag", "app", "-p", "auth.info", message], check=True)
                sent.append(message)
                if number % 60 == 59:
                    log.kill()
        entries = log.end()
        written = [line for file in (folder / "logs").iterdir() for line in content(file).splitlines()]
        if len(entries) != len(written):
            raise Wrong(f"{len(written)} lines, {len(entries)} entries")
        for stream in ("traditional", "protocol"):
            of_file = (json.loads(entry["payload"]) for entry in entries if stream in entry["stream"])
            exactly((payload["message"].strip() for payload in of_file if payload.get("app") == "app"), sent, stream)
        yield f"rsyslog and logger: {len(sent)} messages in both of rsyslog's formats, {log.kills} kills, {len(entries)} lines each once, none refused"


def postgresql(bulla):
    binaries = pathlib.Path("/usr/lib/postgresql/15/bin")
    with place() as folder:
        shutil.chown(folder, "postgres")
        run = lambda *words: subprocess.run(["runuser", "-u", "postgres", "--", *words], check=True, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        data = folder / "data"
        run(binaries / "initdb", "-D", data, "--auth", "trust")
        with open(data / "postgresql.conf", "a") as configuration:
            configuration.write(f"""
listen_addresses = ''
unix_socket_directories = '{folder}'
logging_collector = on
log_destination = 'csvlog'
log_directory = '{folder}/logs'
log_filename = 'pg-%H%M%S.log'
log_rotation_size = 300kB
log_file_mode = 0644
log_connections = on
log_disconnections = on
log_timezone = 'UTC'
shared_preload_libraries = 'pgaudit'
pgaudit.log = 'all'
""")
        log = Log(bulla, folder, [folder / "logs" / "*.csv"], "--map", "postgresql", "--zone", "UTC")
        log.follow()
        run(binaries / "pg_ctl", "-D", data, "-w", "start")
        try:
            psql = lambda text: run("psql", "-h", folder, "-c", text, "postgres")
            psql("CREATE EXTENSION pgaudit")
            run(binaries / "pgbench", "-h", folder, "-i", "-q", "postgres")
            bench = threading.Thread(target=run, args=(binaries / "pgbench", "-h", folder, "-c", "4", "-T", "12", "-C", "postgres"))
            bench.start()
            while bench.is_alive():
                time.sleep(2)
                psql("SELECT 'a quote \"\" , and\na line end' AS odd")
                log.kill()
            bench.join()
        finally:
            run(binaries / "pg_ctl", "-D", data, "-m", "fast", "stop")
        entries = log.end()
        files = sorted((folder / "logs").glob("*.csv"))
        rows = [row for file in files for row in csv.reader(file.open(newline=""))]
        # Which process, which line of it, in which second that one began.
        exactly(((payload := json.loads(entry["payload"]))["session_id"] + "/" + str(payload["session_line_num"]) for entry in entries),
                (f"{row[5]}/{row[6]}" for row in rows), "csvlog")
        operations = collections.Counter(entry["operation"] for entry in entries)
        yield f"PostgreSQL 15 with pgaudit under pgbench: {len(files)} files, {log.kills} kills, {len(rows)} records each once, none refused: {dict(operations.most_common(8))}"


def sshd(bulla):
    if os.path.exists("/dev/log"):
        yield "not tested: sshd: somebody listens at /dev/log, to which it writes"
        return
    with place() as folder:
        (folder / "logs").mkdir()
        (folder / "conf").write_text(rsyslog_configuration(folder, "/dev/log"))
        key = lambda name: subprocess.run(["ssh-keygen", "-q", "-N", "", "-t", "ed25519", "-f", folder / name], check=True)
        for name in ("host", "good", "bad"):
            key(name)
        shutil.copy(folder / "good.pub", folder / "authorized")
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        (folder / "sshd.conf").write_text(f"""
ListenAddress 127.0.0.1:{port}
HostKey {folder}/host
AuthorizedKeysFile {folder}/authorized
PidFile {folder}/sshd.pid
StrictModes no
UsePAM no
LogLevel VERBOSE
PermitRootLogin yes
MaxStartups 100
""")
        pathlib.Path("/run/sshd").mkdir(exist_ok=True)
        log = Log(bulla, folder, [folder / "logs" / "traditional.log"], "--map", "sshd")
        log.follow()
        def up():
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
                return True
        with started("rsyslogd", "-n", "-f", folder / "conf", "-i", folder / "pid", ready=(folder / "log.sock").exists):
            with started("/usr/sbin/sshd", "-D", "-f", folder / "sshd.conf", ready=up):
                common = ["-p", str(port), "-o", "StrictHostKeyChecking=no", "-o", f"UserKnownHostsFile={folder}/known", "-o", "BatchMode=yes", "-o", "IdentitiesOnly=yes"]
                for attempt in range(12):
                    for user, name in [("root", "good"), ("root", "bad"), ("nobody-of-that-name", "bad"), ("postgres", "bad")]:
                        subprocess.run(["ssh", *common, "-i", folder / name, f"{user}@127.0.0.1", "true"], stderr=subprocess.DEVNULL)
                    for probe in (b"\x16\x03\x01\x02\x00\x01", b"GET / HTTP/1.1\r\n\r\n", b""):
                        with socket.create_connection(("127.0.0.1", port)) as stranger:
                            stranger.sendall(probe)
                    log.kill()
        entries = log.end()
        lines = content(folder / "logs" / "traditional.log").splitlines()
        if len(entries) != len(lines):
            raise Wrong(f"{len(lines)} lines, {len(entries)} entries")
        operations = collections.Counter(entry["operation"] for entry in entries)
        logins = collections.Counter((entry["operation"], entry.get("status")) for entry in entries)
        if logins[("login", 0)] != 12:
            raise Wrong(f"12 logins, and the log has {logins}")
        yield f"sshd: {log.kills} kills, {len(lines)} lines each once, none refused: {dict(operations.most_common())}"


def nginx(bulla):
    with place() as folder:
        logs = folder / "logs"
        logs.mkdir(mode=0o755)
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        (folder / "nginx.conf").write_text(f"""
daemon off;
user root;
pid {folder}/nginx.pid;
error_log {folder}/error.txt;
events {{ }}
http {{
  log_format timed '$remote_addr - $remote_user [$time_local] "$request" $status $body_bytes_sent "$http_referer" "$http_user_agent" $request_time';
  access_log {logs}/access.log timed;
  client_header_timeout 1s;
  server {{ listen 127.0.0.1:{port}; return 200 "hello"; }}
}}
""")
        (folder / "conf").write_text(f"{logs}/access.log {{\nrotate 1000\nsize 1\ncreate\ncompress\ndelaycompress\npostrotate\nkill -USR1 $(cat {folder}/nginx.pid)\nendscript\n}}\n")
        (folder / "conf").chmod(0o644)
        log = Log(bulla, folder, [logs / "*.log"], "--map", "nginx")
        log.follow()
        asked = 0
        def up():
            return (folder / "nginx.pid").exists()
        with started("/usr/sbin/nginx", "-c", folder / "nginx.conf", "-p", folder, ready=up):
            for rotation in range(20):
                for probe in (b"\x16\x03\x01\x02\x00\x01\r\n", b"nonsense\r\n\r\n", b"GET /\r\n", b"GET / HTTP/9.9\r\n\r\n"):
                    with socket.create_connection(("127.0.0.1", port)) as stranger:
                        stranger.sendall(probe)
                        with contextlib.suppress(OSError):
                            stranger.recv(1000)
                with socket.create_connection(("127.0.0.1", port)) as client:
                    for _ in range(200):
                        client.sendall(b"GET /page/%d?q=\xff%%20 HTTP/1.1\r\nHost: a\r\nUser-Agent: a \"quoted\" one\r\n\r\n" % asked)
                        client.recv(4000)
                        asked += 1
                        if asked == 100:
                            log.await_entries()
                            log.kill()
                if rotation == 10:
                    with socket.create_connection(("127.0.0.1", port)) as slow:
                        slow.sendall(b"GET / HT")
                        time.sleep(1.5)
                subprocess.run(["logrotate", "-f", "-s", folder / "state", folder / "conf"], check=True)
                if rotation % 3 == 0:
                    log.kill()
        entries = log.end()
        lines = [line for file in logs.iterdir() for line in content(file).splitlines()]
        if len(entries) != len(lines):
            raise Wrong(f"{len(lines)} lines, {len(entries)} entries")
        pages = [entry.get("location") for entry in entries if str(entry.get("location", "")).startswith("/page/")]
        exactly((page.split("?")[0] for page in pages), (f"/page/{number}" for number in range(asked)), "pages")
        statuses = collections.Counter(entry.get("status") for entry in entries)
        yield f"nginx with $request_time, logrotate by its postrotate: 20 rotations, {log.kills} kills, {len(lines)} lines each once, none refused, of status {dict(statuses.most_common())}"


DPKG = r"""
format = "raw"
time = { from = "{time}", format = "%Y-%m-%d %H:%M:%S", zone = "local" }
location = "{what}"
operation = "{did}"
payload = "{raw}"
matches = { "/record" = '^(?<time>\S+ \S+) (?<did>\S+) (?<what>.+)$' }
"""


def dpkg(bulla):
    path = pathlib.Path("/var/log/dpkg.log")
    if not path.exists():
        yield f"not tested: dpkg: there is no {path}"
        return
    with place() as folder:
        (folder / "dpkg.toml").write_text(DPKG)
        log = Log(bulla, folder, [path], "--map", folder / "dpkg.toml")
        log.follow()
        time.sleep(0.1)
        log.kill()
        entries = log.end()
        lines = path.read_text().splitlines()
        exactly((entry["payload"] for entry in entries), lines, "dpkg")
        for entry, text in zip(entries, lines):
            if entry["operation"] != text.split()[2]:
                raise Wrong(f"{text}: {entry}")
        yield f"dpkg.log of this machine, by a map of eight lines: {len(lines)} lines each once, none refused"


AUDITD = """
local_events = yes
log_file = {folder}/logs/audit.log
log_format = ENRICHED
flush = INCREMENTAL_ASYNC
freq = 50
max_log_file = 1
max_log_file_action = ROTATE
num_logs = 50
space_left = 2
admin_space_left = 1
"""


def auditd(bulla):
    state = subprocess.run(["auditctl", "-s"], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout.decode().split()
    if "pid" not in state or state[state.index("pid") + 1] != "0":
        yield "not tested: auditd: the kernel has no audit, or another auditd"
        return
    was_enabled = state[state.index("enabled") + 1]
    with place() as folder:
        for name in ("conf", "logs"):
            (folder / name).mkdir(mode=0o700)
        (folder / "conf" / "auditd.conf").write_text(AUDITD.format(folder=folder))
        (folder / "logs" / "audit.log").touch(mode=0o600)
        log = Log(bulla, folder, [folder / "logs" / "audit.log"], "--map", "audit")
        log.follow()
        rule = ["always,exit", "-F", "arch=b64", "-S", "openat", "-F", "exit=-EACCES", "-k", "denied"]
        auditing = lambda: b"DAEMON_START" in content(folder / "logs" / "audit.log")
        with started("auditd", "-n", "-c", folder / "conf", "-s", "enable", ready=auditing):
            try:
                log.await_entries()
                subprocess.run(["auditctl", "-a", *rule], check=True, stdout=subprocess.DEVNULL)
                refused = "for number in $(seq 60); do cat \"/etc/shadow\"; done"
                for _ in range(25):
                    subprocess.run(["su", "nobody", "-s", "/bin/sh", "-c", refused], stderr=subprocess.DEVNULL)
                    log.kill()
            finally:
                subprocess.run(["auditctl", "-d", *rule], stdout=subprocess.DEVNULL)
        subprocess.run(["auditctl", "-e", was_enabled], stdout=subprocess.DEVNULL)
        entries = log.end()
        files = list((folder / "logs").iterdir())
        lines = [line for file in files for line in content(file).decode().removesuffix("\n").split("\n")]
        exactly((entry["payload"] for entry in entries), lines, "auditd")
        operations = collections.Counter((entry["operation"], entry.get("status")) for entry in entries)
        if operations[("openat", 1)] < 25 * 60 or operations[("session-open", 0)] < 25:
            raise Wrong(f"1,500 refused openings in 25 sessions, and the log has {operations}")
        yield f"auditd: {len(files)} files, {log.kills} kills, {len(lines)} records each once, none refused: {len(operations)} kinds"


SUITES = {suite.__name__: suite for suite in (logrotate, rsyslog, postgresql, sshd, nginx, dpkg, auditd)}


def main(bulla, *names):
    install()
    os.environ["PATH"] += ":/usr/sbin:/sbin"
    bulla, bad = pathlib.Path(bulla).resolve(), 0
    for name in names or SUITES:
        try:
            for told in SUITES[name](bulla):
                say(told if told.startswith("not tested") else f"swept: {told}")
        except Wrong as wrong:
            say(f"{name}: {wrong}")
            bad += 1
    return 1 if bad else 0


if __name__ == "__main__":
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    sys.exit(main(*sys.argv[1:]))
