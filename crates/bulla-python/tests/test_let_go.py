"""What is let go of while an exception is on its way: it is closed, and whoever raised the exception gets it."""

from __future__ import annotations

import bulla_audit
from bulla_audit import Log
from common import Case

TOLD = """
    import sys, warnings
    from bulla_audit import Log, connect
    warnings.simplefilter("always")

    def fails(act):
        try:
            act()
        except BaseException as error:
            print(type(error).__name__, error, repr(error.__context__))
            assert error.__traceback__ is not None
        else:
            print("nothing")
    """


class Unwinding(Case):
    def told(self, source: str, warned: str = "") -> str:
        """What a program prints, which ends in order and tells on standard error of this alone."""
        ran = self.run_program(TOLD + source)
        self.assertRegex(ran.stderr, warned or "^$")
        return ran.stdout

    def test_a_log_in_a_list_that_is_not_finished(self) -> None:
        told = self.told("""
    fails(lambda: [Log("audit"), 1 / 0])
    fails(lambda: int(Log("audit")))
    with Log("audit") as log, log.producer() as producer:
        producer.append("read")
    """, "^(.*ResourceWarning: unclosed log audit\n.*\n?){2}")
        self.assertRegex(told, r"^ZeroDivisionError division by zero None\nTypeError int\(\) argument .* None\n$")
        self.assertEqual(len(self.entries()), 1)

    def test_a_log_that_a_handler_was_not_made_of(self) -> None:
        told = self.told("""
    import os
    from bulla_audit.handler import Handler
    fails(lambda: Handler(Log("audit"), os.environ["NO_SUCH_VARIABLE"]))
    """, "ResourceWarning: unclosed log audit")
        self.assertRegex(told, "^KeyError 'NO_SUCH_VARIABLE' ")

    def test_a_log_that_cannot_be_listened_for(self) -> None:
        told = self.told("""
    fails(lambda: Log("audit").listen("/nonexistent/audit.sock"))
    """, "ResourceWarning: unclosed log audit")
        self.assertRegex(told, "^Unavailable .*/nonexistent: ")

    def test_a_warning_that_is_an_error_does_not_take_its_place(self) -> None:
        told = self.told("""
    warnings.simplefilter("error")
    fails(lambda: [Log("audit"), 1 / 0])
    """, r"^Exception ignored in:? 'log audit'(?s:.*)ResourceWarning: unclosed log audit")
        self.assertEqual(told, "ZeroDivisionError division by zero None\n")

    def test_a_connection_whose_closing_fails(self) -> None:
        told = self.told("""
    log = Log("audit")
    log.listen("audit.sock")

    def broken():
        connection = connect("audit.sock")
        producer = connection.producer()
        producer.append("read")
        log.close()
        return connection

    fails(lambda: [broken(), 1 / 0])
    """, r"^Exception ignored in:? 'connection to audit\.sock'(?s:.*)Closed: ")
        self.assertEqual(told, "ZeroDivisionError division by zero None\n")

    def test_a_producer_of_a_connection_sends_what_it_has(self) -> None:
        log = self.open()
        log.listen(self.place / "audit.sock")
        told = self.told("""
    import queue
    connection, told = connect("audit.sock"), queue.Queue()

    def appended():
        producer = connection.producer()
        producer.append("read")
        producer.flush().notify(told.put)
        producer.append("read")
        return producer

    fails(lambda: [appended(), 1 / 0])
    print("told", told.get())
    connection.close()
    """)
        self.assertEqual(told, "ZeroDivisionError division by zero None\ntold None\n")
        log.close()
        self.assertEqual(len(self.entries()), 2)

    def test_an_exception_on_its_way_through_this_thread(self) -> None:
        with self.assertWarnsRegex(ResourceWarning, "^unclosed log "), self.assertRaises(bulla_audit.Invalid):
            Log(self.path).producer().append("")
        self.assertEqual(self.entries(), [])


class Locked(Case):
    """Making an exception, and warning, runs Python, which may use what the exception is of: nothing hangs."""

    def test_an_exception_of_a_producer_or_a_log(self) -> None:
        told = self.run_program("""
    import builtins
    from bulla_audit import Closed, Log

    def asking(act):
        real, asked = builtins.__import__, []
        def importing(*arguments):
            builtins.__import__ = real
            asked.append((log.closed, producer.closed, repr(producer)[:29]))
            return real(*arguments)
        builtins.__import__ = importing
        try:
            act()
        except Closed:
            print(asked)
        finally:
            builtins.__import__ = real

    log = Log("audit")
    producer = log.producer()
    producer.close()
    for act in [lambda: producer.append("read"), lambda: producer.append_batch([{"operation": "read"}]), producer.flush]:
        asking(act)
    log.close()
    for act in [log.producer, log.flush, log.telemetry]:
        asking(act)
    """)
        first, second = ("(%s, True, '<bulla_audit.Producer: closed')" % closed for closed in [False, True])
        self.assertEqual(told.stdout, f"[{first}]\n" * 3 + f"[{second}]\n" * 3)

    def test_what_a_query_warns_of(self) -> None:
        told = self.run_program("""
    import sys, warnings
    from bulla_audit import Log, Reader
    with Log("audit") as log, log.producer() as producer:
        producer.append("read")
    entries = iter(Reader("audit", key=sys.argv[1]).query(subject="nobody"))
    warnings.showwarning = lambda message, *_: print(message, next(entries, "and no more"))
    print(list(entries))
    """, self.key)
        self.assertRegex(told.stdout, r"^data subject `nobody` .* and no more\n\[\]\n$")
