"""Forks, `multiprocessing`, exits, a full disk, and subinterpreters."""

from __future__ import annotations

import logging
import os
import textwrap

import bulla_audit
from bulla_audit import Log, Reader
from bulla_audit.handler import Handler
from common import PATIENCE, Case

WORKER = """
    import multiprocessing, os, sys
    import bulla_audit
    from bulla_audit import Log, connect
    from bulla_audit.handler import Handler

    def work(number):
        # Whoever works neither flushes nor closes, nor lets go.
        global connection, producer
        connection = connect("audit.sock")
        producer = connection.producer()
        for entry in range(200):
            producer.append("read", actor=str(number), flags=entry)
        if number == 3:
            raise ZeroDivisionError
        if number == 2:
            sys.exit(5)

    if __name__ == "__main__":
        method = sys.argv[1]
        context = multiprocessing.get_context(method)
        if method == "forkserver":
            context.set_forkserver_preload([])
        with Log("audit") as log:
            log.listen("audit.sock")
            workers = [context.Process(target=work, args=[number]) for number in range(4)]
            for worker in workers:
                worker.start()
            for worker in workers:
                worker.join()
            print([worker.exitcode for worker in workers])
    """


def leave(thing: Any) -> str:
    with thing:
        pass
    return str(thing.closed)


