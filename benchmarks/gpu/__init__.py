"""Questions to a machine with a GPU, in pieces that go on where they were stopped."""
