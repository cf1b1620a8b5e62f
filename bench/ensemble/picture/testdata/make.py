"""Makes the pictures of this folder, with Pillow: small ones of every kind that matters.

    python make.py

Numbers in the golden files of package part come from these, so that both are made anew
together.
"""

import os

import numpy as np
from PIL import Image

WIDTH, HEIGHT = 43, 29


def scene(width=WIDTH, height=HEIGHT, seed=0):
    """Slopes, an edge and some grain."""
    y, x = np.mgrid[0:height, 0:width].astype(np.float64)
    u, v = x / width, y / height
    out = np.stack([127 + 90 * np.sin(a * u + b * v + seed) + 30 * np.cos(9 * u * v) for a, b in ((5, 2), (-3, 6), (8, -4))], axis=2)
    out[(u - 0.5) ** 2 + (v - 0.4) ** 2 < 0.04] = (230, 40, 20)
    out += np.random.RandomState(seed + 1).uniform(-6, 6, out.shape)
    return np.clip(out, 0, 255).astype(np.uint8)


def main():
    os.chdir(os.path.dirname(os.path.abspath(__file__)))
    rgb = Image.fromarray(scene())
    gray = rgb.convert("L")
    rgba = rgb.convert("RGBA")
    rgba.putalpha(Image.fromarray(scene(seed=3)[:, :, 0]))
    deep = (scene(seed=5)[:, :, 1].astype(np.uint16) * 257) ^ 0x5A
    palette = rgb.quantize(50)

    rgb.save("rgb.png")
    rgba.save("rgba.png")
    gray.save("gray.png")
    gray.convert("1").save("bits.png")
    gray.convert("LA").save("gray_alpha.png")
    Image.fromarray(deep).save("gray16.png")
    palette.save("palette.png", transparency=3)
    rgb.save("transparent_colour.png", transparency=(230, 40, 20))

    rgb.save("rgb.bmp")
    palette.save("palette.bmp")
    gray.convert("1").save("bits.bmp")
    rgba.save("rgba.bmp")

    palette.save("palette.gif", transparency=7)
    gray.save("gray.gif")
    still = open("palette.gif", "rb").read()
    # A first frame that is smaller than the screen, and one that is larger.
    for name, size in (("small_frame.gif", (WIDTH + 6, HEIGHT + 4)), ("large_frame.gif", (WIDTH - 9, HEIGHT - 3))):
        open(name, "wb").write(still[:6] + b"".join(n.to_bytes(2, "little") for n in size) + still[10:])
    frames = [palette, Image.fromarray(scene(seed=9)).quantize(50)]
    frames[0].save("animated.gif", save_all=True, append_images=frames[1:], duration=50)

    rgb.save("444.jpg", quality=92, subsampling=0)
    rgb.save("422.jpg", quality=92, subsampling=1)
    rgb.save("420.jpg", quality=92, subsampling=2)
    rgb.save("progressive.jpg", quality=75, progressive=True)
    gray.save("gray.jpg", quality=90)
    rgb.convert("CMYK").save("inks.jpg", quality=95)
    Image.fromarray(scene(4, 9)).save("narrow.jpg", quality=95, subsampling=2)
    # 4:2:2 with both axes changed round decodes to a jumble, as 4:4:0.
    square = Image.fromarray(scene(32, 32))
    square.save("440.jpg", quality=92, subsampling=1)
    data = bytearray(open("440.jpg", "rb").read())
    at = data.index(b"\xff\xc0") + 4 + 7
    assert data[at] == 0x21
    data[at] = 0x12
    open("440.jpg", "wb").write(data)

    rgb.save("lossless.webp", lossless=True)
    rgba.save("lossless_alpha.webp", lossless=True)
    rgb.save("lossy.webp", quality=80)
    rgba.save("lossy_alpha.webp", quality=80)

    small = Image.fromarray(scene(12, 7, seed=2))
    for orientation in range(1, 9):
        exif = Image.Exif()
        exif[0x0112] = orientation
        small.save("turned%d.png" % orientation, exif=exif)
    exif = Image.Exif()
    exif[0x0112] = 6
    exif[0x010F] = "maker"
    small.save("turned.jpg", quality=95, subsampling=0, exif=exif)
    small.save("turned.webp", lossless=True, exif=exif)

    Image.fromarray(scene(160, 90, seed=4)).save("wide.png")
    Image.fromarray(scene(50, 131, seed=6)).save("high.png")


main()
