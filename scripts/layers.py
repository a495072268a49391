#!/usr/bin/env python3
"""Holds the imports of the source against the table of layers in ARCHITECTURE.md.

The rows of the table are the layers, lowest first: crates, and the folders of the engine, `crates/bulla/src/`. A layer may
import the layers above its row and nothing below it; an engine's folder may also import any crate of a row above its
own. Inside a layer, modules of one folder may know each other but not in a circle: a file imports its folder's other
files in one order. Tests (`tests.rs`, `tests/`, `world.rs`, whatever is under `#[cfg(test)]`) may import anything.

Prints each import that points down the table, and each circle, and exits with 1 where there is one.
"""

import pathlib
import re
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
ENGINE = ROOT / "crates/bulla/src"


def layers():
    """The layers of the table, in its order."""
    text = (ROOT / "ARCHITECTURE.md").read_text()
    table = text[text.index("## Layers"):]
    table = table[:table.index("\n## ", 1)]
    return re.findall(r"^\| `([a-z/-]+)`", table, re.M)


def without_tests(source):
    """The source without comments and without what is compiled for tests alone."""
    source = re.sub(r"//.*", "", source)
    result, at = [], 0
    for match in re.finditer(r"#\[cfg\(test\)\]\s*", source):
        if match.start() < at:
            continue
        result.append(source[at:match.start()])
        rest = match.end()
        semicolon, brace = source.find(";", rest), source.find("{", rest)
        if brace < 0 or 0 <= semicolon < brace:
            at = semicolon + 1
            continue
        depth = 0
        for position in range(brace, len(source)):
            depth += {"{": 1, "}": -1}.get(source[position], 0)
            if depth == 0:
                at = position + 1
                break
    result.append(source[at:])
    return "".join(result)


def is_test(path):
    return path.name in ("tests.rs", "world.rs", "fuzzing.rs") or "tests" in path.parts or "fuzzing" in path.parts


def first_names(source, prefix):
    """The first component of every path behind `prefix::`."""
    names = set()
    for match in re.finditer(rf"(?<![\w:]){prefix}::(\{{|\w+)", source):
        if match.group(1) != "{":
            names.add(match.group(1))
            continue
        depth, name, position = 1, "", match.end()
        while depth and position < len(source):
            char = source[position]
            depth += {"{": 1, "}": -1}.get(char, 0)
            if depth == 1 and char == ",":
                names.add(name.split("::")[0].strip())
                name = ""
            elif depth >= 1:
                name += char
            position += 1
        names.add(name.split("::")[0].strip())
    return names - {""}


def imports():
    """Which layer imports which, by file."""
    crates = {path.name: path / "src" for path in (ROOT / "crates").iterdir() if (path / "src").is_dir()}
    for crate, folder in sorted(crates.items()):
        for path in sorted(folder.rglob("*.rs")):
            if is_test(path.relative_to(folder)):
                continue
            source = without_tests(path.read_text())
            own = crate
            if crate == "bulla":
                parts = path.relative_to(folder).parts
                own = f"{parts[0]}/" if len(parts) > 1 else None
                if own is None:
                    continue
                for name in first_names(source, "crate"):
                    if (ENGINE / name).is_dir() and f"{name}/" != own:
                        yield path, own, f"{name}/"
            for other in crates:
                if other != crate and re.search(rf"(?<![\w:]){other.replace('-', '_')}::", source):
                    yield path, own, other


def module(path, base):
    parts = list(path.relative_to(base).with_suffix("").parts)
    return tuple(parts[:-1] if parts[-1] in ("mod", "lib", "main") else parts)


def passed_on(base):
    """What a module passes on of a module inside it: the path that others name, and the path behind it."""
    found = {}
    for path in sorted(base.rglob("*.rs")):
        own = module(path, base)
        source = without_tests(path.read_text())
        for match in re.finditer(r"\bpub(?:\([\w: ]+\))? use (?:self::)?(\w+)((?:::\w+)*)(?:::\{([^{}]*)\})?( as \w+)?;", source):
            if match.group(1) in ("crate", "super", "std"):
                continue
            inside = own + (match.group(1),)
            names = [match.group(2).split("::")[-1]] if match.group(3) is None else match.group(3).split(",")
            for name in [match.group(4)] if match.group(4) else names:
                found[own + (name.split(" as ")[-1].strip(),)] = inside
    return found


