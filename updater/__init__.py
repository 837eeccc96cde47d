"""The updater: from the log into the scorebook and the boards. Start reading at pipeline.py."""
