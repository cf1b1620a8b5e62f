"""An ONNX model on ONNX Runtime, inside Triton's Python backend.

For servers that have neither the onnxruntime backend nor npu_ge. Needs numpy and
onnxruntime. What differs from model to model stands in config.pbtxt: tensors, and
under parameters

  model      the file, in this folder
  providers  where to run, the first that is there: CPUExecutionProvider, ...
  threads    for one run; 0 leaves it to ONNX Runtime

Requests that the server hands over together run as one batch where max_batch_size is
above 0 and their shapes agree. A request that fails does so alone.
"""

import json
import os

import numpy as np
import triton_python_backend_utils as pb_utils

try:
    import onnxruntime
except ImportError as missing:
    raise ImportError(
        "%s: install onnxruntime for the Python of the backend, or name a virtual environment "
        "that has it in the parameter EXECUTION_ENV_PATH" % missing
    )


class TritonPythonModel:
    def initialize(self, args):
        config = json.loads(args["model_config"])
        settings = {key: p["string_value"] for key, p in config["parameters"].items()}
        self.inputs = [tensor["name"] for tensor in config["input"]]
        self.outputs = [tensor["name"] for tensor in config["output"]]
        self.batches = config["max_batch_size"] > 0

        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = int(settings["threads"])
        there = onnxruntime.get_available_providers()
        providers = [p for p in settings["providers"].split(",") if p in there]
        if not providers:
            raise ValueError("of the providers %s, ONNX Runtime has none here, but %s" % (settings["providers"], ", ".join(there)))
        path = os.path.join(args["model_repository"], args["model_version"], settings["model"])
        self.session = onnxruntime.InferenceSession(path, options, providers=providers)

    def execute(self, requests):
        feeds = [{name: self.value(request, name) for name in self.inputs} for request in requests]
        answers = [None] * len(requests)
        for group in self.groups(feeds):
            for number, answer in zip(group, self.run(feeds, group)):
                answers[number] = answer
        return answers

    @staticmethod
    def value(request, name):
        return pb_utils.get_input_tensor_by_name(request, name).as_numpy()

    def groups(self, feeds):
        """Numbers of requests that can run together."""
        if not self.batches:
            return [[i] for i in range(len(feeds))]
        groups = {}
        for i, feed in enumerate(feeds):
            groups.setdefault(tuple(value.shape[1:] for value in feed.values()), []).append(i)
        return groups.values()

    def run(self, feeds, group):
        """An answer for each request of a group."""
        try:
            if len(group) == 1:
                return [self.response(self.compute(feeds[group[0]]))]
            sizes = [len(feeds[i][self.inputs[0]]) for i in group]
            together = {name: np.concatenate([feeds[i][name] for i in group]) for name in self.inputs}
            cuts = np.cumsum(sizes)[:-1]
            parts = [np.split(output, cuts) for output in self.compute(together)]
            return [self.response(outputs) for outputs in zip(*parts)]
        except Exception as fault:  # whatever it is, the other requests go on
            if len(group) > 1:  # one of them is to blame: alone, the others are fine
                return [answer for i in group for answer in self.run(feeds, [i])]
            return [pb_utils.InferenceResponse(output_tensors=[], error=pb_utils.TritonError(str(fault)))]

    def compute(self, feed):
        return self.session.run(self.outputs, feed)

    def response(self, outputs):
        tensors = [pb_utils.Tensor(name, np.asarray(value)) for name, value in zip(self.outputs, outputs)]
        return pb_utils.InferenceResponse(output_tensors=tensors)
