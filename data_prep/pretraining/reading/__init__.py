"""Pre-training records as training reads them: files, sets, batches, masks."""
