"""The subcommands of the program that are written in Python, each a module with `main(options)`."""
