"""A model that ais_bench runs on an NPU (.om) or ONNX Runtime anywhere (.onnx)."""

import math
import os

import numpy as np

TYPES = {"FP32": np.float32, "FP16": np.float16, "INT32": np.int32, "INT64": np.int64}


class Session:
    """Runs a model on whole batches of named arrays.

    Its parameters begin with its role: encoder_inputs and encoder_outputs list names in
    the model's order, inputs with their types; encoder_gears has the shapes that an .om
    was built for, those of the inputs with ; between them, gears with | between them;
    encoder_mode is how ais_bench is told of it.
    """

    def __init__(self, folder, device, settings, role, fillers={}):
        self.inputs = [tuple(word.split(":")) for word in settings[role + "_inputs"].split(",")]
        self.outputs = settings[role + "_outputs"].split(",")
        self.mode = settings[role + "_mode"]
        gears = [gear.split(";") for gear in settings[role + "_gears"].split("|") if gear]
        self.gears = [[tuple(int(n) for n in shape.split(",")) for shape in gear] for gear in gears]
        self.fillers = fillers
        path = os.path.join(folder, settings[role])
        self.compute = self.on_npu(path, device) if path.endswith(".om") else self.on_onnxruntime(path)

    def on_npu(self, path, device):
        from ais_bench.infer.interface import InferSession

        session = InferSession(device, path)
        return lambda values: session.infer(values, mode=self.mode)

    def on_onnxruntime(self, path):
        import onnxruntime

        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        names = [name for name, _ in self.inputs]
        return lambda values: session.run(self.outputs, dict(zip(names, values)))

    def run(self, feed):
        """Outputs by name, for as many rows as came in."""
        values = [np.ascontiguousarray(feed[name], TYPES[kind]) for name, kind in self.inputs]
        rows = len(values[0])
        if self.gears:
            values = self.fill(values)
        return {name: value[:rows] for name, value in zip(self.outputs, self.compute(values))}

    def fill(self, values):
        """Values in the smallest gear that holds them: rows repeat the first, all else is filled up."""
        fitting = [gear for gear in self.gears if self.fits(values, gear)]
        if not fitting:
            raise ValueError("no gear holds %s; there are %s" % ([value.shape for value in values], self.gears))
        gear = min(fitting, key=lambda shapes: sum(math.prod(shape) for shape in shapes))
        filled = []
        for (name, _), value, shape in zip(self.inputs, values, gear):
            room = [(0, size - have) for have, size in zip(value.shape, shape)]
            wide = np.pad(value, [(0, 0)] + room[1:], constant_values=self.fillers.get(name, 0))
            filled.append(np.concatenate([wide] + [wide[:1]] * room[0][1]))
        return filled

    @staticmethod
    def fits(values, gear):
        return all(
            len(value.shape) == len(shape) and all(have <= size for have, size in zip(value.shape, shape))
            for value, shape in zip(values, gear)
        )
