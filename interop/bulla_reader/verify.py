"""Verification of a whole log, with what is at hand: public data, the seal key, identities, the vault."""

from __future__ import annotations

import base64
import re
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Callable, Optional, Sequence

from . import age, blocks, commitments, grants, history, index, log, notes, policies, seals, segments, sources, tiles, trees, vault
from .findings import Finding, joined
from .hashes import sha256
from .history import History
from .log import Damaged, Log, list_directory, read_small
from .refused import Refused
from .segments import named

KNOWN = {
    "bulla.toml", "bulla.toml.next", "bulla.toml.lock", "checkpoint", "checkpoint.cose", "checkpoint.witnessed", "cosigned", "LOCK",
    "tile", "segments", "index",
}


@dataclass
class Hand:
    """What whoever verifies has."""

    key: Optional[notes.Verifier] = None
    seal_key: Optional[str] = None
    identities: list[age.Identity] = field(default_factory=list)
    vault: Optional[Path] = None
    grant: Optional[bytes] = None
    erasure_keys: Sequence[notes.Verifier] = ()
    policy: Optional[policies.Policy] = None
    # The line in `sources.key`.
    sources_key: Optional[str] = None


@dataclass
class Report:
    """What verification came to; `findings` are in the order in which they were found."""

    anchored: bool = False
    entries: int = 0
    erased: Optional[int] = None
    lost: int = 0
    blocks: int = 0
    tree_size: int = 0
    root: bytes = bytes(32)
    signed_time: Optional[int] = None
    findings: list[Finding] = field(default_factory=list)
    checked: list[str] = field(default_factory=lambda: ["public"])
    witnessed: Optional[dict[str, Any]] = None

    @property
    def ok(self) -> bool:
        return not any(it.is_violation for it in self.findings)

    def as_json(self) -> dict[str, Any]:
        return {
            "ok": self.ok,
            "anchored": self.anchored,
            "checked": self.checked,
            "entries": self.entries,
            "erased": self.erased,
            "blocks": self.blocks,
            "tree_size": self.tree_size,
            "root": base64.b64encode(self.root).decode(),
            "pending": 0,
            "signed_time": seconds_text(self.signed_time) if self.signed_time is not None else None,
            "witnessed": self.witnessed,
            "pin": None,
            "findings": [it.as_json() for it in joined(self.findings)],
        }


def seconds_text(seconds: int) -> Optional[str]:
    """Seconds since 1970 as a date of a year from 0 to 9999. The year 0, which Python has not, is like the year 400."""
    is_year_0 = -62_167_219_200 <= seconds < -62_135_596_800
    try:
        date = datetime(1970, 1, 1) + timedelta(days=146_097 if is_year_0 else 0, seconds=seconds)
    except OverflowError:
        return None
    text = date.isoformat() + "Z"
    return "0000" + text[4:] if is_year_0 else text


Each = Callable[[blocks.OpenedBlock], None]


def verified(directory: Path, hand: Hand, each: Optional[Each] = None) -> Report:
    """Verifies the log in a directory. `each` is given every block that opened, in order."""
    try:
        of = log.opened(directory)
    except Damaged as damaged:
        return Report(findings=[damaged.finding])
    erased = None if of.config.erasure else 0
    report = Report(tree_size=of.size, root=of.checkpoint.root, erased=erased, findings=of.findings)
    if hand.key is not None:
        report.anchored = hand.key.name == of.checkpoint.origin and hand.key.signed(of.checkpoint.note)
        if not report.anchored:
            of.find("key-mismatch", "the checkpoint is not signed by the key that was given")
    check_beside(of)
    if hand.policy is not None:
        check_policy(of, hand.policy, report)
    past = history.followed(of, hand.erasure_keys)
    report.signed_time = past.signed_time
    for frame in of.frames:
        if frame is not None and frame.commitment.kind == commitments.BLOCK:
            report.blocks += 1
            report.entries += frame.commitment.entries
    check_tree(of)
    check_surplus(of, past)
    check_places(of, past)
    if hand.seal_key is not None:
        try:
            key = seals.seal_key(hand.seal_key, of.config.log_id)
            report.checked.append("seals")
            seals.check(of, key)
        except Refused as refused:
            of.find("key-mismatch", str(refused))
    if hand.sources_key is not None:
        try:
            secret = sources.secret(hand.sources_key, of.config.log_id)
            report.checked.append("sources")
            check_sources(past, secret)
        except Refused as refused:
            of.find("key-mismatch", str(refused))
    if not any(it.kind == "tail-damaged" for it in of.findings):
        report_tail(of)
    if hand.identities:
        report.checked.append("blocks")
        check_blocks(past, hand, report, each)
    report_unknown(of)
    return report


