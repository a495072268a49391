#!/usr/bin/env bash
# A program in Python: the wheel is built, installed into an environment of its own below ./demo-python, and the program run there.
set -euo pipefail
cd "$(dirname "$0")/.."

rm -rf demo-python && mkdir demo-python
make --no-print-directory wheel
.venv/bin/python -m venv --without-pip demo-python/environment
.venv/bin/python -m pip --python demo-python/environment/bin/python install --quiet --no-index --disable-pip-version-check target/wheels/bulla_audit-*.whl
cp crates/bulla-python/demo/demo.py demo-python/
cd demo-python
echo '$ python demo.py audit'
environment/bin/python demo.py audit
