"""The one error of the reader: what was read, and the rule of docs/format.md that it breaks."""

from __future__ import annotations

from typing import Optional


class Refused(Exception):
    """Bytes that are not what the format says, or that do not say what they should.

    `structure` names what was read, `rule` what does not hold of it; `found`, where a hash is not the right one, is
    that hash and what was computed.
    """

    def __init__(self, structure: str, rule: str, found: Optional[tuple[bytes, bytes]] = None) -> None:
        super().__init__(f"{structure}: {rule}")
        self.structure = structure
        self.rule = rule
        self.found = found
