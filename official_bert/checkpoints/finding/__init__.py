"""Models by folder, by name on the hub, or by address."""
