#!/usr/bin/env python3
"""Writes the seed corpus of the fuzz targets anew, from the vectors and from a small log that the engine made; `make corpus` runs it.

    fuzz/make_corpus.py audit
"""

import base64
import hashlib
import json
import pathlib
import shutil
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
CORPUS = ROOT / "fuzz" / "corpus"
sys.path.insert(0, str(ROOT / "vectors" / "proof"))

import proofs  # noqa: E402
import records  # noqa: E402

JSONL = [
    '{"operation":"read"}',
    '{"operation":"update","time":"2026-11-21T10:00:00.123456789+02:00","location":"user_42/email","subject":'
    '["user_42","user_7"],"controller":"c","processor":"p","purpose":"support","actor":"a","client":"192.0.2.1",'
    '"stream":"s","status":4294967295,"duration":18446744073709551615,"size":0,"flags":1,"payload":"x\\u00e9\\n"}',
    '{"operation":"x","payload_base64":"AAECAw==","location_base64":"/w=="}',
    '{"operation":"x","subject":[]}',
    '{"operation":"","unknown":1}',
    '{"operation":"x","time":"2026-11-21"}',
]
COMBINED = [
    '192.0.2.1 - - [21/Nov/2026:10:05:03 +0000] "GET /a?b=c HTTP/1.1" 200 203 "-" "agent/1.0 (a; b)"',
    '2001:db8::1 id alice [01/Jan/1970:00:00:00 -0130] "POST /a b HTTP/2.0" 500 - "http://x/" "q \\" q"',
    '192.0.2.1 - - [21/Nov/2026:10:05:03 +0000] "GET /a HTTP/1.1" 200 203 "-" "no end',
]
# Of `docs/formats.md` the examples of these formats.
FORMATS = {
    "apache_error": ["apache-error"],
    "combined": ["combined", "common"],
    "csv": ["csv", "postgres-csv"],
    "journal_export": ["journal-export"],
    "json": ["json", "journal-json"],
    "logfmt": ["logfmt"],
    "raw": ["raw"],
    "redis_monitor": ["redis-monitor"],
    "syslog": ["syslog"],
}
# What that document cannot show: lengths, other records behind them, lines that are joined.
RECORDS = {
    "csv": [b'a,"b ""c"\r\n1,"2\n3"\n"4",\n,5"6\n"no end'],
    "journal_export": [b"MESSAGE\n\x07\0\0\0\0\0\0\0foo\nbar\nRAW\n\x01\0\0\0\0\0\0\0\xff\nA=1\nA=2\n\n\nB=3\n"],
    "json": [b'{"a":[1,-2,3.5e1,null,true,"\\ud83d\\ude00"],"MESSAGE":[104,105],"TWICE":["a",[255]]}\n{"a":1,"a":2}\n'],
    "logfmt": [b'a="\\u00e9\\ud83d\\ude00\\x41\\xff\\U0001F600" b= c a=1\n'],
    "raw": [b"Exception a\n\tat b\n\tat c\n\n1 d\n" + b"x" * 300 + b"\n y\n"],
    "redis_monitor": [b'+OK\n+1.5 [12 [::1]:60866] "SET" "a \\"b\\"] \\"" "\\xff\\x00\\n\\\\"\n1.5 [0 unix:/r [1].sock:7] "AUTH"\n'],
    "syslog": [
        b"11 <13>su: a\nb21 <13>1 - - - - - - c\n<13>d\n",
        b'<13>1 - - - - - [a b="1\\]\\"\\\\\\n" b="2"][c] \xef\xbb\xbfx\nNov  6 2026 10:00:00.5 fw : y\n',
    ],
}
# As haproxy 2.6 sends them.
PROXY_V2 = b"\r\n\r\n\0\r\nQUIT\n"
PROXY_HEADERS = [
    b"PROXY TCP4 127.0.0.1 127.0.0.1 58298 17001\r\nPING\r\n",
    b"PROXY TCP6 ::1 ::1 58904 17005\r\n",
    b"PROXY UNKNOWN\r\n",
    PROXY_V2 + bytes.fromhex("2111000c7f0000017f000001eab4426a"),
    PROXY_V2 + bytes.fromhex("211100237f0000017f000001ac5a426b030004c1ea987005000d") + b"7F000001:AC5A",
    PROXY_V2 + bytes.fromhex("2121002b" + 2 * ("00" * 15 + "01") + "ad36426c030004a5b10d2a"),
    PROXY_V2 + bytes.fromhex("20000000"),
    PROXY_V2 + bytes.fromhex("20000007030004a9b87e8f"),
    PROXY_V2 + bytes.fromhex("213100d8") + bytes(216),
]
MSGPACK = [
    b"\x81\xa9operation\xa4read",
    b"\x85\xa4time\xd3\xff\xff\xff\xfe\0\0\0\0\xa9operation\xa4read\xa8location\xc4\x02k\xff\xa7subject\x92\xa1a\xa0\xa6status\xcc\xc8",
    b"\x83\xa9operation\xa1x\xa4size\xcf" + b"\xff" * 8 + b"\xa7payload\xd9\x01x\x81\xa9operation\xa1y",
    b"\x82\xa6colour\x92\x01\x81\xc0\xc3\xa9operation\xa1x\x91\x01\x81\xa9operation\xa1y",
    b"\x81\xc7\x02t..\xd8t" + b"." * 16 + b"\xdf\0\0\0\x01\xa9operation\xa1z",
]
CONFIG = """[log]
version = 1
id = "000102030405060708090a0b0c0d0e0f"
origin = "PeterNeumann"
vkey = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW"
hash = "sha256"
recipients = ["age1ql3z7hjy54pw3hyww5ayyfg7zqgvc7w3j2elw8zmrj2kg5sfn9aqmcac8p"]

[settings]
memory = "64 MiB"
linger = "5 ms"
durability = "interval 100 ms"
"""

