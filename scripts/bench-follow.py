#!/usr/bin/env python3
"""What following files costs `bulla append`: processor time beside that of a pipe, memory and processor time with many files.

    scripts/bench-follow.py BULLA LOG [ROUNDS]

LOG is an access log, which is repeated to half a million lines. Times are those of the one process, user and system together; a round has both
ways one after the other, and what is printed is the median of the rounds' ratios.
"""

import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import time

LINES = 500_000
FILES = 10_000


def init(bulla, folder):
    subprocess.run([bulla, "init", folder], check=True, stdout=subprocess.DEVNULL)


def seconds(words, source=None):
    """The processor time of a command, which reads `source`."""
    feeder = source and subprocess.Popen(["cat", source], stdout=subprocess.PIPE)
    process = subprocess.Popen(words, stdin=feeder and feeder.stdout, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    if feeder:
        feeder.stdout.close()
    _, status, used = os.wait4(process.pid, 0)
    if os.waitstatus_to_exitcode(status) not in (0, 3):
        sys.exit(f"{words} ended with {os.waitstatus_to_exitcode(status)}")
    return used.ru_utime + used.ru_stime


def used_by(process):
    """Processor time and resident memory of a process that runs."""
    fields = pathlib.Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
    resident = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"), resident / 1024


def beside_a_pipe(bulla, log, rounds):
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        lines = pathlib.Path(log).read_bytes().splitlines(keepends=True)
        text = b"".join(lines[number % len(lines)] for number in range(LINES))
        source = folder / "access.log"
        source.write_bytes(text)
        for options in (["--format", "combined"], ["--map", "nginx"], ["--format", "raw"]):
            ratios, each = [], []
            for number in range(rounds):
                piped, followed = folder / f"piped-{options[1]}-{number}", folder / f"followed-{options[1]}-{number}"
                init(bulla, piped), init(bulla, followed)
                pipe = seconds([bulla, "append", piped, *options], source)
                follow = seconds([bulla, "append", followed, *options, "--follow", "--once", source])
                ratios.append(follow / pipe)
                each.append((pipe / LINES * 1e9, follow / LINES * 1e9))
            pipe, follow = (statistics.median(values) for values in zip(*each))
            print(f"{' '.join(options):<20} {pipe:>7.0f} ns a line by a pipe {follow:>7.0f} ns followed   ratio {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})", flush=True)


def live(bulla):
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        init(bulla, folder / "audit")
        source = folder / "app.log"
        source.write_bytes(b"")
        process = subprocess.Popen([bulla, "append", folder / "audit", "--format", "raw", "--follow", source], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(2)
        before, _ = used_by(process)
        with open(source, "ab", buffering=0) as file:
            begun = time.monotonic()
            for number in range(1000):
                file.write(b"".join(b"line %d of a program that says what it does\n" % (number * 200 + line) for line in range(200)))
                time.sleep(max(0, begun + (number + 1) * 0.01 - time.monotonic()))
            took = time.monotonic() - begun
        time.sleep(2)
        after, _ = used_by(process)
        process.send_signal(signal.SIGTERM)
        process.wait()
        print(f"20,000 lines a second, {took:.1f} s: {100 * (after - before) / took:.1f} % of a core", flush=True)


def many(bulla):
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        init(bulla, folder / "idle"), init(bulla, folder / "audit")
        reading, writing = os.pipe()
        idle = subprocess.Popen([bulla, "append", folder / "idle"], stdin=reading, stdout=subprocess.DEVNULL)
        logs = folder / "logs"
        logs.mkdir()
        for number in range(FILES):
            (logs / f"{number}.log").write_text(f"the first line of file {number}\n")
        process = subprocess.Popen([bulla, "append", folder / "audit", "--format", "raw", "--follow", logs / "*.log"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(20)
        (_, of_idle), (begun, resident) = used_by(idle), used_by(process)
        print(f"{FILES} files: {resident:.0f} MiB, an idle append {of_idle:.0f} MiB, {resident - of_idle:.0f} MiB more; {begun:.2f} s of a core to begin", flush=True)
        time.sleep(60)
        after, _ = used_by(process)
        print(f"{FILES} files, idle for a minute: {100 * (after - begun) / 60:.2f} % of a core", flush=True)
        for second in range(30):
            for number in range(100):
                with open(logs / f"{number}.log", "a") as file:
                    file.write(f"line {second} of file {number}\n")
            time.sleep(1)
        (written, resident) = used_by(process)
        print(f"{FILES} files, a line a second in 100 of them: {100 * (written - after) / 30:.2f} % of a core, {resident:.0f} MiB", flush=True)
        os.close(writing)
        for each in (idle, process):
            each.send_signal(signal.SIGTERM)
            each.wait()


def main(bulla, log, rounds="5"):
    bulla = str(pathlib.Path(bulla).resolve())
    many(bulla)
    live(bulla)
    beside_a_pipe(bulla, log, int(rounds))


if __name__ == "__main__":
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
