"""The command: `verify`, `export`, `check` and `anchor`, with exit codes as `bulla` has them."""

from __future__ import annotations

import argparse
import base64
import json
import sys
from pathlib import Path
from typing import Optional

from . import anchors, blocks, events, lines, log, notes, policies, proofs, vault, verify
from .refused import Refused

DONE, VIOLATION, USAGE, ENVIRONMENT, REFUSED = 0, 1, 2, 4, 5


def main(arguments: Optional[list[str]] = None) -> int:
    given = parser().parse_args(arguments)
    try:
        return given.run(given)
    except Refused as refused:
        print(f"bulla_reader: {refused}", file=sys.stderr)
        return REFUSED
    except OSError as error:
        print(f"bulla_reader: {error}", file=sys.stderr)
        return ENVIRONMENT


def parser() -> argparse.ArgumentParser:
    found = argparse.ArgumentParser(prog="bulla_reader", description="A second reader of Bulla's format.")
    commands = found.add_subparsers(required=True)
    for name, run, help_ in (
        ("verify", run_verify, "check whole logs"),
        ("export", run_export, "check a whole log and print its entries"),
    ):
        command = commands.add_parser(name, help=help_)
        command.set_defaults(run=run)
        command.add_argument("directory", type=Path, nargs="+" if name == "verify" else None)
        command.add_argument("--vkey", help="the public key that the log must be of")
        command.add_argument("--policy", type=Path, help="a policy of which logs and witnesses are believed")
        command.add_argument("--erasure-key", action="append", default=[], help="an erasure key that is known; repeatable")
        command.add_argument("--seal-key", type=Path, help="a file with the seal key")
        command.add_argument("--sources-key", type=Path, help="a file with the key of sources")
        command.add_argument("--identity", type=Path, action="append", default=[], help="a file of age identities")
        command.add_argument("--vault", type=Path, help="the key directory, for what is personal")
        command.add_argument("--grant", type=Path, help="a grant, in the place of the vault")
        command.add_argument("--json", action="store_true", help="print one JSON object for each log")
    check = commands.add_parser("check", help="check proofs, certificates or orders, and print what they disclose")
    check.set_defaults(run=run_check)
    check.add_argument("file", type=Path, nargs="+", help="a file; `-` is standard input")
    check.add_argument("--vkey", help="the public key that the log must be of")
    check.add_argument("--policy", type=Path, help="a policy of which logs and witnesses are believed")
    check.add_argument("--erasure-key", help="the key that orders erasures")
    check.add_argument("--order", type=Path, help="the order's file, with the names")
    anchor = commands.add_parser("anchor", help="check that a checkpoint of a log stands in a Rekor v2, offline")
    anchor.set_defaults(run=run_anchor)
    anchor.add_argument("file", type=Path, nargs="+", help="an anchor, as `bulla anchor -o` keeps them")
    anchor.add_argument("--vkey", required=True, help="the public key that the log must be of")
    anchor.add_argument("--rekor-vkey", required=True, help="the public key of the Rekor")
    anchor.add_argument("--log", type=Path, help="the log's directory, which has to begin with what is anchored")
    return found


def hand(given: argparse.Namespace) -> verify.Hand:
    return verify.Hand(
        key=notes.verifier(given.vkey) if given.vkey else None,
        erasure_keys=[notes.verifier(key) for key in given.erasure_key],
        seal_key=notes.text_of(log.read_small(given.seal_key), "seal key") if given.seal_key else None,
        sources_key=notes.text_of(log.read_small(given.sources_key), "key of sources") if given.sources_key else None,
        identities=verify.read_identities(given.identity),
        vault=given.vault if given.vault and vault.is_there(given.vault) else None,
        grant=given.grant.read_bytes() if given.grant else None,
        policy=policies.policy(given.policy.read_bytes()) if given.policy else None,
    )


def run_verify(given: argparse.Namespace) -> int:
    worst = DONE
    for directory in given.directory:
        try:
            report = verify.verified(directory, hand(given))
        except (Refused, OSError) as error:
            if not given.json:
                raise
            print(json.dumps({"ok": False, "error": str(error)}))
            worst = worst or (REFUSED if isinstance(error, Refused) else ENVIRONMENT)
            continue
        worst = worst or (DONE if report.ok else VIOLATION)
        say(report, given.json)
    return worst


