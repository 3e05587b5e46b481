"""Answers of a fine-tuned model: predictions, files of answers, exports."""
