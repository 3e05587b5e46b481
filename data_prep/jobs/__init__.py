"""Long jobs: on this machine's cores or a cluster, in folders that resume, on any storage."""