def say(report: verify.Report, as_json: bool) -> None:
    if as_json:
        print(json.dumps(report.as_json(), ensure_ascii=False))
        return
    print("ok" if report.ok else "not what was written")
    erased = "erased ones not counted" if report.erased is None else f"{report.erased} erased"
    print(f"{report.entries} entries in {report.blocks} blocks, tree size {report.tree_size}, {erased}")
    for finding in report.findings:
        print(" ".join(f"{name} {value}" for name, value in finding.as_json().items()))


def run_export(given: argparse.Namespace) -> int:
    found: list[bytes] = []

    def keep(block: blocks.OpenedBlock) -> None:
        found.extend(lines.line(it.number, it.row, it.withheld) for it in block.rows)

    report = verify.verified(given.directory, hand(given), keep)
    for finding in report.findings:
        if finding.is_violation:
            print(f"bulla_reader: {finding.kind}: {finding.detail}", file=sys.stderr)
    violations = {it.kind for it in report.findings if it.is_violation}
    if violations == {"not-opened"}:
        return REFUSED
    if violations - {"key-lost"}:
        return VIOLATION
    sys.stdout.buffer.write(b"".join(found))
    return VIOLATION if violations else DONE


def run_check(given: argparse.Namespace) -> int:
    """Prints what each file discloses, and on standard error, in a line each, whether it proves that."""
    key = notes.verifier(given.vkey) if given.vkey else None
    worst = DONE
    for file in given.file:
        data = file.read_bytes() if str(file) != "-" else sys.stdin.buffer.read()
        try:
            disclosed = check(data, key, given)
        except (proofs.NobodyOrders, proofs.AnotherFile) as refused:
            print(f"{file}: {refused}", file=sys.stderr)
            worst = worst or USAGE
            continue
        except Refused as refused:
            print(f"{file}: not proven: {refused}", file=sys.stderr)
            worst = VIOLATION
            continue
        sys.stdout.buffer.write(disclosed)
        verdict = f"proven, signed by {key.name}" if key else "agrees with itself; without a key anybody can make such a file"
        print(f"{file}: {verdict}", file=sys.stderr)
    sys.stdout.flush()
    return worst


def check(data: bytes, key: Optional[notes.Verifier], given: argparse.Namespace) -> bytes:
    """What a file discloses, as JSON lines; refuses one that does not hold."""
    if data.startswith(b"{"):
        return json_line({"subjects": events.order_file(data)[1]})
    proof = proofs.read(data, key, policies.policy(given.policy.read_bytes()) if given.policy else None)
    if isinstance(proof, proofs.EntriesProof):
        rows = proofs.opened(proof)
        return b"".join(lines.line(number, row, "not-given" if held else None) for number, row, held in rows)
    if isinstance(proof, proofs.EventProof):
        check_event(proof, given)
        return json_line(events.decoded(proof.body))
    return json_line({"old_size": proof.old.size, "new_size": proof.checkpoint.size})


def run_anchor(given: argparse.Namespace) -> int:
    """Prints what each anchor says, and on standard error, in a line each, whether it holds."""
    keys = notes.verifier(given.vkey), notes.verifier(given.rekor_vkey)
    worst = DONE
    for file in given.file:
        try:
            held = anchors.read(file.read_bytes(), *keys)
            if given.log is not None:
                log.check_begins_with(log.opened(given.log), held.checkpoint)
        except proofs.AnotherFile as refused:
            print(f"{file}: {refused}", file=sys.stderr)
            worst = worst or USAGE
            continue
        except (Refused, log.Damaged) as refused:
            print(f"{file}: not anchored: {refused}", file=sys.stderr)
            worst = VIOLATION
            continue
        of, rekor = held.checkpoint, held.rekor
        told = {"origin": of.origin, "tree_size": of.size, "root": base64.b64encode(of.root).decode(), "rekor": rekor.origin}
        sys.stdout.buffer.write(json_line({**told, "index": held.index, "rekor_size": rekor.size}))
        print(f"{file}: anchored, signed by {keys[0].name} and {keys[1].name}", file=sys.stderr)
    sys.stdout.flush()
    return worst


def json_line(value: object) -> bytes:
    return json.dumps(value, ensure_ascii=False).encode() + b"\n"


def check_event(proof: proofs.EventProof, given: argparse.Namespace) -> None:
    key = notes.verifier(given.erasure_key) if given.erasure_key else None
    event = proofs.certificate(proof, key)
    if event is not None and event["event"] == "rekeyed" and not event["order"]:
        print("no order: whoever verifies has to know the new key", file=sys.stderr)
    if given.order is not None:
        proofs.check_order(proof, key, given.order.read_bytes())


if __name__ == "__main__":
    sys.exit(main())
