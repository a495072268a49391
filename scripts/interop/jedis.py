"""Jedis, whose tests need containers: what a driver does with it (`Driver.java`), and what comes of it, in RESP2 and RESP3."""

from common import HERE, checked, compared, installed, must, run


def install(folder):
    library = folder / "lib"
    must(["mvn", "-q", "-B", "-f", HERE / "pom.xml", "dependency:copy-dependencies", f"-DoutputDirectory={library}"])
    for line in (HERE / "jedis.sha256").read_text().splitlines():
        digest, name = line.split()
        checked(library / name, digest)
    must(["javac", "-cp", f"{library}/*", "-d", folder, HERE / "Driver.java"])


def suites(bulla, program="redis-server", before=""):
    folder = installed("jedis", ["pom.xml", "jedis.sha256", "Driver.java"], install)

    def tests(protocol):
        def at(place):
            output = place.folder / "output"
            run(["java", "-cp", f"{folder}:{folder}/lib/*", "Driver", place.port, protocol], output=output, limit=300)
            lines = [line.split("\t", 2) for line in output.read_text(errors="replace").splitlines() if line.count("\t") >= 2]
            # What came of it is in its name: what came to something else is missing.
            return {f"{name}: {what}": outcome for outcome, name, what in lines}

        return at

    for protocol in (2, 3):
        yield compared(f"Jedis RESP{protocol}{before}", tests(protocol), bulla, program)
