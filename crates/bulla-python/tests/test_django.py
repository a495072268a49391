"""The middleware of Django, under WSGI and ASGI. Django's settings are a process's, so each test is a program of its
own.
"""

from __future__ import annotations

from typing import Any

from common import Case

PROJECT = """
import asyncio, json, logging, sys, threading
import django
from django.conf import settings
from django.http import HttpResponse, StreamingHttpResponse
from django.urls import path
from django.core.exceptions import PermissionDenied, ImproperlyConfigured
import bulla_audit
from bulla_audit import Log, bind
from bulla_audit.handler import Handler

log = Log("audit")
logger = logging.Logger("shop")
logger.addHandler(Handler(log))

def subject(request):
    match = request.resolver_match
    return match.kwargs.get("person") if match else None

def actor(request):
    return request.headers.get("X-Actor")

async def actor_later(request):
    await asyncio.sleep(0)
    return actor(request)

def person(request, person):
    bind(purpose="support")
    logger.info("in the view")
    return HttpResponse("é" * 10, status=201 if request.method == "POST" else 200)

async def person_async(request, person):
    bind(purpose="support")
    await asyncio.sleep(0)
    logger.info("in the view")
    return HttpResponse("é" * 10, status=201 if request.method == "POST" else 200)

def stream(request):
    return StreamingHttpResponse(iter([b"a", b"b"]))

def fails(request):
    raise ZeroDivisionError

def denied(request):
    raise PermissionDenied

urlpatterns = [
    path("people/<str:person>", person), path("async/<str:person>", person_async), path("stream", stream), path("fails", fails),
    path("denied", denied),
]

def configure(**audit):
    chosen = {"target": log, "subject": subject, "actor": "__main__.actor", "client": "bulla_audit.django.peer", **audit}
    settings.configure(
        MIDDLEWARE=["bulla_audit.django.Middleware", "django.middleware.common.CommonMiddleware"], ROOT_URLCONF="__main__",
        BULLA_AUDIT={name: value for name, value in chosen.items() if value is not None}, ALLOWED_HOSTS=["*"], SECRET_KEY="x",
        DEBUG=False, LOGGING_CONFIG=None,
    )
    logging.getLogger("django").addHandler(logging.NullHandler())
    logging.getLogger("django").propagate = False
    django.setup()
    from django.test import AsyncClient, Client
    return Client(raise_request_exception=False), AsyncClient(raise_request_exception=False)
"""

REQUESTS = [
    ("GET", "/people/ada?secret=1"),
    ("HEAD", "/people/ada"),
    ("POST", "/people/ada"),
    ("PUT", "/async/bob"),
    ("DELETE", "/denied"),
    ("GET", "/stream"),
    ("GET", "/fails"),
    ("GET", "/nowhere"),
]


class Django(Case):
    def run_project(self, source: str) -> str:
        (self.place / "project.py").write_text(PROJECT + source)
        return self.run_program("import runpy; runpy.run_path('project.py', run_name='__main__')").stdout

    def check_requests(self) -> None:
        found = self.entries()
        inside = [entry for entry in found if entry.get("payload") == "in the view"]
        self.assertEqual([entry["actor"] for entry in inside], ["ada"] * 4)
        names = ["operation", "location", "status", "subject", "purpose", "size", "actor", "client"]
        requests = [[entry.get(name) for name in names] for entry in found if entry.get("payload") is None]
        who = ["ada", "127.0.0.1"]
        self.assertEqual(
            [request[:4] + request[5:] for request in requests],
            [
                ["read", "/people/ada", 200, ["ada"], 20, *who],
                ["read", "/people/ada", 200, ["ada"], None, *who],
                ["create", "/people/ada", 201, ["ada"], 20, *who],
                ["update", "/async/bob", 200, ["bob"], 20, *who],
                ["delete", "/denied", 403, None, requests[4][5], *who],
                ["read", "/stream", 200, None, None, *who],
                ["read", "/fails", 500, None, requests[6][5], *who],
                ["read", "/nowhere", 404, None, requests[7][5], *who],
            ],
        )
        self.assertEqual([request[4] for request in requests], ["support"] * 4 + [None] * 4)
        self.assertTrue(all(entry["duration"] > 0 for entry in found if entry.get("payload") is None))

    def test_under_wsgi(self) -> None:
        self.run_project(f"""
client, _ = configure(durable=True)
for method, where in {REQUESTS!r}:
    client.generic(method, where, headers={{"X-Actor": "ada"}})
""")
        self.check_requests()

    def test_under_asgi(self) -> None:
        self.run_project(f"""
_, client = configure(durable=True, actor=actor_later)

async def act():
    for method, where in {REQUESTS!r}:
        await client.generic(method, where, headers={{"X-Actor": "ada"}})

asyncio.run(act())
""")
        self.check_requests()

    def test_what_cannot_be_recorded_is_refused_or_passes(self) -> None:
        for policy, wanted in [("refuse", "503 503\n"), ("pass", "200 200\n")]:
            with self.subTest(policy=policy):
                self.assertEqual(
                    self.run_project(f"""
client, later = configure(actor=lambda request: "x" * 65_537, unrecordable={policy!r}, durable=True)
later = asyncio.run(later.get("/stream"))
print(client.get("/stream").status_code, later.status_code)
"""),
                    wanted,
                )
                self.assertEqual(self.entries(), [])

    def test_a_subject_that_is_no_text_cannot_be_recorded(self) -> None:
        for policy, wanted in [("refuse", "503 503 0\n"), ("pass", "200 200 2\n")]:
            with self.subTest(policy=policy):
                self.assertEqual(
                    self.run_project(f"""
def subject(request):
    match = request.resolver_match
    return match.kwargs.get("number") if match else None

urlpatterns.append(path("numbers/<int:number>", lambda request, number: HttpResponse("x")))
client, later = configure(subject=subject, unrecordable={policy!r})
later = asyncio.run(later.get("/numbers/42"))
print(client.get("/numbers/42").status_code, later.status_code, sum(way.lost for way in bulla_audit._way._ways))
"""),
                    wanted,
                )
                self.assertEqual(self.entries(), [])

    def test_threads_that_wait_at_once(self) -> None:
        self.run_project("""
client, _ = configure(durable=True)

def act():
    for number in range(50):
        assert client.get("/people/ada").status_code == 200

threads = [threading.Thread(target=act) for _ in range(8)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
""")
        self.assertEqual(sum(entry.get("payload") is None for entry in self.entries()), 400)

    def test_wrong_settings(self) -> None:
        for audit, word in [
            ("target=None", "target"),
            ("status=lambda request: 5", "status"),
            ("unrecordable='raise'", "unrecordable"),
        ]:
            told = self.run_project(f"""
client, _ = configure({audit})
try:
    client.get("/stream")
except ImproperlyConfigured as error:
    print(error)
""")
            self.assertIn("BULLA_AUDIT", told)
            self.assertIn(word, told)
