//! A disk that takes every write and fails syncs, for programs that run with their own store.

use std::path::{Path, PathBuf};
use std::process::Command;

/// Stands before the C library's function.
const SOURCE: &str = "
#define _GNU_SOURCE
#include <errno.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

static int failed;

int fdatasync(int file) {
    struct stat about;
    failed |= fstat(file, &about) != 0 || about.st_size > MOST;
    if (failed) {
        errno = EIO;
        return -1;
    }
    return (int)syscall(SYS_fdatasync, file);
}
";

/// A library for `LD_PRELOAD`, made in `directory`: from the first `fdatasync` of a file of more than `most` bytes on,
/// every one of that process fails with `EIO`. With -1 all of them do.
///
/// # Panics
/// Where there is no C compiler, or the directory is not writable.
pub fn unsynced(directory: &Path, most: i64) -> PathBuf {
    let (source, library) = (directory.join("unsynced.c"), directory.join(format!("unsynced{most}.so")));
    std::fs::write(&source, SOURCE).expect("a directory that is writable");
    let mut compiler = Command::new("cc");
    compiler.args(["-shared", "-fPIC", &format!("-DMOST=({most})"), "-o"]).arg(&library).arg(source);
    let compiled = compiler.output().expect("this test needs a C compiler, as the build does");
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    library
}
