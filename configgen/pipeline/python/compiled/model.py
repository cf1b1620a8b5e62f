"""A compiled model (.om) on an Ascend NPU, inside Triton's Python backend.

Needs numpy and ais_bench (with aclruntime) from Ascend's tools, and CANN. Nothing here
is to be edited for another model: what differs stands in config.pbtxt, under parameters:

  model     the file, in this folder
  devices   numbers of NPUs; instances take them in turn
  mode      how ais_bench is told the sizes: static, dymbatch, dymhw, dymdims, dymshape.
            Some releases of it spell them dynbatch, dynhw, dyndims, dynshape.
  gears     the shapes that the model was built for: the inputs' shapes in their order,
            as 1,80;1 and further gears behind |; empty for a model without gears
  cuts      with gears, for each dim of each output where its size comes from: 0.1 is
            dim 1 of input 0, and what padding added there is cut off again; - stays.
            As 0.0,-;0.0
  output_bytes  room for each output of a model whose shapes are open, in bytes

A request runs in the smallest gear that holds it, filled up with zeros. A request that
no gear holds fails, as does any other that is wrong; the others go on.
"""

import json
import math
import os

import numpy as np
import triton_python_backend_utils as pb_utils

try:
    from ais_bench.infer.interface import InferSession
except ImportError as missing:
    raise ImportError(
        "%s: install ais_bench and aclruntime for the Python of the backend, or name a virtual "
        "environment that has them in the parameter EXECUTION_ENV_PATH" % missing
    )


def read_shapes(text):
    """Gears of a parameter: lists of shapes."""
    return [[tuple(int(n) for n in shape.split(",") if n) for shape in gear.split(";")] for gear in text.split("|") if gear]


class TritonPythonModel:
    def initialize(self, args):
        config = json.loads(args["model_config"])
        settings = {key: p["string_value"] for key, p in config["parameters"].items()}
        self.inputs = [tensor["name"] for tensor in config["input"]]
        self.outputs = [tensor["name"] for tensor in config["output"]]
        self.types = [pb_utils.triton_string_to_numpy(tensor["data_type"]) for tensor in config["input"]]
        self.mode = settings["mode"]
        self.gears = read_shapes(settings["gears"])
        self.cuts = [output.split(",") if output else [] for output in settings["cuts"].split(";")]
        self.output_bytes = int(settings["output_bytes"])
        self.size = [sum(math.prod(shape) for shape in gear) for gear in self.gears]

        devices = [int(n) for n in settings["devices"].split(",")]
        number = int(args["model_instance_name"].rsplit("_", 1)[-1])  # NAME_GROUP_NUMBER
        path = os.path.join(args["model_repository"], args["model_version"], settings["model"])
        self.session = InferSession(devices[number % len(devices)], path)

    def execute(self, requests):
        return [self.answer(request) for request in requests]

    def answer(self, request):
        try:
            values = [pb_utils.get_input_tensor_by_name(request, name).as_numpy() for name in self.inputs]
            values = [np.ascontiguousarray(value, kind) for value, kind in zip(values, self.types)]
            outputs = self.run(values)
            tensors = [pb_utils.Tensor(name, np.atleast_1d(np.ascontiguousarray(value))) for name, value in zip(self.outputs, outputs)]
            return pb_utils.InferenceResponse(output_tensors=tensors)
        except Exception as fault:  # whatever it is, the other requests go on
            return pb_utils.InferenceResponse(output_tensors=[], error=pb_utils.TritonError(str(fault)))

    def run(self, values):
        if not self.gears:
            return self.session.infer(values, mode=self.mode, custom_sizes=self.output_bytes)
        asked = [value.shape for value in values]
        gear = self.gear_for(asked)
        padded = [self.pad(value, shape) for value, shape in zip(values, self.gears[gear])]
        outputs = self.session.infer(padded, mode=self.mode)
        return [self.cut(value, cuts, asked) for value, cuts in zip(outputs, self.cuts)]

    def gear_for(self, asked):
        """The smallest gear in which shapes fit."""
        fitting = [i for i, gear in enumerate(self.gears) if self.fits(asked, gear)]
        if not fitting:
            raise ValueError("no gear holds inputs of the shapes %s; there are %s" % (asked, self.gears))
        return min(fitting, key=lambda i: self.size[i])

    @staticmethod
    def fits(asked, gear):
        return all(len(a) == len(g) and all(x <= y for x, y in zip(a, g)) for a, g in zip(asked, gear))

    @staticmethod
    def pad(value, shape):
        if value.shape == shape:
            return value
        return np.pad(value, [(0, size - have) for have, size in zip(value.shape, shape)])

    @staticmethod
    def cut(value, cuts, asked):
        """An output without what padding added."""
        ends = []
        for cut in cuts:
            place = [int(n) for n in cut.split(".")] if cut != "-" else None
            ends.append(slice(asked[place[0]][place[1]] if place else None))
        return value[tuple(ends)] if value.ndim == len(ends) else value

    def finalize(self):
        self.session.free_resource()
