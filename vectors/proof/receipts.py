"""The vectors of tree heads in COSE, receipts and anchors, for make.py: of the small log of proofs.py, what holds and what is refused."""

import functools
import hashlib

import proofs
from proofs import ORIGIN, SEED, WITNESS, WITNESS_SEED, disclosure, key_id, seal, sign, text64, vkey

REKOR, REKOR_SEED = "rekor.example", bytes([9]) * 32
TYPE = "application/vnd.c2sp.tlog-checkpoint"
PREFIX = bytes.fromhex("302a300506032b6570032100")


# CBOR, RFC 8949, section 4.2.1; Raw is what stands there as it is.

class Raw(bytes):
    pass


class Tag:
    def __init__(self, number, value):
        self.number, self.value = number, value


def head(kind, value):
    if value < 24:
        return bytes([kind << 5 | value])
    width = next(width for width in range(4) if value < 1 << (8 << width))
    return bytes([kind << 5 | 24 + width]) + value.to_bytes(1 << width, "big")


def cbor(value):
    if isinstance(value, Raw):
        return bytes(value)
    if value is None:
        return b"\xf6"
    if isinstance(value, int):
        return head(0, value) if value >= 0 else head(1, -1 - value)
    if isinstance(value, bytes):
        return head(2, len(value)) + value
    if isinstance(value, str):
        return head(3, len(value.encode())) + value.encode()
    if isinstance(value, list):
        return head(4, len(value)) + b"".join(map(cbor, value))
    if isinstance(value, Tag):
        return head(6, value.number) + cbor(value.value)
    # In the order that is given: that of the encodings is one of what is tested.
    return head(5, len(value)) + b"".join(cbor(key) + cbor(item) for key, item in value.items())


# Tree heads.

def protected(size, origin=ORIGIN, seed=SEED, **changes):
    header = {1: -8, 4: key_id(origin, seed), 15: {1: origin}, 395: 1, -70001: size}
    header.update({int(label.strip("p_").replace("m", "-")): value for label, value in changes.items()})
    return cbor({label: value for label, value in header.items() if value != "gone"})


@functools.cache
def signed_head(header, root, seed=SEED):
    return seal.ed25519(seed)[1](cbor(["Signature1", header, b"", root]))


def message(header, root, unprotected=None, payload=True, seed=SEED, signature=None, tag=18):
    signature = signature or signed_head(header, root, seed)
    return cbor(Tag(tag, [header, {} if unprotected is None else unprotected, root if payload is True else payload, signature]))


def heads(log):
    empty = hashlib.sha256(b"").digest()
    for name, size, root in [("a tree of seven frames", 7, log.root(7)), ("a tree of one frame", 1, log.root(1)),
                             ("an empty tree", 0, empty), ("a size of two bytes", 300, empty), ("a size of eight bytes", 2**63, empty)]:
        yield dict(name=name, file=message(protected(size), root).hex(), size=str(size), root=root.hex())


def refused_heads(log):
    root, header = log.root(7), protected(7)
    sound = message(header, root)
    for name, file in [
        ("nothing", b""),
        ("no tag", sound[1:]),
        ("another tag", message(header, root, tag=17)),
        ("a tag in a longer form", b"\xd8\x12" + sound[1:]),
        ("an end too early", sound[:-1]),
        ("a byte more", sound + b"\0"),
        ("an array of three", cbor(Tag(18, [header, {}, root]))),
        ("an array of no definite length", b"\xd2\x9f" + sound[2:] + b"\xff"),
        ("a payload that is detached", message(header, root, payload=None)),
        ("a root of 31 bytes", message(header, root, payload=root[:31])),
        ("a signature of 63 bytes", message(header, root, signature=signed_head(header, root)[:63])),
        ("a header that is not protected", message(header, root, unprotected={4: key_id(ORIGIN, SEED)})),
        ("a protected header that is no byte string", cbor(Tag(18, [Raw(header), {}, root, signed_head(header, root)]))),
        ("another algorithm", message(protected(7, p_1=-7), root)),
        ("an algorithm of its own name", message(protected(7, p_1=-19), root)),
        ("another tree", message(protected(7, p_395=2), root)),
        ("no size", message(protected(7, **{"p_m70001": "gone"}), root)),
        ("a size that is negative", message(protected(-1), root)),
        ("a parameter more", message(protected(7, p_2=[1]), root)),
        ("a key id of three bytes", message(protected(7, p_4=b"abc"), root)),
        ("a claim more", message(protected(7, p_15={1: ORIGIN, 2: "x"}), root)),
        ("an origin with a space", message(protected(7, p_15={1: "example.com/ log"}), root)),
        ("labels in another order", message(cbor({4: key_id(ORIGIN, SEED), 1: -8, 15: {1: ORIGIN}, 395: 1, -70001: 7}), root)),
        ("a size in a longer form", message(header[:-1] + b"\x18\x07", root)),
        ("another origin", message(protected(7, "example.com/other"), root)),
        ("another key's id", message(protected(7, seed=WITNESS_SEED), root)),
        ("another key's signature", message(header, root, seed=WITNESS_SEED)),
        ("another size than was signed", message(protected(6), root, signature=signed_head(header, root))),
        ("another root than was signed", message(header, log.root(6), signature=signed_head(header, root))),
        ("the root alone signed, as RFC 9942 has it", message(header, root, signature=seal.ed25519(SEED)[1](root))),
    ]:
        yield dict(name=name, file=file.hex())