def check_sources(past: History, secret: bytes) -> None:
    """Compares what blocks say of sources with what they may say, for whoever has the key of that."""
    of, there, is_told = past.log, set[bytes](), False
    for frame in of.frames:
        if frame is None or not frame.commitment.sources_length:
            continue
        it, body = frame.commitment, frame.body()
        epoch = past.epochs.get(it.epoch)
        if sha256(body) != it.body_digest or epoch is None or epoch.body is None:
            continue
        try:
            said = sources.opened(sources.key(secret, epoch.body.random, it.log_id, it.epoch), it, body)
        except Refused as refused:
            of.find("sources-damaged", str(refused), frame)
            continue
        for source in said:
            (there.add if source.ranges else there.discard)(source.id)
        if len(there) > sources.MOST_SOURCES and not is_told:
            is_told = True
            of.find("sources-damaged", "there are more sources than a log has", frame)


def check_tree(of: Log) -> None:
    """Compares root, tiles and bundles with what the frames come to."""
    leaves = [of.leaf(number) for number in range(len(of.commitments))]
    if len(leaves) < of.size or None in leaves:
        return
    known = [leaf for leaf in leaves if leaf is not None]
    if trees.root(known) != of.checkpoint.root:
        of.find("root-mismatch", "the frames do not have the root that is signed")
    told = {number: it.encoded for number, it in enumerate(of.commitments) if it is not None}
    for (level, at, width), wanted in tiles.contents(known).items():
        first = at << (8 * level + 8)
        check_file(of, "tile-damaged", tiles.path(level, at, width), wanted, first)
        if level == 0 and all(256 * at + place in told for place in range(width)):
            bundle = tiles.bundle([told[256 * at + place] for place in range(width)])
            check_file(of, "bundle-damaged", tiles.path("entries", at, width), bundle, first)
        for kind, name in (("tile-damaged", level), ("bundle-damaged", "entries")):
            if kind == "tile-damaged" or level == 0:
                check_older(of, kind, name, at, width, wanted if kind == "tile-damaged" else b"", told)


def check_file(of: Log, kind: str, name: str, wanted: bytes, first: int) -> None:
    path = of.directory / name
    if not path.is_file() or path.is_symlink() or path.stat().st_size != len(wanted):
        of.find(kind, f"{name} is missing or malformed", number=first)
    elif path.read_bytes() != wanted:
        of.find(kind, f"{name} is not what the frames come to", number=first)


def check_older(of: Log, kind: str, level: tiles.Level, at: int, width: int, tile: bytes, told: dict[int, bytes]) -> None:
    """Compares partial tiles of earlier sizes, as far as they are still there."""
    for older in range(1, min(width, 255) + (width == 256)):
        if older == width:
            continue
        name = tiles.path(level, at, older)
        if not (of.directory / name).exists():
            continue
        wanted = tile[: 32 * older]
        if kind == "bundle-damaged":
            parts = [told.get(256 * at + place) for place in range(older)]
            if None in parts:
                continue
            wanted = tiles.bundle([part for part in parts if part is not None])
        check_file(of, kind, name, wanted, at << 8 if level == "entries" else at << (8 * int(level) + 8))


def check_surplus(of: Log, past: History) -> None:
    """Says of bytes that belong to no frame whether an event explains them."""
    for segment, at in of.surplus:
        event = past.explained.get((segment.name, at))
        length = segment.length - at
        explained = event is not None and event["event"] == "abandoned"
        if event is not None and event["event"] == "recovered":
            data = segment.read(at, length)
            explained = (length, sha256(data).hex()) == (event["length"], event["sha256"])
        kind = "abandoned" if explained else "surplus-bytes"
        of.findings.append(Finding(kind, f"{length} bytes belong to no frame", segment.name, at))


def check_places(of: Log, past: History) -> None:
    """No frame may lie in bytes that count for nothing by an event."""
    offsets: dict[str, int] = {}
    for name, offset in past.explained:
        offsets[name] = min(offset, offsets.get(name, offset))
    for frame in of.frames:
        if frame is not None and frame.end > offsets.get(frame.segment.name, frame.end):
            of.find("surplus-bytes", "the frame lies in bytes that count for nothing by an event", frame)


