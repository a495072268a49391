"""go-redis' own specifications, out of its module, as they run against one server that was there before."""

import json
import os
import shutil
import xml.etree.ElementTree

from common import Failed, compared, installed, must, run

MODULE, RELEASE = "github.com/redis/go-redis/v9", "v9.23.0"
# The digest of the module, as `go.sum` would have it.
SUM = "h1:/TTVdJa8BRNsybwwGGnmiYktHNlUXtbOQxlWpHBPL3s="
# What needs modules, a cluster, Sentinel, several servers, or another release of the server.
SKIPPED = "Cluster|Sentinel|Ring|[Ff]ailover|Search|JSON|Bloom|Cuckoo|Topk|t-digest|TDigest|CMS|TimeSeries|Probabilistic|[Vv]ector|Command Tips|TLS|Credentials Provider|UniversalClient"


def install(folder):
    told = json.loads(must(["go", "mod", "download", "-json", f"{MODULE}@{RELEASE}"], cwd=folder, env=os.environ | {"GOFLAGS": "-mod=mod"}))
    if told["Sum"] != SUM:
        raise Failed(f"{MODULE} is not what is pinned: its digest is {told['Sum']}")
    shutil.copytree(told["Dir"], folder / "source", copy_function=shutil.copyfile)
    must(["chmod", "-R", "u+w", folder / "source"])
    must(["go", "test", "-c", "-o", folder / "suite", "."], cwd=folder / "source", limit=900)


def suites(bulla):
    folder = installed("go-redis", ["go_redis.py"], install)

    def tests(place):
        report, endpoints = place.folder / "report.xml", place.folder / "endpoints.json"
        endpoints.write_text(json.dumps({"server": {"endpoints": [f"redis://127.0.0.1:{place.port}"]}}))
        # So it looks for no other servers than this.
        there = {"RE_CLUSTER": "true", "REDIS_ENDPOINTS_CONFIG_PATH": str(endpoints), "REDIS_VERSION": "7.0"}
        command = [folder / "suite", "-test.run", "^TestGinkgoSuite$", "-test.timeout", "9m", "--ginkgo.no-color", "--ginkgo.seed=1"]
        command += [f"--ginkgo.skip={SKIPPED}", f"--ginkgo.junit-report={report}"]
        run(command, output=place.folder / "output", cwd=folder / "source", env=os.environ | there)
        return outcomes(report)

    yield compared("go-redis", tests, bulla)


def outcomes(report):
    """What each specification came to."""
    told = {}
    for test in xml.etree.ElementTree.parse(report).iter("testcase"):
        status = test.get("status")
        if test.get("name").startswith("[It]"):
            told[test.get("name")[5:]] = status if status in ("passed", "skipped") else "skipped" if status == "pending" else "failed"
    return told