# Receipts.

def parts_of(log, chosen, multi_proof, size=7):
    parts = log.proof(chosen, multi_proof, size)
    paths = [(number, multi_proof(hashlib.sha256, log.leaves[:size], [number])) for number in sorted(chosen)]
    return dict(parts, size=size, root=log.root(size), paths=paths)


def receipt(parts, **given):
    size, header = parts["size"], given.get("header", protected(parts["size"]))
    proofs_ = given.get("proofs", [cbor([given.get("size", size), index, path]) for index, path in parts["paths"]])
    unprotected = given.get("unprotected", {396: {-1: proofs_}, -70002: given.get("disclosure", disclosure(parts))})
    return message(header, parts["root"], unprotected, given.get("payload"), given.get("seed", SEED), given.get("signature"))


def receipts(logs, multi_proof):
    for name, hash_name, chosen, size in [
        ("one entry", "sha256", {1: [3]}, 7),
        ("entries of one block, hashed by SHA3-256", "sha3-256", {5: [0, 5, 12]}, 7),
        ("the last frame of a smaller tree", "sha256", {5: [12]}, 6),
        ("two frames", "sha256", {1: [0, 4], 6: [299]}, 7),
        ("every block", "sha3-256", {1: [1], 2: [0], 5: [3, 4], 6: [0, 1, 2]}, 7),
    ]:
        parts = parts_of(logs[hash_name], chosen, multi_proof, size)
        entries = [[unit["entry"], unit["row"].hex()] for frame in parts["frames"] for unit in frame["units"]]
        yield dict(name=name, file=receipt(parts).hex(), frames=len(chosen), tree_size=size, root=parts["root"].hex(),
                   entries=entries)