RESP = [
    # Commands: arrays, lines, what is none.
    b"*3\r\n$3\r\nSET\r\n$3\r\nkey\r\n$5\r\nvalue\r\n*2\r\n$3\r\nGET\r\n$3\r\nkey\r\n",
    b"*0\r\n\r\nSET key \"a \\x41\\n\"  'it\\'s'\r\nPING\n*-1\r\n*1\r\n$4\r\nPING\r\n",
    b"*2\r\n$4\r\nECHO\r\n$0\r\n\r\n*2147483647\r\n$9223372036854775807\r\nabc",
    # Replies: of both versions, attributes, streams.
    b"+OK\r\n-WRONGTYPE not a list\r\n:-42\r\n$5\r\nhello\r\n$-1\r\n*-1\r\n*2\r\n*1\r\n:1\r\n$0\r\n\r\n",
    b"_\r\n#t\r\n,-1.5e3\r\n,inf\r\n(349289032840923850932\r\n!5\r\nERR x\r\n=7\r\ntxt:abc\r\n",
    b"*4\r\n%1\r\n+a\r\n:1\r\n~2\r\n:1\r\n:2\r\n>1\r\n+x\r\n,1.5\r\n>2\r\n+invalidate\r\n_\r\n",
    b"|1\r\n+ttl\r\n:3600\r\n*2\r\n|1\r\n+a\r\n*1\r\n_\r\n:1\r\n=7\r\nmkd:abc\r\n",
    b"*?\r\n$?\r\n;3\r\nabc\r\n;1\r\nd\r\n;0\r\n%?\r\n+a\r\n~?\r\n.\r\n.\r\n.\r\n",
]


def write(target, name, content):
    folder = CORPUS / target
    folder.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(content)


def vectors(name):
    return json.loads((ROOT / "vectors" / name).read_text())


