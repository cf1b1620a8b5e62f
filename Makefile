GO ?= go

.PHONY: emulator

# Builds npuctl, and the CANN emulator with its own compiler (CC, CXX, or gcc and g++), into dist/. Then, in a shell:
# eval "`dist/npuctl emulator env dist/emulator`"
emulator:
	$(GO) build -o dist/npuctl ./cmd/npuctl
	dist/npuctl emulator build dist/emulator
