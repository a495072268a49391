"""The known answers in `vectors/`: what is valid is read as it should be, and each that is refused is refused."""

from __future__ import annotations

import json
import sqlite3
import sys
import tempfile
import unittest
from pathlib import Path
from typing import Any, Callable

sys.path.insert(0, str(Path(__file__).parent))

from bulla_reader import (  # noqa: E402
    anchors, blocks, columns, cose, commitments, epochs, events, log, notes, policies, proofs, rows, seals, sources, tiles, trees, units,
    vault, verify,
)  # fmt: skip
from bulla_reader.cursor import u64  # noqa: E402
from bulla_reader.hashes import NAMES, crc32c, expand, extract, hkdf, mac  # noqa: E402
from bulla_reader.refused import Refused  # noqa: E402

VECTORS = Path(__file__).parents[1] / "vectors"
unhex = bytes.fromhex


def vectors(name: str) -> Any:
    return json.loads((VECTORS / name).read_text())


class Vectors(unittest.TestCase):
    def refused(self, what: str, read: Callable[[], object]) -> None:
        with self.assertRaises(Refused, msg=what):
            read()

    def test_columns_are_the_rows_that_they_should_be(self) -> None:
        for vector in vectors("columns/decoded.json") + vectors("columns/encoded.json"):
            block = columns.decoded(unhex(vector["plaintext"]), len(vector["rows"]), 1 << 25)
            self.assertEqual([row.encoded().hex() for row in block.rows], vector["rows"], vector["name"])
        for vector in vectors("columns/groups.json"):
            block = columns.decoded(unhex(vector["plaintext"]), len(vector["rows"]), 1 << 25)
            self.assertEqual((block.personal, block.member), (vector["personal"], [int(it) for it in vector["member"]]))
            whole = [rows.decoded(unhex(row)) for row in vector["rows"]]
            for row, entry, group in zip(block.rows, whole, block.member):
                left_out = [name for name in rows.FIELDS if group and block.personal >> rows.BIT[name] & 1]
                shared = {name: value for name, value in entry.values.items() if name not in left_out}
                self.assertEqual((row.time, row.operation, row.values), (entry.time, entry.operation, shared))
            left = block.left
            for opened in block.groups:
                # Nothing is encrypted.
                text, parts = opened.ciphertext, [block.rows[place] for place in opened.places]
                found, left = columns.open_group(text, block.personal, None, parts, block.items, set(), left)
                self.assertEqual(found, [whole[place] for place in opened.places])

    def test_columns_that_are_none_are_refused(self) -> None:
        for vector in vectors("columns/refused.json"):
            data = unhex(vector["plaintext"])
            self.refused(vector["name"], lambda: columns.decoded(data, vector["entries"], vector["content_limit"]))

    def test_rows_have_one_encoding(self) -> None:
        for vector in vectors("proof/rows.json"):
            row = rows.decoded(unhex(vector["row"]))
            self.assertEqual(row.encoded().hex(), vector["row"])
            self.assertEqual((row.time, row.operation.decode()), (vector["time"], vector["operation"]))

    def test_commitments_are_what_they_say(self) -> None:
        for vector in vectors("proof/commitments.json"):
            read = commitments.decoded(unhex(vector["encoding"]))
            for name in ("sources_length", "frame", "first_entry", "entries", "earliest", "latest", "epoch", "units"):
                self.assertEqual(getattr(read, name), vector[name], vector["name"])
            self.assertEqual((read.log_id.hex(), read.root.hex()), (vector["log_id"], vector["root"]))
        for vector in vectors("proof/commitments-refused.json"):
            self.refused(vector["name"], lambda: commitments.decoded(unhex(vector["encoding"])))

    def test_units_and_roots_are_hashed_as_they_should_be(self) -> None:
        found = vectors("proof/units.json")
        for vector in found["rows"]:
            hash_, salt = NAMES[vector["hash"]], unhex(vector["salt"])
            unit = units.row_unit(hash_, salt, vector["place"], unhex(vector["row"]))
            self.assertEqual(unit.hex(), vector["unit"])
        for vector in found["groups"]:
            hash_, salt = NAMES[vector["hash"]], unhex(vector["salt"])
            entries = [(place, unhex(row)) for place, row in vector["entries"]]
            unit = units.group_unit(
                hash_, salt, entries, vector["personal"], vector["subjects"], unhex(vector["ciphertext"]),
                unhex(vector["commitment"]),
            )  # fmt: skip
            self.assertEqual(unit.hex(), vector["unit"])
        for vector in found["items"]:
            hash_, salt = NAMES[vector["hash"]], unhex(vector["salt"])
            leaf = units.item_leaf(hash_, salt, vector["position"], unhex(vector["item"]))
            self.assertEqual(leaf.hex(), vector["leaf"])
        for vector in found["roots"]:
            hash_, count, items = NAMES[vector["hash"]], vector["leaves"], vector["items"]
            leaves = [trees.HASHES[hash_](bytes([at])).digest() for at in range(count)]
            top = trees.root(leaves, trees.block(hash_))
            self.assertEqual(trees.block_root(hash_, count - items, items, top).hex(), vector["root"])

    def test_proofs_in_trees_hold_or_are_refused(self) -> None:
        found = vectors("proof/multiproofs.json")
        for kind in ("log", "block"):
            for vector in found["proofs"][kind]:
                shape = self.shape(kind, vector)
                self.assertEqual(len(vector["nodes"]), trees.needed(vector["positions"], vector["size"], shape))
                self.assertEqual(self.climbed(kind, vector, vector["positions"]), vector["top"])
            for vector in found["misplaced"][kind]:
                if vector["error"] == "Root":
                    self.assertNotEqual(self.climbed(kind, vector, vector["of"]), vector["top"], vector["what"])
                else:
                    self.refused(vector["what"], lambda: self.climbed(kind, vector, vector["of"]))
            for vector in found["refused"][kind]:
                if sorted(set(vector["positions"])) != vector["positions"]:
                    continue  # positions that do not ascend: here they cannot
                self.refused(vector["error"], lambda: self.climbed(kind, dict(vector, hash="sha256"), vector["positions"]))
        found = vectors("proof/consistency.json")
        for vector in found["proofs"]:
            self.grown(vector)
        for vector in found["refused"]:
            self.refused(vector["error"], lambda: self.grown(vector))
        for vector in vectors("proof/tree.json"):
            leaves = [trees.leaf(str(at).encode()) for at in range(vector["size"])]
            self.assertEqual(trees.root(leaves).hex(), vector["root"])

    def shape(self, kind: str, vector: dict[str, Any]) -> trees.Shape:
        return trees.LOG if kind == "log" else trees.block(NAMES[vector["hash"]])

    def climbed(self, kind: str, vector: dict[str, Any], leaves: list[int]) -> str:
        """What a proof leads to, with those leaves at its positions, each of which is the hash of its number."""
        digests = [trees.HASHES[NAMES[vector["hash"]]](str(at).encode()).digest() for at in leaves]
        known = dict(zip(vector["positions"], digests))
        proof = [unhex(it) for it in vector["nodes"]]
        return trees.multi_proof(known, vector["size"], proof, self.shape(kind, vector)).hex()

    def grown(self, vector: dict[str, Any]) -> None:
        old, new = ((vector[f"{it}_size"], unhex(vector[f"{it}_root"])) for it in ("old", "new"))
        trees.check_growth(old, new, [unhex(it) for it in vector["nodes"]])

    def test_tiles_have_one_path(self) -> None:
        found = vectors("proof/tiles.json")
        for vector in found["paths"]:
            tile = vector["level"], vector["index"], vector["width"]
            self.assertEqual(tiles.path(*tile), vector["path"])
            self.assertEqual(tiles.parsed(vector["path"]), tile)
        for path in found["refused"]:
            self.refused(path, lambda: tiles.parsed(path))

    def test_proofs_disclose_what_they_should(self) -> None:
        found = vectors("proof/proofs.json")
        key = notes.verifier(found["vkey"])
        for vector in found["proofs"]:
            proof = proofs.read(vector["file"].encode(), key)
            assert isinstance(proof, proofs.EntriesProof)
            self.assertEqual((len(proof.frames), proof.checkpoint.size), (vector["frames"], vector["tree_size"]))
            self.assertEqual([[it[0], it[1].encoded().hex()] for it in proofs.opened(proof)], vector["entries"])
        for vector in found["consistency"]:
            grown = proofs.read(vector["file"].encode(), key)
            assert isinstance(grown, proofs.GrowthProof)
            self.assertEqual((grown.old.size, grown.checkpoint.size), (vector["old_size"], vector["new_size"]))
        for vector in found["refused"] + found["consistency_refused"]:
            self.refused(vector["name"], lambda: proofs.read(vector["file"].encode(), key))

    def test_tree_heads_in_cose_are_of_one_form_and_signed(self) -> None:
        found = vectors("proof/receipts.json")
        key = notes.verifier(found["vkey"])

        def checked(data: bytes) -> tuple[int, str]:
            head, root = cose.checkpoint(data)
            head.check(root, key)
            return head.size, root.hex()

        for vector in found["heads"]:
            self.assertEqual(checked(unhex(vector["file"])), (int(vector["size"]), vector["root"]), vector["name"])
        for vector in found["heads_refused"]:
            self.refused(vector["name"], lambda: checked(unhex(vector["file"])))

    def test_receipts_disclose_what_they_should(self) -> None:
        found = vectors("proof/receipts.json")
        key = notes.verifier(found["vkey"])
        for vector in found["receipts"]:
            proof = proofs.read(unhex(vector["file"]), key)
            assert isinstance(proof, proofs.EntriesProof)
            self.assertEqual(len(proof.frames), vector["frames"])
            units = [unit for frame in proof.frames for unit in frame.units]
            rows_ = [[unit.number, unit.row.encoded().hex()] for unit in units if isinstance(unit, proofs.DisclosedRow)]
            self.assertEqual(rows_, vector["entries"], vector["name"])
        for vector in found["refused"]:
            self.refused(vector["name"], lambda: proofs.read(unhex(vector["file"]), key))

    def test_anchors_hold_or_are_refused(self) -> None:
        found = vectors("proof/receipts.json")
        keys = notes.verifier(found["vkey"]), notes.verifier(found["rekor_vkey"])
        for vector in found["anchors"]:
            held = anchors.read(vector["file"].encode(), *keys)
            told = (held.checkpoint.size, held.checkpoint.root.hex(), held.index, held.rekor.size)
            self.assertEqual(told, tuple(vector[name] for name in ("tree_size", "root", "index", "rekor_size")))
        for vector in found["anchors_refused"]:
            self.refused(vector["name"], lambda: anchors.read(vector["file"].encode(), *keys))

    def test_groups_in_proofs_open_or_are_withheld(self) -> None:
        found = vectors("proof/groups.json")
        key = notes.verifier(found["vkey"])
        for vector in found["proofs"]:
            proof = proofs.read(vector["file"].encode(), key)
            assert isinstance(proof, proofs.EntriesProof)
            self.assertEqual([[n, row.encoded().hex(), held] for n, row, held in proofs.opened(proof)], vector["opened"])
        for vector in found["refused"]:
            self.refused(vector["name"], lambda: proofs.read(vector["file"].encode(), key))
        for vector in found["unopened"]:
            proof = proofs.read(vector["file"].encode(), key)
            assert isinstance(proof, proofs.EntriesProof)
            self.refused(vector["name"], lambda: proofs.opened(proof))

    def test_events_and_orders_are_what_they_should_be(self) -> None:
        found = vectors("proof/events.json")
        key, erasure_key = notes.verifier(found["vkey"]), notes.verifier(found["erasure_vkey"])
        for vector in found["events"]:
            proof = proofs.read(vector["file"].encode(), key)
            assert isinstance(proof, proofs.EventProof)
            self.assertEqual((proof.commitment.frame, proof.body.decode()), (vector["frame"], vector["event"]))
            proofs.certificate(proof, erasure_key)
        for vector in found["orders"]:
            order = events.order(vector["note"])
            self.assertEqual((order.log_id.hex(), order.seconds, order.reason), (vector["log"], vector["seconds"], vector["reason"]))
            file = json.dumps({"order": vector["note"], "subjects": vector["subjects"]}).encode()
            self.assertEqual(events.order_file(file)[1], [it["subject"] for it in vector["subjects"]])
        for vector in found["hold_orders"]:
            release = vector.pop("release")
            read, releases = events.hold_order(vector["note"]), events.hold_order(release["note"])
            self.assertEqual((read.log_id.hex(), read.seconds, read.releases, releases.releases), (vector["log"], vector["seconds"], False, True))
            self.assertEqual(releases.about, events.order_digest(vector["note"]))
            for file, order in ((vector, read), (release, releases)):
                names = ("subject", "by", "reason", "salts")
                kept = {"order": file["note"], **{name: file[name] for name in names if name in file}}
                self.assertEqual(events.hold_file(json.dumps(kept).encode()), order)
                self.assertTrue(erasure_key.signed(order.note))
                changed = json.dumps(kept | {"reason": "another"}).encode()
                self.refused("another reason", lambda: events.hold_file(changed))
        for vector in found["hold_orders_refused"]:
            self.refused(vector["name"], lambda: events.hold_order(vector["note"]))
        for vector in found["bodies_taken"]:
            self.certificate(vector["file"], key)
        for vector in found["refused"]:
            self.refused(vector["name"], lambda: proofs.read(vector["file"].encode(), key))
        for vector in found["bodies_refused"]:
            self.refused(vector["name"], lambda: self.certificate(vector["file"], key))
        for body in vectors("events/taken.json"):
            events.decoded(body.encode())
        for body in vectors("events/refused.json"):
            self.refused(body, lambda: events.decoded(body.encode()))

    def certificate(self, file: str, key: notes.Verifier) -> None:
        proof = proofs.read(file.encode(), key)
        assert isinstance(proof, proofs.EventProof)
        proofs.certificate(proof, None)

    def test_a_log_of_known_keys_is_read_to_its_entries(self) -> None:
        for name in NAMES:
            vector = vectors(f"seal/{name}.json")
            with tempfile.TemporaryDirectory() as made:
                place = Path(made)
                for path, content in vector["files"].items():
                    (place / path).parent.mkdir(parents=True, exist_ok=True)
                    (place / path).write_bytes(unhex(content))
                keys = epochs.keys(unhex(vector["epoch_secret"]), unhex(vector["epoch_random"]), unhex(vector["log_id"]), 0)
                derived = [keys.body.hex(), keys.salt.hex(), keys.commitment.hex()]
                self.assertEqual(derived, [vector[it] for it in ("body_key", "salt_key", "key_commitment")])
                report = verify.verified(place, verify.Hand(notes.verifier(vector["vkey"]), vector["seal_key"]))
                kinds = {finding.kind for finding in report.findings if finding.is_violation}
                self.assertTrue(report.anchored)
                self.assertLessEqual(kinds, {"tile-damaged", "bundle-damaged"}, "it has no tiles")
                read = log.opened(place)
                for frame in read.frames:
                    assert frame is not None
                    if frame.commitment.kind == commitments.BLOCK:
                        text = epochs.plaintext(keys, frame.commitment, frame.body())
                        it = frame.commitment
                        blocks.check_units(it, columns.decoded(text, it.entries, it.content_limit), keys)
                        self.check_sources(vector, it, frame.body())
                self.assertEqual(seals.seal_key(vector["seal_key"], unhex(vector["log_id"])).hex(), vector["seal_state"])

    def test_what_is_kept_of_sources_is_what_blocks_say(self) -> None:
        for name in NAMES:
            vector = vectors(f"seal/{name}.json")
            log_id = unhex(vector["log_id"])
            secret, data = sources.secret(vector["sources_key"], log_id), unhex(vector["sources_state"])
            kept = sources.kept(secret, log_id, data)
            last = vector["frames"][-1]
            self.assertEqual((kept.frames, kept.leaf), (last["frame"] + 1, trees.leaf(unhex(last["commitment"]))))
            told = {}
            for frame in vector["frames"]:
                for source in frame.get("sources", []):
                    if source["ranges"]:
                        told[source["id"]] = (source["label"], [tuple(it) for it in source["ranges"]], frame["frame"])
                    else:
                        del told[source["id"]]
            found = {it.id.hex(): (it.label.hex(), it.ranges, frame) for it, frame in kept.sources}
            self.assertEqual(found, told)
            for at in range(len(data)):
                damaged = data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]
                self.refused(f"byte {at}", lambda: sources.kept(secret, log_id, damaged))

    def check_sources(self, vector: dict, it: commitments.Commitment, body: bytes) -> None:
        """What the block says of sources is what the vector has."""
        told = vector["frames"][it.frame]
        if not told["sources"]:
            self.assertEqual(it.sources_length, 0)
            return
        secret = sources.secret(vector["sources_key"], it.log_id)
        key = sources.key(secret, unhex(vector["epoch_random"]), it.log_id, it.epoch)
        self.assertEqual(key.hex(), vector["section_key"])
        found = [
            {
                "id": source.id.hex(),
                "label": None if source.label is None else source.label.hex(),
                "ranges": [list(range_) for range_ in source.ranges],
            }
            for source in sources.opened(key, it, body)
        ]
        self.assertEqual(found, told["sources"])
        text = unhex(told["section"])
        for end in range(len(text)):
            self.refused(f"a section of {end} bytes", lambda: sources.decoded(text[:end]))
        self.refused("a section that is not padded", lambda: sources.decoded(text + b"\0"))
        for at in range(it.sealed_length, it.body_length):
            damaged = body[:at] + bytes([body[at] ^ 1]) + body[at + 1 :]
            self.refused(f"byte {at}", lambda: sources.opened(key, it, damaged))

    def test_a_vault_gives_numbers_keys_and_pseudonyms(self) -> None:
        found = vectors("vault/vault.json")
        log_id = unhex(found["log_id"])
        with tempfile.TemporaryDirectory() as made:
            place = self.laid_out(found, Path(made))
            opened = vault.Vault(place, log_id, [])
            for subject in found["subjects"]:
                self.assertEqual(opened.number_of(subject["subject"].encode()), subject["number"])
                self.assertEqual(opened.subject(subject["number"]), (unhex(subject["key"]), unhex(subject["pseudonym"])))
            self.assertIsNone(opened.number_of(b"nobody"))
            field_key = hkdf(log_id, opened.keys.pseudonym, b"bulla vault field pseudonyms v1", 32)
            opened.database.close()
        self.assertEqual(field_key.hex(), found["field_pseudonym_key"])
        for vector in found["field_pseudonyms"]:
            key = expand(extract(log_id, field_key), b"bulla pseudonym key v1" + bytes([vector["bit"]]), 32)
            self.assertEqual("p-" + mac(key, unhex(vector["value"]))[:16].hex(), vector["pseudonym"])

    def test_records_of_a_vault_of_more_than_there_can_be_are_refused(self) -> None:
        found = vectors("vault/vault.json")
        log_id = unhex(found["log_id"])

        def erasing(state: int, *numbers: int) -> tuple[int, bytes]:
            head = b"bullaVE3" + bytes([state, 0, 0, 0]) + len(numbers).to_bytes(4, "little") + bytes([7]) * 32
            return 2, head + b"".join(map(u64, numbers))

        def skipped(*ranges: tuple[int, int]) -> tuple[int, bytes]:
            both = [(9, 4096), (4097, 8200), *((10**6 + first, 10**6 + end) for first, end in ranges)]
            return 5, b"bullaVS2" + b"".join(u64(first) + u64(end) for first, end in both)

        ranges = [(3 * number, 3 * number + 2) for number in range(65_535)]
        for (record, text), is_read in (
            (erasing(1, 7, 9), True),
            (erasing(2, *range(4096)), True),
            (erasing(1, *range(4097)), False),
            (erasing(1, 9, 7), False),
            (erasing(2, 7, 7), False),
            (erasing(1), False),
            (erasing(2), False),
            (skipped(*ranges[:-1]), True),
            (skipped(*ranges), False),
            (skipped((7, 9), (8, 10)), False),
            (skipped((9, 9)), False),
        ):
            with self.subTest(text[:32].hex()), tempfile.TemporaryDirectory() as made:
                place = self.laid_out(found, Path(made))
                opened = vault.Vault(place, log_id, [])
                opened.database.close()
                text += crc32c(text).to_bytes(4, "little")
                text += mac(opened.record_key, bytes([vault.RECORDS]) + u64(record) + text)[:16]
                database = sqlite3.connect(place / "vault/vault.db")
                database.execute("UPDATE records SET sealed = ? WHERE id = ?", (text, record))
                database.commit()
                database.close()
                if is_read:
                    vault.Vault(place, log_id, []).database.close()
                else:
                    self.assertRaises(Refused, vault.Vault, place, log_id, [])

    def test_cosignatures_hold_and_no_other_do(self) -> None:
        for vector in vectors("witness/cosignatures.json"):
            key, text = policies.cosigner(vector["vkey"]), vector["text"]
            self.assertEqual(key.message(text, vector["time"]).hex(), vector["message"], vector["name"])
            checkpoint = notes.checkpoint(f"{text}\n{vector['line']}")
            self.assertEqual(key.time(checkpoint), vector["time"], vector["name"])
            for other in (text.replace("\n0\n", "\n1\n"), text.replace("2085", "2086")):
                if other != text:
                    forged = notes.checkpoint(f"{other}\n{vector['line']}")
                    self.assertRaises(policies.WrongSignature, key.time, forged)

    def test_policies_ask_for_their_quorum(self) -> None:
        found = vectors("witness/cosignatures.json")
        one, log_key = found[0], found[-1]
        checkpoint = notes.checkpoint(f"{one['text']}\n{one['line']}")
        other = next(it for it in found if it["vkey"] != one["vkey"])
        lines = f"witness A {one['vkey']}\nwitness B {other['vkey']}\n"
        for rest, met in (
            ("quorum none\n", True),
            ("quorum A\n", True),
            ("quorum B\n", False),
            ("group G any A B\nquorum G\n", True),
            ("group G all A B\nquorum G\n", False),
            ("group G 1 B\ngroup H 1 G A\nquorum H\n", True),
        ):
            self.assertEqual(policies.policy((lines + rest).encode()).is_met(checkpoint), met, rest)
        for refused in (
            "",
            "quorum none",
            "quorum A\n",
            f"{lines}quorum C\n",
            f"{lines}group G 3 A B\nquorum G\n",
            f"{lines}group G any A A\nquorum G\n",
            f"{lines}group G any A\ngroup H any A\nquorum H\n",
            f"{lines}witness C {one['vkey']}\nquorum C\n",
            f"{lines}quorum A\nquorum A\n",
            f"log {one['vkey']}\nquorum none\n",
            "quorum none\r\n",
        ):
            self.refused(refused, lambda: policies.policy(refused.encode()))
        signed = notes.checkpoint(f"{log_key['text']}\n{log_key['line']}")
        policies.policy(f"log {log_key['vkey']}\nquorum none\n".encode()).check(signed)
        self.refused("another log", lambda: policies.policy(b"quorum none\n").check(signed))

    @staticmethod
    def laid_out(found: dict[str, Any], place: Path) -> Path:
        """The vault of the vectors, with rows of the index that have no entry for all that they leave out."""
        (place / "vault").mkdir()
        (place / "roots").mkdir()
        (place / f"roots/{found['generation']}.root").write_text(found["root_file"])
        (place / f"roots/{found['generation']}.keys").write_bytes(unhex(found["keys_file"]))
        database = sqlite3.connect(place / "vault/vault.db")
        for statement in ("page_size = 4096", "journal_mode = WAL", "application_id = 1114991724", "user_version = 5"):
            database.execute(f"PRAGMA {statement}")
        for statement in vault.SCHEMA.values():
            database.execute(statement)
        for number, name in ((1, "meta"), (2, "not_erasing"), (4, "changes"), (5, "skipped")):
            database.execute("INSERT INTO records VALUES (?, ?)", (number, unhex(found[name])))
        for table, key, name in (("rows", "rows", "id"), ("entries", "index", "id"), ("buckets", "buckets", "first")):
            for row in found[key]:
                database.execute(f"INSERT OR IGNORE INTO {table} VALUES (?, ?)", (row[name], unhex(row["row"])))
        keys = vault.KeyFile(unhex(found["root"]), unhex(found["keys_file"]), unhex(found["log_id"]), found["generation"])
        for number, key in keys.buckets.items():
            both = expand(key, b"bulla vault index v2", 48)
            for row in range(number << 8, (number << 8) + 256):
                additional = b"bulla vault index v2" + unhex(found["log_id"]) + u64(row)
                empty = vault.AESGCMSIV(both[:32]).encrypt(row.to_bytes(12, "little"), b"", additional)
                database.execute("INSERT OR IGNORE INTO entries VALUES (?, ?)", (row, empty))
        database.commit()
        database.close()
        return place


if __name__ == "__main__":
    unittest.main()