def hex_strings(value):
    """Every even run of hexadecimal digits in a JSON document."""
    if isinstance(value, dict):
        for inner in value.values():
            yield from hex_strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from hex_strings(inner)
    elif isinstance(value, str) and len(value) >= 8 and len(value) % 2 == 0:
        if all(digit in "0123456789abcdef" for digit in value):
            yield bytes.fromhex(value)


def checked(line):
    return line + b" " + hashlib.sha256(line).hexdigest()[:8].encode() + b"\n"


def write_formats():
    """Records of other programs' logs."""
    document = (ROOT / "docs" / "formats.md").read_text()
    for target, formats in FORMATS.items():
        for name in formats:
            example = document.split(f"\n```{name}\n")[1].split("\n```")[0]
            write(target, f"document-{name}", example.encode() + b"\n")
        for index, content in enumerate(RECORDS.get(target, [])):
            write(target, f"records-{index}", content)


def write_maps():
    """Maps, each with the records that its document or its test has."""
    between = "\n=====\n"
    blocks = (ROOT / "docs" / "maps.md").read_text().split("```")[1::2]
    toml = ""
    for index, block in enumerate(blocks):
        language, text = block.split("\n", 1)
        toml = text if language == "toml" else toml
        if language == "record" and toml:
            write("map", f"document-{index}", (toml + between + text).encode())
    # A few of those that come with Bulla: larger regular expressions take a fuzzer's time to compile.
    crate = ROOT / "crates" / "bulla-ingest"
    for name in ("aws-cloudtrail", "mysql-audit", "nginx"):
        toml = (crate / "maps" / f"{name}.toml").read_text()
        examples = (crate / "src" / "map" / "tests" / "ready" / f"{name}.txt").read_text()
        records = "".join(line[2:] + "\n" for line in examples.splitlines() if line.startswith("< "))
        write("map", f"ready-{name}", (toml + between + records).encode())


def write_events(events):
    """Proofs of events, and those that do not hold; the orders in them, and the files of orders."""
    for kind in ("events", "refused", "bodies_refused"):
        for index, case in enumerate(events[kind]):
            write("proof", f"event-{kind}-{index}", case["file"].encode())
    for index, case in enumerate(events["orders"]):
        write("small_files", f"order-{index}", case["note"].rpartition("\n\n")[0].encode() + b"\n")
        write("small_files", f"order-file-{index}",
              json.dumps(dict(order=case["note"], subjects=case["subjects"])).encode())
    for index, case in enumerate(events["hold_orders"]):
        for kind, order in (("hold", case), ("release", case["release"])):
            write("small_files", f"{kind}-order-{index}", order["note"].rpartition("\n\n")[0].encode() + b"\n")
            kept = {name: order[name] for name in ("subject", "by", "reason", "salts") if name in order}
            write("small_files", f"{kind}-order-file-{index}", json.dumps(dict(order=order["note"], **kept)).encode())
    case = events["hold_orders"][0]
    held = dict(number=7, by="legal", reason="case 4711", since=1700000000, order=case["note"], salts=case["salts"])
    made_up = {name: value for name, value in held.items() if name != "salts"} | dict(by="unknown (frame 2)", frame=2)
    holds = dict(told=9, holds=[held | dict(frame=3), held | dict(by="b", frame=None), made_up,
                                held | dict(by="c", frame=8, release=case["release"]["note"])])
    write("small_files", "holds", json.dumps(holds).encode())


def write_proofs(proofs, groups):
    """Sound proof files, and what those disclose by itself; and proofs of groups that do not open. The refused ones are a
    mutation away."""
    for name, kind, cases in (("", "proofs", proofs["proofs"]), ("", "consistency", proofs["consistency"]),
                              ("groups-", "proofs", groups["proofs"]), ("groups-", "unopened", groups["unopened"])):
        for index, case in enumerate(cases):
            content = case["file"].encode()
            write("proof", f"{name}{kind}-{index}", content)
            lines = content.split(b"\n")
            if kind == "proofs":
                write("proof", f"{name}disclosure-{index}", base64.b64decode(lines[1].removeprefix(b"extra ")))