class Forks(Case):
    def test_a_connection_stays_with_its_log(self) -> None:
        listener = self.listen()
        connection = bulla_audit.connect(self.place / "audit.sock")
        connection.producer().close()
        listener.communicate(timeout=PATIENCE)
        os.rename(self.path, self.place / "first")
        os.rename(self.place / "audit.keys", self.place / "first.keys")
        bulla_audit.create(self.path, origin="example.com/other")
        self.listen()
        with self.assertRaisesRegex(bulla_audit.Refused, r"example\.com/other.*example\.com/test"):
            connection.producer()

    def test_nobody_connects_to_a_process_that_is_gone_by_way_of_its_child(self) -> None:
        parent = self.start("""
            import os, sys
            from bulla_audit import Log
            log = Log("audit")
            log.listen("audit.sock")
            child = os.fork()
            if child == 0:
                print("child", flush=True)
                sys.stdin.read()
                os._exit(0)
            os.waitpid(child, 0)
            """)
        self.assertEqual(parent.stdout.readline(), "child\n")
        parent.kill()
        parent.wait()
        with self.assertRaisesRegex(bulla_audit.Unavailable, "nobody listens there"):
            bulla_audit.connect(self.place / "audit.sock")

    def test_a_child_that_closes_what_it_came_with_and_forks_keeps_its_own_files(self) -> None:
        self.run_program("""
            import os
            from bulla_audit import Log
            log = Log("audit")
            log.listen("audit.sock", datagrams="datagrams.sock")
            child = os.fork()
            if child == 0:
                # As a program does that makes itself a service.
                os.closerange(3, 256)
                files = [open(f"file-{number}", "w") for number in range(24)]
                grandchild = os.fork()
                if grandchild == 0:
                    for file in files:
                        print("kept", file=file, flush=True)
                    os._exit(0)
                os._exit(os.waitpid(grandchild, 0)[1])
            assert os.waitpid(child, 0)[1] == 0
            log.close()
            """)
        self.assertEqual([(self.place / f"file-{number}").read_text() for number in range(24)], ["kept\n"] * 24)

    def test_what_a_forked_child_lets_go_of_stays_its_parents(self) -> None:
        told = self.run_program("""
            import gc, os, warnings
            import bulla_audit
            from bulla_audit import Log
            warnings.simplefilter("error")
            log = Log("audit", linger="1 h")
            log.listen("audit.sock")
            connection = bulla_audit.connect("audit.sock")
            producer, remote = log.producer(), connection.producer()
            for number in range(1000):
                producer.append("read", flags=number)
                remote.append("read", flags=1000 + number)
            receipts = [producer.flush(), remote.flush()]
            query = iter(bulla_audit.Reader("audit").query())
            child = os.fork()
            if child == 0:
                del log, connection, producer, remote, receipts, query
                gc.collect()
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
            for each in [producer, remote]:
                each.append("read", flags=2000)
                each.flush().wait()
            connection.close()
            log.close()
            """)
        self.assertEqual(told.stderr, "")
        self.assertEqual(sorted(entry["flags"] for entry in self.entries()), [*range(2000), 2000, 2000])

    def test_a_forked_child_is_refused_what_its_parent_has(self) -> None:
        log = self.open()
        log.listen(self.place / "audit.sock")
        connection = bulla_audit.connect(self.place / "audit.sock")
        self.addCleanup(connection.close)
        producer, remote = log.producer(), connection.producer()
        producer.append("read")
        remote.append("read")
        receipt, later = producer.flush(), remote.flush()
        later.wait()
        log.flush()
        reader = Reader(self.path, key=self.key)
        query = reader.query()
        begun = iter(query)
        self.assertEqual(next(begun)["entry"], 0)
        calls = [
            log.producer,
            log.flush,
            log.telemetry,
            lambda: log.listen(self.place / "another.sock"),
            lambda: producer.append("read"),
            lambda: producer.append_batch([{"operation": "read"}]),
            producer.flush,
            receipt.wait,
            receipt.checkpointed,
            lambda: receipt.notify(print),
            connection.producer,
            lambda: remote.append("read"),
            remote.flush,
            later.wait,
            reader.query,
            lambda: list(query),
            lambda: list(begun),
            query.__arrow_c_stream__,
        ]
        for number, call in enumerate(calls):
            with self.subTest(call=number):
                self.assertRegex(self.in_child(call), r"^Closed: .*connect")
        # Closing does nothing, in whatever way.
        for call in [producer.close, remote.close, log.close, connection.close]:
            self.assertEqual(self.in_child(call), "None")
        for thing in [producer, remote, log, connection]:
            with self.subTest(thing=type(thing).__name__):
                self.assertRegex(self.in_child(lambda thing=thing: leave(thing)), "^(True|closed)")
        producer.append("read")
        remote.append("read")
        producer.flush().wait()
        remote.flush().wait()
        log.close()
        self.assertEqual(len(self.entries()), 4)

    def test_what_was_staged_before_a_fork_is_written_once(self) -> None:
        self.run_program("""
            import os, sys
            from bulla_audit import Log
            log = Log("audit", linger="1 h")
            producer = log.producer()
            for number in range(1000):
                producer.append("read", flags=number)
            child = os.fork()
            if child == 0:
                # By all the ways that an interpreter ends.
                sys.exit(0)
            assert os.waitpid(child, 0)[1] == 0
            """)
        self.assertEqual([entry["flags"] for entry in self.entries()], list(range(1000)))

    def test_a_handler_in_a_forked_child(self) -> None:
        log = self.open()
        socket = self.place / "audit.sock"
        log.listen(socket)
        logger = logging.Logger("orders")
        logger.addHandler(Handler(log))
        self.assertRegex(self.in_child(lambda: logger.info("x")), "^Closed: .*connect")
        handler = Handler(lambda: bulla_audit.connect(socket).producer())
        logger.handlers = [handler]
        logger.info("parent")

        def child() -> str:
            logger.info("child")
            handler.flush(durable=True)
            return "done"

        self.assertEqual(self.in_child(child), "done")
        logger.info("parent again")
        handler.flush(durable=True)
        log.close()
        self.assertEqual(sorted(self.payloads()), ["child", "parent", "parent again"])

    def test_a_forked_child_opens_what_it_needs(self) -> None:
        log = self.open()
        log.listen(self.place / "audit.sock")

        def act() -> str:
            try:
                Log(self.path)
            except bulla_audit.Locked as locked:
                assert "connect" in str(locked)
            with bulla_audit.connect(self.place / "audit.sock") as connection, connection.producer() as producer:
                producer.append("read")
                return str(producer.flush().wait())

        self.assertEqual(self.in_child(act), "True")
        log.close()
        self.assertEqual(len(self.entries()), 1)

    def test_a_fork_while_threads_are_at_work(self) -> None:
        self.run_program("""
            import os, signal, threading
            import bulla_audit
            from bulla_audit import Log
            log = Log("audit")
            log.listen("audit.sock")
            go_on = True

            def work():
                with log.producer() as producer:
                    while go_on:
                        producer.append("read")
                        producer.flush().wait()

            threads = [threading.Thread(target=work) for _ in range(4)]
            for thread in threads:
                thread.start()
            for _ in range(20):
                child = os.fork()
                if child == 0:
                    signal.alarm(100)
                    try:
                        log.producer()
                        os._exit(1)
                    except bulla_audit.Closed:
                        pass
                    with bulla_audit.connect("audit.sock") as connection, connection.producer() as producer:
                        producer.append("child")
                    os._exit(0)
                assert os.waitpid(child, 0)[1] == 0
            go_on = False
            for thread in threads:
                thread.join()
            """)
        self.assertEqual(len(self.entries(operation="child")), 20)