def children(base):
    """The modules of a source folder, with what each imports of its neighbours: `(folder, importer, imported)`."""
    behind = passed_on(base)
    for path in sorted(base.rglob("*.rs")):
        if is_test(path.relative_to(base)):
            continue
        own = module(path, base)
        source = without_tests(path.read_text())
        targets = set()
        for match in re.finditer(r"(?<![\w:])(crate|(?:super::)*super)((?:::\w+)+)", source):
            start = () if match.group(1) == "crate" else own[:len(own) - match.group(1).count("super")]
            targets.add(start + tuple(match.group(2).split("::")[1:]))
        for match in re.finditer(r"(?<![\w:])((?:crate|super)(?:::\w+)*)::\{([^{}]*(?:\{[^{}]*\}[^{}]*)*)\}", source):
            words = match.group(1).split("::")
            start = () if words[0] == "crate" else own[:len(own) - words.count("super")]
            start += tuple(word for word in words if word not in ("crate", "super"))
            for name in re.sub(r"\{[^{}]*\}", "", match.group(2)).split(","):
                targets.add(start + tuple(part for part in name.strip().split(" as ")[0].split("::") if part))
        for target in targets:
            target = next((behind[target[:end]] for end in range(len(target), 0, -1) if target[:end] in behind), target)
            shared = 0
            while shared < min(len(own), len(target)) and own[shared] == target[shared]:
                shared += 1
            if shared < len(own) and shared < len(target):
                yield own[:shared], own[shared], target[shared]


def circles(base):
    """Modules of one folder that import each other in a circle: `(folder, modules)`."""
    folders = {}
    known = {module(path, base) for path in base.rglob("*.rs")}
    known |= {name[:end] for name in known for end in range(1, len(name))}
    for folder, importer, imported in children(base):
        if folder + (imported,) in known:
            folders.setdefault(folder, {}).setdefault(importer, set()).add(imported)
    for folder, edges in sorted(folders.items()):
        for circle in components(edges):
            yield "/".join(folder), circle


def components(edges):
    """Strongly connected components of more than one module."""
    def reach(start):
        seen, todo = set(), [start]
        while todo:
            for following in edges.get(todo.pop(), ()):
                if following not in seen:
                    seen.add(following)
                    todo.append(following)
        return seen
    reached = {name: reach(name) for name in edges}
    done = set()
    for name in sorted(edges):
        circle = sorted(other for other in reached[name] if name in reached.get(other, ()))
        if len(circle) > 1 and name not in done:
            done.update(circle)
            yield circle


def test():
    """That circles are found whatever way a module is named, and nothing is taken for one that is none."""
    for files, expected in (
        ({"a": "use super::b::B;", "b": ""}, []),
        ({"a": "use super::b::B;", "b": "use crate::a::A;"}, [("", ["a", "b"])]),
        ({"a": "use crate::{c::C, b::{self, B}};", "b": "use super::{a, c};", "c": ""}, [("", ["a", "b"])]),
        ({"a": "fn f() { crate::b::g() }", "b": "fn g() { super::c::h() }", "c": "fn h(_: crate::a::A) {}"},
         [("", ["a", "b", "c"])]),
        # By what the folder passes on.
        ({"lib": "pub use b::{B, C};", "a": "use crate::B;", "b": "use crate::a::A;"}, [("", ["a", "b"])]),
        ({"lib": "pub(crate) use b::B;", "a": "use super::B;", "b": "use super::a::A;"}, [("", ["a", "b"])]),
        # Only in one folder, from wherever inside it.
        ({"x/mod": "", "x/a": "use crate::x::b::B;", "x/b": "use super::a::A;", "y": "use crate::x::X;"},
         [("x", ["a", "b"])]),
        ({"x/mod": "", "x/a": "use crate::y::Y;", "y": "use crate::x::a::A;"}, [("", ["x", "y"])]),
        # Not in comments, in tests, or of what a folder itself has.
        ({"a": "use super::b::B; // as crate::b::B", "b": "//! See super::a::A.\n#[cfg(test)]\nmod tests { use crate::a::A; }"}, []),
        ({"a": "use super::b::B;", "b/mod": "", "b/tests": "use crate::a::A;"}, []),
        ({"lib": "pub struct L;", "a": "use super::L;", "b": "use super::a::A;"}, []),
    ):
        with tempfile.TemporaryDirectory() as folder:
            for name, source in files.items():
                path = pathlib.Path(folder, name + ".rs")
                path.parent.mkdir(exist_ok=True)
                path.write_text(source)
            found = list(circles(pathlib.Path(folder)))
            assert found == expected, f"{files}: {found}, not {expected}"


def main():
    test()
    order = {name: index for index, name in enumerate(layers())}
    wrong = []
    folders = {f"{path.name}/" for path in ENGINE.iterdir() if path.is_dir()} - {"fuzzing/"}
    crates = {path.name for path in (ROOT / "crates").iterdir()} - {"bulla"}
    for missing in sorted((folders | crates) - set(order)):
        wrong.append(f"ARCHITECTURE.md: `{missing}` is no row of the table of layers")
    for extra in sorted(set(order) - folders - crates):
        wrong.append(f"ARCHITECTURE.md: there is no layer `{extra}`")
    for path, own, other in imports():
        if other == "bulla":
            other = "log/"
        if order.get(own, 0) <= order.get(other, -1):
            wrong.append(f"{path.relative_to(ROOT)}: `{own}` imports `{other}`, which stands above it")
    for base in sorted((ROOT / "crates").glob("*/src")):
        for folder, circle in circles(base):
            wrong.append(f"{(base / folder).relative_to(ROOT)}: a circle of {', '.join(circle)}")
    print("\n".join(wrong) or f"{len(order)} layers, no import points up and no circle runs between rooms")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
