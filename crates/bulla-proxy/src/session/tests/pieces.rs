//! In whatever pieces the bytes come, the same leaves and the same is recorded.

use super::*;

const ASKED: &str = "AUTH ada secret\r\n*3\r\n$3\r\nSET\r\n$1\r\na\r\n$5\r\nva\r\nl\r\nEVAL x 0\r\nBULLA.PURPOSE why\r\nMULTI\r\n\
    *2\r\n$3\r\nGET\r\n$1\r\na\r\nSELECT 2\r\nEXEC\r\nCLIENT REPLY SKIP\r\nGET b\r\nGETDEL c\r\nMULTI\r\nFLUSHALL\r\nEVAL x 0\r\nEXEC\r\n\
    SUBSCRIBE s\r\nUNSUBSCRIBE\r\nHELLO 3\r\nLRANGE l 0 -1\r\nNOSUCH\r\n";
const SAID: &str = "+OK\r\n+OK\r\n+OK\r\n+QUEUED\r\n+QUEUED\r\n*2\r\n$5\r\nva\r\nl\r\n+OK\r\n$6\r\nhidden\r\n$1\r\nc\r\n+OK\r\n+QUEUED\r\n+OK\r\n\
    *3\r\n$9\r\nsubscribe\r\n$1\r\ns\r\n:1\r\n*3\r\n$7\r\nmessage\r\n$1\r\ns\r\n$1\r\nm\r\n*3\r\n$11\r\nunsubscribe\r\n$1\r\ns\r\n:0\r\n\
    %1\r\n+proto\r\n:3\r\n>2\r\n$10\r\ninvalidate\r\n_\r\n*2\r\n$1\r\n1\r\n$7\r\nmessage\r\n-ERR unknown\r\n";

/// What the client and the server got, and what was recorded.
type Told = (String, String, Vec<String>);

fn told(mode: Mode, asked: &[&str], said: &[&str]) -> Told {
    let mut world = World::with(|context| context.mode = mode);
    for piece in asked {
        world.asks(piece);
    }
    for piece in said {
        world.answers(piece);
    }
    assert!(world.session.is_answered());
    (world.got(), world.sent(), world.noted())
}

#[test]
fn bytes_cut_anywhere_are_the_same_operations() {
    for mode in [Mode::Async, Mode::BeforeReply, Mode::BeforeSend] {
        let whole = told(mode, &[ASKED], &[SAID]);
        assert!(whole.0.contains("-EXECABORT") && !whole.0.contains("hidden"), "{}", whole.0);
        assert!(whole.2.contains(&"read a get Done actor=ada purpose=why".to_owned()), "{:?}", whole.2);
        for cut in 1..ASKED.len() {
            let (first, second) = ASKED.split_at(cut);
            assert_eq!(told(mode, &[first, second], &[SAID]), whole, "cut at {cut}");
        }
        for cut in 1..SAID.len() {
            let (first, second) = SAID.split_at(cut);
            assert_eq!(told(mode, &[ASKED], &[first, second]), whole, "cut at {cut}");
        }
        let bytes = |text: &'static str| (0..text.len()).map(|at| &text[at..=at]).collect::<Vec<_>>();
        assert_eq!(told(mode, &bytes(ASKED), &bytes(SAID)), whole, "byte by byte");
    }
}
