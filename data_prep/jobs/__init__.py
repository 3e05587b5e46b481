"""Long work: on this machine's cores or a cluster, in folders that resume, on any disk."""
