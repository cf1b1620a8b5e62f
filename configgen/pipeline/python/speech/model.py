"""Speech recognition: paths of WAV files to text, with an encoder and a decoder.

The models are those that Wenet exports for servers, as .om (ais_bench runs them on an
NPU) or as .onnx (ONNX Runtime runs them). Needs numpy and the one or the other. What
differs from model to model stands in config.pbtxt, under parameters; the units that
the model knows stand in words.txt beside it, one a line, in the order of their numbers.

  features.py  sound to the 80 numbers for each 10 ms that the encoder takes
  sessions.py  a model, with gears and what has to be filled up for them
  search.py    what the encoder gives to the likeliest texts

Utterances of all requests that the server hands over run together, sorted by length, so
that little is filled up. A file that cannot be read, or is too long, fails its own
request and no other.
"""

import json
import os
import wave

import numpy as np
import triton_python_backend_utils as pb_utils

from features import log_mel
from search import prefix_beam_search
from sessions import Session

NEVER = -1e9  # the score of a text that there is not


class TritonPythonModel:
    def initialize(self, args):
        config = json.loads(args["model_config"])
        settings = {key: p["string_value"] for key, p in config["parameters"].items()}
        folder = os.path.join(args["model_repository"], args["model_version"])
        self.source = config["input"][0]["name"]
        self.target = config["output"][0]["name"]
        self.root = os.path.realpath(settings["audio_root"])
        self.rate = int(settings["sample_rate"])
        self.beam = int(settings["beam"])
        self.rows = int(settings["rows"])
        self.ctc_weight = float(settings["ctc_weight"])
        with open(os.path.join(args["model_repository"], settings["words"]), encoding="utf-8") as file:
            self.words = [line.split()[0] if line.split() else "" for line in file]
        self.end = len(self.words) - 1  # Wenet's sign for both the start and the end of a text

        devices = [int(n) for n in settings["devices"].split(",")]
        device = devices[int(args["model_instance_name"].rsplit("_", 1)[-1]) % len(devices)]
        self.encoder = Session(folder, device, settings, "encoder")
        self.decoder = None
        if settings["decoder"]:
            self.decoder = Session(folder, device, settings, "decoder", {"hyps_pad_sos_eos": self.end, "r_hyps_pad_sos_eos": self.end})

    def execute(self, requests):
        texts, faults, sounds = [], [None] * len(requests), []
        for number, request in enumerate(requests):
            paths = pb_utils.get_input_tensor_by_name(request, self.source).as_numpy()
            texts.append(np.full(paths.shape, b"", np.object_))
            try:
                sounds += [(number, place, self.read(path)) for place, path in np.ndenumerate(paths)]
            except Exception as fault:  # whatever it is, the other requests go on
                faults[number] = fault
        sounds = [sound for sound in sounds if not faults[sound[0]]]
        sounds.sort(key=lambda sound: len(sound[2]))
        for start in range(0, len(sounds), self.rows):
            self.recognise_all(sounds[start : start + self.rows], texts, faults)
        return [self.response(text, fault) for text, fault in zip(texts, faults)]

    def recognise_all(self, sounds, texts, faults):
        """Texts of some sounds, together; one by one where that fails."""
        try:
            found = self.recognise([features for _, _, features in sounds])
        except Exception as fault:
            if len(sounds) == 1:
                faults[sounds[0][0]] = fault
                return
            for sound in sounds:
                self.recognise_all([sound], texts, faults)
            return
        for (number, place, _), text in zip(sounds, found):
            texts[number][place] = text.encode()

    def response(self, text, fault):
        if fault:
            return pb_utils.InferenceResponse(output_tensors=[], error=pb_utils.TritonError(str(fault)))
        return pb_utils.InferenceResponse(output_tensors=[pb_utils.Tensor(self.target, text)])

    def read(self, path):
        """The features of a WAV file below audio_root."""
        name = path.decode()
        full = os.path.realpath(os.path.join(self.root, name))
        if os.path.commonpath([full, self.root]) != self.root:
            raise ValueError("%s is not below the folder of recordings" % name)
        try:
            with wave.open(full, "rb") as file:
                kind = file.getnchannels(), file.getsampwidth(), file.getframerate()
                if kind != (1, 2, self.rate):
                    raise ValueError("it has %d channels of %d bytes at %d Hz; 1 of 2 bytes at %d Hz is wanted" % (*kind, self.rate))
                sound = np.frombuffer(file.readframes(file.getnframes()), "<i2").astype(np.float32)
            return log_mel(sound, self.rate)
        except Exception as fault:
            raise ValueError("%s: %s" % (name, fault))

    def recognise(self, features):
        lengths = np.array([len(one) for one in features], np.int32)
        speech = np.zeros((len(features), lengths.max(), features[0].shape[1]), np.float32)
        for row, one in zip(speech, features):
            row[: len(one)] = one
        encoded = self.encoder.run({"speech": speech, "speech_lengths": lengths})
        ends = encoded["encoder_out_lens"].reshape(-1)
        texts = [
            prefix_beam_search(scores[:end], units[:end], self.beam)
            for scores, units, end in zip(encoded["beam_log_probs"], encoded["beam_log_probs_idx"], ends)
        ]
        if self.decoder is None:
            best = [0] * len(texts)
        else:
            best = self.rescore(encoded["encoder_out"], ends, texts)
        return [self.spell(found[number][0]) for found, number in zip(texts, best)]

    def rescore(self, encoder_out, ends, texts):
        """Which of each utterance's texts the decoder takes for the best."""
        longest = max(len(units) for found in texts for units, _ in found)
        shape = len(texts), self.beam
        forward = np.full((*shape, longest + 2), self.end, np.int64)
        backward = forward.copy()
        lengths, scores = np.ones(shape, np.int32), np.full(shape, NEVER, np.float32)
        for i, found in enumerate(texts):
            for j, (units, score) in enumerate(found):
                forward[i, j, 1 : len(units) + 1] = units
                backward[i, j, 1 : len(units) + 1] = units[::-1]
                lengths[i, j], scores[i, j] = len(units) + 1, self.ctc_weight * score
        decoded = self.decoder.run({
            "encoder_out": encoder_out, "encoder_out_lens": ends, "hyps_pad_sos_eos": forward,
            "r_hyps_pad_sos_eos": backward, "hyps_lens_sos": lengths, "ctc_score": scores,
        })
        best = decoded["best_index"].reshape(-1)
        return [min(int(number), len(found) - 1) for number, found in zip(best, texts)]

    def spell(self, units):
        return "".join(self.words[unit] for unit in units).replace("\u2581", " ").strip()