def report_tail(of: Log) -> None:
    length = sum(tail.segment.length - tail.offset for tail in of.tails)
    if length:
        first = next(tail for tail in of.tails if tail.segment.length > tail.offset)
        of.findings.append(
            Finding("unsigned-tail", f"{length} bytes follow that nobody has signed", first.segment.name, first.offset, of.size)
        )


def opener(past: History, hand: Hand) -> blocks.Opener:
    """Opens blocks with all that is at hand."""
    secrets: Optional[vault.Secrets] = None
    log_id = past.log.config.log_id
    if hand.grant is not None:
        grant = grants.opened(hand.grant, hand.identities)
        if grant.log_id != log_id:
            raise Refused("grant", "must be for this log")
        secrets = grant
    elif hand.vault is not None and past.log.config.erasure:
        secrets = vault.Vault(hand.vault, log_id, hand.identities)
        leaves = [past.log.leaf(number) for number in range(len(past.log.commitments))]
        followed = leaves[: secrets.follows]
        # What it says to have followed is believed of this log alone.
        is_own = len(followed) == secrets.follows and None not in followed
        if not is_own or trees.root([leaf for leaf in followed if leaf is not None]) != secrets.follows_root:
            secrets.follows = 0
        secrets.check_given_up(past.given_up)
        secrets.follows = min(secrets.follows, secrets.unfollowed)
    return blocks.Opener(past, hand.identities, secrets)


def check_blocks(past: History, hand: Hand, report: Report, each: Optional[Each]) -> None:
    of = past.log
    opens = opener(past, hand)
    if opens.secrets is not None and opens.secrets.has_all:
        report.erased = None if past.unread and of.config.erasure else 0
    if hand.vault is not None and of.config.erasure:
        report.checked.append("groups")
    for number in past.epochs:
        opens.epoch(number)
    told = index.read(past, opens.keys)
    for frame in of.frames:
        if frame is None or frame.commitment.kind != commitments.BLOCK:
            continue
        body = frame.body()
        if sha256(body) != frame.commitment.body_digest:
            continue
        try:
            block = opens.block(frame, body)
        except blocks.NotOpened:
            of.find("not-opened", "there is no key for this block", frame)
            continue
        except vault.BeingErased:
            raise
        except blocks.UnitsMismatch as refused:
            of.find("units-mismatch", str(refused), frame)
            continue
        except Refused as refused:
            of.find("block-invalid", str(refused), frame)
            continue
        keys = opens.epoch(frame.commitment.epoch)
        if frame.number in told.of and keys is not None:
            held = index.tokens(block, keys)
            for _ in filter(lambda said: said != held, told.of[frame.number]):
                of.find("index-mismatch", "the index says something else than the block does", frame)
        lost = [it.number for it in block.rows if it.withheld == "key-lost"]
        if lost:
            of.find("key-lost", f"keys of {len(lost)} entries are gone, and no event says so", frame)
        report.lost += len(lost)
        if report.erased is not None:
            report.erased += sum(it.withheld == "erased" for it in block.rows)
        if each is not None:
            each(block)


def check_policy(of: log.Log, policy: policies.Policy, report: Report) -> None:
    """Whether the log is one that the policy names, and witnessed as it asks for, as far as that goes."""
    if policy.logs:
        try:
            policy.check_log(of.checkpoint)
            report.anchored = True
        except Refused as refused:
            of.find("key-mismatch", str(refused))
    seen = of.checkpoint
    try:
        if not policy.is_met(seen):
            seen = kept(of, policy)
    except policies.WrongSignature as wrong:
        of.find("cosignature-invalid", str(wrong))
        return
    except (Refused, FileNotFoundError) as refused:
        of.find("unwitnessed", str(refused))
        return
    if seen.size < of.size and all(it.kind != "witness-mismatch" for it in of.findings):
        found = Finding("unwitnessed-tail", "not witnessed", frame=seen.size, last_frame=of.size - 1)
        of.findings.append(found)
    witnesses = [
        {"name": name, "cosigned": time is not None, "time": seconds_text(time) if time else None}
        for name, time in ((name, key.time(seen)) for name, key in policy.witnesses.items())
    ]
    report.witnessed = {"frames": None if policy.quorum is None else seen.size, "witnesses": witnesses}


