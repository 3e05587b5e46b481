"""What a fine-tuning starts from: checkpoints, their checks, and its examples."""
