"""Writes the arrays of this folder with numpy and ml_dtypes.

Run here: python3 generate.py (made with numpy 2.4.6 and ml_dtypes 0.6.0).
"""

import ml_dtypes
import numpy as np

counting = np.arange(6).reshape(2, 3)

np.save("float32.npy", counting.astype(np.float32) / 2)
np.save("float64_big_endian.npy", (counting / 2).astype(">f8"))
np.save("float16.npy", counting.astype(np.float16))
np.save("int16_big_endian.npy", (counting - 3).astype(">i2"))
np.save("uint64.npy", np.array([2**64 - 1], np.uint64))
np.save("int64_fortran.npy", np.asfortranarray(counting))
np.save("int32_fortran_3d.npy", np.asfortranarray(np.arange(24, dtype=np.int32).reshape(2, 3, 4)))
np.save("bool.npy", np.array([True, False, True]))
np.save("complex64_big_endian.npy", np.array([1 + 2j, -3j]).astype(">c8"))
np.save("complex128.npy", np.array([1 + 2j]))
np.save("scalar.npy", np.array(7, np.int32))
np.save("empty.npy", np.zeros((2, 0, 3), np.float32))
np.save("text.npy", np.array([["né", ""], ["日本", "😀 x"]]))
np.save("text_big_endian.npy", np.array(["né", "😀"]).astype(">U2"))
np.save("bytes.npy", np.array([b"abc", b"\xff", b""]))
np.save("bfloat16_unnamed.npy", np.array([1, -2, np.inf]).astype(ml_dtypes.bfloat16))
np.save("int4_unnamed.npy", np.array([-8, -1, 0, 7]).astype(ml_dtypes.int4))
np.save("uint4_unnamed.npy", np.array([0, 8, 15]).astype(ml_dtypes.uint4))
np.save("e4m3fn_unnamed.npy", np.array([1, -448, np.nan]).astype(ml_dtypes.float8_e4m3fn))
np.save("e5m2.npy", np.array([1, -2]).astype(ml_dtypes.float8_e5m2))

with open("version2.npy", "wb") as f:
    np.lib.format.write_array(f, counting.astype(np.int8), version=(2, 0))
with open("version3.npy", "wb") as f:
    np.lib.format.write_array(f, counting.astype(np.uint8), version=(3, 0))

np.save("refused_object.npy", np.array([{}, None], object), allow_pickle=True)
np.save("refused_date.npy", np.array(["2026-01-01"], "datetime64[D]"))
np.save("refused_fields.npy", np.zeros(2, [("a", "<f4"), ("b", "<i4")]))
np.save("refused_longdouble.npy", np.ones(2, np.longdouble))

np.savez("stored.npz", x=counting, **{"deep/name": np.array(1.5)})
np.savez_compressed("deflated.npz", zeros=np.zeros(1000, np.float32), one=np.array([True]))
