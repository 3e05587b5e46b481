"""Models that BERT was compared with, no Transformers: word vectors, ELMo, GLUE's BiLSTM."""