def padme(content):
    """Zeros up to the Padme length."""
    length = len(content)
    exponent = length.bit_length() - 1
    unit = 1 << (exponent - exponent.bit_length()) if length >= 2 else 1
    return content + bytes(-length % unit)


def write_index():
    """A file of two parts whose ciphertexts are nothing, and plaintexts of parts behind the blocks that they cover."""
    def part(group, covered, length):
        head = b"BulI" + bytes([1, 0, 0, 0]) + b"".join(n.to_bytes(8, "little") for n in (7, group, covered))
        return head + bytes(range(64)) + length.to_bytes(4, "little") + bytes(length)

    write("index", "file", part(0, 0b110, 20) + part(1, 1, 16))
    write("index", "torn", part(0, 0b110, 20) + part(1, 1, 16)[:-1])
    every = (1 << 64) - 1
    for name, covered, content in (
        ("none", 1, b"\0"),
        # One token, of blocks 1 and 2.
        ("one", 0b110, b"\1" + b"\0\x2a" + b"\0\6"),
        # 1024 tokens, 5 apart, of one block.
        ("constant", 1, b"\x80\x08" + b"\0\5" + b"\0\1"),
        # Three tokens: packed in 8 bits, of blocks by runs.
        ("packed", every, b"\3" + b"\1\0\1\0\x08\1\2\3" + b"\3\1\0\x81\1\0\2"),
        # As many as a part takes.
        ("most", 1, b"\x80\x80\x40" + b"\0\1" + b"\0\1"),
    ):
        write("index", f"plaintext-{name}", covered.to_bytes(8, "little") + padme(content))


def write_sources():
    """Sections of the vectors, and what a log keeps of such sources."""
    for frame in vectors("seal/sha256.json")["frames"]:
        if frame.get("section"):
            write("sources", f"section-{frame['frame']}", b"\0" + bytes.fromhex(frame["section"]))
    held = b"\2\7\5" + bytes(8) + b"\1\x80\2" + bytes(range(8))
    write("sources", "kept", b"\1" + b"\2" + bytes(16) + b"\3ab" + held + b"\x09" + b"\1" * 16 + b"\1" + held + b"\x0a")
    write("sources", "kept-none", b"\1\0")


def write_vault():
    """Records and rows of the vault's vectors, its files by name, and the text of a file of keys behind its counts."""
    vault = vectors("vault/vault.json")
    for name in ("meta", "erasing", "not_erasing", "changes", "skipped"):
        record = bytes.fromhex(vault[name])[:-16]
        write("vault", name, record)
        write("vault", f"{name}-unchecked", record[:-4])
    for bucket in vault["buckets"]:
        content = bytes.fromhex(bucket["row"])[:-16]
        write("vault", f"bucket-{bucket['id']}", bucket["first"].to_bytes(2, "big") + content)
    for row in vault["rows"]:
        people = b"".join(bytes.fromhex(subject["key"] + subject["pseudonym"]) for subject in row["subjects"])
        write("vault", f"row-{row['id']}", row["id"].to_bytes(8, "big") + bytes.fromhex(row["row"]))
        write("vault", f"row-plaintext-{row['id']}", row["id"].to_bytes(8, "big") + people)
    for row in vault["index"]:
        entries = b"".join(
            bytes.fromhex(entry["half"]) + entry["number"].to_bytes(4, "little") for entry in row["entries"])
        write("vault", f"index-{row['id']}", bytes([row["id"] & 0xff]) + bytes.fromhex(row["row"]))
        write("vault", f"index-plaintext-{row['id']}", bytes([row["id"] & 0xff]) + entries)
    halves = b"".join(half.to_bytes(8, "big") + bytes(4) for half in (1, 2, 2**63))
    write("vault", "index-plaintext-ascending", b"\x07" + halves)
    write("vault", "index-plaintext-twice", b"\x07" + halves[:12] * 2)
    write("vault", "keys", bytes.fromhex(vault["keys_file"]))
    for name, rows, buckets in (("none", 0, []), ("some", 2, [5, 9]), ("descending", 1, [9, 5])):
        counts = rows.to_bytes(4, "little") + len(buckets).to_bytes(4, "little")
        keys = bytes(range(32)) * (1 + rows)
        for bucket in buckets:
            keys += bucket.to_bytes(4, "little") + bytes(32)
        write("vault", f"keys-plaintext-{name}", counts + keys)
    write("vault", "root", b"bulla-vault-root-v1 " + b"07" * 16 + b" 3 " + base64.b64encode(bytes(range(32))) + b"\n")
    for name in ("3.root", "12.keys", "0.keys.tmp", "03.root"):
        write("vault", f"name-{name}", name.encode())


