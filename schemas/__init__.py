"""What Standings talks about: events, windows, packing, rows, keys, settings. Pure: nothing here does I/O."""