def refused_receipts(log, multi_proof):
    one, two = parts_of(log, {1: [1, 3]}, multi_proof), parts_of(log, {1: [0], 5: [2]}, multi_proof)
    item, of_size, path = "Receipt(Item", [7, 1], one["paths"][0][1]
    sound = receipt(one)
    flipped = [bytes([path[0][0] ^ 1]) + path[0][1:], *path[1:]]
    later = [cbor([7, index, path]) for index, path in two["paths"]]
    for name, file, error in [
        ("an end too early", sound[:-1], item),
        ("a byte more", sound + b"\0", item),
        ("a payload that is there", receipt(one, payload=one["root"]), item),
        ("no proofs", receipt(one, proofs=[]), item),
        ("no vdp", receipt(one, unprotected={-70002: disclosure(one)}), item),
        ("no disclosure", receipt(one, unprotected={396: {-1: [cbor([*of_size, path])]}}), item),
        ("a proof of consistency", receipt(one, unprotected={396: {-2: [cbor([7, 1, path])]}, -70002: disclosure(one)}), item),
        ("a parameter more", receipt(one, unprotected={4: b"abcd", 396: {-1: [cbor([*of_size, path])]},
                                                       -70002: disclosure(one)}), item),
        ("a proof that is no byte string", receipt(one, proofs=[[*of_size, path]]), item),
        ("a proof that goes on", receipt(one, proofs=[cbor([*of_size, path]) + b"\0"]), item),
        ("another size than in the protected header", receipt(one, size=6), item),
        ("a frame past the tree", receipt(one, proofs=[cbor([7, 7, path])]), item),
        ("a hash less", receipt(one, proofs=[cbor([*of_size, path[:-1]])]), item),
        ("a hash more", receipt(one, proofs=[cbor([*of_size, [*path, bytes(32)]])]), item),
        ("a hash of 31 bytes", receipt(one, proofs=[cbor([*of_size, [path[0][:31], *path[1:]]])]), item),
        ("a disclosure of nothing", receipt(one, disclosure=b""), "NoDisclosure"),
        ("a disclosure of version 2", receipt(dict(one, version=2)), "Version(2)"),
        ("a disclosure that goes on", receipt(dict(one, tail=b"\0")), "LeftOver(1)"),
        ("a frame less than there are proofs", receipt(one, proofs=later), "Frame { frame: 5"),
        ("frames in another order", receipt(two, proofs=later[::-1]), "Frame {"),
        ("another path", receipt(one, proofs=[cbor([*of_size, flipped])]), "Receipt(BadSignature)"),
        ("paths to two roots", receipt(two, proofs=[later[0], cbor([7, 5, [bytes(32), *two["paths"][1][1][1:]]])]), "Tree(Root)"),
        ("a log of another origin", receipt(one, header=protected(7, "example.com/other")), "Receipt(Origin)"),
        ("another key's id", receipt(one, header=protected(7, seed=WITNESS_SEED)), "Receipt(OtherKey)"),
        ("another key's signature", receipt(one, seed=WITNESS_SEED), "Receipt(BadSignature)"),
        ("the signature of another size", receipt(one, signature=signed_head(protected(6), one["root"])), "Receipt(BadSignature)"),
    ]:
        yield dict(name=name, file=file.hex(), error=error)
    rows = parts_of(log, {1: [1, 3]}, multi_proof)
    rows["frames"][0]["units"][0].update(row=log.frames[1]["units"][2]["row"])
    yield dict(name="another row", file=receipt(rows).hex(), error="Frame { frame: 1, problem: Root")


# Anchors.

@functools.cache
def envelope(note, seed=SEED):
    return seal.ed25519(seed)[1](f"DSSEv1 {len(TYPE)} {TYPE} {len(note.encode())} {note}".encode())


def entry(note, signature, seed=SEED):
    digest, der = hashlib.sha256(note.encode()).digest(), PREFIX + seal.ed25519(seed)[0]
    return ('{"apiVersion":"0.0.2","kind":"dsse","spec":{"dsseV002":{"payloadHash":{"algorithm":"SHA2_256","digest":"%s"},'
            '"signatures":[{"content":"%s","verifier":{"keyDetails":"PKIX_ED25519","publicKey":{"rawBytes":"%s"}}}]}}}'
            % (text64(digest), text64(signature), text64(der))).encode()


def anchor(note, tree, multi_proof, index=3, size=5, **given):
    """The file of an entry at `index` of a Rekor with so many."""
    signature = given.get("signature") or envelope(note)
    leaf = hashlib.sha256(b"\0" + given.get("entry", entry(note, signature))).digest()
    leaves = [leaf if at == index else hashlib.sha256(b"\0" + bytes([at])).digest() for at in range(size)]
    nodes = given.get("nodes", lambda nodes: nodes)(multi_proof(hashlib.sha256, leaves, [index]))
    name, seed = given.get("rekor", (REKOR, REKOR_SEED))
    rekor = given.get("head") or sign(f"{name}\n{size}\n{text64(tree(hashlib.sha256, leaves))}\n", (name, seed))
    lines = ["bulla-rekor-anchor-v1", f"checkpoint {text64(note.encode())}", f"signature {text64(signature)}",
             f"index {given.get('told', index)}", *map(text64, nodes)]
    return "\n".join(lines) + "\n\n" + rekor


