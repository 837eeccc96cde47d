"""What the commands of `standings` do. Which commands there are is in cli.py."""
