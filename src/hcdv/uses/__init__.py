"""What values are for: selecting rows, finding wrong labels, explaining."""
