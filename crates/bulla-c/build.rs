//! Names the shared library as `make install` installs it.

fn main() {
    // The number is that of `BULLA_ABI_VERSION`.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,libbulla.so.1");
    println!("cargo:rerun-if-changed=build.rs");
}