class Multiprocessing(Case):
    def check(self, method: str) -> None:
        (self.place / "worker.py").write_text(textwrap.dedent(WORKER))
        told = self.run_program(
            "import os, sys; os.execv(sys.executable, [sys.executable, 'worker.py', sys.argv[1]])", method
        ).stdout
        self.assertEqual(told, "[0, 0, 5, 1]\n")
        found = self.entries()
        for number in range(4):
            self.assertEqual(
                [entry["flags"] for entry in found if entry["actor"] == str(number)], list(range(200)), number
            )
        self.assertEqual(len(found), 800)

    def test_children_by_fork(self) -> None:
        self.check("fork")

    def test_children_by_spawn(self) -> None:
        self.check("spawn")

    def test_children_by_forkserver(self) -> None:
        self.check("forkserver")

    def test_a_log_of_a_child_is_closed_at_its_end(self) -> None:
        self.run_program("""
            import multiprocessing
            import bulla_audit

            def work():
                global log, producer
                log = bulla_audit.Log("audit", linger="1 h")
                producer = log.producer()
                producer.append("read")

            child = multiprocessing.get_context("fork").Process(target=work)
            child.start()
            child.join()
            assert child.exitcode == 0
            # It was closed: nothing has to be recovered, and it is free.
            bulla_audit.Log("audit").close()
            """)
        self.assertEqual(len(self.entries()), 1)

    def test_a_log_of_a_child_that_alone_knows_the_package_is_closed_at_its_end(self) -> None:
        self.run_program("""
            import multiprocessing

            def work():
                global log, producer
                import bulla_audit
                log = bulla_audit.Log("audit", linger="1 h")
                producer = log.producer()
                producer.append("read")

            child = multiprocessing.get_context("fork").Process(target=work)
            child.start()
            child.join()
            assert child.exitcode == 0
            """)
        # Nothing has to be recovered.
        self.assertEqual(len(self.entries()), 1)

    def test_nothing_is_sent_to_another_process(self) -> None:
        told = self.run_program("""
            import multiprocessing, pickle
            from bulla_audit import Log
            with Log("audit") as log:
                child = multiprocessing.get_context("spawn").Process(target=print, args=[log])
                try:
                    child.start()
                except TypeError as error:
                    print(error)
            """).stdout
        self.assertIn("connect", told)


