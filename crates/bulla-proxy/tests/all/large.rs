//! Large values and long pipelines, in every mode.

use super::world::{MODES, World, plain};

#[test]
fn a_large_value_and_two_thousand_commands_at_once_come_back_unchanged() {
    for mode in MODES {
        let world = World::new(&format!("mode = \"{mode}\""), "", &[]);
        let mut client = world.connect();
        let value = (0..3_u32 << 20)
            .map(|n| (n.wrapping_mul(2_654_435_761) >> 13).to_le_bytes()[0])
            .collect::<Vec<_>>();
        client.command(&[b"SET", b"large", &value]);
        assert_eq!(client.told(), "OK");
        client.command(&[b"GET", b"large"]);
        let reply = client.reply().unwrap();
        assert!(reply.text(&reply.nodes()[0]) == value, "{mode}: it is changed");
        let mut reading = client.stream.try_clone().unwrap();
        let sending = std::thread::spawn(move || {
            let mut bytes = Vec::new();
            for number in 0..2000 {
                bytes.extend(format!("SET key{number} value{number}\r\nGET key{number}\r\n").bytes());
            }
            std::io::Write::write_all(&mut reading, &bytes).unwrap();
        });
        for number in 0..2000 {
            assert_eq!((client.told(), client.told()), ("OK".to_owned(), format!("value{number}")), "{mode}");
        }
        sending.join().unwrap();
        let told = world.entries();
        let intended = told.iter().filter(|entry| entry.contains("intended")).count();
        let begun = told.iter().filter(|entry| entry.contains("begun")).count();
        assert_eq!(intended, if mode == "before-send" { 4002 } else { 0 }, "{mode}");
        assert_eq!(begun, usize::from(mode == "before-reply"), "{mode}");
        let over = told.iter().filter(|it| !it.contains("intended") && !it.contains("begun")).cloned();
        let over = over.collect::<Vec<_>>();
        let expected = (0..2000).flat_map(|it| [format!("write key{it} 0"), format!("read key{it} 0")]);
        assert!(plain(&over)[2..].iter().copied().eq(expected), "{mode}");
    }
}
