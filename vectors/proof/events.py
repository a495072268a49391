"""The vectors of proofs of events, for make.py: an erasure, the order in it, and what is refused."""

import base64
import hashlib
import json

from proofs import ORIGIN, SEED, sign, text64, vkey

LOG = bytes(range(16)).hex()
ERASURE, ERASURE_SEED = "example.com/log/erasure", bytes([9]) * 32
HEADER = "bulla-event-v1"


def order(subjects, reason=None, seconds=1700000000):
    """A signed order for subjects, pairs of salt and name, and what it commits to."""
    commitments = [text64(hashlib.sha256(b"bulla erasure order v1\0" + salt + name.encode()).digest())
                   for salt, name in subjects]
    lines = ["bulla-erasure-order-v1", f"log {LOG}", f"time {seconds}"]
    lines += [f"reason {reason}"] * (reason is not None) + [f"subject {subject}" for subject in commitments]
    return sign("\n".join(lines) + "\n", (ERASURE, ERASURE_SEED))


def orders():
    salts = [hashlib.sha256(f"order salt {number}".encode()).digest() for number in range(3)]
    for reason, names in [(None, ["user_42"]), ("request of 2026-03-01", ["user_42", "Zoë"]), ("r", ["", "a\nb", "c"])]:
        subjects = list(zip(salts, names))
        yield dict(note=order(subjects, reason), log=LOG, seconds=1700000000, reason=reason,
                   subjects=[dict(subject=name, salt=text64(salt)) for salt, name in subjects])


def hold_order(act, digest, by="legal", reason="case 4711", log=LOG, seconds=1700000000):
    """A signed order to hold a subject, or to release a hold, and the salt of its reason."""
    salt = hashlib.sha256(f"hold salt {act}".encode()).digest()
    because = hashlib.sha256(b"bulla hold reason v1\0" + salt + by.encode() + b"\0" + reason.encode()).digest()
    lines = ["bulla-hold-order-v1", f"log {log}", f"time {seconds}", f"{act} {text64(digest)}", f"because {text64(because)}"]
    return sign("\n".join(lines) + "\n", (ERASURE, ERASURE_SEED)), salt


def held(name="user_42", **more):
    """The same of a hold, with the salts of both."""
    salt = hashlib.sha256(b"hold salt subject").digest()
    note, because = hold_order("hold", hashlib.sha256(b"bulla held subject v1\0" + salt + name.encode()).digest(), **more)
    return note, dict(subject=text64(salt), because=text64(because))


def released(note, **more):
    text = note.rpartition("\n\n")[0] + "\n"
    return hold_order("release", hashlib.sha256(text.encode()).digest(), **more)


def hold_orders():
    for name, by, reason in [("user_42", "legal", "case 4711"), ("Zoë", "Zoë", "r")]:
        note, salts = held(name, by=by, reason=reason)
        release, salt = released(note, reason="case closed")
        yield dict(note=note, log=LOG, seconds=1700000000, subject=name, by=by, reason=reason, salts=salts,
                   release=dict(note=release, by="legal", reason="case closed", salts=dict(because=text64(salt))))


def hold_orders_refused():
    """Notes, signed, that order neither."""
    good = held()[0].rpartition("\n\n")[0] + "\n"
    lines = good.splitlines()
    for name, text in [
        ("another version", good.replace("-v1", "-v2")), ("an order to erase", good.replace("hold-order", "erasure-order")),
        ("no log", good.replace(lines[1] + "\n", "")), ("a log in capitals", good.replace("0a0b", "0A0B")),
        ("a time with a zero before it", good.replace("time 1", "time 01")), ("another act", good.replace("\nhold ", "\nkeep ")),
        ("no reason", good.replace(lines[4] + "\n", "")), ("the reason first", "\n".join(lines[:3] + lines[:2:-1]) + "\n"),
        ("half a hash", good.replace(lines[3], lines[3][:27] + "==")), ("a line more", good + "hold " + lines[3][5:] + "\n"),
        ("both acts", good.replace(lines[4], lines[3].replace("hold", "release") + "\n" + lines[4])),
    ]:
        yield dict(name=name, note=sign(text, (ERASURE, ERASURE_SEED)))


def render(body):
    return body if isinstance(body, bytes) else json.dumps(body, separators=(",", ":")).encode()


