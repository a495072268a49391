//! Commands that are alike cost no allocation once room was made for them.

use super::*;
use bulla_testkit::allocator::allocations;

/// Only counts.
struct Count(u64);

impl Record for Count {
    fn missed(&mut self, _: u64) {}

    fn record(&mut self, _: &Operation<'_>) -> Result<(), Unrecorded> {
        self.0 += 1;
        Ok(())
    }

    fn takes(&mut self) -> bool {
        true
    }

    fn now(&mut self) -> i64 {
        0
    }

    fn ticket(&self) -> Ticket {
        self.0
    }
}

#[test]
fn a_command_costs_no_allocation_once_there_is_room() {
    for mode in [Mode::Async, Mode::BeforeReply, Mode::BeforeSend] {
        let mut session = Session::new(context(|context| context.mode = mode), "192.0.2.1:1", None);
        let mut count = Count(0);
        let set = "*3\r\n$3\r\nSET\r\n$6\r\nuser:1\r\n$3\r\nada\r\n";
        let get = "*2\r\n$3\r\nGET\r\n$6\r\nuser:1\r\n";
        let asked = format!("{set}{get}MULTI\r\n{set}{get}EXEC\r\n").repeat(8);
        let told = "+OK\r\n$3\r\nada\r\n";
        let said = format!("{told}+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n{told}").repeat(8);
        let mut round = || {
            let drain = |outlet: &mut Outlet| {
                let ready = outlet.ready(Ticket::MAX).len();
                outlet.leave(ready);
                assert_eq!(outlet.waiting(), 0);
            };
            session.from_client(asked.as_bytes(), 0, &mut count).unwrap();
            drain(&mut session.to_server);
            session.from_server(said.as_bytes(), 0, &mut count).unwrap();
            drain(&mut session.to_client);
        };
        (0..4).for_each(|_| round());
        let before = allocations();
        (0..100).for_each(|_| round());
        assert_eq!(allocations() - before, 0, "{mode:?}");
    }
}