def write_records():
    """Groups as records by themselves, behind their numbers of entries, personal fields and common items: those of the vectors, each of their
    strings by itself, and slots of every kind; cut off, and with bits flipped where they begin."""
    usual = sum(1 << bit for bit in range(7, 13))

    def seed(name, entries, personal, items, text):
        head = bytes([entries]) + personal.to_bytes(2, "little") + bytes([len(items)])
        write("records", name, head + b"".join(len(item).to_bytes(2, "little") + item for item in items) + text)

    for group, entries in records.ENTRIES.items():
        text = records.plaintext(entries)
        seed(f"sound-group-{group}", len(entries), usual, records.ITEMS, text)
        seed(f"refused-group-{group}-without-items", len(entries), usual, [], text)
        seed(f"refused-group-{group}-cut", len(entries), usual, records.ITEMS, text[:-1])
        for bit in range(24):
            flipped = int.from_bytes(text, "little") ^ 1 << bit
            seed(f"flipped-group-{group}-{bit}", len(entries), usual, records.ITEMS, flipped.to_bytes(len(text), "little"))

    # One entry about "ann", whose location is the string.
    def located(*how):
        values = dict(location="", subjects=["ann"])
        return records.plaintext([(values, [("spelled", b"ann"), how])])

    strings = {
        "hexadecimal": ("spelled", b"0123456789abcdef"), "lower": ("spelled", b"a word, or/two_-@".replace(b",", b".")),
        "upper": ("spelled", b"A9-_z"), "bytes": ("spelled", bytes(range(256))), "empty": ("spelled", b""),
        "word": ("word", 4), "earlier": ("earlier", 0), "phrase": ("words", [("word", 3), ("earlier", 0), ("spelled", b"x")]),
        "no-words": ("words", []), "words": ("words", [("word", 4)] * 16), "subject": ("shape", 0, [("decimal", "0")]),
        "digits": ("shape", 0, [("decimal", "9" * 19)]), "filled": ("shape", 1, [("word", 3), ("digits", "00")]),
        "object": ("shape", 2, [("decimal", "12345"), ("hexadecimal", "fffff")]),
    }
    for name, how in strings.items():
        seed(f"sound-{name}", 1, usual, records.ITEMS, located(*how))

    # A shape of a slot of each kind, and one of as many slots as there may be.
    each = b"".join(bytes([0, slot]) for slot in (0, *range(1, 21), *range(32, 64), 64))
    fillings = [("spelled", b"w"), ("decimal", "7")] + [("digits", "9" * count) for count in range(1, 20)]
    fillings += [("hexadecimal", "f" * count) for count in (*range(1, 17), *range(1, 17))]
    repeated = [("decimal", "54321")] + [("earlier decimal", 0)] * 127
    usually = records.ITEMS
    for name, shape, filled in (("every-slot", each, fillings), ("most-slots", b"\0\1" * 128, repeated)):
        records.ITEMS = [b"\0" + shape]
        seed(f"sound-{name}", 1, usual, records.ITEMS, located("shape", 0, filled))

    # A subject's slot in an entry that has none, which is refused; and numbers, the greatest of all and 0.
    records.ITEMS = [b"\0\0\x40"]
    bits = records.Bits()
    bits.put(0b11, 7)
    bits.code(4)
    seed("refused-nobody", 1, usual, records.ITEMS, bits.bytes())
    records.ITEMS = []
    bits = records.Bits()
    bits.put(1 | 0b111 << 1, 5)
    for greatest in (2**32 - 1, 2**64 - 1, 0):
        bits.sized(greatest, 7)
    # Status, duration and size are personal, and subjects, of whom there are none.
    seed("sound-numbers", 1, 0b111 << 3 | 1 << 12, [], bits.bytes())
    bits = records.Bits()
    bits.put(1, 7)
    for _ in range(254):
        bits.put(1, 1)
    seed("sound-most-entries", 255, usual, [], bits.bytes())
    records.ITEMS = usually


