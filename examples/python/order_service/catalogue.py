"""Ranking the catalogue."""

from . import profiling
from .tracing import span


def search(words):
    with span("catalogue.rank"), profiling.labels_of_span():
        best = ""
        for word in range(words):
            best = rank_products(f"word-{word}")
        return best


def rank_products(word):
    best, highest = "", -1
    for number in range(500):
        product = f"product-{number:04}"
        score = similarity(word + product)
        if score >= highest:
            best, highest = product, score
    return best


def similarity(text):
    score = 0x811C9DC5
    for character in text:
        score = ((score ^ ord(character)) * 0x01000193) & 0xFFFFFFFF
    return score
