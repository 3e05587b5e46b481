"""What BERT was compared with and is no Transformer: word vectors, ELMo, GLUE's BiLSTM."""