def write_mirror():
    """Each message of a mirror's line once, and the configuration that a mirror has for a checkpoint."""
    path = b"segments/00000000000000000000.seg"
    number = lambda value: value.to_bytes(8, "little")  # noqa: E731
    messages = {
        "hello": b"\x80bulla-mirror\x01\x01example.com/audit+0a1b2c3d+AaBb",
        "open": b"\x01" + path,
        "opened": b"\x81" + number(9) + b"checkpoint",
        "read": b"\x02" + number(1 << 20) + (1 << 20).to_bytes(4, "little") + path,
        "bytes": b"\x82Bulf",
        "list": b"\x03segments",
        "names": b"\x83\x00\x18\x00" + path[9:] + b"\x01\x01\x00a",
        "wait": b"\x04" + (10_000).to_bytes(4, "little") + bytes(32),
        "news": b"\x84" + bytes(range(32)),
        "state": b"\x05\x01\x01" + number(1_700_000_000) + b"".join(map(number, (300, 290, 12, 11, 4096))),
        "done": b"\x06",
        "failed": b"\x07\x06the source: violation pin-mismatch",
        "not-given": b"\x85\x01No such file",
        "next": b"bulla-next-v1 280\n[log]\nversion = 1\n",
    }
    for name, message in messages.items():
        write("mirror", name, message)


def write_receipts(found):
    """Tree heads, receipts and anchors, sound and refused, and what a Rekor answers of an anchor."""
    for kind in ("heads", "heads_refused", "receipts", "refused"):
        for index, case in enumerate(found[kind]):
            write("cose", f"{kind}-{index}", bytes.fromhex(case["file"]))
    for kind in ("anchors", "anchors_refused"):
        for index, case in enumerate(found[kind]):
            write("anchor", f"{kind}-{index}", case["file"].encode())
    for index, case in enumerate(found["anchors"]):
        head, _, rekor = case["file"].partition("\n\n")
        lines = head.split("\n")
        proof = dict(logIndex=lines[3][6:], treeSize="5", rootHash="", hashes=lines[4:], checkpoint=dict(envelope=rekor))
        answer = dict(logIndex=lines[3][6:], kindVersion=dict(kind="dsse", version="0.0.2"), inclusionProof=proof)
        write("anchor", f"answer-{index}", json.dumps(answer).encode())


def cosigner(name, seed):
    """A witness's key of Ed25519, and its line under a text."""
    key = b"\4" + proofs.seal.ed25519(seed)[0]
    identified = hashlib.sha256(name.encode() + b"\n" + key).digest()[:4]

    def line(text, time):
        signature = proofs.seal.ed25519(seed)[1](f"cosignature/v1\ntime {time}\n{text}".encode())
        return f"\u2014 {name} {proofs.text64(identified + time.to_bytes(8, 'big') + signature)}\n"

    return f"{name}+{identified.hex()}+{proofs.text64(key)}", line