def anchors(log, tree, multi_proof):
    both = [(ORIGIN, SEED), (WITNESS, WITNESS_SEED)]
    for name, size, signers, index, of in [("a checkpoint", 7, (), 3, 5), ("one that a witness has cosigned", 7, both, 0, 2),
                                           ("the only entry", 6, (), 0, 1), ("the last entry of many", 1, (), 255, 256)]:
        file = anchor(log.checkpoint(size, *signers), tree, multi_proof, index, of)
        yield dict(name=name, file=file, tree_size=size, root=log.root(size).hex(), index=index, rekor_size=of)


def refused_anchors(log, tree, multi_proof):
    note = log.checkpoint(7)
    made = lambda note=note, **given: anchor(note, tree, multi_proof, **given)
    sound, signature = made(), envelope(note)
    plain = seal.ed25519(SEED)[1](note.encode())
    spaced = entry(note, signature).replace(b'":', b'": ')
    for name, file, error in [
        ("another first line", sound.replace("-v1\n", "-v2\n", 1), "Kind"),
        ("no checkpoint", sound.replace("checkpoint ", "note ", 1), "Line { number: 2"),
        ("a checkpoint that is none", sound.replace(text64(note.encode()), text64(b"note"), 1), "OldCheckpoint("),
        ("a signature of 63 bytes", made(signature=signature[:63]), "Line { number: 3"),
        ("an index with a zero before it", made(told="03"), "Line { number: 4"),
        ("a hash that is too short", sound.replace("\n\n", "\nAA==\n\n", 1), "Line { number: 8"),
        ("no checkpoint of Rekor", sound.split("\n\n")[0] + "\n", "NoCheckpoint"),
        ("bytes after the last line", sound + "x\n", "Checkpoint("),
        ("a checkpoint that another key signed", made(log.checkpoint(7, (ORIGIN, WITNESS_SEED))), "OldCheckpoint(NotSigned)"),
        ("a checkpoint of another log", made(log.checkpoint(7, origin="example.com/other")), "OldCheckpoint(Origin)"),
        ("an envelope that another key signed", made(signature=envelope(note, WITNESS_SEED)), "OldCheckpoint(BadSignature)"),
        ("a signature of the note in the place of the envelope's", made(signature=plain), "OldCheckpoint(BadSignature)"),
        ("a checkpoint of Rekor that another key signed", made(rekor=(REKOR, SEED)), "Checkpoint(NotSigned)"),
        ("a checkpoint of another Rekor", made(rekor=("rekor.example.com", REKOR_SEED)), "Checkpoint(NotSigned)"),
        ("the log's checkpoint in the place of Rekor's", made(head=note), "Checkpoint(NotSigned)"),
        ("another index", made(told=2), "Tree(Root)"),
        ("an index past Rekor's tree", made(told=5), "Tree("),
        ("a hash less", made(nodes=lambda nodes: nodes[:-1]), "Tree(TooFewNodes)"),
        ("a hash more", made(nodes=lambda nodes: [*nodes, bytes(32)]), "Tree(TooManyNodes)"),
        ("another hash", made(nodes=lambda nodes: [bytes(32), *nodes[1:]]), "Tree(Root)"),
        ("an entry with white space", made(entry=spaced), "Tree(Root)"),
        ("an entry that names another key", made(entry=entry(note, signature, WITNESS_SEED)), "Tree(Root)"),
        ("an entry of a later version", made(entry=entry(note, signature).replace(b"0.0.2", b"0.0.3")), "Tree(Root)"),
        ("the entry of another checkpoint", made(entry=entry(log.checkpoint(6), envelope(log.checkpoint(6)))), "Tree(Root)"),
    ]:
        yield dict(name=name, file=file, error=error)


def vectors(encode, commitment, tree, multi_proof, row):
    logs = {name: proofs.Log(name, encode, commitment, tree, row) for name in proofs.HASHES}
    for log in logs.values():
        log.root = lambda size, log=log: tree(hashlib.sha256, log.leaves[:size])
    log = logs["sha256"]
    return dict(vkey=vkey(ORIGIN, SEED), rekor_vkey=vkey(REKOR, REKOR_SEED),
                heads=list(heads(log)), heads_refused=list(refused_heads(log)),
                receipts=list(receipts(logs, multi_proof)), refused=list(refused_receipts(log, multi_proof)),
                anchors=list(anchors(log, tree, multi_proof)), anchors_refused=list(refused_anchors(log, tree, multi_proof)))
