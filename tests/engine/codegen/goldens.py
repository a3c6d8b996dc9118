"""Snapshots that are Python files."""

from __future__ import annotations

from syrupy.extensions.single_file import SingleFileSnapshotExtension, WriteMode


class PythonFile(SingleFileSnapshotExtension):
    _write_mode = WriteMode.TEXT
    file_extension = "py"
