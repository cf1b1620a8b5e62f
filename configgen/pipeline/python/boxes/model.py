"""What a YOLO model gives to boxes in the original picture.

Runs in Triton's Python backend and needs numpy. What differs from model to model
stands in config.pbtxt, under parameters; the names of classes in a file beside it, one
a line.

  input     candidates of each picture, in one of three formats:
              yolo11  [4 + classes, candidates]: centre x, centre y, width, height, and a
                      score for each class (YOLOv8 and later)
              yolov5  [candidates, 5 + classes]: the same with a score for the object
                      behind the box, which multiplies those of the classes
              end2end [candidates, 6]: left, top, right, bottom, score, class, without
                      overlaps: the model has seen to that
  geometry  if config.pbtxt has it: how the picture was brought to the model's size
  outputs   in this order, room for max_boxes each, the best first: boxes (left, top,
            right, bottom), scores, numbers of classes, how many boxes there are, and
            names of classes if there is a file of names. Behind the last box stand
            zeros, and -1 for the class.
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
        self.geometry = config["input"][1]["name"] if len(config["input"]) > 1 else None
        self.targets = [output["name"] for output in config["output"]]
        self.split = {"yolo11": self.split_yolo11, "yolov5": self.split_yolov5, "end2end": self.split_end2end}[settings["format"]]
        self.suppresses = settings["format"] != "end2end"
        self.confidence = float(settings["confidence"])
        self.overlap = float(settings["overlap"])
        self.across_classes = settings["across_classes"] == "true"
        self.max_boxes = int(settings["max_boxes"])
        self.max_candidates = int(settings["max_candidates"])
        self.labels = None
        if len(self.targets) > 4:
            with open(os.path.join(args["model_repository"], settings["labels"]), encoding="utf-8") as file:
                self.labels = np.array([line.rstrip("\r\n").encode() for line in file], np.object_)

    def execute(self, requests):
        return [self.answer(request) for request in requests]

    def answer(self, request):
        try:
            candidates = pb_utils.get_input_tensor_by_name(request, self.source).as_numpy().astype(np.float32)
            geometry = [None] * len(candidates)
            if self.geometry:
                geometry = pb_utils.get_input_tensor_by_name(request, self.geometry).as_numpy()
            found = [self.detect(one, place) for one, place in zip(candidates, geometry)]
            tensors = [pb_utils.Tensor(name, np.stack(all)) for name, all in zip(self.targets, zip(*found))]
            return pb_utils.InferenceResponse(output_tensors=tensors)
        except Exception as fault:  # whatever it is, the other requests go on
            return pb_utils.InferenceResponse(output_tensors=[], error=pb_utils.TritonError(str(fault)))

    def detect(self, candidates, geometry):
        """The boxes of one picture, in room for max_boxes."""
        boxes, scores, classes = self.split(candidates)
        likely = np.flatnonzero(scores >= self.confidence)
        order = likely[np.argsort(-scores[likely], kind="stable")][: self.max_candidates]
        boxes, scores, classes = boxes[order], scores[order], classes[order]
        if self.suppresses:
            kept = self.suppress(boxes, classes)
            boxes, scores, classes = boxes[kept], scores[kept], classes[kept]
        boxes, scores, classes = boxes[: self.max_boxes], scores[: self.max_boxes], classes[: self.max_boxes]
        if geometry is not None:
            boxes = self.to_original(boxes, geometry)
        return self.fill(boxes, scores, classes)

    # The formats. Each gives boxes [candidates, 4] by their corners, scores and classes.

    def split_yolo11(self, candidates):
        return self.best_class(candidates[:4].T, candidates[4:].T)

    def split_yolov5(self, candidates):
        return self.best_class(candidates[:, :4], candidates[:, 4:5] * candidates[:, 5:])

    def split_end2end(self, candidates):
        return candidates[:, :4], candidates[:, 4], candidates[:, 5].astype(np.int32)

    @staticmethod
    def best_class(centred, scores):
        half = centred[:, 2:] / 2
        corners = np.concatenate([centred[:, :2] - half, centred[:, :2] + half], axis=1)
        classes = scores.argmax(axis=1)
        return corners, scores[np.arange(len(scores)), classes], classes.astype(np.int32)

    def suppress(self, boxes, classes):
        """Which boxes stay, of boxes with the best first: those that cover none better.

        Two boxes cover each other when what they share is more than `overlap` of what
        they cover together. Boxes of different classes do not, unless across_classes.
        """
        area = np.prod(np.maximum(boxes[:, 2:] - boxes[:, :2], 0), axis=1)
        kept, rest = [], np.arange(len(boxes))
        while len(rest) and len(kept) < self.max_boxes:
            best, rest = rest[0], rest[1:]
            kept.append(best)
            low = np.maximum(boxes[best, :2], boxes[rest, :2])
            high = np.minimum(boxes[best, 2:], boxes[rest, 2:])
            shared = np.prod(np.maximum(high - low, 0), axis=1)
            together = area[best] + area[rest] - shared
            covers = shared > self.overlap * together
            if not self.across_classes:
                covers &= classes[rest] == classes[best]
            rest = rest[~covers]
        return np.array(kept, np.int64)

    @staticmethod
    def to_original(boxes, geometry):
        """Corners in the model's picture to corners in the original, and inside it."""
        scale, offset, size = geometry[:2], geometry[2:4], geometry[4:]
        corners = (boxes.reshape(-1, 2, 2) - offset) / scale
        return np.clip(corners, 0, size).reshape(-1, 4)

    def fill(self, boxes, scores, classes):
        count = len(boxes)
        room = [
            np.zeros((self.max_boxes, 4), np.float32),
            np.zeros(self.max_boxes, np.float32),
            np.full(self.max_boxes, -1, np.int32),
        ]
        for target, values in zip(room, (boxes, scores, classes)):
            target[:count] = values
        room.append(np.array([count], np.int32))
        if self.labels is not None:
            names = np.full(self.max_boxes, b"", np.object_)
            names[:count] = self.labels[classes]
            room.append(names)
        return room
