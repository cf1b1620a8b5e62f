"""What a model gives for each item to a feature vector, at length 1 if wanted.

Runs in Triton's Python backend and needs numpy. What differs from model to model
stands in config.pbtxt, under parameters.
"""

import json

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        config = json.loads(args["model_config"])
        settings = {key: p["string_value"] for key, p in config["parameters"].items()}
        self.source = config["input"][0]["name"]
        self.target = config["output"][0]["name"]
        self.normalise = settings["normalise"] == "true"

    def execute(self, requests):
        return [self.answer(request) for request in requests]

    def answer(self, request):
        try:
            features = pb_utils.get_input_tensor_by_name(request, self.source).as_numpy().astype(np.float32)
            if self.normalise:
                length = np.linalg.norm(features, axis=-1, keepdims=True)
                features = features / np.maximum(length, np.finfo(np.float32).tiny)  # zeros stay zeros
            return pb_utils.InferenceResponse(output_tensors=[pb_utils.Tensor(self.target, features)])
        except Exception as fault:  # whatever it is, the other requests go on
            return pb_utils.InferenceResponse(output_tensors=[], error=pb_utils.TritonError(str(fault)))