class Log:
    """Five frames: an epoch, a block, an event, another block, another event."""

    def __init__(self, encode, commitment, tree, bodies=None):
        note = order([(bytes(range(32)), "user_42")], "asked")
        remains = ["shared-fields", "copies", "key-backups", "medium"]
        erased = dict(event="erased", numbers=[7], carried_out=[0], order=note, remains=remains)
        self.bodies = {2: erased, 4: dict(event="held", number=8, order=held()[0])}
        self.bodies = {frame: render(body) for frame, body in (self.bodies | (bodies or {})).items()}
        self.encoded = []
        for frame, kind in enumerate(["epoch", "block", "event", "block", "event"]):
            fields = dict(frame=frame, epoch=0, first_entry=frame // 2, entries=int(kind == "block"))
            if kind == "block":
                fields.update(units=1, root=hashlib.sha256(f"root {frame}".encode()).hexdigest())
            if kind == "event":
                body = self.bodies[frame]
                fields.update(body_length=len(body), body_digest=hashlib.sha256(body).hexdigest())
            self.encoded.append(encode(commitment("", kind, **fields)))
        self.leaves = [hashlib.sha256(b"\0" + encoded).digest() for encoded in self.encoded]
        self.root = lambda size: tree(hashlib.sha256, self.leaves[:size])

    def note(self, size):
        return sign(f"{ORIGIN}\n{size}\n{text64(self.root(size))}\n", (ORIGIN, SEED))

    def file(self, frame, size, multi_proof, commitment=None, event=None, nodes=None, note=None, header=HEADER):
        nodes = multi_proof(hashlib.sha256, self.leaves[:size], [frame]) if nodes is None else nodes
        lines = [header, f"commitment {text64(commitment or self.encoded[frame])}",
                 f"event {text64(self.bodies[frame] if event is None else event)}", *map(text64, nodes)]
        return "\n".join(lines) + "\n\n" + (note or self.note(size))


def refused(log, multi_proof):
    whole = log.file(2, 5, multi_proof)
    other = sign(f"{ORIGIN}\n5\n{text64(bytes(32))}\n", (ORIGIN, SEED))
    yield "another body", log.file(2, 5, multi_proof, event=b"{}"), "Frame { frame: 2, problem: Body }"
    yield "a block", log.file(1, 5, multi_proof, event=b"{}"), "Frame { frame: 1, problem: NoEvent(Block) }"
    yield ("beyond the tree", log.file(4, 5, multi_proof, note=log.note(4)),
           "Frame { frame: 4, problem: NotInTree { size: 4 } }")
    yield "another root", log.file(2, 5, multi_proof, note=other), "Tree(Root)"
    yield "the nodes of another frame", log.file(2, 5, multi_proof, nodes=multi_proof(hashlib.sha256, log.leaves, [4])), \
        "Tree(TooFewNodes)"
    yield "no event", whole.replace("\nevent ", "\nEvent "), \
        'Line { number: 3, expected: "`event` and up to 1 MiB in base64" }'
    yield "half a commitment", log.file(2, 5, multi_proof, commitment=log.encoded[2][:80]), \
        'Line { number: 2, expected: "`commitment` and that of a frame in base64" }'
    yield "another header", whole.replace("event-v1", "event-v2", 1), "Kind"


def bodies_refused(log, of_body):
    """Files that prove what is in a log, which is no event that a reader takes."""
    salts = [hashlib.sha256(f"order salt {number}".encode()).digest() for number in range(2)]
    two = order(list(zip(salts, ["user_42", "Zoë"])))
    elsewhere = two.replace(f"log {LOG}", f"log {'08' * 16}")
    remains = ["shared-fields"]
    good = dict(event="erased", numbers=[7, 9], carried_out=[0, 1], order=two, remains=remains)
    for name, changed in [
        ("nobody", dict(numbers=[])), ("somebody twice", dict(numbers=[7, 7])), ("descending", dict(numbers=[9, 7])),
        ("no name carried out", dict(carried_out=[])), ("a name twice", dict(carried_out=[0, 0])),
        ("names descending", dict(carried_out=[1, 0])), ("a name that is not in the order", dict(carried_out=[0, 2])),
        ("more people than names", dict(carried_out=[1])), ("a negative number", dict(numbers=[-1])),
        ("a field that there is not", dict(numbers=[7], more=1)), ("an order for another log", dict(order=elsewhere)),
        ("no order", dict(order="bulla-erasure-order-v1\n")), ("what remains is unknown", dict(remains=["nothing"])),
    ]:
        yield name, of_body(good | changed)
    yield "which names is not said", of_body({key: value for key, value in good.items() if key != "carried_out"})
    yield "a kind that there is not", of_body(dict(event="forgotten", numbers=[7]))
    hold = held()[0]
    release = released(hold)[0]
    yield "a hold of nobody", of_body(dict(event="held", order=hold))
    yield "a hold without an order", of_body(dict(event="held", number=7))
    yield "a hold of another log", of_body(dict(event="held", number=7, order=held(log="08" * 16)[0]))
    yield "a hold by an order to release", of_body(dict(event="held", number=7, order=release))
    yield "a hold by no order", of_body(dict(event="held", number=7, order="bulla-hold-order-v1\n"))
    yield "a hold by an order to erase", of_body(dict(event="held", number=7, order=two))
    yield "a release of no hold", of_body(dict(event="released", number=7, order=release))
    yield "a release without an order", of_body(dict(event="released", number=7, held=1))
    yield "a release by an order to hold", of_body(dict(event="released", number=7, held=1, order=hold))
    yield "no JSON", of_body(b"{")


def bodies_taken(of_body):
    """The same of other events that a reader takes."""
    yield of_body(dict(event="released", number=8, held=1, order=released(held()[0])[0]))
    yield of_body(dict(event="configured", before="00" * 32, after="01" * 32, changed=["recipients"]))
    yield of_body(dict(event="exported", entries=3, filters=["subject"], format="jsonl"))


def vectors(encode, commitment, tree, multi_proof):
    log = Log(encode, commitment, tree)
    of_body = lambda body: Log(encode, commitment, tree, {2: body}).file(2, 5, multi_proof)
    events = [dict(frame=frame, tree_size=size, event=log.bodies[frame].decode(), file=log.file(frame, size, multi_proof))
              for frame, size in [(2, 5), (4, 5), (2, 3)]]
    return dict(vkey=vkey(ORIGIN, SEED), erasure_vkey=vkey(ERASURE, ERASURE_SEED), events=events, orders=list(orders()),
                hold_orders=list(hold_orders()), hold_orders_refused=list(hold_orders_refused()),
                refused=[dict(name=name, file=file, error=error) for name, file, error in refused(log, multi_proof)],
                bodies_taken=[dict(file=file) for file in bodies_taken(of_body)],
                bodies_refused=[dict(name=name, file=file) for name, file in bodies_refused(log, of_body)])
