"""Pictures as files (PNG, JPEG and what else Pillow reads) to the tensor of a model.

Runs in Triton's Python backend and needs numpy and Pillow. Nothing here is to be
edited for another model: what differs stands in config.pbtxt, under parameters.

  input    one BYTES element for each picture
  picture  the output for the model: pictures of one size, one after another
  geometry the output for who needs places in the original picture, if config.pbtxt has
           it: scale x, scale y, offset x, offset y, width, height. A point (x, y) of the
           original is at (x * scale x + offset x, y * scale y + offset y).

A picture that cannot be read fails its own request, and no other.
"""

import io
import json

import numpy as np
import triton_python_backend_utils as pb_utils

try:
    from PIL import Image, ImageOps, UnidentifiedImageError
except ImportError as missing:
    raise ImportError(
        "%s: install pillow for the Python of the backend, or name a virtual environment "
        "that has it in the parameter EXECUTION_ENV_PATH" % missing
    )

MODES = {"rgb": "RGB", "bgr": "RGB", "gray": "L"}
FILTERS = {
    "nearest": Image.Resampling.NEAREST,
    "bilinear": Image.Resampling.BILINEAR,
    "bicubic": Image.Resampling.BICUBIC,
    "lanczos": Image.Resampling.LANCZOS,
    "box": Image.Resampling.BOX,
}


class TritonPythonModel:
    def initialize(self, args):
        config = json.loads(args["model_config"])
        settings = {key: p["string_value"] for key, p in config["parameters"].items()}
        self.source = config["input"][0]["name"]
        self.target = config["output"][0]["name"]
        self.geometry = config["output"][1]["name"] if len(config["output"]) > 1 else None
        self.type = pb_utils.triton_string_to_numpy(config["output"][0]["data_type"])
        self.is_single = config["max_batch_size"] == 0 and len(config["output"][0]["dims"]) == 3

        self.height, self.width = (int(n) for n in settings["size"].split(","))
        self.resize = {"stretch": self.stretch, "crop": self.crop, "letterbox": self.letterbox}[settings["resize"]]
        self.short_side = int(settings["short_side"])
        self.filter = FILTERS[settings["interpolation"]]
        self.pad = int(settings["pad"])
        self.colour = settings["colour"]
        self.channels_first = settings["layout"] == "NCHW"
        self.upright = settings["upright"] == "true"
        self.max_pixels = int(settings["max_pixels"])
        self.scale = np.float32(settings["scale"])
        self.mean = np.array(settings["mean"].split(","), np.float32)
        self.std = np.array(settings["std"].split(","), np.float32)

    def execute(self, requests):
        return [self.answer(request) for request in requests]

    def answer(self, request):
        try:
            files = pb_utils.get_input_tensor_by_name(request, self.source).as_numpy().reshape(-1)
            pictures, geometry = zip(*[self.prepare(i, file) for i, file in enumerate(files)])
            outputs = [pb_utils.Tensor(self.target, self.join(pictures))]
            if self.geometry:
                outputs.append(pb_utils.Tensor(self.geometry, self.join(geometry)))
            return pb_utils.InferenceResponse(output_tensors=outputs)
        except Exception as fault:  # whatever it is, the other requests go on
            return pb_utils.InferenceResponse(output_tensors=[], error=pb_utils.TritonError(str(fault)))

    def join(self, items):
        """The batch; a model without a batch axis takes its one picture as it is."""
        return items[0] if self.is_single else np.stack(items)

    def prepare(self, number, file):
        """One picture as the model wants it, and where its points went."""
        try:
            picture = self.decode(file)
        except UnidentifiedImageError:
            raise ValueError("picture %d of the request is %d bytes that are no picture" % (number, len(file)))
        except Exception as fault:
            raise ValueError("picture %d of the request cannot be decoded: %s" % (number, fault))
        width, height = picture.size
        picture, scale, offset = self.resize(picture)
        geometry = np.array([*scale, *offset, width, height], np.float32)
        return self.normalise(np.asarray(picture)), geometry

    def decode(self, file):
        picture = Image.open(io.BytesIO(file))  # reads the header alone
        if picture.width * picture.height > self.max_pixels:
            raise ValueError("it has %d x %d pixels, and max_pixels is %d" % (*picture.size, self.max_pixels))
        if self.upright:
            picture = ImageOps.exif_transpose(picture)
        return picture.convert(MODES[self.colour])

    # The ways to the model's size. Each gives the picture, and scale and offset (x, y).

    def stretch(self, picture):
        scale = self.width / picture.width, self.height / picture.height
        return picture.resize((self.width, self.height), self.filter), scale, (0, 0)

    def crop(self, picture):
        """The shorter side becomes short_side, and the middle is cut out."""
        factor = self.short_side / min(picture.size)
        width, height = (max(int(side * factor), self.short_side) for side in picture.size)
        left, top = round((width - self.width) / 2), round((height - self.height) / 2)
        scale = width / picture.width, height / picture.height
        picture = picture.resize((width, height), self.filter)
        return picture.crop((left, top, left + self.width, top + self.height)), scale, (-left, -top)

    def letterbox(self, picture):
        """The whole picture, with bars where its form is another."""
        factor = min(self.width / picture.width, self.height / picture.height)
        width, height = (max(1, round(side * factor)) for side in picture.size)
        left, top = (self.width - width) // 2, (self.height - height) // 2
        scale = width / picture.width, height / picture.height
        board = Image.new(picture.mode, (self.width, self.height), (self.pad,) * len(picture.getbands()))
        board.paste(picture.resize((width, height), self.filter), (left, top))
        return board, scale, (left, top)

    def normalise(self, pixels):
        """Bytes [height, width] or [height, width, 3] to the model's layout and type."""
        if self.colour == "gray":
            pixels = pixels[:, :, None]
        if self.colour == "bgr":
            pixels = pixels[:, :, ::-1]
        if self.type != np.uint8:
            pixels = ((pixels.astype(np.float32) * self.scale - self.mean) / self.std).astype(self.type)
        if self.channels_first:
            pixels = pixels.transpose(2, 0, 1)
        return np.ascontiguousarray(pixels)
