"""Pictures as files (PNG, JPEG, WebP, BMP, GIF) to the tensor of a model.

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

FORMATS = ("PNG", "JPEG", "WEBP", "BMP", "GIF")  # others have no business here: one of them starts programs
EIGHT_BITS = ("1", "L", "LA", "P", "PA", "RGB", "RGBA", "RGBX", "CMYK", "YCbCr")
SIXTEEN_BITS = ("I", "I;16", "I;16B", "I;16L")  # as Pillow calls the grays of such a PNG
LONGEST_SIDE = 65535  # of JPEG; rows cost, however short they are
SCALING_ROOM = 64 << 20  # pixels that a picture may always take on its way to the model's size

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
        Image.MAX_IMAGE_PIXELS = None  # max_pixels is the bound
        self.room = max(SCALING_ROOM, self.max_pixels, self.width * self.height)
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
        try:
            picture, scale, offset = self.resize(picture)
        except ValueError as fault:
            raise ValueError("picture %d of the request cannot be brought to the model's size: %s" % (number, fault))
        geometry = np.array([*scale, *offset, width, height], np.float32)
        return self.normalise(np.asarray(picture)), geometry

    def decode(self, file):
        picture = Image.open(io.BytesIO(file), formats=FORMATS)  # reads the header alone
        if picture.width * picture.height > self.max_pixels:
            raise ValueError("it has %d x %d pixels, and max_pixels is %d" % (*picture.size, self.max_pixels))
        if max(picture.size) > LONGEST_SIDE:
            raise ValueError("it has %d x %d pixels, and a side has at most %d" % (*picture.size, LONGEST_SIDE))
        if self.upright:
            kind, picture = picture.format, ImageOps.exif_transpose(picture)
            picture.format = kind
        return self.to_bytes(picture).convert(MODES[self.colour])

    @staticmethod
    def to_bytes(picture):
        """A picture whose values are 0 to 255. Of 16 bits the upper eight stay, as Pillow does it with colours."""
        if picture.mode in EIGHT_BITS:
            return picture
        if picture.mode in SIXTEEN_BITS and picture.format == "PNG":
            return Image.fromarray((np.asarray(picture).astype(np.uint16) >> 8).astype(np.uint8))
        raise ValueError("it has pixels of the kind %s, of which nothing says what black and white are" % picture.mode)

    # The ways to the model's size. Each gives the picture, and scale and offset (x, y).

    def scaled(self, picture, width, height):
        """Another size. Pillow changes the width first, so that the higher of both heights counts."""
        if width * max(height, picture.height) > self.room:
            raise ValueError(
                "it has %d x %d pixels, and scaling it to %d x %d takes more than %d" % (*picture.size, width, height, self.room)
            )
        return picture.resize((width, height), self.filter)

    def stretch(self, picture):
        scale = self.width / picture.width, self.height / picture.height
        return self.scaled(picture, self.width, self.height), scale, (0, 0)

    def crop(self, picture):
        """The shorter side becomes short_side, and the middle is cut out."""
        factor = self.short_side / min(picture.size)
        width, height = (max(int(side * factor), self.short_side) for side in picture.size)
        left, top = round((width - self.width) / 2), round((height - self.height) / 2)
        scale = width / picture.width, height / picture.height
        picture = self.scaled(picture, width, height)
        return picture.crop((left, top, left + self.width, top + self.height)), scale, (-left, -top)

    def letterbox(self, picture):
        """The whole picture, with bars where its form is another."""
        factor = min(self.width / picture.width, self.height / picture.height)
        width, height = (max(1, round(side * factor)) for side in picture.size)
        left, top = (self.width - width) // 2, (self.height - height) // 2
        scale = width / picture.width, height / picture.height
        board = Image.new(picture.mode, (self.width, self.height), (self.pad,) * len(picture.getbands()))
        board.paste(self.scaled(picture, width, height), (left, top))
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
