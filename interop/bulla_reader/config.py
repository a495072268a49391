"""bulla.toml: what a log is (docs/format.md, "What lies where")."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Optional

try:
    import tomllib
except ImportError:  # before Python 3.11
    import tomli as tomllib  # type: ignore[no-redef]

from . import notes, policies
from .hashes import NAMES, sha256
from .refused import Refused

STRUCTURE = "bulla.toml"
LOG = {"version", "id", "origin", "vkey", "vkey_ml_dsa", "hash", "recipients", "fields", "erasure", "erasure_key", "common", "heartbeat", "witness_policy"}
SETTINGS = {
    "memory": "size", "block_size": "size", "segment_size": "size", "writers": 1 << 64, "profile": "fast|balanced|max",
    "compression": 1 << 31, "linger": "time", "append_timeout": "time", "checkpoint_interval": "time",
    "retries": 1 << 32, "retry_delay": "time", "plugin_timeout": "time", "durability": "durability",
    "vault_replicas": "list", "pin": "path",
}  # fmt: skip
# What units are, in bytes and in nanoseconds.
SIZES = {"": 1, "B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
TIMES = {"ns": 1, "us": 10**3, "ms": 10**6, "s": 10**9, "m": 60 * 10**9, "min": 60 * 10**9, "h": 3600 * 10**9, "d": 86_400 * 10**9}
RULES = {
    "location": ("drop", "pseudonymise", "strip-query"),
    "client": ("drop", "pseudonymise", "truncate-ip"),
    "payload": ("drop", "cap"),
    **{name: ("drop", "pseudonymise") for name in ("controller", "processor", "purpose", "actor", "stream")},
    **{name: ("drop",) for name in ("status", "duration", "size", "flags")},
    **{name: () for name in ("time", "operation", "subject")},
}


# The longest policy that a log has, in bytes.
MOST_POLICY = 1 << 17


class NewerFormat(OSError):
    """A log that this reader is too old for, which says nothing of the log."""


@dataclass(frozen=True)
class Config:
    digest: bytes
    log_id: bytes
    origin: str
    verifier: notes.Verifier
    hash: int
    erasure: bool
    erasure_key: Optional[notes.Verifier]
    common: bool
    # The log's key of ML-DSA-44, where it has one.
    beside: Optional[policies.Cosigner] = None
    # The ids of the keys of the witnesses that it asks.
    asked: tuple[bytes, ...] = ()


def decoded(data: bytes) -> Config:
    """The configuration that a file is; refuses any other file."""
    at = settings_line(data)
    check_version(parsed(data[:at]).get("log"))
    table = only_table(data[:at], "log")
    settings = only_table(data[at:], "settings") if at < len(data) else {}
    if table is None or not all(name in LOG or len(name) > 2 and name.startswith("x-") for name in table):
        raise Refused(STRUCTURE, "must have the table [log] above the line [settings], and nothing else there")
    if settings is None or set(settings) - set(SETTINGS) or not all(map(is_setting, settings, settings.values())):
        raise Refused(STRUCTURE, "must have no table but [settings] from that line on, and settings in it that there are")
    return log_table(table, sha256(data[:at]))


def settings_line(data: bytes) -> int:
    """Where the line begins that is `[settings]` but for white space after it; the end, where there is none."""
    at = 0
    for line in data.splitlines(keepends=True) if b"\r" not in data else re.findall(rb"[^\n]*\n|[^\n]+", data):
        if re.fullmatch(rb"\[settings\]\s*", line):
            return at
        at += len(line)
    return len(data)


def check_version(table: Any) -> None:
    """A newer format, of which nothing else can be said, is told before anything else is looked at."""
    version = table.get("version") if isinstance(table, dict) else None
    if is_int(version) and 1 < version < 1 << 63:
        raise NewerFormat(f"the log is of format version {version}, and this reader knows version 1")


def parsed(data: bytes) -> dict[str, Any]:
    try:
        return tomllib.loads(data.decode())
    except (UnicodeDecodeError, ValueError, RecursionError):
        raise Refused(STRUCTURE, "must be TOML") from None


def only_table(data: bytes, name: str) -> Optional[dict[str, Any]]:
    found = parsed(data)
    return found[name] if set(found) == {name} and isinstance(found[name], dict) else None


def is_setting(name: str, value: Any) -> bool:
    """Whether a setting is of the form that it has, whatever its bounds."""
    wanted = SETTINGS[name]
    if isinstance(wanted, int):
        return is_integer(value) and value < wanted or name == "compression" and is_integer(-value if is_int(value) else None)
    if wanted == "list":
        return isinstance(value, list) and all(isinstance(it, str) for it in value)
    if wanted == "size":
        return is_integer(value) and value < 1 << 64 or amount(value, SIZES) is not None
    if wanted == "time":
        return amount(value, TIMES) is not None
    if wanted == "durability" and isinstance(value, str) and value.startswith("interval"):
        return amount(value[len("interval") :], TIMES) is not None and value[len("interval")].isspace()
    if wanted == "path":
        return isinstance(value, str)
    return isinstance(value, str) and value in ("group|os" if wanted == "durability" else str(wanted)).split("|")


def amount(value: Any, units: dict[str, int]) -> Optional[int]:
    """How much a whole number of a unit is, where it fits 64 bits."""
    read = re.fullmatch(r"\s*([0-9]{1,20})\s*([A-Za-z]*)\s*", value) if isinstance(value, str) else None
    if read is None or read[2] not in units or int(read[1]) * units[read[2]] >= 1 << 64:
        return None
    return int(read[1]) * units[read[2]]


def is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def is_integer(value: Any) -> bool:
    return is_int(value) and value >= 0


def log_table(table: dict[str, Any], digest: bytes) -> Config:
    if table.get("version") != 1 or not is_integer(table["version"]):
        raise Refused(STRUCTURE, "`version` must be 1")
    for name in ("id", "origin", "vkey", "hash"):
        if not isinstance(table.get(name), str):
            raise Refused(STRUCTURE, f"`{name}` must be a string")
    if not re.fullmatch("[0-9a-f]{32}", table["id"]):
        raise Refused(STRUCTURE, "`id` must be 32 hexadecimal digits")
    verifier = notes.verifier(table["vkey"])
    if verifier.name != table["origin"]:
        raise Refused(STRUCTURE, "the name of `vkey` must be the origin")
    beside = policies.cosigner(table["vkey_ml_dsa"]) if isinstance(table.get("vkey_ml_dsa"), str) else None
    if "vkey_ml_dsa" in table and (beside is None or beside.kind != policies.ML_DSA_44 or beside.name != table["origin"]):
        raise Refused(STRUCTURE, "`vkey_ml_dsa` must be a key of ML-DSA-44 of the origin")
    if table["hash"] not in NAMES:
        raise Refused(STRUCTURE, "`hash` must be sha256 or sha3-256")
    recipients = table.get("recipients")
    if not isinstance(recipients, list) or not recipients or not all(isinstance(it, str) for it in recipients):
        raise Refused(STRUCTURE, "`recipients` must be a list of at least one")
    if table.get("erasure", "off") not in ("on", "off"):
        raise Refused(STRUCTURE, "`erasure` must be on or off")
    erasure_key = table.get("erasure_key")
    if erasure_key is not None and not isinstance(erasure_key, str):
        raise Refused(STRUCTURE, "`erasure_key` must be a verifier key")
    check_common(table.get("common"))
    check_heartbeat(table.get("heartbeat"))
    check_rules(table.get("fields", {}))
    return Config(
        digest, bytes.fromhex(table["id"]), table["origin"], verifier, NAMES[table["hash"]],
        table.get("erasure", "off") == "on", notes.verifier(erasure_key) if erasure_key else None,
        table.get("common", "off") != "off", beside, asked(table.get("witness_policy"), verifier),
    )  # fmt: skip


def asked(text: Any, own: notes.Verifier) -> tuple[bytes, ...]:
    """The ids of the keys of the witnesses that a log asks by its policy."""
    if text is None:
        return ()
    if not isinstance(text, str) or len(text.encode()) > MOST_POLICY:
        raise Refused(STRUCTURE, "`witness_policy` must be a policy of at most 131,072 bytes")
    try:
        found = policies.policy(text.encode())
    except Refused as refused:
        raise Refused(STRUCTURE, f"`witness_policy`: {refused}") from None
    if not 1 <= len(found.asked) <= 32 or len(set(found.asked)) < len(found.asked):
        raise Refused(STRUCTURE, "`witness_policy` must have from 1 to 32 witnesses with a URL, no two with keys of one id")
    if found.logs and not any(key == own for key in found.logs):
        raise Refused(STRUCTURE, "`witness_policy` must name this log, where it names any")
    if any((key.kind, key.name) == (policies.ML_DSA_44, own.name) for key in found.witnesses.values()):
        raise Refused(STRUCTURE, "`witness_policy` must have no witness with the log's own name and a key as logs sign with")
    return tuple(found.asked)


def check_common(value: Any) -> None:
    if value is not None and value != "off" and not (is_int(value) and 8 <= value <= 65_536):
        raise Refused(STRUCTURE, "`common` must be off, or from 8 to 65,536")


def check_heartbeat(value: Any) -> None:
    time = amount(value, TIMES) if isinstance(value, str) and re.fullmatch(r"[1-9].*\S", value, re.DOTALL) else None
    if value is not None and (time is None or not 10**9 <= time <= 86_400 * 10**9):
        raise Refused(STRUCTURE, "`heartbeat` must be a time from 1 s to 24 h")


def check_rules(rules: Any) -> None:
    if not isinstance(rules, dict) or not all(is_rule(name, rule) for name, rule in rules.items()):
        raise Refused(STRUCTURE, "[log.fields] must have rules that there are, for fields that there are")


def is_rule(name: str, rule: Any) -> bool:
    if name not in RULES or not isinstance(rule, str):
        return False
    kind, _, argument = rule.partition(":")
    if rule == "keep":
        return True
    if kind not in RULES[name]:
        return False
    if kind == "truncate-ip":
        return re.fullmatch("(24|16|8)/(64|48|32)", argument) is not None
    if kind == "cap":
        return re.fullmatch("[1-9][0-9]{0,7}", argument) is not None and int(argument) <= 16_777_216
    return rule == kind
