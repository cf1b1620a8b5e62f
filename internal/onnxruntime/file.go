package onnxruntime

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
)

// The place of the processor in the header of an ELF file.
const (
	elfMagic      = "\x7fELF"
	elfMachine    = 18
	elfHeaderSize = 20
)

// elfMachines has the numbers that ELF gives to the processors of Go.
var elfMachines = map[uint16]string{3: "386", 40: "arm", 62: "amd64", 183: "arm64", 21: "ppc64le", 22: "s390x", 243: "riscv64", 258: "loong64"}

// checkFile says why the file at path cannot be a shared library of the given
// system and processor, in clearer words than the dynamic linker has. It looks into
// files on Linux only; elsewhere the linker's own words must do.
func checkFile(path, system, processor string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.Mode().IsRegular() {
		return errors.New("it is not a file")
	}
	if system != "linux" {
		return nil
	}
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	header := make([]byte, elfHeaderSize)
	if _, err := io.ReadFull(file, header); err != nil || string(header[:len(elfMagic)]) != elfMagic {
		return errors.New("it is not a shared library (no ELF header)")
	}
	if got := elfMachines[binary.LittleEndian.Uint16(header[elfMachine:])]; got != processor {
		return fmt.Errorf("it is made for the processor %s, this machine is %s", cmp.Or(got, "of another kind"), processor)
	}
	return nil
}
