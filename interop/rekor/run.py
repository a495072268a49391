#!/usr/bin/env python3
"""`bulla anchor` with a Rekor v2 of its own: the release that go.mod pins, on a disk of this machine.

    python3 interop/rekor/run.py BULLA

Needs Go; what is built lies in target/interop/rekor.
"""

import base64
import hashlib
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve().parent
BUILT = HERE.parent.parent / "target" / "interop" / "rekor"
TOOL = "github.com/sigstore/rekor-tiles/v2/cmd/rekor-server/posix"
ORIGIN = "rekor.interop.example"


def free_ports(count):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [it.getsockname()[1] for it in sockets]
    for it in sockets:
        it.close()
    return ports


def run(*words, code=0, **more):
    ran = subprocess.run([str(word) for word in words], capture_output=True, text=True, **more)
    if ran.returncode != code:
        sys.exit(f"{words}: exit {ran.returncode}, not {code}\n{ran.stdout}{ran.stderr}")
    return ran


def verifier_key(public):
    key = b"\x01" + public
    name = hashlib.sha256(ORIGIN.encode() + b"\n" + key).hexdigest()[:8]
    return f"{ORIGIN}+{name}+{base64.b64encode(key).decode()}"


def wait_for(port, server):
    for _ in range(200):
        if server.poll() is not None:
            sys.exit("Rekor ended before it listened")
        try:
            return socket.create_connection(("127.0.0.1", port), 1).close()
        except OSError:
            time.sleep(0.1)
    sys.exit("Rekor does not listen")


def check(bulla, folder, url, key):
    log = folder / "audit"
    run(bulla, "init", log, "--origin", "example.com/audit")
    append = lambda: run(bulla, "append", log, input='{"operation":"read","location":"x"}\n')
    anchor = lambda name, code=0: run(bulla, "anchor", log, "--rekor", url, "--rekor-key", key, "-o", folder / name, code=code)
    check = lambda name, code=0, log=log: run(bulla, "anchor", log, "--check", folder / name, "--rekor-key", key, code=code)
    append()
    anchor("first")
    assert "answered 409" in anchor("again", 5).stderr
    run("cp", "-a", log, folder / "older")
    append()
    anchor("second")
    check("first")
    check("second")
    # A log that was put back does not begin with what was anchored since, as whoever has no more than the log is told.
    check("first", log=folder / "older")
    assert "the log was cut" in check("second", 1, folder / "older").stderr
    # The writing host knows without an anchor that it is older.
    log.rename(folder / "newer")
    (folder / "older").rename(log)
    assert "is an older copy of the log" in check("first", 4).stderr
    other = verifier_key(base64.b64decode("6kpsY+KcUgq+9VB7Ey7F+ZVHdq6+vnuSQh7qaRRG0iw="))
    refused = run(bulla, "anchor", log, "--check", folder / "first", "--rekor-key", other, code=1)
    assert "has not signed" in refused.stderr


def main():
    bulla = pathlib.Path(sys.argv[1]).resolve()
    BUILT.mkdir(parents=True, exist_ok=True)
    run("go", "build", "-o", BUILT / "rekor-server", TOOL, cwd=HERE)
    http, grpc, metrics = free_ports(3)
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        run("openssl", "genpkey", "-algorithm", "ed25519", "-out", folder / "rekor.pem")
        run("openssl", "pkey", "-in", folder / "rekor.pem", "-pubout", "-outform", "DER", "-out", folder / "rekor.der")
        key = verifier_key((folder / "rekor.der").read_bytes()[-32:])
        words = [BUILT / "rekor-server", "serve", "--hostname", ORIGIN, "--storage-dir", folder / "store"]
        words += ["--signer-filepath", folder / "rekor.pem", "--checkpoint-interval", "1s"]
        words += ["--http-port", http, "--grpc-port", grpc, "--http-metrics-port", metrics]
        with (folder / "rekor.log").open("wb") as told:
            server = subprocess.Popen([str(word) for word in words], stdout=told, stderr=told, env=os.environ)
        try:
            wait_for(http, server)
            check(bulla, folder, f"http://127.0.0.1:{http}", key)
        finally:
            server.terminate()
            server.wait()
    print("swept: a Rekor v2: two checkpoints are anchored and checked offline, the same one is refused (409); a log that was put back, and another Rekor's key, are refused")


if __name__ == "__main__":
    main()