class Exits(Case):
    OPEN = """
        import atexit, logging, os, sys, threading
        from bulla_audit import Log
        from bulla_audit.handler import Handler
        log = Log("audit", linger="1 h")
        producer = log.producer()
        for number in range(1000):
            producer.append("read", flags=number)
        """

    def check(self, ending: str, code: int = 0, entries: int = 1000) -> str:
        told = self.run_program(textwrap.dedent(self.OPEN) + textwrap.dedent(ending), code=code).stderr
        found = self.entries()
        self.assertEqual([entry["flags"] for entry in found if entry["operation"] == "read"], list(range(1000)))
        self.assertEqual(len(found), entries)
        report = bulla_audit.verify(self.path, key=self.key)
        # It was closed: all of it is signed.
        self.assertEqual((report.ok, report.entries, report.pending), (True, entries, 0))
        return told

    def test_a_program_that_never_closes(self) -> None:
        self.assertEqual(self.check(""), "")

    def test_an_exception(self) -> None:
        self.assertNotIn("bulla_audit:", self.check("raise ZeroDivisionError", 1))

    def test_an_exit_in_the_midst(self) -> None:
        self.assertEqual(self.check("sys.exit(3)", 3), "")

    def test_names_that_are_gone(self) -> None:
        self.assertEqual(self.check("del log, producer"), "")

    def test_a_cycle_that_nobody_has_collected(self) -> None:
        self.assertEqual(
            self.check(
                "import gc; gc.disable(); cycle = [log, producer]; cycle.append(cycle); del cycle, log, producer"
            ),
            "",
        )

    def test_threads_that_outlive_the_main_one(self) -> None:
        thread = """
            import time
            def late():
                time.sleep(0.2)
                producer.append("late")
            threading.Thread(target=late).start()
            """
        self.assertEqual(self.check(thread, entries=1001), "")

    def test_daemon_threads_that_never_stop(self) -> None:
        thread = """
            import contextlib
            def wait():
                other = log.producer()
                with contextlib.suppress(Exception):
                    while True:
                        other.flush().wait()
            for _ in range(4):
                threading.Thread(target=wait, daemon=True).start()
            """
        self.check(thread)

    def test_logging_that_goes_on_until_the_end(self) -> None:
        logging_first = "logging.getLogger().addHandler(Handler(log)); logging.getLogger().error('last words')"
        self.assertEqual(self.check(logging_first, entries=1001), "")

    def test_what_is_logged_behind_the_end_is_told(self) -> None:
        # What is registered before the package is called behind it.
        source = """
            import atexit, logging
            atexit.register(lambda: logging.getLogger().error("too late"))
            from bulla_audit import Log
            from bulla_audit.handler import Handler
            log = Log("audit")
            logging.getLogger().addHandler(Handler(log))
            """
        told = self.run_program(source).stderr
        self.assertIn("Closed", told)
        self.assertEqual(self.entries(), [])

    def test_what_waits_for_a_connection_at_the_end(self) -> None:
        log = self.open()
        log.listen(self.place / "audit.sock")
        told = self.run_program("""
            from bulla_audit import connect
            producer = connect("audit.sock").producer()
            for number in range(1000):
                producer.append("read", flags=number)
            """).stderr
        self.assertEqual(told, "")
        log.close()
        self.assertEqual(len(self.entries()), 1000)

    def test_a_disk_that_is_full_is_told(self) -> None:
        # No file may grow: what a full disk does, for one process.
        told = self.run_program("""
            import resource
            from bulla_audit import Log
            log = Log("audit", linger="1 h", retries=0)
            producer = log.producer()
            resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
            producer.append("read", payload="x")
            """).stderr
        self.assertRegex(told, r"bulla_audit: closing at exit: Unavailable: ")

    def test_a_disk_that_is_full_is_told_in_a_child_of_multiprocessing(self) -> None:
        told = self.run_program("""
            import multiprocessing, resource
            from bulla_audit import Log

            def work():
                global log, producer
                log = Log("audit", linger="1 h", retries=0)
                producer = log.producer()
                resource.setrlimit(resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
                producer.append("read", payload="x")

            child = multiprocessing.get_context("fork").Process(target=work)
            child.start()
            child.join()
            """).stderr
        self.assertRegex(told, r"bulla_audit: closing at exit: Unavailable: ")


class Subinterpreters(Case):
    def test_they_are_refused(self) -> None:
        told = self.run_program("""
            import os, sys
            name = "_interpreters" if sys.version_info >= (3, 13) else "_xxsubinterpreters"
            interpreters = __import__(name)
            import bulla_audit
            other = interpreters.create()
            script = "import sys; sys.path[:] = " + repr(sys.path) + '''
            try:
                import bulla_audit
            except ImportError as error:
                print("refused:", error, flush=True)
            else:
                print("imported", flush=True)
            '''.replace("\\n            ", "\\n")
            failure = interpreters.run_string(other, script)
            assert failure is None, failure
            interpreters.destroy(other)
            """).stdout
        self.assertRegex(told, "^refused: .*interpreter")

    def test_the_main_interpreter_works_beside_them(self) -> None:
        self.run_program("""
            import sys
            name = "_interpreters" if sys.version_info >= (3, 13) else "_xxsubinterpreters"
            interpreters = __import__(name)
            from bulla_audit import Log
            other = interpreters.create()
            with Log("audit") as log, log.producer() as producer:
                producer.append("read")
                interpreters.run_string(other, "x = 1")
                interpreters.destroy(other)
                producer.append("read")
            """)
        self.assertEqual(len(self.entries()), 2)
