"""A second reader of Bulla's format, written from docs/format.md, docs/format-columns.md and vectors/ alone."""
