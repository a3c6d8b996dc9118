"""Stands for sentencepiece where it is imported and not needed."""


class SentencePieceProcessor:
    pass
