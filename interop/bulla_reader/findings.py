"""What verification found: violations and notices, of the kinds that docs/format.md lists."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Optional

NOTICES = {"unsigned-tail", "unwitnessed-tail", "abandoned", "gap", "index-damaged", "unknown-file"}


@dataclass
class Finding:
    kind: str
    detail: str
    segment: Optional[str] = None
    offset: Optional[int] = None
    frame: Optional[int] = None
    entries: Optional[tuple[int, int]] = None
    # Of neighbouring frames of which the same is found: the last one, and how many there are.
    last_frame: Optional[int] = None
    count: int = 1
    # Whether a key from elsewhere vouches for what is found, which is a notice then.
    is_vouched_for: bool = False

    @property
    def is_violation(self) -> bool:
        return self.kind not in NOTICES and not self.is_vouched_for

    def as_json(self) -> dict[str, Any]:
        found: dict[str, Any] = {"kind": self.kind, "severity": "violation" if self.is_violation else "notice"}
        for name in ("segment", "offset", "frame"):
            if getattr(self, name) is not None:
                found[name] = getattr(self, name)
        if self.frame is not None:
            found["last_frame"] = self.last_frame or self.frame
        if self.entries is not None:
            found["entries"] = list(self.entries)
        found["count"] = self.count
        found["detail"] = self.detail
        return found

    def goes_on_with(self, other: Finding) -> bool:
        """Whether the other one says the same of the frame that follows."""
        if self.frame is None or other.frame != (self.last_frame or self.frame) + 1:
            return False
        mine, its = ((it.kind, it.detail, it.segment, it.is_vouched_for) for it in (self, other))
        return mine == its


def joined(findings: list[Finding]) -> list[Finding]:
    """Findings that are alike of neighbouring frames as one each."""
    found: list[Finding] = []
    for finding in findings:
        if not found or not found[-1].goes_on_with(finding):
            found.append(replace(finding))
            continue
        last = found[-1]
        last.last_frame, last.count = finding.frame, last.count + 1
        if finding.entries is not None:
            last.entries = (last.entries or finding.entries)[0], finding.entries[1]
    return found
