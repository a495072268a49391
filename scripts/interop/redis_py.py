"""redis-py's own tests, in RESP2, in RESP3, and with TLS on the client's side; without those that need a cluster, Sentinel or modules."""

import os
import pathlib
import tarfile
import xml.etree.ElementTree

from common import HERE, compared, installed, must, run

# What is not unpacked: tests that need what is not there (modules, a cluster, Sentinel, other services), those that need no server, and
# `cwe_404`, which listens at a port that it always has: runs beside one another take it from each other.
LEFT_OUT = """bloom cluster cluster_transaction json search search_aggregation search_querystring search_result sentinel
    sentinel_managed_connection ssl timeseries vsets himport himport_integration backoff crc credentials defaults driver_info event
    exceptions command_policies data_structure usage_counter cwe_404""".split()
LEFT_OUT_FOLDERS = set("maint_notifications test_auth test_http test_multidb test_observability test_scenario".split())
# What speaks with the server most.
WITH_TLS = [f"tests/{folder}test_{name}.py" for folder in ("", "test_asyncio/") for name in ("commands", "encoding", "lock", "pipeline", "pubsub", "scripting")]
MARKED = "onlycluster redismod ssl replica cp_integration multidb_integration".split()


def install(folder):
    must(["python3", "-m", "venv", folder / "venv"])
    pip = [folder / "venv/bin/python", "-m", "pip", "--disable-pip-version-check", "--no-input"]
    must([*pip, "install", "--quiet", "--require-hashes", "-r", "redis-py.txt"], cwd=os.path.dirname(__file__))
    source = ["--no-deps", "--no-binary", ":all:", "--no-build-isolation", "--require-hashes", "-r", "redis-py-source.txt"]
    must([*pip, "download", "--quiet", *source, "--dest", folder], cwd=os.path.dirname(__file__))
    with tarfile.open(next(folder.glob("redis-*.tar.gz"))) as archive:
        archive.extractall(folder / "source", members=filter(wanted, archive), filter="data")


def wanted(member):
    path = pathlib.PurePath(member.name)
    return not LEFT_OUT_FOLDERS.intersection(path.parts) and path.name not in {f"test_{name}.py" for name in LEFT_OUT}


def suites(bulla):
    folder = installed("redis-py", ["redis-py.txt", "redis-py-source.txt", "redis_py.py"], install)
    source = next((folder / "source").iterdir())

    def tests(protocol, files=("tests",)):
        def at(place):
            environment = os.environ | {"PYTHONPATH": f"{source}:{HERE}"}
            # Where Python looks for authorities.
            scheme, plugin = ("rediss", ["-p", "tls_alone"]) if place.tls else ("redis", [])
            if place.tls:
                environment["SSL_CERT_FILE"] = str(place.tls / "ca.pem")
            report = place.folder / "report.xml"
            command = [folder / "venv/bin/python", "-B", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:warnings", *plugin, *files]
            command += ["-m", " and ".join(f"not {mark}" for mark in MARKED), f"--junitxml={report}"]
            command += [f"--redis-url={scheme}://127.0.0.1:{place.port}/0", f"--protocol={protocol}"]
            run(command, output=place.folder / "output", limit=900, cwd=source, env=environment)
            return outcomes(report)

        return at

    yield compared("redis-py RESP2", tests(2), bulla)
    yield compared("redis-py RESP3", tests(3), bulla)
    yield compared("redis-py TLS", tests(3, WITH_TLS), bulla, tls=True)


def outcomes(report):
    """What each test came to."""
    told = {}
    for test in xml.etree.ElementTree.parse(report).iter("testcase"):
        kinds = {child.tag for child in test}
        outcome = "failed" if kinds & {"failure", "error"} else "skipped" if "skipped" in kinds else "passed"
        name = f"{test.get('classname').removeprefix('tests.')}.{test.get('name')}"
        # A test whose end fails is told of twice.
        told[name] = "failed" if told.get(name) == "failed" else outcome
    return told
