"""Columns of texts are seen by their words, and other columns are not taken for texts."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from hcdv import HCDV
from hcdv.embedding.tables import TableEncoder, read_rows
from hcdv.embedding.words import N_WORDS, WEIGHT, are_texts

TOPICS = {
    "sport": "match goal team season coach player league striker win referee".split(),
    "money": "market shares bank profit rates investor stock growth debt bond".split(),
}
FILLER = "the a of and in on with for was said its after new two".split()


def stories(n=300, seed=0, n_topical=4):
    rng = np.random.default_rng(seed)
    label = rng.choice(list(TOPICS), n)
    text = [
        " ".join(
            rng.permutation([*rng.choice(TOPICS[of], n_topical), *rng.choice(FILLER, 8)])
        )
        for of in label
    ]
    return pd.DataFrame({"text": text}), label


def encoded(frame, fitted=None):
    rows = read_rows(frame)
    encoder = TableEncoder().fit(rows) if fitted is None else fitted
    return encoder, encoder.transform(rows)


def test_texts_of_one_topic_are_nearer_each_other():
    frame, label = stories()
    encoder, Z = encoded(frame)
    assert Z.shape == (300, N_WORDS)
    assert np.allclose(np.linalg.norm(Z, axis=1), WEIGHT)
    same = label[:, None] == label
    cosine = Z @ Z.T / WEIGHT**2
    off = ~np.eye(len(Z), dtype=bool)
    assert cosine[same & off].mean() > cosine[~same].mean() + 0.1
    assert "texts, seen as 256 sums" in encoder.notes[0]


def test_wrong_topics_are_found():
    frame, label = stories()
    wrong = np.arange(300) % 15 == 0
    given = np.where(wrong, np.where(label == "sport", "money", "sport"), label)
    v = HCDV(random_state=0).fit(frame, given)
    first = v.suspects(20)["row"].to_numpy()
    assert wrong[first].mean() > 0.9


def test_common_words_weigh_less_than_rare_ones():
    texts = [f"alpha beta gamma common{n % 2} word{n}" for n in range(100)]
    _, Z = encoded(pd.DataFrame({"t": texts}))
    cosine = Z @ Z.T / WEIGHT**2
    assert np.abs(cosine[~np.eye(100, dtype=bool)]).mean() < 0.3


def test_a_missing_text_is_nothing_and_new_words_are_no_error():
    frame, _ = stories()
    encoder, _ = encoded(frame)
    later = pd.DataFrame({"text": [None, "", "zygote quasar", frame["text"][0]]})
    _, Z = encoded(later, encoder)
    assert not Z[:2].any()
    assert np.isclose(np.linalg.norm(Z[2]), WEIGHT)
    assert np.allclose(Z[3], encoded(frame, encoder)[1][0])


def test_the_state_is_plain_and_gives_the_same_vectors():
    frame, _ = stories(80)
    encoder, Z = encoded(frame)
    settings, arrays = encoder.state()
    again = TableEncoder.from_state(json.loads(json.dumps(settings)), arrays)
    assert np.array_equal(encoded(frame, again)[1], Z)


@pytest.mark.parametrize(
    ("levels", "n_known", "expected"),
    [
        (["the cat sat on a mat", "a dog ran to the sea"], 3, True),
        (["New York City area", "San Francisco Bay area"], 40, False),  # they repeat
        ([f"id-{n}" for n in range(50)], 50, False),  # one word each
        (["Anna Berg", "Bo Carl"], 2, False),  # two
    ],
)
def test_categories_codes_and_names_are_no_texts(levels, n_known, expected):
    assert are_texts(levels, n_known) is expected
