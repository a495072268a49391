"""A log's directory: its configuration, its checkpoint, and every frame that the checkpoint covers, where it lies.

A frame's commitment is told three times: by its segment, by the tile and by the entry bundle. Where one is damaged,
the other two say how long the frame is and which entries it has; the signed root settles whether they are right.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Optional, Union

from . import commitments, config, cose, notes, policies, segments, tiles, trees
from .commitments import LENGTH, Commitment
from .config import Config
from .findings import Finding
from .refused import Refused
from .segments import FIXED, SEAL, Frame, Segment, Told

MOST_FILE = 1 << 20
MOST_NEXT = MOST_FILE + 40


@dataclass
class Tail:
    """Where a segment goes on behind the last frame that the checkpoint covers."""

    segment: Segment
    offset: int
    number: int


@dataclass
class Log:
    directory: Path
    config: Config
    checkpoint: notes.Checkpoint
    segments: list[Segment]
    told: list[Told]
    frames: list[Optional[Frame]] = field(default_factory=list)
    commitments: list[Optional[Commitment]] = field(default_factory=list)
    surplus: list[tuple[Segment, int]] = field(default_factory=list)
    tails: list[Tail] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)

    @property
    def size(self) -> int:
        return self.checkpoint.size

    def find(self, kind: str, detail: str, frame: Optional[Frame] = None, number: Optional[int] = None) -> None:
        """Notes a finding, with all that is known of where it is."""
        if frame is None:
            self.findings.append(Finding(kind, detail, frame=number))
            return
        it = frame.commitment
        entries = (it.first_entry, it.next_entry - 1) if it.entries else None
        self.findings.append(Finding(kind, detail, frame.segment.name, frame.offset, frame.number, entries))

    def leaf(self, number: int) -> Optional[bytes]:
        known = self.commitments[number]
        return trees.leaf(known.encoded) if known is not None else self.told[number].leaf


class Damaged(Exception):
    """A log of which no more can be said than this finding."""

    def __init__(self, finding: Finding) -> None:
        super().__init__(finding.detail)
        self.finding = finding


def read_small(path: Path) -> bytes:
    with path.open("rb") as file:
        data = file.read(MOST_FILE + 1)
    if len(data) > MOST_FILE:
        raise Refused(path.name, "is longer than such a file can be")
    return data


def arrived(directory: Path) -> Optional[bytes]:
    """The configuration that counts in the place of bulla.toml: bulla.toml.next, where the checkpoint has the size that it names."""
    path = directory / "bulla.toml.next"
    if not path.exists():
        return None
    with path.open("rb") as file:
        data = file.read(MOST_NEXT + 1)
    head, newline, text = data.partition(b"\n")
    named_size = re.fullmatch(rb"bulla-next-v1 (0|[1-9][0-9]{0,19})", head)
    if len(data) > MOST_NEXT or not newline or named_size is None or int(named_size[1]) >= 1 << 64:
        raise Refused(path.name, "must be the size of a checkpoint and a configuration")
    try:
        checkpoint = notes.checkpoint(notes.text_of(read_small(directory / "checkpoint"), "checkpoint"))
    except (Refused, FileNotFoundError):
        return None
    return text if checkpoint.size == int(named_size[1]) else None


def opened(directory: Path) -> Log:
    """The log in a directory, with its frames located."""
    try:
        of = config.decoded(arrived(directory) or read_small(directory / "bulla.toml"))
    except Refused as refused:
        raise Damaged(Finding("config-damaged", str(refused))) from None
    except FileNotFoundError as error:
        if (directory / "bulla.toml.next").exists():
            raise
        if any(segments.named(path.name) is not None for path in list_directory(directory / "segments")):
            raise Damaged(Finding("config-damaged", str(error))) from None
        raise
    try:
        checkpoint = notes.checkpoint(notes.text_of(read_small(directory / "checkpoint"), "checkpoint"))
        if checkpoint.origin != of.origin:
            raise Refused("checkpoint", "the origin must be the log's")
    except (Refused, FileNotFoundError) as error:
        raise Damaged(Finding("checkpoint-damaged", str(error))) from None
    found = find_segments(directory)
    known = min(checkpoint.size, sum(segment.length for segment in found) // (FIXED + SEAL) + 1)
    log = Log(directory, of, checkpoint, found, told(directory, checkpoint.size, known))
    log.frames = [None] * known
    log.commitments = [segments.commitment(it.agreed(None)) for it in log.told]
    if not of.verifier.signed(checkpoint.note):
        log.findings.append(Finding("checkpoint-damaged", "must be signed with the log's own key"))
    else:
        if of.beside is not None and not signed_beside(of.beside, checkpoint):
            log.findings.append(Finding("checkpoint-damaged", "must be signed with the log's own key of ML-DSA-44"))
        judge_cose(log, read_cose(directory))
    for place, segment in enumerate(found):
        bound = found[place + 1].first if place + 1 < len(found) else None
        walk(log, segment, bound)
    report_missing(log)
    return log


def read_cose(directory: Path) -> Union[None, Refused, tuple[cose.Head, bytes]]:
    """The tree head that is signed as COSE; why it is none, where it is none; nothing where none is there."""
    try:
        return cose.checkpoint(read_small(directory / "checkpoint.cose"))
    except Refused as refused:
        return refused
    except FileNotFoundError:
        return None


def judge_cose(log: Log, read: Union[None, Refused, tuple[cose.Head, bytes]]) -> None:
    """Finds what is wrong with the tree head that is signed as COSE, beside the checkpoint."""
    if read is None:
        return
    try:
        if isinstance(read, Refused):
            raise read
        head, root = read
        head.check(root, log.config.verifier)
        # A copy that was made beside a writer may have a later one.
        if head.size > log.size:
            return
        leaves = [it.leaf for it in log.told[: head.size]]
        known = log.checkpoint.root if head.size == log.size else None
        if known is None and len(leaves) == head.size and None not in leaves:
            known = trees.root([leaf for leaf in leaves if leaf is not None])
        if known is not None and known != root:
            raise Refused("checkpoint.cose", "must be of the log's own tree", (known, root))
    except Refused as refused:
        log.findings.append(Finding("cose-mismatch", str(refused)))


def check_begins_with(log: Log, older: notes.Checkpoint) -> None:
    """Refuses a checkpoint of the log whose tree the log does not begin with."""
    if not log.config.verifier.signed(log.checkpoint.note):
        raise Refused("checkpoint", "must be signed with the log's own key")
    if older.origin != log.config.origin or older.size > log.size:
        raise Refused("checkpoint", "must be of this log, which has to have as many frames")
    leaves = [leaf for leaf in (it.leaf for it in log.told) if leaf is not None]
    if len(leaves) != log.size or trees.root(leaves) != log.checkpoint.root:
        raise Refused("log", "the tiles must have the root that the checkpoint signs")
    if trees.root(leaves[: older.size]) != older.root:
        raise Refused("log", "must begin with the tree of the older checkpoint")


def signed_beside(key: policies.Cosigner, checkpoint: notes.Checkpoint) -> bool:
    try:
        return key.time(checkpoint) is not None
    except Refused:
        return False


def find_segments(directory: Path) -> list[Segment]:
    """The segments in their order, without those that have no byte."""
    found = []
    for path in list_directory(directory / "segments"):
        name = segments.named(path.name)
        if name is not None and path.is_file() and not path.is_symlink():
            found.append(Segment(path, *name))
    return sorted((it for it in found if it.length), key=lambda it: (it.first, it.generation))


def list_directory(path: Path) -> list[Path]:
    return sorted(path.iterdir()) if path.is_dir() else []


def told(directory: Path, size: int, known: int) -> list[Told]:
    """What tiles of level 0 and entry bundles say of the first frames of a tree of this size."""
    found = [Told() for _ in range(known)]
    for index in range(-(-known // 256)):
        width = min(256, size - 256 * index)
        leaves = read_exactly(directory / tiles.path(0, index, width), 32 * width)
        bundle = read_exactly(directory / tiles.path("entries", index, width), (LENGTH + 2) * width)
        try:
            bundled = tiles.unbundled(bundle, width) if bundle is not None else None
        except Refused:
            bundled = None
        for place in range(min(width, known - 256 * index)):
            it = found[256 * index + place]
            it.leaf = leaves[32 * place : 32 * place + 32] if leaves is not None else None
            it.bundled = bundled[place] if bundled is not None else None
    return found


def read_exactly(path: Path, length: int) -> Optional[bytes]:
    """A file of that length, or nothing."""
    try:
        if not path.is_file() or path.is_symlink() or path.stat().st_size != length:
            return None
        return path.read_bytes()
    except OSError:
        return None


def walk(log: Log, segment: Segment, bound: Optional[int]) -> None:
    """Locates the frames of a segment up to the next one's first."""
    number, at = segment.first, 0
    if number < log.size and (bound is None or bound > number):
        at = pass_copy(log, segment)
    end = min(log.size, bound if bound is not None else log.size)
    while number < min(end, len(log.frames)):
        frame = read_frame(log, segment, at, number)
        if isinstance(frame, int) and at + frame <= segment.length:
            number, at = number + 1, at + frame
            continue
        if frame is None or isinstance(frame, int) or frame.end > segment.length:
            log.find("frames-missing", f"{segment.name} ends, or cannot be followed, at offset {at}", number=number)
            return
        log.frames[number] = frame
        log.commitments[number] = frame.commitment
        number, at = number + 1, frame.end
    if bound is not None and bound < log.size:
        if at < segment.length:
            log.surplus.append((segment, at))
    elif number >= log.size:
        log.tails.append(Tail(segment, at, max(number, segment.first)))


