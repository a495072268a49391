"""The middleware of ASGI: alone, so that every message is seen, and in a FastAPI application."""

from __future__ import annotations

import asyncio
import logging
import uuid
from typing import Any

import bulla_audit
from bulla_audit import Log, bind
from bulla_audit.asgi import Middleware, peer
from bulla_audit.handler import Handler
from common import Case
from fastapi import FastAPI, HTTPException
from fastapi.responses import StreamingResponse


class Asgi(Case):
    def setUp(self) -> None:
        super().setUp()
        self.log = Log(self.path)
        self.addCleanup(self.log.close)

    def call(
        self, app: Any, method: str = "GET", path: str = "/", kind: str = "http", **scope: Any
    ) -> list[dict[str, Any]]:
        """What an application sends."""
        return asyncio.run(self.called(app, method, path, kind, **scope))

    async def called(self, app: Any, method: str, path: str, kind: str = "http", **scope: Any) -> list[dict[str, Any]]:
        sent = []
        requests = [{"type": "http.request", "body": b"", "more_body": False}]

        async def receive() -> dict[str, Any]:
            while not requests:
                # The client stays.
                await asyncio.sleep(600)
            return requests.pop()

        async def send(message: dict[str, Any]) -> None:
            sent.append(message)

        whole = {
            "type": kind,
            "asgi": {"version": "3.0"},
            "http_version": "1.1",
            "method": method,
            "path": path,
            "raw_path": path.encode(),
            "query_string": b"secret=1",
            "headers": [],
            "client": ("192.0.2.7", 5000),
            "server": ("localhost", 80),
            "scheme": "http",
            "root_path": "",
            **scope,
        }
        try:
            await app(whole, receive, send)
        except Exception as error:
            sent.append({"type": "raised", "error": error})
        return sent

    @staticmethod
    async def hello(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": [(b"Content-Length", b"5")]})
        await send({"type": "http.response.body", "body": b"hel", "more_body": True})
        await send({"type": "http.response.body", "body": b"lo"})

    def found(self) -> list[dict[str, Any]]:
        self.log.close()
        return self.entries()


class Alone(Asgi):
    def test_methods_and_what_an_entry_has(self) -> None:
        app = Middleware(
            self.hello, self.log, client=peer, actor=lambda scope: "ada", purpose="support", controller=None
        )
        methods = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "QUERY"]
        for method in methods:
            messages = self.call(app, method, "/people/42 ü")
            self.assertEqual(
                [message["type"] for message in messages], ["http.response.start"] + ["http.response.body"] * 2
            )
        found = self.found()
        operations = ["read", "read", "create", "update", "update", "delete", "options", "query"]
        self.assertEqual([entry["operation"] for entry in found], operations)
        self.assertEqual({entry["location"] for entry in found}, {"/people/42 ü"})
        self.assertEqual(
            {(entry["status"], entry["client"], entry["actor"]) for entry in found}, {(200, "192.0.2.7", "ada")}
        )
        self.assertEqual([entry.get("size") for entry in found], [5, None] + [5] * 6)
        self.assertTrue(all(entry["duration"] > 0 and entry["purpose"] == "support" for entry in found))
        self.assertTrue(all(entry.get("controller") is None and entry.get("payload") is None for entry in found))

    def test_what_is_no_request_passes(self) -> None:
        seen = []

        async def app(scope: Any, receive: Any, send: Any) -> None:
            seen.append(dict(bulla_audit._context.current()))
            await send({"type": "websocket.close"})

        middleware = Middleware(app, self.log, client=peer)
        self.call(middleware, kind="lifespan")
        self.call(middleware, kind="websocket")
        self.assertEqual(seen, [{}, {"client": "192.0.2.7"}])
        self.assertEqual(self.found(), [])

    def test_functions_are_asked_again_where_they_knew_nothing(self) -> None:
        asked = []

        async def actor(scope: Any) -> str | None:
            asked.append(scope.get("user"))
            await asyncio.sleep(0)
            return scope.get("user")

        async def app(scope: Any, receive: Any, send: Any) -> None:
            scope["user"] = "ada"
            await self.hello(scope, receive, send)

        def subject(scope: Any) -> Any:
            asked.append("subject")
            return (name for name in ["a", "b"])

        self.call(Middleware(app, self.log, actor=actor, subject=subject))
        self.assertEqual(asked, [None, "subject", "ada"])
        (entry,) = self.found()
        self.assertEqual((entry["actor"], entry["subject"]), ("ada", ["a", "b"]))

    def test_what_the_application_binds_is_its_entrys_alone(self) -> None:
        logger = logging.Logger("orders")
        logger.addHandler(Handler(self.log))
        plain = Middleware(self.hello, self.log)

        async def app(scope: Any, receive: Any, send: Any) -> None:
            bind(subject=scope["path"])
            await asyncio.sleep(0.001)
            logger.info("inside")
            await self.hello(scope, receive, send)

        middleware = Middleware(app, self.log, purpose="support")

        async def both() -> None:
            await asyncio.gather(*[self.called(middleware, "GET", f"/{number}") for number in range(10)])
            # In one task, one behind the other.
            await self.called(plain, "GET", "/after")
            logger.info("outside")

        asyncio.run(both())
        found = self.found()
        inside = [entry for entry in found if entry.get("payload") == "inside"]
        requests = [entry for entry in found if entry["operation"] == "read" and entry["location"] != "/after"]
        self.assertEqual(sorted(entry["subject"][0] for entry in inside), sorted(f"/{number}" for number in range(10)))
        self.assertEqual([entry["subject"] for entry in requests], [[entry["location"]] for entry in requests])
        self.assertEqual({entry["purpose"] for entry in inside + requests}, {"support"})
        outside = [entry for entry in found if entry.get("payload") == "outside" or entry["location"] == "/after"]
        self.assertEqual([entry.get("subject") for entry in outside], [None, None])

    def test_exceptions_and_no_response(self) -> None:
        async def failing(scope: Any, receive: Any, send: Any) -> None:
            raise ZeroDivisionError

        async def late(scope: Any, receive: Any, send: Any) -> None:
            await self.hello(scope, receive, send)
            raise ZeroDivisionError

        async def silent(scope: Any, receive: Any, send: Any) -> None:
            pass

        producer = self.log.producer()
        for app in [failing, late, silent]:
            messages = self.call(Middleware(app, producer))
            raised = [message["error"] for message in messages if message["type"] == "raised"]
            self.assertEqual([type(error) for error in raised], [] if app is silent else [ZeroDivisionError])
        self.assertEqual([entry.get("status") for entry in self.found()], [500, 200, None])

    def test_who_is_cancelled_leaves_an_entry(self) -> None:
        async def hanging(scope: Any, receive: Any, send: Any) -> None:
            await asyncio.sleep(600)

        async def act() -> None:
            task = asyncio.create_task(self.called(Middleware(hanging, self.log), "GET", "/"))
            await asyncio.sleep(0.01)
            task.cancel()
            with self.assertRaises(asyncio.CancelledError):
                await task

        asyncio.run(act())
        (entry,) = self.found()
        self.assertIsNone(entry.get("status"))

    def test_what_cannot_be_recorded_is_refused(self) -> None:
        for durable in [False, True]:
            app = Middleware(self.hello, self.log, actor=lambda scope: "x" * 65_537, durable=durable)
            with self.assertLogs("bulla_audit", "ERROR") as told:
                start, body = self.call(app)
            reason = "a request cannot be recorded: Invalid: `actor` is longer than 65536 bytes"
            self.assertEqual([record.getMessage() for record in told.records], [reason])
            self.assertEqual((start["status"], body["body"]), (503, b"The audit log cannot record this request.\n"))
            self.assertIn((b"content-length", str(len(body["body"])).encode()), start["headers"])
            self.assertEqual(app.lost, 0)
        self.log.close()
        start, body = self.call(Middleware(self.hello, self.log_closed(), durable=True))
        self.assertEqual(start["status"], 503)
        self.assertEqual(self.entries(), [])

    def test_that_a_request_is_refused_is_no_entry(self) -> None:
        logger = logging.getLogger("bulla_audit")
        handler = Handler(self.log)
        logger.addHandler(handler)
        self.addCleanup(logger.removeHandler, handler)
        with self.assertLogs(level="ERROR") as told:
            self.call(Middleware(self.hello, self.log_closed()))
            logger.error("the program's own")
        self.assertEqual(len(told.records), 2)
        self.assertEqual([entry["payload"] for entry in self.found()], ["the program's own"])

    def log_closed(self) -> Any:
        def make() -> bulla_audit.Producer:
            raise bulla_audit.Closed("the log is closed")

        return make

    def test_an_exception_that_cannot_be_recorded_is_refused_and_raised(self) -> None:
        async def failing(scope: Any, receive: Any, send: Any) -> None:
            raise ZeroDivisionError

        start, _, raised = self.call(Middleware(failing, self.log_closed()))
        self.assertEqual((start["status"], type(raised["error"])), (503, ZeroDivisionError))

    def test_what_cannot_be_recorded_can_pass(self) -> None:
        app = Middleware(self.hello, self.log, actor=lambda scope: "x" * 65_537, unrecordable="pass")
        self.assertEqual(self.call(app)[0]["status"], 200)
        self.assertEqual(app.lost, 1)
        self.assertEqual(self.found(), [])

    def test_a_subject_that_is_no_text_cannot_be_recorded(self) -> None:
        def subject(scope: Any) -> Any:
            return scope.get("path_params", {}).get("person")

        async def routed(scope: Any, receive: Any, send: Any) -> None:
            scope["path_params"] = {"person": 42}
            await self.hello(scope, receive, send)

        for durable in [False, True]:
            app = Middleware(routed, self.log, subject=subject, durable=durable)
            self.assertEqual(self.call(app)[0]["status"], 503)
            # Here it is known before the application is called, and in its context.
            app = Middleware(self.hello, self.log, subject=lambda scope: [42], durable=durable)
            self.assertEqual(self.call(app)[0]["status"], 503)
        app = Middleware(routed, self.log, subject=subject, unrecordable="pass")
        self.assertEqual(self.call(app)[0]["status"], 200)
        self.assertEqual(app.lost, 1)

        class Proxy:
            def __iter__(self) -> Any:
                return iter(42)  # type: ignore[call-overload]

        self.assertEqual(self.call(Middleware(self.hello, self.log, subject=lambda scope: Proxy()))[0]["status"], 503)
        producer = self.log.producer()
        for wrong in [42, [42], uuid.UUID(int=42)]:
            with self.assertRaisesRegex(bulla_audit.Invalid, r"^`subject` has to be a str or .*give str\(…\)"):
                producer.append("read", subject=wrong)
        with self.assertRaisesRegex(bulla_audit.Invalid, "^`subject` has to be .* of at most 64 of them$"):
            producer.append("read", subject=b"42")
        self.assertEqual(self.found(), [])

    def test_functions_that_fail_end_the_request(self) -> None:
        def failing(scope: Any) -> str:
            raise ZeroDivisionError

        (raised,) = self.call(Middleware(self.hello, self.log, actor=failing))
        self.assertIsInstance(raised["error"], ZeroDivisionError)

    def test_wrong_settings(self) -> None:
        with self.assertRaisesRegex(TypeError, "status"):
            Middleware(self.hello, self.log, status=200)
        with self.assertRaisesRegex(ValueError, "unrecordable"):
            Middleware(self.hello, self.log, unrecordable="raise")

    def test_a_durable_response_waits_and_others_go_on(self) -> None:
        app = Middleware(self.hello, self.log, durable=True)

        async def many() -> None:
            responses = await asyncio.gather(*[self.called(app, "GET", f"/{number}") for number in range(200)])
            self.assertEqual({messages[0]["status"] for messages in responses}, {200})

        asyncio.run(many())
        self.assertEqual(len(self.found()), 200)


