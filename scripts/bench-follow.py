#!/usr/bin/env python3
"""What following files costs `bulla append`: processor time beside that of a pipe, memory and processor time with many files.

    scripts/bench-follow.py BULLA LOG [ROUNDS [LINES]]

LOG is an access log, which is repeated to LINES lines, half a million by default. Times are those of the one process, user and system together;
a round has both ways one after the other, in turns either first, and what is printed is the median of the rounds' ratios.
"""

import itertools
import json
import os
import pathlib
import signal
import statistics
import subprocess
import sys
import tempfile
import time

FILES = 10_000


def init(bulla, folder):
    subprocess.run([bulla, "init", folder], check=True, stdout=subprocess.DEVNULL)


def seconds(words, lines, source=None):
    """The processor time of a command, which reads `source` and has to take so many lines."""
    feeder = source and subprocess.Popen(["cat", source], stdout=subprocess.PIPE)
    process = subprocess.Popen([*words, "--json"], stdin=feeder and feeder.stdout, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    if feeder:
        feeder.stdout.close()
    summary = process.stdout.read()
    _, status, used = os.wait4(process.pid, 0)
    if feeder:
        feeder.wait()
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in (0, 3):
        sys.exit(f"{words} ended with {process.returncode}")
    told = json.loads(summary)
    if told["accepted"] + told["refused"] != lines or told["accepted"] < lines / 2:
        sys.exit(f"{words} did not take {lines} lines: {told}")
    return used.ru_utime + used.ru_stime


def used_by(process):
    """Processor time and resident memory of a process that runs."""
    fields = pathlib.Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    status = pathlib.Path(f"/proc/{process.pid}/status").read_text()
    resident = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"), resident / 1024


def ended(process, lines):
    """Ends a command that follows, which has to have taken so many lines."""
    process.send_signal(signal.SIGTERM)
    told = json.loads(process.communicate()[0])
    if (told["committed"], told["refused"]) != (lines, 0):
        sys.exit(f"{process.args} did not take {lines} lines: {told}")


def beside_a_pipe(bulla, log, rounds, lines):
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        source = folder / "access.log"
        with source.open("wb") as file:
            file.writelines(itertools.islice(itertools.cycle(pathlib.Path(log).read_bytes().splitlines(keepends=True)), lines))
        for options in (["--format", "combined"], ["--map", "nginx"], ["--format", "raw"]):
            took = {"piped": [], "followed": []}
            for number in range(rounds):
                for way in (["piped", "followed"], ["followed", "piped"])[number % 2]:
                    with tempfile.TemporaryDirectory(dir=folder) as place:
                        audit = pathlib.Path(place) / "audit"
                        init(bulla, audit)
                        words = [bulla, "append", audit, *options]
                        is_piped = way == "piped"
                        used = seconds(words, lines, source) if is_piped else seconds([*words, "--follow", "--once", source], lines)
                        took[way].append(used / lines * 1e9)
            ratios = [follow / pipe for pipe, follow in zip(*took.values())]
            pipe, follow = map(statistics.median, took.values())
            print(f"{' '.join(options):<20} {pipe:>7.0f} ns a line by a pipe {follow:>7.0f} ns followed   ratio {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})", flush=True)


def live(bulla, log):
    texts = pathlib.Path(log).read_bytes().splitlines(keepends=True)
    for options in (["--map", "nginx"], ["--format", "raw"]):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            init(bulla, folder / "audit")
            source = folder / "access.log"
            source.write_bytes(b"")
            words = [bulla, "append", folder / "audit", *options, "--follow", source, "--json"]
            process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
            time.sleep(2)
            before, _ = used_by(process)
            lines = itertools.cycle(texts)
            with open(source, "ab", buffering=0) as file:
                begun = time.monotonic()
                for number in range(2000):
                    file.write(b"".join(itertools.islice(lines, 200)))
                    time.sleep(max(0, begun + (number + 1) * 0.01 - time.monotonic()))
                took = time.monotonic() - begun
            time.sleep(2)
            after, _ = used_by(process)
            ended(process, 400_000)
            print(f"{' '.join(options):<20} {400_000 / took:,.0f} lines a second for {took:.1f} s: {after - before:.2f} s of a core, {100 * (after - before) / took:.1f} %", flush=True)


def many(bulla):
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        init(bulla, folder / "idle"), init(bulla, folder / "audit")
        idle = subprocess.Popen([bulla, "append", folder / "idle"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        logs = folder / "logs"
        logs.mkdir()
        for number in range(FILES):
            (logs / f"{number}.log").write_text(f"the first line of file {number}\n")
        words = [bulla, "append", folder / "audit", "--format", "raw", "--follow", logs / "*.log", "--json"]
        process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
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
        written, resident = used_by(process)
        print(f"{FILES} files, a line a second in 100 of them: {100 * (written - after) / 30:.2f} % of a core, {resident:.0f} MiB", flush=True)
        idle.communicate()
        ended(process, FILES + 3000)


def main(bulla, log, rounds="5", lines="500000"):
    bulla = str(pathlib.Path(bulla).resolve())
    many(bulla)
    live(bulla, log)
    beside_a_pipe(bulla, log, int(rounds), int(lines))


if __name__ == "__main__":
    if len(sys.argv) not in (3, 4, 5):
        sys.exit(__doc__)
    main(*sys.argv[1:])
