"""Runs model.py files of Triton's Python backend without a server, for the tests.

Reads a JSON list of jobs from standard input: model (a path), folder (of the model),
config (as the server gives it), inputs (name, type, shape, and data in base64, or texts in
base64). Writes a list of answers: outputs of the same form, or error.
"""

import base64
import importlib.util
import json
import sys
import types

import numpy as np

TYPES = {"FP16": np.float16, "FP32": np.float32, "FP64": np.float64, "UINT8": np.uint8, "INT32": np.int32, "INT64": np.int64}
NAMES = {np.dtype(kind): name for name, kind in TYPES.items()}


class Tensor:
    def __init__(self, name, value):
        self.tensor_name, self.value = name, value

    def as_numpy(self):
        return self.value


class InferenceResponse:
    def __init__(self, output_tensors, error=None):
        self.output_tensors, self.error = output_tensors, error


backend = types.ModuleType("triton_python_backend_utils")
backend.Tensor = Tensor
backend.InferenceResponse = InferenceResponse
backend.TritonError = str
backend.triton_string_to_numpy = lambda name: TYPES[name.removeprefix("TYPE_")]
backend.get_input_tensor_by_name = lambda request, name: request[name]
sys.modules[backend.__name__] = backend


def read(value):
    if value["type"] == "STRING":
        data = np.array([base64.b64decode(text) for text in value["texts"]], np.object_)
    else:
        data = np.frombuffer(base64.b64decode(value["data"]), TYPES[value["type"]])
    return Tensor(value["name"], data.reshape(value["shape"]))


def written(tensor):
    value = np.asarray(tensor.value)
    out = {"name": tensor.tensor_name, "shape": list(value.shape)}
    if value.dtype == np.object_:
        return out | {"type": "STRING", "texts": [base64.b64encode(text).decode() for text in value.reshape(-1)]}
    return out | {"type": NAMES[value.dtype], "data": base64.b64encode(np.ascontiguousarray(value).tobytes()).decode()}


def answer(job):
    spec = importlib.util.spec_from_file_location("model", job["model"])
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    model = module.TritonPythonModel()
    model.initialize({"model_config": json.dumps(job["config"]), "model_repository": job["folder"], "model_version": "1"})
    (response,) = model.execute([{value["name"]: read(value) for value in job["inputs"]}])
    if response.error:
        return {"error": response.error}
    return {"outputs": [written(tensor) for tensor in response.output_tensors]}


np.seterr(all="ignore")
json.dump([answer(job) for job in json.load(sys.stdin)], sys.stdout)
