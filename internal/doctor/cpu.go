package doctor

import (
	"bufio"
	"os"
	"strings"

	"golang.org/x/sys/cpu"
)

// cpuFeatures lists the instruction sets of this processor that matter to kernels.
func cpuFeatures() []string {
	found := []string{}
	for _, f := range []struct {
		name string
		has  bool
	}{
		{"SSE4.1", cpu.X86.HasSSE41}, {"AVX", cpu.X86.HasAVX}, {"AVX2", cpu.X86.HasAVX2}, {"FMA", cpu.X86.HasFMA},
		{"AVX512F", cpu.X86.HasAVX512F}, {"AVX512BW", cpu.X86.HasAVX512BW}, {"AVX512VNNI", cpu.X86.HasAVX512VNNI},
		{"AVX512BF16", cpu.X86.HasAVX512BF16}, {"AMX-INT8", cpu.X86.HasAMXInt8}, {"AMX-BF16", cpu.X86.HasAMXBF16},
		{"ASIMD", cpu.ARM64.HasASIMD}, {"FP16", cpu.ARM64.HasASIMDHP}, {"DOTPROD", cpu.ARM64.HasASIMDDP}, {"SVE", cpu.ARM64.HasSVE}, {"SVE2", cpu.ARM64.HasSVE2},
	} {
		if f.has {
			found = append(found, f.name)
		}
	}
	return found
}

// processor is the name that the system has for the processor; "" when it has none.
func (m machine) processor() string {
	f, err := os.Open(m.at("proc/cpuinfo"))
	if err != nil {
		return ""
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		key, value, _ := strings.Cut(lines.Text(), ":")
		if strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
