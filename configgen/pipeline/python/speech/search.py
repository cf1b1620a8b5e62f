"""The likeliest texts of a CTC encoder."""

import numpy as np

BLANK = 0


def prefix_beam_search(scores, units, beam):
    """Up to `beam` texts with their log probabilities, the best first.

    scores and units are the likeliest units of each frame, [frames, candidates]. A text
    is a list of units. For each is kept how likely it is with a blank at its end, and
    without: the same unit again is a new one only behind a blank.
    """
    texts = {(): (0.0, -np.inf)}  # text: (ends in blank, does not)
    for frame_scores, frame_units in zip(scores.astype(np.float64), units):
        following = {}

        def add(text, blank=-np.inf, unit=-np.inf):
            old = following.get(text, (-np.inf, -np.inf))
            following[text] = np.logaddexp(old[0], blank), np.logaddexp(old[1], unit)

        for text, (blank, unit) in texts.items():
            total = np.logaddexp(blank, unit)
            for score, next_unit in zip(frame_scores, frame_units.tolist()):
                if next_unit == BLANK:
                    add(text, blank=total + score)
                elif text and next_unit == text[-1]:
                    add(text, unit=unit + score)
                    add(text + (next_unit,), unit=blank + score)
                else:
                    add(text + (next_unit,), unit=total + score)
        best = sorted(following.items(), key=lambda item: -np.logaddexp(*item[1]))
        texts = dict(best[:beam])
    return [(list(text), float(np.logaddexp(*ends))) for text, ends in texts.items()]
