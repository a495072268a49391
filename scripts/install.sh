#!/usr/bin/env bash
# Installs what was built: the command with its manual pages, and the library for C and C++.
#   scripts/install.sh target/release DESTDIR PREFIX
set -euo pipefail

built=$1 prefix=$3
to=$2$3
here=$(dirname "$0")/..
version=$(sed -n 's/^version = "\(.*\)"/\1/p' "$here/Cargo.toml" | head -n 1)

install -D -m 755 "$built/bulla" "$to/bin/bulla"
mkdir -p "$to/share/man/man1"
"$built/bulla" man "$to/share/man/man1"
for header in bulla.h bulla.hpp bulla/thesis.hpp; do
    install -D -m 644 "$here/crates/bulla-c/include/$header" "$to/include/$header"
done
install -D -m 644 "$built/libbulla_c.a" "$to/lib/libbulla.a"
# What debuggers read of it is eight times the rest.
install -D -s -m 755 "$built/libbulla_c.so" "$to/lib/libbulla.so.1"
ln -sf libbulla.so.1 "$to/lib/libbulla.so"
mkdir -p "$to/lib/pkgconfig"
cat > "$to/lib/pkgconfig/bulla.pc" << EOF
prefix=$prefix
libdir=\${prefix}/lib
includedir=\${prefix}/include

Name: bulla
Description: A tamper-evident, encrypted, compressed audit log
Version: $version
Libs: -L\${libdir} -lbulla
Libs.private: -lpthread -ldl -lm
Cflags: -I\${includedir}
EOF
echo "installed the command and the library for C and C++ below $to"