def write_witnessing(found):
    """Policies with checkpoints that they judge; what is posted to a witness, and what one answers."""
    between = "\n=====\n"
    text = "example.com/log\n0\n47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=\n"
    own = [cosigner(name, bytes([seed]) * 32) for name, seed in ((proofs.WITNESS, 8), ("w.example/2", 10))]
    note = proofs.sign(text, (proofs.ORIGIN, proofs.SEED))
    cosigned = note + "".join(line(text, 1700000000) for _, line in own)
    log = f"log {proofs.vkey(proofs.ORIGIN, proofs.SEED)} https://example.com/log\n"
    lines = [f"witness W{at} {key} https://w{at}.example/\n" for at, (key, _) in enumerate(own)]
    whole = f"# Two of them.\n{log}{''.join(lines)}group G all W0 W1\ngroup H any G\nquorum H\n"
    for name, policy in (("whole", whole), ("none", f"{log}quorum none\n"), ("one", f"{lines[0]}quorum W0\n"),
                         ("first", f"{log}{lines[1]}group G 1 W1\nquorum G\n"), ("unknown", f"{log}quorum W0\n"),
                         ("twice", f"{log}{lines[0]}{lines[0]}quorum W0\n"), ("loop", "group G any G\nquorum G\n")):
        write("policy", name, policy.encode())
        for kind, judged in (("bare", note), ("cosigned", cosigned), ("half", note + own[0][1](text, 1700000000))):
            write("policy", f"{name}-{kind}", (policy + between + judged).encode())
    for name, answer in (("line", own[0][1](text, 1700000000)), ("two", own[1][1](text, 7) + own[0][1](text, 1700000100)),
                         ("early", own[0][1](text, 1600000000)), ("size", "7\n"), ("no-size", "07\n"),
                         ("refused", "the proof does not lead there\n")):
        write("witness_answer", name, answer.encode())
    requests = []
    for index, case in enumerate(found["consistency"]):
        head, _, new = case["file"].partition("\n\n")
        hashes = head.split("\n")[2:]
        requests.append("".join(f"{line}\n" for line in [f"old {case['old_size']}", *hashes, ""]) + new)
        first = base64.b64decode(head.split("\n")[1].removeprefix("old ")).decode()
        grown = f"old 0\n\n{first}{between}{requests[-1]}"
        write("witness_request", f"growth-{index}", (grown if case["old_size"] else requests[-1]).encode())
    write("witness_request", "conflict", (requests[1] + between + requests[-1]).encode())
    write("witness_request", "no-proof", requests[2].replace(requests[2].split("\n")[1], "", 1).encode())
    for name, head in (
        ("post", "POST /add-checkpoint HTTP/1.1\r\nHost: w.example\r\nContent-Length: 7\r\n\r\nold 0\n\n"),
        ("expect", "POST /add-checkpoint HTTP/1.1\r\nhost: w\r\ncontent-length: 65536\r\nExpect: 100-continue\r\n"
                   "Connection: close\r\n\r\n"),
        ("chunked", "POST /add-checkpoint HTTP/1.1\r\nHost: w\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
        ("twice", "POST /add-checkpoint HTTP/1.0\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n"),
        ("get", "GET /add-checkpoint HTTP/1.1\r\nHost: w\r\n\r\n"),
    ):
        write("witness_request", f"head-{name}", head.encode())


def write_grants():
    """What grants hold: nothing; two people and three groups; and a group beyond the tree."""
    head = b"BulG\1" + bytes(range(16)) + (301).to_bytes(8, "little")
    secret = bytes(range(32))
    write("grant", "nothing", head + b"\0\0")
    subjects = b"\2" + b"\3ada\7" + b"\3bob\x80\1"
    groups = b"\x03\1\7" + secret + b"\0\2\7\x78" + secret + b"\xa8\2\1\x80\1" + secret
    write("grant", "groups", head + subjects + b"\3" + groups)
    write("grant", "beyond", head + b"\0\1" + b"\xad\2\1\0" + secret)
    write("grant", "many", head + b"\0" + b"\xff" * 9 + b"\1")


def main():
    log = pathlib.Path(sys.argv[1])
    # What an older form left would be no seed of anything.
    shutil.rmtree(CORPUS, ignore_errors=True)
    keys = log.with_name(log.name + ".keys")
    segment = next(iter(sorted((log / "segments").glob("*.seg")))).read_bytes()
    offset, number = 0, 0
    while offset < len(segment):
        length = 24 + 152 + int.from_bytes(segment[offset + 8 : offset + 12], "little") + 32
        write("frame", f"head-{number}", segment[offset : offset + 176])
        write("commitment", f"log-{number}", segment[offset + 24 : offset + 176])
        if segment[offset + 5] == 2:
            write("small_files", f"epoch-{number}", segment[offset + 176 : offset + length - 32])
        offset, number = offset + length, number + 1
    for name in ("commitments.json", "commitments-refused.json"):
        for index, content in enumerate(hex_strings(vectors(f"proof/{name}"))):
            if len(content) == 152:
                write("commitment", f"{name[:-5]}-{index}", content)
    for name in ("encoded.json", "decoded.json", "refused.json", "groups.json"):
        for index, case in enumerate(vectors(f"columns/{name}")):
            plaintext = bytes.fromhex(case.get("plaintext") or case.get("bytes") or "")
            rows = case.get("rows") or []
            count = case.get("entries", len(rows) if isinstance(rows, list) else 1)
            if count < 1 << 16:
                write("block", f"{name[:-5]}-{index}", int(count).to_bytes(2, "little") + plaintext)
    for index, content in enumerate(hex_strings(vectors("proof/rows.json"))):
        write("row", f"row-{index}", content)
    write_proofs(vectors("proof/proofs.json"), vectors("proof/groups.json"))
    write_events(vectors("proof/events.json"))
    write_index()
    write_sources()
    write_vault()
    write_records()
    write_grants()
    write_mirror()
    write_receipts(vectors("proof/receipts.json"))
    write_witnessing(vectors("proof/proofs.json"))
    for index, path in enumerate(sorted((log / "index").glob("*.idx"))):
        write("index", f"log-{index}", path.read_bytes())
    write("checkpoint", "checkpoint", (log / "checkpoint").read_bytes())
    write("checkpoint", "vkey", CONFIG.split('vkey = "')[1].split('"')[0].encode())
    for path in sorted((log / "tile").rglob("*")):
        if path.is_file():
            name = path.relative_to(log).as_posix()
            width = int(path.name) if ".p/" in name else 256
            write("tile", name.replace("/", "-"), width.to_bytes(2, "little") + path.read_bytes())
            write("tile", "path-" + name.replace("/", "-"), b"\1\0" + name.encode())
    for index, line in enumerate(JSONL):
        write("jsonl", f"line-{index}", line.encode() + b"\n")
    for index, entries in enumerate(MSGPACK):
        write("msgpack", f"entries-{index}", entries)
    for index, stream in enumerate(RESP):
        write("resp", f"stream-{index}", stream)
    for index, header in enumerate(PROXY_HEADERS):
        write("proxy_header", f"header-{index}", header)
    for index, line in enumerate(COMBINED):
        write("combined", f"line-{index}", line.encode() + b"\n")
    write_formats()
    write_maps()
    write("config", "example", CONFIG.encode())
    write("config", "log", (log / "bulla.toml").read_bytes())
    write("small_files", "seal.key", checked(b"bulla-seal-key-v1 " + b"07" * 16 + b" " + b"A" * 43 + b"="))
    write("small_files", "segment", b"00000000000000000012-3.seg")
    event = {"event": "abandoned", "segment": "00000000000000000012.seg", "next_frame": 12, "offset": 0, "reason": "x"}
    write("small_files", "event", json.dumps(event).encode())
    write("config", "settings", b'[settings]\nlinger = "20 ms"\ndurability = "os"\nvault_replicas = ["/mnt/a"]\npin = "/mnt/b/audit.pin"\n')
    identity = (keys / "identity.age").read_text().splitlines()[0]
    write("small_files", "identity", (identity + "\nAGE-SECRET-KEY-1\n").encode())


main()
