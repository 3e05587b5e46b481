"""Common ground of the three packages: errors, whole files, JSON, typed values."""
