"""What verification found: violations and notices, of the kinds that docs/format.md lists."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Optional

NOTICES = {"unsigned-tail", "abandoned", "gap", "index-damaged", "unknown-file"}


@dataclass
class Finding:
    kind: str
    detail: str
    segment: Optional[str] = None
    offset: Optional[int] = None
    frame: Optional[int] = None
    entries: Optional[tuple[int, int]] = None

    @property
    def is_violation(self) -> bool:
        return self.kind not in NOTICES

    def as_json(self) -> dict[str, Any]:
        found: dict[str, Any] = {"kind": self.kind, "severity": "violation" if self.is_violation else "notice"}
        for name in ("segment", "offset", "frame"):
            if getattr(self, name) is not None:
                found[name] = getattr(self, name)
        if self.entries is not None:
            found["entries"] = list(self.entries)
        found["detail"] = self.detail
        return found
