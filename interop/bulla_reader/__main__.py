"""The command: `verify`, `export` and `check`, with exit codes as `bulla` has them."""

from __future__ import annotations

import argparse
import base64
import json
import sys
from pathlib import Path
from typing import Optional

from . import blocks, events, lines, log, notes, proofs, vault, verify
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
        ("verify", run_verify, "check a whole log"),
        ("export", run_export, "check a whole log and print its entries"),
    ):
        command = commands.add_parser(name, help=help_)
        command.set_defaults(run=run)
        command.add_argument("directory", type=Path)
        command.add_argument("--vkey", help="the public key that the log must be of")
        command.add_argument("--seal-key", type=Path, help="a file with the seal key")
        command.add_argument("--identity", type=Path, action="append", default=[], help="a file of age identities")
        command.add_argument("--vault", type=Path, help="the key directory, for what is personal")
        command.add_argument("--grant", type=Path, help="a grant, in the place of the vault")
        command.add_argument("--json", action="store_true")
    check = commands.add_parser("check", help="check a proof, a certificate or an order")
    check.set_defaults(run=run_check)
    check.add_argument("file", type=Path)
    check.add_argument("--vkey", help="the public key that the log must be of")
    check.add_argument("--erasure-key", help="the key that orders erasures")
    check.add_argument("--order", type=Path, help="the order's file, with the names")
    check.add_argument("--json", action="store_true")
    return found


def hand(given: argparse.Namespace) -> verify.Hand:
    return verify.Hand(
        key=notes.verifier(given.vkey) if given.vkey else None,
        seal_key=notes.text_of(log.read_small(given.seal_key), "seal key") if given.seal_key else None,
        identities=verify.read_identities(given.identity),
        vault=given.vault if given.vault and vault.is_there(given.vault) else None,
        grant=given.grant.read_bytes() if given.grant else None,
    )


def run_verify(given: argparse.Namespace) -> int:
    report = verify.verified(given.directory, hand(given))
    if given.json:
        print(json.dumps(report.as_json(), ensure_ascii=False))
    else:
        print("ok" if report.ok else "not what was written")
        print(f"{report.entries} entries in {report.blocks} blocks, tree size {report.tree_size}, {report.erased} erased")
        for finding in report.findings:
            print(" ".join(f"{name} {value}" for name, value in finding.as_json().items()))
    return DONE if report.ok else VIOLATION


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
    data = given.file.read_bytes() if str(given.file) != "-" else sys.stdin.buffer.read()
    key = notes.verifier(given.vkey) if given.vkey else None
    try:
        return check(data, key, given)
    except Refused as refused:
        print(f"bulla_reader: {refused}", file=sys.stderr)
        return VIOLATION


def check(data: bytes, key: Optional[notes.Verifier], given: argparse.Namespace) -> int:
    if data.startswith(b"{"):
        _, names = events.order_file(data)
        print(json.dumps({"ok": True, "subjects": names}, ensure_ascii=False))
        return DONE
    proof = proofs.read(data, key)
    summary = {
        "ok": True,
        "anchored": key is not None,
        "origin": proof.checkpoint.origin,
        "tree_size": proof.checkpoint.size,
        "root": base64.b64encode(proof.checkpoint.root).decode(),
    }
    if isinstance(proof, proofs.EntriesProof):
        rows = proofs.opened(proof)
        summary["units"] = sum(len(frame.units) for frame in proof.frames)
        summary["frames"] = len(proof.frames)
        if not given.json:
            sys.stdout.buffer.write(b"".join(lines.line(n, row, "not-given" if held else None) for n, row, held in rows))
    elif isinstance(proof, proofs.EventProof):
        check_event(proof, given)
        summary["frame"] = proof.commitment.frame
        summary["event"] = events.decoded(proof.body)
    else:
        summary["old_size"] = proof.old.size
    if given.json:
        print(json.dumps(summary, ensure_ascii=False))
    else:
        print(f"ok: {summary}", file=sys.stderr)
    return DONE


def check_event(proof: proofs.EventProof, given: argparse.Namespace) -> None:
    key = notes.verifier(given.erasure_key) if given.erasure_key else None
    event = proofs.certificate(proof, key)
    if given.order is None:
        return
    order, _ = events.order_file(given.order.read_bytes())
    if event is None or order.note.text != events.order(event["order"]).note.text:
        raise Refused("order file", "must be of the order that the event has")
    if key is not None and not key.signed(order.note):
        raise Refused("order file", "must be signed with the erasure key")


if __name__ == "__main__":
    sys.exit(main())
