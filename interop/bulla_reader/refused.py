"""The one error of the reader: what was read, and the rule of docs/format.md that it breaks."""

from __future__ import annotations


class Refused(Exception):
    """Bytes that are not what the format says, or that do not say what they should.

    `structure` names what was read, `rule` what does not hold of it.
    """

    def __init__(self, structure: str, rule: str) -> None:
        super().__init__(f"{structure}: {rule}")
        self.structure = structure
        self.rule = rule
