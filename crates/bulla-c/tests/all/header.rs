//! `include/bulla.h` is what `cbindgen` makes of the crate: `make header` writes it.

use std::path::Path;

#[test]
fn the_header_is_what_the_library_has() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let config = cbindgen::Config::from_file(root.join("cbindgen.toml")).unwrap();
    let builder = cbindgen::Builder::new().with_config(config).with_src(root.join("src/lib.rs"));
    let mut made = Vec::new();
    builder.generate().unwrap().write(&mut made);
    // Rust's word for what a caller has to see to.
    let made = String::from_utf8(made).unwrap().replace("// # Safety\n", "// The caller sees to it that:\n");
    let path = root.join("include/bulla.h");
    if std::env::var_os("BULLA_WRITE_HEADER").is_some() {
        std::fs::write(&path, &made).unwrap();
    }
    assert!(std::fs::read_to_string(path).unwrap_or_default() == made, "write it anew: make header");
}
