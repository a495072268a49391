"""Cosignatures: aics-witness and its client with Bulla's logs and witnesses, and ML-DSA-44 under tlog-scales, which has it of OpenSSL."""

import base64
import contextlib
import dataclasses
import hashlib
import json
import logging
import re
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

from common import ORIGIN, Failed, Log, expect, must, run, say, size


def free_port():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return listener.getsockname()[1]


@contextlib.contextmanager
def at_work(command, port, folder):
    """A witness as a process, which is killed in the end."""
    with open(folder / "output", "ab") as output:
        process = subprocess.Popen([str(it) for it in command], stdout=output, stderr=output)
    try:
        while True:
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=1):
                break
            if process.poll() is not None:
                raise Failed(f"{command[0]} ended: {(folder / 'output').read_text()}")
            time.sleep(0.02)
        yield
    finally:
        process.kill()
        process.wait()


class Aics:
    """aics-witness for a log: its address, and the line by which others know it. It goes on with its state each time that it is started."""

    def __init__(self, folder, key, origin=ORIGIN):
        folder.mkdir()
        self.folder, self.port = folder, free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.config = ["--config", folder / "witness.json"]
        command = [sys.executable, "-m", "aics_witness"]
        self.key = must([*command, "init", *self.config, "--name", "witness.example/interop", "--listen", f"127.0.0.1:{self.port}"]).strip()
        must([*command, "add-log", *self.config, "--origin", origin, "--vkey", key])
        self.command = [*command, "serve", *self.config]

    def at_work(self):
        return at_work(self.command, self.port, self.folder)


class Own:
    """`bulla witness` for a log with these keys, the same way."""

    def __init__(self, bulla, folder, algorithm, *keys):
        folder.mkdir()
        self.folder, self.port = folder, free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        settings = {
            "name": f"own.example/{algorithm}",
            "algorithm": algorithm,
            "keys": str(folder / "keys"),
            "state": str(folder / "state"),
            "listen": f"127.0.0.1:{self.port}",
            "logs": list(keys),
        }
        config = folder / "witness.toml"
        # Strings and lists of strings are written alike in TOML and in JSON.
        config.write_text("".join(f"{name} = {json.dumps(value)}\n" for name, value in settings.items()))
        self.key = json.loads(must([bulla, "witness", "--new", config, "--json"]))["vkey"]
        self.command = [bulla, "witness", config]

    def at_work(self):
        return at_work(self.command, self.port, self.folder)


def submit(url, old, proof, checkpoint):
    """What a witness answers: the status, and the body."""
    body = "".join([f"old {old}\n", *(f"{line}\n" for line in proof), "\n"]).encode() + checkpoint
    try:
        with urllib.request.urlopen(urllib.request.Request(url + "/add-checkpoint", data=body, method="POST"), timeout=20) as answer:
            return answer.status, answer.read()
    except urllib.error.HTTPError as error:
        return error.code, error.read()


def growth(log, old):
    """The hashes by which `bulla prove` shows that the tree of an older checkpoint grew to the newest."""
    older = log.directory.parent / "older.checkpoint"
    older.write_bytes(old)
    head = log.prove("growth", "--consistency", older).read_text().split("\n\n")[0]
    return head.split("\n")[2:]


