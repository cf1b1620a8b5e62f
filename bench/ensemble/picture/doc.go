// Package picture reads pictures from files and brings them to other sizes, with the
// numbers that Pillow gives: pipelines of npuctl config ensemble prepare pictures with
// Pillow in the server, and with this package in npuctl bench, and a model must see the
// same in both.
//
//	decode.go       which format it is, its size before anything is made, and bytes of
//	                red, green and blue, or of gray, out of what the decoders give
//	chroma.go       the colours of JPEG and WebP, whose planes of chroma are smaller
//	gif.go          the first frame of a GIF, on its canvas
//	orientation.go  which side of a picture is up, from its EXIF
//	resize.go       other sizes, with Pillow's filters
//
// # How close it is
//
// PNG, GIF, BMP and WebP give Pillow's bytes. So does scaling, with all filters: it
// computes in the same fixed point (numbers of Pillow 13; older ones round some pictures
// in another order, see [Pixels.Resize]). JPEG does not quite, since the standard library
// rounds its cosine transform otherwise than libjpeg: bytes differ by 1, now and then by
// 2 or 3, and those of files with four inks (CMYK) by more where colours change.
//
// Transparency is dropped, as Pillow does it: what lies under it is seen. Of colours of
// 16 bits the upper eight count.
//
// # What it does not read
//
// Animated WebP, BMP of run-length codes and of unusual masks, JPEG with arithmetic
// coding, files that end too soon or whose checksums are wrong. Pillow reads some of
// these. The orientation is taken from EXIF alone, and not
// from XMP.
//
// # Hostile files
//
// The sizes in all headers are held against the limit before memory for pixels is made,
// so that a file of some bytes costs no more than a picture of [Options.MaxPixels].
package picture
