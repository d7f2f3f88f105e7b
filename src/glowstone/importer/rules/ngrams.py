"""TfIdfVectorizer of numbers."""

from __future__ import annotations

from glowstone.errors import ModelError, UnsupportedError
from glowstone.graph import Value
from glowstone.importer.registry import OnnxNode, imports
from glowstone.ops import TfIdfVectorizer


@imports("TfIdfVectorizer", since=9)
def import_tf_idf_vectorizer(node: OnnxNode) -> Value:
    pool = node.integer_list("pool_int64s")
    if pool is None:
        raise UnsupportedError("n-grams of text are not supported", expected="attribute pool_int64s", found="none")
    numbers = [node.optional_integer(name) for name in ("min_gram_length", "max_gram_length", "max_skip_count")]
    least, most, skips = numbers
    if least is None or most is None or skips is None:
        raise ModelError("a length of n-grams is missing", expected="smallest, largest and skips", found=numbers)
    operator = TfIdfVectorizer(
        node.text("mode", ""),
        (least, most),
        skips,
        pool,
        node.integer_list("ngram_counts") or (),
        node.integer_list("ngram_indexes") or (),
        node.number_list("weights") or (),
    )
    return node.emit(operator, node.operand(0))
