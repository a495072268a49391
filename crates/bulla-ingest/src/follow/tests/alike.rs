//! Files that begin alike, links, names, and what cannot be read.

use super::*;
use std::os::unix::fs::symlink;

const BANNER: &str = "{\"operation\":\"started\"}\n";

fn line(operation: &str) -> String {
    format!("{{\"operation\":{operation:?}}}\n")
}

fn gz(text: &str) -> Vec<u8> {
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packed.write_all(text.as_bytes()).unwrap();
    packed.finish().unwrap()
}

impl World {
    fn put(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    /// Beyond the time after which a rotated file is done with.
    fn wait(&mut self) {
        self.log.now += 100 * 1_000_000_000;
        self.catch_up();
    }

    #[track_caller]
    fn has(&self, operations: &[&str]) {
        let mut found = self.log.operations();
        found.sort_unstable();
        let mut wanted = operations.to_vec();
        wanted.sort_unstable();
        assert_eq!(found, wanted, "{:?}", self.log.told);
    }
}

#[test]
fn a_file_that_begins_as_one_that_is_done_with_is_read() {
    for kills in [false, true] {
        for compressed in [false, true] {
            let mut world = World::new(&["app.log"]);
            world.put("app.log", BANNER);
            world.catch_up();
            match compressed {
                true => {
                    fs::write(world.path("app.log.1.gz"), gz(BANNER)).unwrap();
                    fs::remove_file(world.path("app.log")).unwrap();
                }
                false => fs::rename(world.path("app.log"), world.path("app.log.1")).unwrap(),
            }
            world.wait();
            world.put("app.log", &(BANNER.to_owned() + &line("one")));
            if kills {
                world.kill(0, None);
            }
            world.catch_up();
            fs::rename(world.path("app.log"), world.path("app.log.2")).unwrap();
            world.put("app.log", &(BANNER.to_owned() + &line("two")));
            world.catch_up();
            world.has(&["started", "started", "one", "started", "two"]);
        }
    }
}

#[test]
fn files_that_begin_alike_and_were_rotated_while_nobody_followed_are_read() {
    let mut world = World::new(&["app.log"]);
    world.put("app.log", BANNER);
    world.catch_up();
    world.kill(0, None);
    fs::rename(world.path("app.log"), world.path("app.log.3")).unwrap();
    world.put("app.log.2", &(BANNER.to_owned() + &line("one")));
    fs::write(world.path("app.log.1.gz"), gz(&(BANNER.to_owned() + &line("two")))).unwrap();
    world.put("app.log", BANNER);
    world.catch_up();
    world.has(&["started", "started", "one", "started", "two", "started"]);
}

#[test]
fn a_link_has_no_lines_of_another_file_taken_for_its_own() {
    for follows in [true, false] {
        let mut world = World::new(&["own/access.log", "another/*.log"]);
        fs::create_dir(world.path("own")).unwrap();
        fs::create_dir(world.path("another")).unwrap();
        world.put("own/access.log", &line("one"));
        world.catch_up();
        symlink("../own/access.log", world.path("another/x.log")).unwrap();
        if !follows {
            world.kill(0, None);
        }
        world.put("own/access.log", &(line("one") + &line("two")));
        world.catch_up();
        fs::rename(world.path("own/access.log"), world.path("own/access.log.1")).unwrap();
        world.put("own/access.log", &line("three"));
        world.catch_up();
        world.has(&["one", "two", "three"]);
        let of_link = |label: &Vec<u8>| Label::parse(label).unwrap().path == world.path("another/x.log");
        assert!(!world.log.labels.values().any(of_link));
    }
}

#[test]
fn nothing_is_followed_of_what_is_left_out_by_another_name_either() {
    let mut world = World::new(&["*.log"]);
    fs::create_dir_all(world.path("own/segments")).unwrap();
    world.put("own/segments/0.seg", &line("secret"));
    symlink("own/segments/0.seg", world.path("link.log")).unwrap();
    fs::hard_link(world.path("own/segments/0.seg"), world.path("hard.log")).unwrap();
    world.put("app.log", &line("one"));
    let following = Following::new(&[world.path("*.log")], Arc::new(Conversion::Entries)).unwrap();
    let following = following.without(vec![world.path("own").canonicalize().unwrap()]);
    world.follower = Some(Follower::new(following, Vec::new(), Box::new(|| [7; 16])));
    world.catch_up();
    world.has(&["one"]);
    assert_eq!(world.log.told.len(), 2, "{:?}", world.log.told);
    assert!(world.log.told.iter().all(|told| told.contains("of the log itself")), "{:?}", world.log.told);
}

#[test]
fn no_more_files_are_open_than_may_be_and_the_others_are_read_in_turn() {
    let mut world = World::new(&["*.log"]);
    for number in 0..5 {
        world.put(&format!("{number}.log"), &line(&format!("n{number}")));
    }
    fs::remove_file(world.path("app.log")).unwrap();
    let following = Following::new(&[world.path("*.log")], Arc::new(Conversion::Entries)).unwrap().at_most(3);
    let mut id = 0;
    let random = move || {
        id += 1;
        [id; 16]
    };
    world.follower = Some(Follower::new(following, Vec::new(), Box::new(random)));
    world.catch_up();
    world.has(&["n0", "n1", "n2"]);
    assert_eq!(world.log.told.len(), 1, "{:?}", world.log.told);
    assert_eq!(world.follower().unread().count(), 1);
    (0..3).for_each(|number| fs::remove_file(world.path(&format!("{number}.log"))).unwrap());
    world.catch_up();
    world.has(&["n0", "n1", "n2", "n3", "n4"]);
}

#[test]
fn a_path_that_is_too_long_stops_no_other() {
    let mut world = World::new(&["*.log", "*/*/*/*.log"]);
    let long = ["\u{1}", "\u{2}", "\u{3}"].map(|of| of.repeat(255)).join("/");
    fs::create_dir_all(world.path(&long)).unwrap();
    world.put(&format!("{long}/app.log"), &line("far"));
    world.put("app.log", &line("near"));
    world.catch_up();
    world.has(&["near"]);
    assert!(world.log.told.iter().any(|told| told.contains("is longer than")), "{:?}", world.log.told);
}

#[test]
fn what_is_not_named_as_compressed_is_read_as_it_stands() {
    let mut world = World::new(&["app.log"]);
    fs::write(world.path("app.log"), [&b"\x1f\x8b\x08\x00 no JSON\n"[..], line("one").as_bytes()].concat())
        .unwrap();
    world.catch_up();
    world.has(&["one"]);
    assert_eq!(world.log.refused.len(), 1);
}

#[test]
fn many_rotated_files_that_are_done_with_are_looked_at_once() {
    let mut world = World::new(&["app.log"]);
    world.put("app.log", &line("first"));
    world.catch_up();
    fs::rename(world.path("app.log"), world.path("app.log.400")).unwrap();
    let names: Vec<_> = (0..200).map(|number| format!("n{number}")).collect();
    for (number, name) in names.iter().enumerate() {
        fs::write(world.path(&format!("app.log.{number}.gz")), gz(&line(name))).unwrap();
    }
    world.put("app.log", &line("last"));
    world.wait();
    let names: Vec<_> = names.iter().map(String::as_str).chain(["first", "last"]).collect();
    world.has(&names);
    assert_eq!(world.log.forgotten.len(), 0);
}

#[test]
fn what_is_not_there_or_cannot_be_read_is_told_once() {
    let mut world = World::new(&["nosuch.log", "none*.log", "folder", "fifo"]);
    fs::create_dir(world.path("folder")).unwrap();
    world.catch_up();
    world.wait();
    assert_eq!(world.log.told.len(), 4, "{:?}", world.log.told);
    let mut unread: Vec<_> = world.follower().unread().map(str::to_owned).collect();
    unread.sort();
    assert!(unread.len() == 3 && unread[2].contains("nosuch.log: it is not there yet"), "{unread:?}");
    world.put("nosuch.log", &line("one"));
    world.put("none1.log", &line("two"));
    world.put("fifo", &line("three"));
    world.catch_up();
    world.has(&["one", "two", "three"]);
    assert_eq!(world.follower().unread().count(), 1, "the directory");
}

#[test]
fn a_file_is_followed_whatever_its_name() {
    let mut world = World::new(&["app[1].log", "app[2].log"]);
    world.put("app[1].log", &line("one"));
    world.put("app1.log", &line("other"));
    world.put("app2.log", &line("two"));
    world.catch_up();
    world.has(&["one", "two"]);
}

#[test]
fn a_directory_that_is_away_for_a_while_takes_nothing_with_it() {
    let mut world = World::new(&["d/app.log"]);
    fs::create_dir(world.path("d")).unwrap();
    world.put("d/app.log", &(line("one") + &line("two")));
    world.catch_up();
    world.kill(0, None);
    fs::rename(world.path("d"), world.path("away")).unwrap();
    world.catch_up();
    assert!(world.log.forgotten.is_empty());
    fs::rename(world.path("away"), world.path("d")).unwrap();
    world.catch_up();
    world.has(&["one", "two"]);
}

#[test]
fn what_was_rotated_is_read_whatever_time_an_older_file_was_changed() {
    let mut world = World::new(&["app.log"]);
    world.put("app.log", &line("one"));
    world.catch_up();
    world.kill(0, None);
    fs::rename(world.path("app.log"), world.path("app.log.2")).unwrap();
    world.put("app.log.1", &line("two"));
    let late = std::time::SystemTime::now() + std::time::Duration::from_secs(3600);
    File::options().append(true).open(world.path("app.log.2")).unwrap().set_modified(late).unwrap();
    world.put("app.log", &line("three"));
    world.catch_up();
    world.has(&["one", "two", "three"]);
}

#[test]
fn what_is_written_to_a_file_that_was_removed_is_read_for_a_while() {
    let mut world = World::new(&["app.log"]);
    world.write(10);
    world.catch_up();
    fs::remove_file(world.path("app.log")).unwrap();
    world.write(5);
    world.step();
    world.log.now += 30 * 1_000_000_000;
    world.step();
    world.write(5);
    world.catch_up();
    world.check();
}

#[test]
fn a_file_that_was_removed_and_is_put_back_goes_on() {
    for (kills, is_done) in [(false, false), (true, false), (false, true), (true, true)] {
        let mut world = World::new(&["app.log"]);
        world.put("app.log", &(line("one") + "{\"operation\":\"two\"}"));
        world.catch_up();
        fs::remove_file(world.path("app.log")).unwrap();
        world.step();
        if is_done {
            world.log.now += 61 * 1_000_000_000;
            world.step();
            world.has(&["one", "two"]);
            let label = world.log.labels[&world.log.entries[0].id].clone();
            world.log.entries.iter_mut().for_each(|kept| kept.label.clone_from(&label));
        }
        if kills {
            world.kill(0, None);
        }
        world.put("app.log", &(line("one") + &line("two") + &line("three")));
        world.catch_up();
        world.has(&["one", "two", "three"]);
    }
}

#[test]
fn a_file_that_has_its_name_again_goes_on() {
    let mut world = World::new(&["app.log"]);
    world.write(5);
    world.catch_up();
    let old = world.file.try_clone().unwrap();
    world.rename();
    world.write(2);
    world.catch_up();
    fs::rename(world.path("app.log"), world.path("app.log.2")).unwrap();
    fs::rename(world.path("app.log.1"), world.path("app.log")).unwrap();
    world.wait();
    world.file = old;
    world.write(3);
    world.catch_up();
    world.check();
    assert_eq!(world.log.told, Vec::<String>::new());
}

#[test]
fn a_file_that_is_written_anew_with_all_that_was_read_goes_on() {
    let mut world = World::new(&["app.log"]);
    world.put("app.log", &(line("one") + &line("two")));
    world.catch_up();
    world.put("new", &(line("one") + &line("two") + &line("three")));
    fs::rename(world.path("new"), world.path("app.log")).unwrap();
    world.catch_up();
    world.has(&["one", "two", "three"]);
}

#[test]
fn a_file_is_known_by_another_name() {
    let mut world = World::new(&["*.log"]);
    world.put("app.log", &(line("one") + &line("two")));
    world.catch_up();
    world.kill(0, None);
    fs::rename(world.path("app.log"), world.path("other.log")).unwrap();
    world.catch_up();
    world.put("other.log", &(line("one") + &line("two") + &line("three")));
    world.catch_up();
    world.has(&["one", "two", "three"]);
}
