"""Sound to log-mel features, as Kaldi and with it Wenet computes them, without dither."""

import numpy as np

BINS = 80
LOWEST_HZ = 20.0
PREEMPHASIS = 0.97
WINDOW_POWER = 0.85  # of the Hann window: Kaldi calls it povey


def log_mel(sound, rate):
    """Frames of 25 ms, 10 ms apart, by 80 bins. Samples are numbers of 16 bits."""
    length, step = rate * 25 // 1000, rate // 100
    if len(sound) < length:
        raise ValueError("it is shorter than 25 ms")
    frames = np.lib.stride_tricks.sliding_window_view(sound, length)[::step].astype(np.float64)
    frames = frames - frames.mean(axis=1, keepdims=True)
    before = np.concatenate([frames[:, :1], frames[:, :-1]], axis=1)
    frames = (frames - PREEMPHASIS * before) * np.hanning(length) ** WINDOW_POWER
    size = 1 << (length - 1).bit_length()
    power = np.abs(np.fft.rfft(frames, size)) ** 2
    energy = power[:, : size // 2] @ mel_filters(size, rate).T
    return np.log(np.maximum(energy, np.finfo(np.float32).eps)).astype(np.float32)


def mel(hz):
    return 1127.0 * np.log(1.0 + np.asarray(hz) / 700.0)


def mel_filters(size, rate):
    """Triangles of equal width on the mel scale, one a row."""
    edges = np.linspace(mel(LOWEST_HZ), mel(rate / 2), BINS + 2)
    left, centre, right = edges[:-2, None], edges[1:-1, None], edges[2:, None]
    at = mel(np.arange(size // 2) * rate / size)[None]
    return np.maximum(0, np.minimum((at - left) / (centre - left), (right - at) / (right - centre)))