class WithFastApi(Asgi):
    def setUp(self) -> None:
        super().setUp()
        app = FastAPI()
        app.add_middleware(
            Middleware,
            target=self.log,
            durable=True,
            client=peer,
            subject=lambda scope: scope.get("path_params", {}).get("person"),
        )

        @app.get("/people/{person}")
        async def read(person: str) -> dict[str, str]:
            bind(purpose="support")
            return {"person": person}

        @app.post("/people/{person}", status_code=201)
        def create(person: str) -> dict[str, str]:
            return {"person": person}

        @app.delete("/people/{person}")
        async def delete(person: str) -> None:
            raise HTTPException(403)

        @app.get("/stream")
        async def stream() -> StreamingResponse:
            return StreamingResponse(iter(["a", "b"]))

        @app.get("/fails")
        async def fails() -> None:
            raise ZeroDivisionError

        self.app = app

    def test_requests(self) -> None:
        requests = [("GET", "/people/ada"), ("POST", "/people/ada"), ("DELETE", "/people/bob"), ("GET", "/stream")]
        requests += [("GET", "/fails"), ("GET", "/nowhere")]
        for method, path in requests:
            self.call(self.app, method, path)
        found = self.found()
        names = ["operation", "location", "status", "subject", "purpose", "size"]
        self.assertEqual(
            [[entry.get(name) for name in names] for entry in found],
            [
                ["read", "/people/ada", 200, ["ada"], "support", len(b'{"person":"ada"}')],
                ["create", "/people/ada", 201, ["ada"], None, len(b'{"person":"ada"}')],
                ["delete", "/people/bob", 403, ["bob"], None, len(b'{"detail":"Forbidden"}')],
                ["read", "/stream", 200, None, None, None],
                ["read", "/fails", 500, None, None, None],
                ["read", "/nowhere", 404, None, None, len(b'{"detail":"Not Found"}')],
            ],
        )