def pass_copy(log: Log, segment: Segment) -> int:
    """How long the copy of an epoch frame is that a segment begins with, if it has one."""
    first = log.commitments[segment.first] if segment.first < len(log.commitments) else None
    stored = segments.commitment(segment.read(segments.HEAD, LENGTH))
    if first is None:
        first = stored if stored is not None and stored.frame == segment.first else None
    if first is not None and first.kind == commitments.EPOCH:
        if stored is not None and stored.kind == commitments.EPOCH and stored.frame < segment.first:
            log.findings.append(Finding("frame-damaged", "a copy of an epoch frame, before an epoch", segment.name, 0, stored.frame))
            return FIXED + stored.body_length + SEAL
        return 0
    epoch = first.epoch if first is not None else stored.frame if stored is not None else None
    original = log.frames[epoch] if epoch is not None and epoch < len(log.frames) else None
    if original is None:
        return FIXED + stored.body_length + SEAL if stored is not None and stored.frame < segment.first else 0
    copy = segment.read(0, original.length)
    if copy != original.segment.read(original.offset, original.length):
        log.findings.append(Finding("frame-damaged", "the copy of an epoch frame is not the frame", segment.name, 0, epoch))
    return original.length


def read_frame(log: Log, segment: Segment, at: int, number: int) -> Union[Frame, int, None]:
    """The frame of this number at this place; its length alone, where nothing tells more; or nothing."""
    head = segment.read(at, FIXED)
    stored = head[segments.HEAD :] if len(head) == FIXED else None
    try:
        header: Optional[segments.Header] = segments.header(head)
    except Refused:
        header = None
    agreed = log.told[number].agreed(stored if segments.commitment(stored) is not None else None)
    known = segments.commitment(agreed)
    if known is None:
        if header is None:
            return None
        detail = "the commitment is none"
        log.findings.append(Finding("frame-damaged", detail, segment.name, at, number))
        return FIXED + header.body_length + SEAL
    frame = Frame(number, segment, at, known, header)
    if stored is not None and stored != agreed:
        log.find("frame-damaged", "the commitment is not the one that the tree has", frame)
    elif header is None:
        if stored is not None:
            log.find("frame-damaged", "the header is damaged", frame)
    elif (header.kind, header.body_length) != (known.kind, known.body_length):
        log.find("frame-damaged", "the header is not that of its commitment", frame)
        frame.header = None
    elif header.group > number:
        log.find("frame-damaged", "a frame's group must not be after it", frame)
        frame.header = None
    return frame


def report_missing(log: Log) -> None:
    """Names the frames that no segment has."""
    first = min((it.first for it in log.segments), default=log.size)
    if log.size and first > 0:
        log.find("frames-missing", f"no segment has the frames before {first}", number=0)
    elif len(log.frames) < log.size and not any(it.kind == "frames-missing" for it in log.findings):
        log.find("frames-missing", "no segment can hold as many frames as are signed", number=len(log.frames) - 1)
