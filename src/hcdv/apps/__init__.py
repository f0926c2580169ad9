"""What people open: the command line."""
