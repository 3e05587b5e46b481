"""What a machine with a GPU is asked, in pieces that go on where they were stopped."""