def aics_witness(bulla, place):
    """aics-witness: a witness that cosigns each state with Bulla's own proofs of growth, and no other history."""
    from tlog_scales.signing import Vkey
    from tlog_scales.tlog import Checkpoint

    if sys.version_info < (3, 12):
        say(f"aics-witness says that it is for Python 3.12 and newer, and runs here on {sys.version.split()[0]}")
    log = Log(bulla, place, "aics-witness")
    fork = log.forked("aics-witness.fork")
    # Another history of the same length, which the same key signs: an entry by itself is a block, whenever it comes.
    for history in (log, fork):
        for _ in range(3):
            history.append(1)
    first, last = log.checkpoints[0], log.checkpoints[-1]
    aics = Aics(place / "witness", log.key)
    url, vkey = aics.url, aics.key
    with aics.at_work():

        def cosigned(answer, checkpoint):
            status, body = answer
            expect(status == 200, f"the witness answered {status}: {body!r}")
            # By the one tool's words it is signed by the other.
            Checkpoint.from_text((checkpoint + body).decode()).verify(Vkey.from_string(vkey))

        cosigned(submit(url, 0, [], first), first)
        status, body = submit(url, 0, [], last)
        expect((status, body) == (409, f"{size(first)}\n".encode()), f"409 with the witness's size was expected, and not {status}: {body!r}")
        proof = growth(log, first)
        expect(proof, "the proof must have a hash that can be changed")
        wrong = [base64.b64encode(hashlib.sha256(b"another").digest()).decode(), *proof[1:]]
        status, body = submit(url, size(first), wrong, last)
        expect(status == 422, f"a proof with another hash was answered with {status}: {body!r}")
        cosigned(submit(url, size(first), proof, last), last)
        other = fork.checkpoint()
        expect(size(other) == size(last), "both histories must be of one length")
        status, body = submit(url, size(last), [], other)
        expect(status == 422, f"another history was answered with {status}: {body!r}")
        forged = last.replace(b"\n" + str(size(last)).encode() + b"\n", b"\n" + str(size(last) + 1).encode() + b"\n", 1)
        status, body = submit(url, size(last), [], forged)
        expect(status == 403, f"a checkpoint that was changed was answered with {status}: {body!r}")
    yield f"cosigns two states, the second by Bulla's proof of growth, and no second history of the same key; answers 409, 422 and 403 where it has to"


def ml_dsa(bulla, place):
    """tlog-scales, over OpenSSL: ML-DSA-44 of a log and of `bulla witness`, and `bulla verify` with what tlog-scales has cosigned."""
    from cryptography.exceptions import InvalidSignature
    from tlog_scales.signing import MLDSA44CosignatureSigner, NoteSignature, Vkey
    from tlog_scales.tlog import Checkpoint

    log = Log(bulla, place, "ml-dsa", "--ml-dsa", entries=9)
    log_key = json.loads(must([bulla, "info", log.directory, "--json"]))["vkey_ml_dsa"]

    def changed_are_refused(checkpoint, key):
        """A bit of each byte of a signature, another length of it, and each line that is signed: how many were refused."""
        verifier = key.get_verifier()
        [line] = [it for it in checkpoint.signatures if key.match(it)]
        payload = line.payload
        expect(len(payload) == 8 + 2420, f"a time and a signature of ML-DSA-44 were expected, and not {len(payload)} bytes")
        others = [payload[:at] + bytes([payload[at] ^ 1 << at % 8]) + payload[at + 1 :] for at in range(len(payload))]
        cases = [(checkpoint, it) for it in (*others, payload[:-1], payload + b"\0")]
        root = bytes([checkpoint.root_hash[0] ^ 1]) + checkpoint.root_hash[1:]
        for changed in ({"origin": checkpoint.origin + "1"}, {"size": checkpoint.size + 1}, {"root_hash": root}):
            cases.append((dataclasses.replace(checkpoint, **changed), payload))
        for number, (of, signature) in enumerate(cases):
            try:
                verifier.verify(signature, of)
            except InvalidSignature:
                continue
            raise Failed(f"change {number} of a signature by {key.name} was taken")
        return len(cases)

    refused = 0
    for state in log.checkpoints:
        found = Checkpoint.from_text(state.decode())
        for key in (log.key, log_key):
            found.verify(Vkey.from_string(key))
    refused += changed_are_refused(found, Vkey.from_string(log_key))
    # The witness knows the log by that key alone.
    own = Own(bulla, place / "own", "ml-dsa-44", log_key)
    old = 0
    with own.at_work():
        for state in (log.checkpoints[0], log.checkpoint()):
            status, body = submit(own.url, old, growth(log, log.checkpoints[0]) if old else [], state)
            expect(status == 200, f"`bulla witness` answered {status}: {body!r}")
            cosigned = Checkpoint.from_text((state + body).decode())
            cosigned.verify(Vkey.from_string(own.key))
            refused += changed_are_refused(cosigned, Vkey.from_string(own.key))
            old = size(state)
    # The other way round: what it signs with a key of its own is a cosignature to Bulla.
    signer = MLDSA44CosignatureSigner("other.example/w", hashlib.sha256(b"interop").digest())
    policy = written_policy(place / "ml-dsa.policy", log_key, ("other", signer.vkey.serialize(), None))
    copied = log.copied("ml-dsa.cosigned")
    line = signer.sign(found)
    (copied / "checkpoint").write_bytes(log.checkpoint() + f"{line.serialize()}\n".encode())
    verified(bulla, copied, policy)
    for at in (0, 7, 8, 1000, len(line.payload) - 1):
        payload = bytearray(line.payload)
        payload[at] ^= 1
        changed = NoteSignature(line.name, line.key_id, bytes(payload))
        (copied / "checkpoint").write_bytes(log.checkpoint() + f"{changed.serialize()}\n".encode())
        verified(bulla, copied, policy, "cosignature-invalid")
    yield f"{len(log.checkpoints)} states that a log signed and two that `bulla witness` cosigned hold by OpenSSL's ML-DSA-44; {refused} changes of them are refused. A cosignature of tlog-scales is taken by `bulla verify --policy`, and refused with a changed bit"


