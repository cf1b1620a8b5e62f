//go:build !unix

package atc

import "os"

func signalOf(*os.ProcessState) string { return "" }
