#!/usr/bin/env python3
"""Runs a test program of Rust's harness; a test that takes longer than BULLA_TEST_LIMIT seconds (900) ends it, and is named.

    scripts/limited.py PROGRAM [ARGUMENT...]

The harness itself tells of tests that run for over a minute, and of each that ends; with one thread it tells of each that
begins. Where it falls silent for longer than the limit, something hangs as well. Whatever the program leaves behind is
killed, however it ends. Its exit code is handed on; 124 where the limit was reached.
"""

import ctypes
import os
import re
import select
import signal
import sys
import time

LIMIT = float(os.environ.get("BULLA_TEST_LIMIT") or 900)
LIMIT_REACHED = 124
PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36

SLOW = re.compile(rb"test (\S+) has been running for over ([0-9]+) seconds")
ENDED = re.compile(rb"test (\S+)(?: - [a-z ]+)? \.\.\. (?:ok|FAILED|ignored)")
BEGUN = re.compile(rb"test (\S+)(?: - [a-z ]+)? \.\.\. *$")


def prctl(option, value):
    ctypes.CDLL(None, use_errno=True).prctl(option, value, 0, 0, 0)


class Watch:
    """What the harness has told."""

    def __init__(self, arguments):
        # Then it does not tell which test has ended.
        self.names_ends = not any(word.startswith(("-q", "--quiet", "--format")) for word in arguments)
        self.line = b""
        self.told = time.monotonic()
        self.slow = {}

    def hear(self, output):
        self.told = time.monotonic()
        *lines, self.line = (self.line + output).split(b"\n")
        # Nothing that is looked for is as long.
        self.line = self.line[-4096:]
        for line in lines:
            for name, seconds in SLOW.findall(line):
                self.slow.setdefault(name, self.told - int(seconds))
            for name in ENDED.findall(line):
                self.slow.pop(name, None)

    def hung(self):
        """What has reached the limit, if anything."""
        now = time.monotonic()
        late = [name for name, since in self.slow.items() if now - since > LIMIT] if self.names_ends else []
        if late:
            return " and ".join(name.decode(errors="replace") for name in late)
        if now - self.told > LIMIT:
            begun = BEGUN.search(self.line)
            names = [begun[1]] if begun else list(self.slow)
            return " or ".join(name.decode(errors="replace") for name in names) or "something in it"
        return None


def descendants():
    """The processes below this one, with what they run."""
    parents = {}
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                with open(f"/proc/{entry}/stat", "rb") as stat:
                    state, parent = stat.read().rpartition(b") ")[2].split()[:2]
                with open(f"/proc/{entry}/cmdline", "rb") as words:
                    command = words.read().replace(b"\0", b" ").decode(errors="replace").strip()
            except OSError:
                continue
            if state != b"Z":
                parents[int(entry)] = (int(parent), command)
    found, level = {}, {os.getpid()}
    while level:
        level = {process for process, (parent, _) in parents.items() if parent in level and process not in found}
        found.update((process, parents[process][1]) for process in level)
    return found


def kill_all():
    """Kills what is below this process, and what that starts meanwhile; but waits for nobody who cannot be killed."""
    deadline = time.monotonic() + 10
    while (found := descendants()) and time.monotonic() < deadline:
        for process in found:
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                pass
        time.sleep(0.01)


def start(words, output):
    process = os.fork()
    if process == 0:
        try:
            prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
            # Python has them ignored.
            for number in (signal.SIGPIPE, signal.SIGXFSZ):
                signal.signal(number, signal.SIG_DFL)
            os.dup2(output, 1)
            os.execvp(words[0], words)
        except OSError as error:
            print(f"{words[0]}: {error}", file=sys.stderr)
        finally:
            os._exit(127)
    return process


def reap(child):
    """Takes note of processes that ended; the status of `child`, once it has one."""
    status = None
    while True:
        try:
            process, ended = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return status
        if process == 0:
            return status
        if process == child:
            status = ended


def write(output):
    while output:
        output = output[os.write(1, output):]


def main():
    words = sys.argv[1:]
    # What a test leaves behind becomes a child of this process.
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    wake, woken = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    signal.set_wakeup_fd(woken)
    stopped = []
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) != signal.SIG_IGN:
            signal.signal(number, lambda number, _: stopped.append(number))
    signal.signal(signal.SIGCHLD, lambda *_: None)
    source, output = os.pipe2(os.O_CLOEXEC)
    child = start(words, output)
    os.close(output)

    watch, status, open_ = Watch(words[1:]), None, True
    while status is None or open_:
        ready = select.select([source, wake] if open_ else [wake], [], [], 1)[0]
        if wake in ready:
            os.read(wake, 4096)
        if source in ready:
            told = os.read(source, 1 << 16)
            open_ = bool(told)
            watch.hear(told)
            write(told)
        if status is None:
            status = reap(child)
            if status is not None:
                # Who is left may keep the pipe open.
                kill_all()
        if stopped:
            kill_all()
            return 128 + stopped[0]
        hung = watch.hung()
        if hung is not None:
            sys.stdout.flush()
            print(f"\ntime limit of {LIMIT:g} s (BULLA_TEST_LIMIT) reached by {hung}; killed:", file=sys.stderr)
            for process, command in sorted(descendants().items()):
                print(f"  {process} {command}", file=sys.stderr)
            kill_all()
            return LIMIT_REACHED
    if os.WIFSIGNALED(status):
        # As the program itself would have ended, for whoever looks.
        signal.signal(os.WTERMSIG(status), signal.SIG_DFL)
        os.kill(os.getpid(), os.WTERMSIG(status))
    return os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    try:
        code = main()
    except BrokenPipeError:
        kill_all()
        code = 128 + signal.SIGPIPE
    sys.exit(code)
