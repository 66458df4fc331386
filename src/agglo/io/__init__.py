"""Read and write files: tables of points, Arrow files, checksums, atomic replacement."""
