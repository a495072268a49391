//! Transactions: what was carried out is recorded with its own result, and what was not is not.

use super::*;

#[test]
fn what_exec_carried_out_is_recorded_with_its_own_result() {
    let mut world = World::new();
    world.asks("MULTI\r\nSET a x\r\nNOSUCH\r\nSELECT 2\r\nLPUSH a y\r\nGET b\r\nEXEC\r\nGET c\r\n");
    world.says("+OK\r\n+QUEUED\r\n-ERR unknown\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n");
    assert_eq!(world.noted(), ["unknowable(undescribed, none)  Failed error=ERR"]);
    world.says("*4\r\n+OK\r\n+OK\r\n-WRONGTYPE no\r\n*-1\r\n$-1\r\n");
    assert_eq!(
        world.noted(),
        [
            "write a set Done",
            "write a lpush Failed error=WRONGTYPE db=2",
            "read b get Done db=2",
            "read c get Done db=2",
        ]
    );
}

#[test]
fn what_was_discarded_or_aborted_is_not_recorded() {
    let mut world = World::new();
    world.asks(
        "MULTI\r\nSET a x\r\nDISCARD\r\nWATCH b\r\nMULTI\r\nSET b x\r\nEXEC\r\nMULTI\r\nSET c x\r\nEXEC\r\n",
    );
    world
        .says("+OK\r\n+QUEUED\r\n+OK\r\n+OK\r\n+OK\r\n+QUEUED\r\n*-1\r\n+OK\r\n+QUEUED\r\n-EXECABORT no\r\n");
    world.asks("MULTI\r\nSET d x\r\nRESET\r\nGET e\r\n").says("+OK\r\n+QUEUED\r\n+RESET\r\n$-1\r\n");
    let noted = world.noted();
    assert_eq!(noted, ["read b watch Done", "read e get Done"]);
}

#[test]
fn after_a_refusal_a_transaction_is_discarded_and_its_exec_aborted() {
    for refused in ["EVAL x 0", "BULLA.PURPOSE x", "CLIENT REPLY OFF", "SUBSCRIBE a", "REPLCONF ACK 1"] {
        let mut world = World::new();
        world.asks(format!("MULTI\r\nSET a x\r\n{refused}\r\nSET b x\r\nEXEC\r\nGET c\r\n"));
        assert_eq!(world.sent(), "MULTI SET a x SET b x *1 $7 DISCARD GET c");
        world.says("+OK\r\n+QUEUED\r\n+QUEUED\r\n+O");
        world.says("K\r\n$-1\r\n");
        let got = world.got();
        assert!(got.starts_with("+OK +QUEUED -BULLA "), "{got}");
        let aborted = "+QUEUED -EXECABORT Transaction discarded because of previous errors. $-1";
        assert!(got.ends_with(aborted), "{got}");
        assert_eq!(world.noted(), ["read c get Done"]);
        world.asks("MULTI\r\nSET a x\r\nEXEC\r\n").says("+OK\r\n+QUEUED\r\n*1\r\n+OK\r\n");
        assert_eq!(world.noted(), ["write a set Done"], "the next one runs");
    }
}

#[test]
fn a_transaction_that_the_server_did_not_begin_is_none() {
    let mut world = World::new();
    world.asks("MULTI\r\n").says("-NOAUTH no\r\n");
    world.asks("BULLA.PURPOSE x\r\nGET a\r\n").says("$-1\r\n");
    assert_eq!(world.noted(), ["read a get Done purpose=x"]);
}

#[test]
fn a_transaction_is_bounded() {
    let mut world = World::with(|context| context.limits.transaction = 3);
    world.asks("MULTI\r\nGET a\r\nGET a\r\nGET a\r\nGET a\r\nEXEC\r\n");
    world.says("+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n+OK\r\n");
    assert!(world.got().contains("-BULLA the transaction is too long"));
    assert_eq!(world.noted(), [""; 0]);
    // By the memory that it takes up, too.
    let mut world = World::with(|context| context.limits.kept = 1 << 10);
    world.asks("MULTI\r\n");
    for _ in 0..1000 {
        world.asks("SET a x\r\n").says("+QUEUED\r\n");
    }
    assert!(world.got().contains("-BULLA the transaction is too long"));
}

/// Clients make a transaction of what somebody has them send at once.
#[test]
fn by_default_a_transaction_has_room_for_what_is_loaded_in_one() {
    let mut world = World::new();
    world.asks("MULTI\r\n").says("+OK\r\n");
    for number in 0..30_000 {
        world.asks(format!(
            "HSET user:{number} mail a@example.org phone 1 city x since 2026 USR {number}\r\n"
        ));
        world.says("+QUEUED\r\n");
    }
    assert!(!world.got().contains("-BULLA"));
}

/// What one command tells is no reason not to know what the others did.
#[test]
fn a_long_result_hides_none_behind_it() {
    let mut world = World::with(|context| context.limits.kept_items = 64);
    world.asks("MULTI\r\nLRANGE l 0 -1\r\nSELECT 5\r\nLPUSH a x\r\nEXEC\r\nGET b\r\n");
    world.says("+OK\r\n+QUEUED\r\n+QUEUED\r\n+QUEUED\r\n*3\r\n*100\r\n");
    world.says_so_often(100, b"$1\r\nx\r\n");
    world.says("+OK\r\n-WRONGTYPE no\r\n$-1\r\n");
    let noted = ["read l lrange Done", "write a lpush Failed error=WRONGTYPE db=5", "read b get Done db=5"];
    assert_eq!(world.noted(), noted);
}
