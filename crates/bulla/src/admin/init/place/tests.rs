use crate::{ErrorKind, Init};
use std::fs;
use std::os::unix::fs::symlink;

#[test]
fn a_log_and_its_keys_do_not_lie_in_one_another_by_whatever_detour() {
    let place = tempfile::tempdir().unwrap();
    let path = |name: &str| place.path().join(name);
    fs::create_dir(path("audit")).unwrap();
    symlink(path("audit"), path("link")).unwrap();
    let pairs = [
        ("audit", "audit/keys", "audit/keys is inside "),
        ("audit", "x/../audit/keys", "audit/keys is inside "),
        ("audit", "link/keys", "link/keys is inside "),
        ("audit", "audit", "audit is named for the keys, and is the log's directory"),
        ("audit", "link", "link is named for the keys, and is the log's directory"),
        ("audit", "link/../audit", "audit is named for the keys, and is the log's directory"),
        ("audit/log", "audit", "audit, the directory of its keys"),
        ("link/log", "audit", "audit, the directory of its keys"),
        ("new", "new/keys", "new/keys is inside "),
        ("new/log", "new", "new, the directory of its keys"),
    ];
    for (log, keys, told) in pairs {
        let error = Init::default().create_with_keys(path(log), path(keys)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Invalid, "{log} {keys}: {error}");
        assert!(error.to_string().contains(told), "{log} {keys}: {error}");
        assert!(error.to_string().ends_with(": who can reach the log must not reach its keys"), "{error}");
        assert_eq!(fs::read_dir(path("audit")).unwrap().count(), 0, "{log} {keys}");
        assert!(!path("new").exists(), "{log} {keys}");
    }
    // What merely begins as the other does lies beside it.
    Init::default().create_with_keys(path("audit"), path("audit-keys")).unwrap();
}
