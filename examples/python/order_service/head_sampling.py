"""Which requests are profiled, decided once when they come in: a flag from outside, or the dice."""

import os
import random


def _share():
    """1 % unless PROFILE_SHARE says otherwise."""
    try:
        share = float(os.environ.get("PROFILE_SHARE", "0.01"))
    except ValueError:
        return 0.01
    return share if 0 <= share <= 1 else 0.01


PROFILE_SHARE = _share()


def is_chosen(headers):
    return "x-profile" in headers or random.random() < PROFILE_SHARE
