//go:build !linux

package report

func cpuName() string { return "" }
