"""Real implementations that captures are made from: `<oracle>_<source>.py`, `reference()`."""