def check_beside(of: log.Log) -> None:
    """Whether the log begins with what its keys have signed in the files that are kept for their cosignatures."""
    heads: dict[tuple[int, bytes], bool] = {}
    for name in ["checkpoint.witnessed", *(f"cosigned/{key_id.hex()}" for key_id in of.config.asked)]:
        try:
            found = signed_by_log(of, log.read_small(of.directory / name))
        except (Refused, OSError):
            continue
        heads.setdefault((found.size, found.root), name == "checkpoint.witnessed")
    for (size, root), has_to_be_there in heads.items():
        leaves = [of.leaf(number) for number in range(min(size, len(of.commitments)))]
        known = [leaf for leaf in leaves if leaf is not None]
        # In a copy that was made beside a writer more may be signed there than the checkpoint covers: then the frames are there.
        if size > of.size and len(known) == of.size:
            known += behind(of, size)
            # Files of `cosigned/` may be newer in such a copy.
            if len(known) < size and has_to_be_there:
                of.findings.append(Finding("witness-mismatch", "the log ends before that", frame=len(known), last_frame=size - 1))
        # Of a log that is damaged before that more is told.
        if len(known) == size and trees.root(known) != root:
            found_other = Finding("witness-mismatch", "the log's keys have signed other frames", frame=0, last_frame=max(size, 1) - 1)
            of.findings.append(found_other)


def behind(of: log.Log, size: int) -> list[bytes]:
    """The leaves of the frames behind those that the checkpoint covers, up to so many, as far as they lie there."""
    found: list[bytes] = []
    for tail in of.tails:
        at = tail.offset
        while of.size + len(found) < size:
            data = tail.segment.read(at + segments.HEAD, commitments.LENGTH)
            head = segments.commitment(data)
            # A segment begins with a copy of the frame of its epoch.
            copy = head is not None and at == 0 and head.kind == commitments.EPOCH and head.frame < of.size + len(found)
            if data is None or head is None or not copy and head.frame != of.size + len(found):
                break
            found += [] if copy else [trees.leaf(data)]
            at += segments.FIXED + head.body_length + segments.SEAL
    return found


def signed_by_log(of: log.Log, data: bytes) -> notes.Checkpoint:
    """A checkpoint of the log, signed with each of its keys."""
    found = notes.checkpoint(notes.text_of(data, "checkpoint"))
    beside = of.config.beside
    signed = of.config.verifier.signed(found.note) and (beside is None or log.signed_beside(beside, found))
    if found.origin != of.config.origin or not signed:
        raise Refused("checkpoint", "must be signed with the log's own keys")
    return found


def kept(of: log.Log, policy: policies.Policy) -> notes.Checkpoint:
    """The checkpoint that is kept because its witnesses have cosigned it."""
    try:
        found = signed_by_log(of, log.read_small(of.directory / "checkpoint.witnessed"))
        if policy.logs:
            policy.check_log(found)
        if not policy.is_met(found):
            raise Refused("checkpoint.witnessed", "must be cosigned as the policy asks for")
    except policies.WrongSignature as wrong:
        raise Refused("checkpoint.witnessed", str(wrong)) from None
    return found


def report_unknown(of: Log) -> None:
    """Names files that do not belong to a log."""
    unknown = [path for path in list_directory(of.directory) if path.name not in KNOWN]
    unknown += [path for path in list_directory(of.directory / "segments") if named(path.name) is None]
    unknown += [path for path in list_directory(of.directory / "index") if index.named(path.name) is None]
    for path in list_directory(of.directory / "cosigned"):
        if path.is_dir() or not re.fullmatch("[0-9a-f]{8}", path.name):
            unknown.append(path)
    for path in sorted((of.directory / "tile").rglob("*")):
        if path.is_dir() and not path.is_symlink():
            continue
        try:
            level, at, width = tiles.parsed(str(path.relative_to(of.directory)))
        except Refused:
            unknown.append(path)
            continue
        size = of.size if level == "entries" else of.size >> 8 * int(level)
        if at > size >> 8 or width > min(256, size - 256 * at):
            unknown.append(path)
    for path in unknown:
        of.findings.append(Finding("unknown-file", f"{path.relative_to(of.directory)} does not belong to a log"))


def read_identities(paths: list[Path]) -> list[age.Identity]:
    return [identity for path in paths for identity in age.identities(notes.text_of(read_small(path), "identities"))]
