"""Logs of every kind, which the command has made: both readers read them alike.

    python interop/test_logs.py BULLA
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
import unittest
from dataclasses import replace
from pathlib import Path
from typing import Any, Optional

sys.path.insert(0, str(Path(__file__).parent))

from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: E402

from bulla_reader import age, blocks, columns, commitments, config, index, lines, log, notes, vault, verify  # noqa: E402
from bulla_reader.cursor import u32, u64  # noqa: E402
from bulla_reader.findings import joined  # noqa: E402
from bulla_reader.hashes import crc32c, expand, extract, mac, sha256  # noqa: E402
from bulla_reader.history import followed  # noqa: E402
from bulla_reader.refused import Refused  # noqa: E402
from forge import Forge, Forged, padded, signed, wrapped  # noqa: E402
from zoo import Sample, Zoo  # noqa: E402

BULLA = ""


class Logs(unittest.TestCase):
    zoo: Zoo
    samples: dict[str, Sample]

    @classmethod
    def setUpClass(cls) -> None:
        cls.made = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.made.cleanup)
        cls.zoo = Zoo(BULLA, Path(cls.made.name))
        cls.samples = cls.zoo.all()

    def theirs(self, command: str, sample: Sample, *options: str) -> subprocess.CompletedProcess[bytes]:
        keys = [] if "--keys" in options else ["--keys", str(sample.keys)]
        given = [BULLA, command, str(sample.log), *keys, *options]
        return subprocess.run(given, capture_output=True, check=False)

    def mine(self, sample: Sample, grant: bool = False) -> tuple[verify.Report, bytes]:
        found: list[bytes] = []
        hand = verify.Hand(
            seal_key=(sample.keys / "seal.key").read_text(),
            identities=verify.read_identities([sample.keys / "identity.age"]),
            vault=sample.keys if (sample.keys / "vault").is_dir() and not grant else None,
            grant=sample.grant.read_bytes() if grant and sample.grant else None,
        )
        report = verify.verified(
            sample.log, hand, lambda block: found.extend(lines.line(it.number, it.row, it.withheld) for it in block.rows)
        )
        return report, b"".join(found)

    def same(self, sample: Sample, grant: bool = False) -> verify.Report:
        """Both say the same of a log, and print the same entries, byte for byte."""
        report, exported = self.mine(sample, grant)
        if not grant:
            told = json.loads(self.theirs("verify", sample, "--json").stdout)
            self.assertEqual(without_details(report.as_json()), without_details(told))
        options = ["--grant", str(sample.grant)] if grant else []
        theirs = self.theirs("export", sample, *options)
        self.assertEqual((theirs.returncode, theirs.stdout), (0, exported), theirs.stderr)
        self.assertTrue(report.ok)
        return report

    def test_logs_of_every_kind_are_read_alike(self) -> None:
        for name, sample in self.samples.items():
            with self.subTest(name):
                self.same(sample)

    def test_common_items_that_the_log_does_not_ask_for_are_found_alike(self) -> None:
        sample = self.samples["common"]
        forge = Forge(sample.log, sample.keys)
        with_items = [
            frame.frame
            for frame in forge.frames
            if frame.kind == commitments.BLOCK and columns.decoded(frame.text, frame.entries, 1 << frame.content).items
        ]
        self.assertTrue(with_items)
        text = (sample.log / "bulla.toml").read_text()
        for name, common in (("off", 'common = "off"\n'), ("without", "")):
            changed = text.replace("common = 8\n", common)
            digest = config.decoded(changed.encode()).digest
            self.assertNotEqual(digest, forge.config.digest)
            # As it would be, had the log been made so: each epoch says that this is [log].
            for frame in forge.frames:
                if frame.kind == commitments.EPOCH:
                    frame.text = frame.text[:68] + digest + frame.text[100:]
            anew = self.forged(forge, sample, f"unasked-{name}")
            (anew.log / "bulla.toml").write_text(changed)
            found = self.found_alike(anew)
            self.assertEqual(found, [("block-invalid", frame) for frame in with_items])
            # Where the file alone says so, it is the file that is wrong.
            (sample.log / "bulla.toml").write_text(changed)
            try:
                self.assertEqual({kind for kind, _ in self.found_alike(sample)}, {"config-mismatch"})
            finally:
                (sample.log / "bulla.toml").write_text(text)

    def test_who_is_named_in_no_group_of_a_log_with_erasure_is_found_alike(self) -> None:
        sample = self.samples["plain"]
        forge = Forge(sample.log, sample.keys)
        named = [
            frame.frame
            for frame in forge.frames
            if frame.kind == commitments.BLOCK
            and any(row.values.get("subject") for row in columns.decoded(frame.text, frame.entries, 1 << frame.content).rows)
        ]
        self.assertTrue(named)
        text = (sample.log / "bulla.toml").read_text()
        changed = text.replace('erasure = "off"\n', 'erasure = "on"\n')
        self.assertNotEqual(changed, text)
        digest = config.decoded(changed.encode()).digest
        for frame in forge.frames:
            if frame.kind == commitments.EPOCH:
                frame.text = frame.text[:68] + digest + frame.text[100:]
        anew = self.forged(forge, sample, "ungrouped")
        (anew.log / "bulla.toml").write_text(changed)
        self.assertEqual(self.found_alike(anew), [("block-invalid", frame) for frame in named])

    def found_alike(self, sample: Sample) -> list[tuple[str, int]]:
        """What both find, of each frame, in a log of which nothing can be exported."""
        reports = [self.mine(sample)[0].as_json(), json.loads(self.theirs("verify", sample, "--json").stdout)]
        # All of it, which verifies it first, and what the blocks are asked for.
        for asked in ([], ["--entries", "0.."], ["--operation", "read"]):
            exported = self.theirs("export", sample, "--withhold-personal", *asked)
            self.assertEqual((exported.returncode, exported.stdout), (1, b""), exported.stderr)
        found = [
            [(it["kind"], frame) for it in report["findings"] for frame in range(it["frame"], it["last_frame"] + 1)]
            for report in reports
        ]
        if "config-mismatch" in found[0][0]:
            # Of which epoch that is told differs.
            found = [[(kind, 0) for kind, _ in each] for each in found]
        self.assertEqual(*found)
        return found[0]

    def test_a_grant_opens_the_same(self) -> None:
        self.same(self.samples["granted"], grant=True)

    def test_what_was_recovered_and_erased_is_there_to_be_compared(self) -> None:
        report = self.same(self.samples["crashed"])
        self.assertIn("abandoned", {finding.kind for finding in report.findings})
        self.assertGreater(self.same(self.samples["erased"]).erased or 0, 0)

    def test_who_cannot_tell_how_many_are_erased_says_so(self) -> None:
        sample = self.samples["erased"]
        identities = verify.read_identities([sample.keys / "identity.age"])
        empty = Path(str(sample.keys) + ".empty")
        empty.mkdir()
        given = ["--identity", str(sample.keys / "identity.age"), "--keys", str(empty)]
        for options, hand in ((["--public"], verify.Hand()), (given, verify.Hand(identities=identities))):
            with self.subTest(options[0]):
                report = verify.verified(sample.log, hand)
                told = json.loads(self.theirs("verify", sample, *options, "--json").stdout)
                self.assertEqual(without_details(report.as_json()), without_details(told))
                self.assertIsNone(report.erased)

    def test_a_change_of_the_erasure_key_that_nobody_ordered_is_found_alike(self) -> None:
        made = self.zoo.rekeyed()
        place = self.zoo.place / "rekeyed-lost"
        sample = Sample(made.log.rename(place), made.keys.rename(self.zoo.place / "rekeyed-lost.keys"))
        self.samples["rekeyed"] = self.zoo.rekeyed()
        for name in ("lost", "after"):
            key = self.zoo.place / f"{name}.key"
            public = self.zoo.run("keys", place, "new-erasure-key", "-o", key).decode().strip()
            given = ["--lost"] if name == "lost" else ["--authority", str(self.zoo.place / "lost.key")]
            self.zoo.run("config", place, "set", "log.erasure_key", public, *given)
        changes = [json.loads(frame.text) for frame in Forge(place, sample.keys).frames if b'"rekeyed"' in frame.text]
        first, second, third, lost = (change["from"] for change in changes)
        after, strange = changes[-1]["to"], log.opened(self.samples["erased"].log).config.erasure_key.text
        unordered, vouched = ("erasure-key-unordered", "violation"), ("erasure-key-unordered", "notice")
        foreign = ("key-mismatch", "violation")
        for given, expected in (
            ([], [unordered]),
            ([first, lost], [vouched]),
            ([first, lost, after], [vouched]),
            ([first], [unordered, unordered, foreign]),
            ([first, lost, strange], [vouched, foreign]),
        ):
            with self.subTest(len(given)):
                self.assertEqual(self.both(place, sample, given), sorted(expected))
        for given in ([second], [third], [lost], [after], [strange], [second, lost], [third, after]):
            found = {kind for kind, severity in self.both(place, sample, given) if severity == "violation"}
            self.assertLessEqual({"erasure-unordered", "hold-unordered"}, found)

    def both(self, place: Path, sample: Sample, given: list[str]) -> list[tuple[str, str]]:
        """What both find alike, of public data, where these erasure keys are known."""
        report = verify.verified(place, verify.Hand(erasure_keys=[notes.verifier(key) for key in given]))
        options = [word for key in given for word in ("--erasure-key", key)]
        told = json.loads(self.theirs("verify", Sample(place, sample.keys), "--public", "--json", *options).stdout)
        self.assertEqual(without_details(sorted_(report.as_json())), without_details(sorted_(told)))
        return sorted((it["kind"], it["severity"]) for it in told["findings"])

    def test_changes_of_the_erasure_key_that_are_lied_about_are_found_alike(self) -> None:
        sample = self.samples["rekeyed"]
        whole = Forge(sample.log, sample.keys)
        told = [at for at, frame in enumerate(whole.frames) if b'"rekeyed"' in frame.text]
        self.assertEqual(len(told), 2)
        epochs_after = [at for at, frame in enumerate(whole.frames) if frame.kind == commitments.EPOCH and at > told[0]]
        first, second = (json.loads(whole.frames[at].text) for at in told)
        third = log.opened(self.samples["erased"].log).config.erasure_key
        known = [[first["from"]], [first["to"]], [third.text, second["to"]]]
        lies: list[tuple[int, dict[str, str]]] = [
            (told[0], {"order": ""}),
            (told[0], {"order": second["order"]}),
            (told[0], {"from": second["to"]}),
            (told[0], {"from": ""}),
            (told[1], {"to": ""}),
            (told[0], {"to": third.text}),
            (told[0], {"to": "no key"}),
            (told[0], {"after": first["before"][:-1] + ("0" if first["before"][-1] != "0" else "1")}),
            (told[1], {"to": first["from"]}),
            (told[1], {"from": first["from"]}),
            (told[1], {"from": third.text, "order": first["order"]}),
            (told[1], {"to": third.text}),
        ]
        for number, (at, members) in enumerate(lies):
            with self.subTest(members):
                forge = whole.copy()
                forge.frames[at].text = json.dumps({**json.loads(forge.frames[at].text), **members}).encode()
                kinds = self.alike(forge, sample, f"lie-{number}", known)
                self.assertLessEqual({"erasure-key-unordered"} if "after" not in members else {"config-mismatch"}, kinds)
        for number, at in enumerate([*told, *epochs_after]):
            with self.subTest(f"frame {at} has no body"):
                forge = whole.copy()
                forge.frames[at].text = b"{}"
                self.alike(forge, sample, f"lost-{number}", known)

    def test_another_key_in_a_file_that_was_replaced_than_the_events_tell_of_is_found_alike(self) -> None:
        sample = self.samples["rekeyed"]
        whole = Forge(sample.log, sample.keys)
        first, second = (json.loads(frame.text) for frame in whole.frames if b'"rekeyed"' in frame.text)
        third, now = log.opened(self.samples["erased"].log).config.erasure_key.text, second["to"]
        before = (sample.log / "bulla.toml").read_text()
        is_wrong = {"erasure-key-unordered"}
        for number, (kind, to, present, expected) in enumerate(
            (
                ("configured", now, first["from"], is_wrong),
                ("configured", now, third, is_wrong),
                ("configured", now, now, set()),
                ("rekeyed", third, first["from"], is_wrong),
                ("rekeyed", third, now, is_wrong),
                ("rekeyed", third, third, set()),
                ("rekeyed", first["from"], first["from"], is_wrong),
            )
        ):
            with self.subTest(number):
                after = before.replace(now, present).replace("erasure = ", 'heartbeat = "1m"\nerasure = ')
                digests = [config.decoded(text.encode()).digest.hex() for text in (before, after)]
                event: dict[str, Any] = {"event": kind, "before": digests[0], "after": digests[1]}
                if kind == "configured":
                    event["changed"] = ["heartbeat"]
                else:
                    event.update({"from": now, "to": to, "order": ""})
                forge = whole.copy()
                forge.append(json.dumps(event))
                kinds = self.alike(forge, sample, f"replaced-{number}", [[first["from"]], [third]], after)
                self.assertEqual(kinds, expected)

    def alike(self, forge: Forge, sample: Sample, name: str, known: list[list[str]], file: Optional[str] = None) -> set[str]:
        """What both find, of public data, in a log that was forged; they agree as well where these erasure keys are known."""
        place = self.zoo.place / name
        forge.write(place)
        if file is not None:
            (place / "bulla.toml").write_text(file)
        for given in known:
            self.both(place, sample, given)
        return {kind for kind, _ in self.both(place, sample, [])}

    def test_notes_names_and_configurations_out_of_their_bounds_are_refused_alike(self) -> None:
        sample = self.samples["plain"]
        forge = Forge(sample.log, sample.keys)
        place = self.zoo.place / "bounds"
        forge.write(place)
        checkpoint, segment, toml = place / "checkpoint", place / "segments/00000000000000000000.seg", place / "bulla.toml"
        whole = checkpoint.read_text()
        text, own = whole.split("\n\n")

        def with_more(more: str) -> str:
            return signed(f"{text}\n{more}", forge.config.verifier, forge.signing)

        other = "\u2014 other " + base64.b64encode(bytes(40)).decode() + "\n"
        for note, kinds in (
            (whole, set()),
            (whole + 99 * other, set()),
            (whole + 100 * other, {"checkpoint-damaged"}),
            (whole + own, {"checkpoint-damaged"}),
            # Of a line with set bits after the end of its base64 nothing counts, and nothing else is wrong.
            (whole + other.replace("AA==", "AB=="), set()),
            (f"{text}\n\n" + other.replace("AA==", "AB=="), {"checkpoint-damaged"}),
            (whole + other.replace("other", "a\x7fb"), {"checkpoint-damaged"}),
            (with_more("more\n"), set()),
            (with_more("a\x7fb\n"), set()),
            (with_more("a\tb\n"), {"checkpoint-damaged"}),
            (with_more("\nmore\n"), {"checkpoint-damaged"}),
        ):
            with self.subTest(note[len(text) :]):
                checkpoint.write_text(note)
                self.assertEqual({kind for kind, _ in self.both(place, sample, [])}, kinds)
        checkpoint.write_text(whole)
        for generation, kinds in ((1 << 32, {"frames-missing", "unknown-file"}), ((1 << 32) - 1, set())):
            segment = segment.rename(place / f"segments/00000000000000000000-{generation}.seg")
            told = json.loads(self.theirs("verify", Sample(place, sample.keys), "--public", "--json").stdout)["findings"]
            self.assertEqual({it["kind"] for it in told}, kinds)
            self.assertEqual({finding.kind for finding in verify.verified(place, verify.Hand()).findings}, kinds)
        own = toml.read_bytes()
        for altered, kinds in (
            (b"\xef\xbb\xbf" + own, {"config-damaged"}),
            (own.replace(b"version = 1", b"version = 0"), {"config-damaged"}),
            (own.replace(b"hash = ", b'heartbeat = "86400000000001 ns"\nhash = '), {"config-damaged"}),
        ):
            with self.subTest(altered[:100]):
                toml.write_bytes(altered)
                self.assertEqual({kind for kind, _ in self.both(place, sample, [])}, kinds)
        toml.write_bytes(own.replace(b"hash = ", b'heartbeat = "86400000000000 ns"\nhash = '))
        told = json.loads(self.theirs("verify", Sample(place, sample.keys), "--public", "--json").stdout)["findings"]
        kinds = {finding.kind for finding in verify.verified(place, verify.Hand()).findings}
        self.assertEqual(({it["kind"] for it in told}, kinds), ({"config-mismatch"}, {"config-mismatch"}))
        toml.write_bytes(own.replace(b"version = 1", b"version = 2\nnews = 1"))
        told = self.theirs("verify", Sample(place, sample.keys), "--public")
        self.assertEqual((told.returncode, b"format version 2" in told.stderr), (4, True))
        with self.assertRaisesRegex(config.NewerFormat, "format version 2"):
            verify.verified(place, verify.Hand())

    def test_an_erasure_that_the_vault_has_begun_ends_a_verification_alike(self) -> None:
        sample = self.samples["erased"]
        keys = self.zoo.place / "being-erased.keys"
        keys.mkdir()
        for name in ("vault", "roots"):
            shutil.copytree(sample.keys / name, keys / name)
        (keys / "identity.age").write_bytes((sample.keys / "identity.age").read_bytes())
        opened = vault.Vault(keys, log.opened(sample.log).config.log_id, [])
        living = [number for number in range(opened.next_number) if opened.subject(number) is not None]
        opened.database.close()
        hand = verify.Hand(identities=verify.read_identities([keys / "identity.age"]), vault=keys)
        for numbers, code, error in ((living, 5, vault.BeingErased), ([opened.next_number], 4, Refused)):
            with self.subTest(code):
                record = b"bullaVE3\x01" + bytes(3) + u32(len(numbers)) + bytes(32) + b"".join(map(u64, numbers))
                record += u32(crc32c(record))
                seal = mac(opened.record_key, b"\x01" + u64(2) + record)[:16]
                database = sqlite3.connect(keys / "vault/vault.db")
                database.execute("UPDATE records SET sealed = ? WHERE id = 2", (record + seal,))
                database.commit()
                database.close()
                told = self.theirs("verify", Sample(sample.log, keys), "--keys", str(keys))
                self.assertEqual(told.returncode, code, told.stderr)
                with self.assertRaises(error):
                    verify.verified(sample.log, hand)

    def test_a_vault_that_does_not_know_of_a_part_that_was_given_up_gives_nobody_out(self) -> None:
        sample = self.samples["given_up"]
        hand = verify.Hand(identities=verify.read_identities([sample.keys / "identity.age"]), vault=sample.keys)
        self.assertEqual(verify.verified(sample.log, hand).findings, [])
        older = replace(hand, vault=self.zoo.place / "earlier.keys")
        with self.assertRaisesRegex(Refused, "must know of the part of the log which frame"):
            verify.verified(sample.log, older)
        told = self.theirs("export", Sample(sample.log, sample.keys), "--keys", str(older.vault))
        self.assertEqual((told.returncode, told.stdout), (1, b""), told.stderr)
        restoring = sample.keys / "restoring"
        restoring.write_text(f"0 0 older-log 9 7 {'5a' * 16} {'5a' * 16} -\n")
        try:
            with self.assertRaisesRegex(Refused, "must know of the part of the log which is being given up"):
                verify.verified(sample.log, hand)
            told = self.theirs("export", sample)
            self.assertEqual((told.returncode, told.stdout), (5, b""), told.stderr)
        finally:
            restoring.unlink()
        place = sample.keys / "seal.state"
        state = place.read_bytes()
        content = state[:-32] + b"\xff" * 16
        place.write_bytes(content + hashlib.sha256(content).digest())
        try:
            with self.assertRaisesRegex(Refused, "must know of the part of the log that seal.state knows"):
                verify.verified(sample.log, hand)
            told = self.theirs("export", sample)
            self.assertEqual((told.returncode, told.stdout), (5, b""), told.stderr)
        finally:
            place.write_bytes(state)

    def test_an_event_that_nobody_orders_is_not_checked_with_an_erasure_key(self) -> None:
        sample = self.samples["erased"]
        forge = Forge(sample.log, sample.keys)
        forge.append('{"event":"heartbeat"}')
        made, file = self.zoo.place / "heart", self.zoo.place / "heart.proof"
        forge.write(made)
        event = str(len(forge.frames) - 1)
        proven = self.theirs("prove", Sample(made, sample.keys), "--event", event, "-o", str(file))
        self.assertEqual(proven.returncode, 0, proven.stderr)
        key = forge.config.erasure_key.text
        for given, code in (([], 0), (["--erasure-key", key], 2)):
            for command in ([BULLA], [sys.executable, "-m", "bulla_reader"]):
                ran = [*command, "check", str(file), *given]
                told = subprocess.run(ran, capture_output=True, check=False, cwd=Path(__file__).parent)
                self.assertEqual(told.returncode, code, told.stderr)

    def test_another_file_than_a_proof_is_no_proof_that_was_altered(self) -> None:
        sample = self.samples["plain"]
        proof, file = self.zoo.place / "entry.proof", self.zoo.place / "another"
        proven = self.theirs("prove", sample, "--entry", "0", "-o", str(proof))
        self.assertEqual(proven.returncode, 0, proven.stderr)
        first, _, rest = proof.read_bytes().partition(b"\n")
        for data, code in (
            (first + b"\n" + rest, 0),
            (first + b"\n" + rest[:-1], 1),
            (first + b"\n\xff" + rest, 1),
            (first + b"\n", 1),
            (first, 2),
            (first + b"x\n" + rest, 2),
            (b"\xff\n" + rest, 2),
            (rest, 2),
            (b"", 2),
        ):
            file.write_bytes(data)
            for command in ([BULLA], [sys.executable, "-m", "bulla_reader"]):
                ran = [*command, "check", str(file)]
                told = subprocess.run(ran, capture_output=True, check=False, cwd=Path(__file__).parent)
                self.assertEqual(told.returncode, code, (command, data[:60], told.stderr))

    def test_keys_that_are_wrapped_to_more_than_they_may_be_are_refused_alike(self) -> None:
        sample = self.samples["plain"]
        forge = Forge(sample.log, sample.keys)
        identities = verify.read_identities([sample.keys / "identity.age"])
        epoch = forge.frames[0]
        key = age.decrypted(epoch.text[136:], identities)
        for others, expected in ((1023, set()), (1024, {"epoch-invalid", "not-opened"})):
            with self.subTest(others):
                file = wrapped(key, identities[0].public, b"-> x\n\n" * others)
                epoch.text = epoch.text[:132] + u32(len(file)) + file
                made = self.forged(forge, sample, f"wrapped-{others}")
                # A machine that is busy may have put the entries into more than one block: as one finding both tell those.
                findings = self.mine(made)[0].as_json()["findings"]
                kinds = [it["kind"] for it in findings]
                told = json.loads(self.theirs("verify", made, "--json").stdout)["findings"]
                self.assertEqual(([it["kind"] for it in told], set(kinds)), (kinds, expected))

    def test_parts_of_the_index_that_are_whole_together_alone_are_found_alike(self) -> None:
        sample = self.samples["plain"]
        made = self.forged(Forge(sample.log, sample.keys), sample, "parts")
        forge = Forge(made.log, sample.keys)
        at = next(it for it in forge.frames if it.kind == commitments.BLOCK)
        keys = forge.keys[at.epoch]
        of = log.opened(made.log)
        opens = blocks.Opener(followed(of), verify.read_identities([made.keys / "identity.age"]), None)
        tokens = sorted(index.tokens(opens.block(of.frames[at.frame], of.frames[at.frame].body()), keys))
        file = made.log / f"index/{at.epoch:020}.idx"
        half = len(tokens) // 2
        for several, found in (((tokens, tokens), 0), ((tokens[:half], tokens[half:]), 2), ((tokens, tokens[:half]), 1)):
            with self.subTest(found):
                file.write_bytes(b"".join(self.part(forge, at, those) for those in several))
                kinds = [finding.kind for finding in self.mine(made)[0].findings]
                told = json.loads(self.theirs("verify", made, "--json").stdout)["findings"]
                self.assertEqual(([it["kind"] for it in told], len(kinds)), (kinds, found))
                self.assertLessEqual(set(kinds), {"index-mismatch"})

    def part(self, forge: Forge, at: Forged, tokens: list[int]) -> bytes:
        """A part of the index that says this of one frame."""
        keys, random, bit = forge.keys[at.epoch], os.urandom(32), 1 << at.frame % 64
        each = zip(tokens, [0, *tokens])
        columns_ = [integers([token - before for token, before in each]), integers([bit] * len(tokens))]
        text = padded(bytes([len(tokens)]) + b"".join(columns_))
        head = b"BulI\x01" + bytes(3) + u64(at.epoch) + u64(at.frame // 64) + u64(bit)
        head += sha256(forge.commitment(at)[0]) + random + u32(len(text) + 16)
        key = expand(extract(random, keys.index), b"bulla index part key v1", 32)
        return head + AESGCM(key).encrypt(bytes(12), text, head)

    def test_a_clock_of_any_year_is_told_alike(self) -> None:
        forge = Forge(self.samples["plain"].log, self.samples["plain"].keys)
        first, last = -62_167_219_200, 253_402_300_799
        for seconds, text in (
            (first - 1, None),
            (first, "0000-01-01T00:00:00Z"),
            (first + 60 * 86_400 - 1, "0000-02-29T23:59:59Z"),
            (first + 366 * 86_400, "0001-01-01T00:00:00Z"),
            (last, "9999-12-31T23:59:59Z"),
            (last + 1, None),
        ):
            with self.subTest(seconds):
                for frame in forge.frames:
                    if frame.kind != commitments.BLOCK:
                        frame.earliest = frame.latest = seconds
                place = self.zoo.place / f"year-{seconds}"
                forge.write(place)
                self.both(place, self.samples["plain"], [])
                self.assertEqual(verify.verified(place, verify.Hand()).as_json()["signed_time"], text)

    def test_a_log_with_a_gap_is_read_alike(self) -> None:
        sample = self.samples["plain"]
        forge = Forge(sample.log, sample.keys)
        last = forge.frames[-1]
        now, number = forge.frames[0].latest, len(forge.frames)
        forge.frames.append(
            Forged(
                commitments.GAP, number, last.first_entry + last.entries, 17, now, now, last.epoch, 0, bytes(32), 0, last.hash,
                last.log_id, b"", number,
            )  # fmt: skip
        )
        other = replace(forge.frames[-1], frame=number + 1, first_entry=last.first_entry + last.entries + 17, entries=5)
        forge.frames.append(replace(other, group=number + 1))
        report = self.same(self.forged(forge, sample, "gap"))
        gaps = [finding for finding in report.findings if finding.kind == "gap"]
        self.assertEqual([(gap.frame, gap.count) for gap in joined(gaps)], [(number, 2)])

    def test_a_log_of_sha3_256_is_read_alike(self) -> None:
        sample = self.samples["plain"]
        forge = Forge(sample.log, sample.keys)
        place = self.zoo.place / "sha3"
        text = (sample.log / "bulla.toml").read_bytes().replace(b'hash = "sha256"', b'hash = "sha3-256"')
        digest = config.decoded(text).digest
        self.assertNotEqual(digest, sha256(text))
        for frame in forge.frames:
            frame.hash = 2
            if frame.kind == commitments.EPOCH:
                frame.text = frame.text[:68] + digest + frame.text[100:]
            elif frame.kind == commitments.BLOCK:
                forge.recommit(frame)
        made = self.forged(forge, sample, place.name)
        (place / "bulla.toml").write_bytes(text)
        self.same(made)

    def forged(self, forge: Forge, sample: Sample, name: str) -> Sample:
        """The log as it was forged, with the keys that it needs to be read."""
        forge.write(self.zoo.place / name)
        keys = self.zoo.place / f"{name}.keys"
        keys.mkdir()
        for key in ("seal.key", "identity.age"):
            (keys / key).write_bytes((sample.keys / key).read_bytes())
        return Sample(self.zoo.place / name, keys)

    def test_a_log_that_nobody_damaged_is_written_anew_as_it_was(self) -> None:
        sample = self.samples["erased"]
        forge = Forge(sample.log, sample.keys)
        forge.write(self.zoo.place / "anew")
        self.assertEqual((self.zoo.place / "anew/checkpoint").read_bytes(), (sample.log / "checkpoint").read_bytes())
        frames = [log.opened(place).commitments for place in (sample.log, self.zoo.place / "anew")]
        self.assertEqual(*frames)


def integers(values: list[int]) -> bytes:
    """An integer column, its values as they are: the first bytes of all, then the second, and so on."""
    return b"\x05\x00\x01\x08\x00" + b"".join(bytes(value >> 8 * byte & 255 for value in values) for byte in range(8))


def sorted_(report: dict[str, Any]) -> dict[str, Any]:
    """A report whose findings are in the order of frames and kinds."""
    return {**report, "findings": sorted(report["findings"], key=lambda it: (it.get("frame", 1 << 64), it["kind"]))}


def without_details(report: dict[str, Any]) -> dict[str, Optional[object]]:
    """A report without the words in it, which are each reader's own."""
    return {**report, "findings": [{name: it[name] for name in it if name != "detail"} for it in report["findings"]]}


if __name__ == "__main__":
    BULLA = sys.argv.pop(1)
    unittest.main()
