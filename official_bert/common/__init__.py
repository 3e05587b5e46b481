"""Common ground of the three packages: errors, whole files, locks, JSON, commands."""