def written_policy(file, log_key, *witnesses):
    """A policy that wants all of these witnesses, each with its name, key and address."""
    names = [name for name, *_ in witnesses]
    lines = [f"log {log_key}"] if log_key else []
    lines += [" ".join(["witness", *filter(None, witness)]) for witness in witnesses]
    file.write_text("\n".join([*lines, f"group wanted all {' '.join(names)}", "quorum wanted", ""]))
    return file


def verified(bulla, directory, policy, kind=None, *options):
    """What `bulla verify --policy` says, which has to find nothing, or this kind of violation."""
    code, out = run([bulla, "verify", directory, "--public", "--policy", policy, "--json", *options])
    told = json.loads(out)
    kinds = {it["kind"] for it in told["findings"]}
    as_expected = code == 0 if kind is None else code == 1 and kind in kinds
    expect(as_expected, f"`bulla verify {directory.name}` ended with {code}, and was to find {kind}: {out}")
    return told


def witness_policy(bulla, place):
    """A log that asks aics-witness and `bulla witness` for cosignatures, by its policy."""
    from tlog_scales.signing import Vkey
    from tlog_scales.tlog import Checkpoint

    # aics-witness knows nothing of the second of the log's signatures.
    log = Log(bulla, place, "asks", "--ml-dsa")
    aics = Aics(place / "aics", log.key)
    own = Own(bulla, place / "own", "ml-dsa-44", log.key)
    asked = [("aics", aics.key, aics.url), ("own", own.key, own.url)]
    must([bulla, "config", log.directory, "set", "log.witness_policy", written_policy(place / "asked.policy", None, *asked)])
    policy = written_policy(place / "believed.policy", log.key, *(it[:2] for it in asked))

    def missing(by):
        """Who has not cosigned the newest checkpoint, by what its lines are of, or has and was not to."""
        newest = Checkpoint.from_text(log.checkpoint().decode())
        keys = {witness: Vkey.from_string(witness.key) for witness in (aics, own)}
        return [witness for witness, key in keys.items() if any(map(key.match, newest.signatures)) != (witness in by)]

    def cosigned(by):
        """Has these have cosigned the newest checkpoint, and no others, by tlog-scales' words and by Bulla's."""
        until = time.monotonic() + 60
        # Closing waits for a witness for so long, which a busy machine may not have kept to: the next opening asks anew.
        while missing(by) and time.monotonic() < until:
            must([bulla, "append", log.directory], input=b"")
        newest = Checkpoint.from_text(log.checkpoint().decode())
        expect(not missing(by), f"of {newest} cosignatures by {[it.key[:40] for it in by]} were expected, and no others")
        for witness in by:
            newest.verify(Vkey.from_string(witness.key))
        told = json.loads(must([bulla, "info", log.directory, "--json"]))["witnesses"]
        for said, witness in zip(told, (aics, own)):
            expect((said["frames"] == newest.size) == (witness in by), f"`bulla info` says {said} of a log of {newest.size} frames")

    with own.at_work():
        with aics.at_work():
            for _ in range(2):
                log.append(1)
                cosigned((aics, own))
                told = verified(bulla, log.directory, policy, None, "--strict")
                expect(told["witnessed"]["frames"] == size(log.checkpoint()), f"the newest checkpoint is witnessed: {told}")
        covered = size(log.checkpoint())
        # Without it the log goes on, and what it has cosigned still counts.
        log.append(1)
        cosigned((own,))
        told = verified(bulla, log.directory, policy)
        expect(told["witnessed"]["frames"] == covered < size(log.checkpoint()), f"{covered} frames are witnessed: {told}")
        verified(bulla, log.directory, policy, "unwitnessed", "--strict")
        fork = log.forked("asks.fork")
        with aics.at_work():
            log.append(1)
            cosigned((aics, own))
            verified(bulla, log.directory, policy, None, "--strict")
            # Another history, which the same key signs, neither cosigns; nor does it count what they said of the first.
            refused, until = "", time.monotonic() + 60
            while not all(re.search(f"the witness `{name}`.*two histories", refused) for name, *_ in asked):
                expect(time.monotonic() < until, f"both witnesses were to refuse the other history: {refused}")
                code, out = run([bulla, "append", fork.directory], input=b'{"operation":"write","location":"another"}')
                expect(code == 0, f"the other history was to go on: {out}")
                refused += out
            told = verified(bulla, fork.directory, policy)
            expect(told["witnessed"]["frames"] == covered, f"of the other history {covered} frames are witnessed: {told}")
            verified(bulla, fork.directory, policy, "unwitnessed", "--strict")
    stranger = [("stranger", Own(bulla, place / "stranger", "ed25519", log.key).key)]
    verified(bulla, log.directory, written_policy(place / "more.policy", log.key, *(it[:2] for it in asked), *stranger), "unwitnessed")
    for witness in (aics, own):
        changed = log.copied(f"asks.{witness.folder.name}")
        content = log.checkpoint()
        before, line = content.split(f"\u2014 {Vkey.from_string(witness.key).name} ".encode())
        line, newline, after = line.partition(b"\n")
        signature = bytearray(base64.b64decode(line))
        signature[len(signature) // 2] ^= 1
        (changed / "checkpoint").write_bytes(content.replace(line, base64.b64encode(signature)))
        verified(bulla, changed, policy, "cosignature-invalid")
    yield "a log of both kinds of key has its checkpoints cosigned by aics-witness and `bulla witness`, goes on without one, and is cosigned again once that is back; no second history is. `bulla verify --policy` wants both, and refuses a changed bit of either"


def witness_client(bulla, place):
    """aics-witness's client, which judges the answers of `bulla witness`."""
    from aics_witness import BadWitnessResponse, WitnessAhead, WitnessClient, WitnessConflict, WitnessRejected, merge_cosignatures
    from tlog_scales.signing import PlainEd25519Signer, Vkey
    from tlog_scales.tlog import Checkpoint

    # What it logs of the witness's answers, it raises, too.
    logging.getLogger("aics_witness").addHandler(logging.NullHandler())
    log = Log(bulla, place, "client")
    fork = log.forked("client.fork")
    for history in (log, fork):
        for _ in range(3):
            history.append(1)
    first, last, other = log.checkpoints[0], log.checkpoint(), fork.checkpoint()
    expect(size(last) == size(other) and last != other, "both histories must be of one length")
    own = Own(bulla, place / "own", "ed25519", log.key)

    def proofs(history):
        """The source of proofs that the client wants, and which of them it asked for."""
        asked = []

        def proof(old, new):
            asked.append((old, new))
            [known] = [it for it in set(history.checkpoints) if size(it) == old]
            expect(new == size(history.checkpoint()), f"a proof of growth to {new} leaves was asked for")
            return [base64.b64decode(it) for it in growth(history, known)]

        return proof, asked

    def client(key=own.key):
        return contextlib.closing(WitnessClient(own.url, key, max_attempts=1))

    def refused(error, of, *arguments):
        with client() as asking:
            try:
                asking.submit(of, *arguments)
            except error as found:
                return found
        raise Failed(f"{error.__name__} was expected")

    def rejected(status, of, *arguments):
        found = refused(WitnessRejected, of, *arguments)
        expect(found.status == status, f"{status} was expected, and not {found}")

    def cosigned(line, checkpoint):
        Checkpoint.from_text(merge_cosignatures(checkpoint, line).decode()).verify(Vkey.from_string(own.key))

    proof, asked = proofs(log)
    with own.at_work():
        with client() as asking:
            cosigned(asking.submit(first, proof), first)
            cosigned(asking.submit(last, proof), last)
            # What is cosigned already is cosigned again.
            cosigned(asking.submit(last, proof), last)
        expect(asked == [(size(first), size(last))], f"proofs were asked for: {asked}")
    log.append(1)
    newest = log.checkpoint()
    wrong = [hashlib.sha256(b"another").digest(), *proof(size(last), size(newest))[1:]]
    # It was killed, and goes on where it was.
    with own.at_work():
        found = refused(WitnessConflict, newest, (size(first), proof(size(first), size(newest))))
        expect(found.known_size == size(last), f"409 has to say {size(last)}, and not {found.known_size}")
        found = refused(WitnessAhead, first, proof)
        expect(found.known_size == size(last), f"409 has to say {size(last)}, and not {found.known_size}")
        rejected(422, newest, (size(last), wrong))
        # Another tree of the size that was cosigned, and one that goes on from it.
        rejected(422, other, (size(last), []))
        fork.append(2)
        rejected(422, fork.checkpoint(), (size(other), proofs(fork)[0](size(other), size(fork.checkpoint()))))
        body = Checkpoint.from_text(newest.decode())
        flipped = bytes([body.root_hash[0] ^ 1]) + body.root_hash[1:]
        rejected(403, newest.replace(base64.b64encode(body.root_hash), base64.b64encode(flipped)), proof)
        for status, origin in ((403, ORIGIN), (404, "example.com/another")):
            stranger = PlainEd25519Signer(origin, hashlib.sha256(b"interop").digest())
            rejected(status, Checkpoint.make_signed(origin, body.size, body.root_hash, [stranger]).serialize(), (0, []))
        # By another key than the witness's the answer is none.
        name, *_ = own.key.split("+")
        stranger = Vkey(name, None, 4, Vkey.from_string(PlainEd25519Signer(name, hashlib.sha256(b"interop").digest()).vkey.serialize()).pubkey)
        with client(stranger.serialize()) as asking, contextlib.suppress(BadWitnessResponse):
            asking.submit(last, (size(last), []))
            raise Failed("the client was to refuse a cosignature of another key")
        # None of that was kept: a client that knows nothing is told the size, and gets there.
        asked.clear()
        with client() as asking:
            cosigned(asking.submit(newest, proof), newest)
        expect(asked == [(size(last), size(newest))], f"proofs were asked for: {asked}")
    yield "aics-witness's client takes the cosignatures of `bulla witness` (200), also after SIGKILL, is led on by the size in 409, and gets 409, 422, 403 and 404 where it has to; nothing that was refused was kept"


TOOLS = (aics_witness, ml_dsa, witness_policy, witness_client)
