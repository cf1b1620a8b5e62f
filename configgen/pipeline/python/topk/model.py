"""Scores of classes to the best of them, with their names.

Runs in Triton's Python backend and needs numpy. What differs from model to model
stands in config.pbtxt, under parameters; the names of classes in a file beside it, one
a line.

  input    one score for each class, for each item
  outputs  in this order: numbers of the k best classes, their scores, their names if
           there is a file of names
"""

import json
import os

import numpy as np
import triton_python_backend_utils as pb_utils


class TritonPythonModel:
    def initialize(self, args):
        config = json.loads(args["model_config"])
        settings = {key: p["string_value"] for key, p in config["parameters"].items()}
        self.source = config["input"][0]["name"]
        self.targets = [output["name"] for output in config["output"]]
        self.k = int(settings["k"])
        self.softmax = settings["softmax"] == "true"
        self.labels = None
        if len(self.targets) > 2:
            with open(os.path.join(args["model_repository"], settings["labels"]), encoding="utf-8") as file:
                self.labels = np.array([line.rstrip("\r\n").encode() for line in file], np.object_)

    def execute(self, requests):
        return [self.answer(request) for request in requests]

    def answer(self, request):
        try:
            scores = pb_utils.get_input_tensor_by_name(request, self.source).as_numpy().astype(np.float32)
            if self.softmax:
                scores = np.exp(scores - scores.max(axis=-1, keepdims=True))
                scores /= scores.sum(axis=-1, keepdims=True)
            best = np.argsort(-scores, axis=-1, kind="stable")[..., : self.k]
            answers = [best.astype(np.int32), np.take_along_axis(scores, best, axis=-1)]
            if self.labels is not None:
                answers.append(self.labels[best])
            tensors = [pb_utils.Tensor(name, answer) for name, answer in zip(self.targets, answers)]
            return pb_utils.InferenceResponse(output_tensors=tensors)
        except Exception as fault:  # whatever it is, the other requests go on
            return pb_utils.InferenceResponse(output_tensors=[], error=pb_utils.TritonError(str(fault)))
