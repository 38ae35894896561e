"""Files: artefacts with checksums, checked headers, arrays, tables, archives."""
