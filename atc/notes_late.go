package atc

import (
	"os"
	"regexp"
	"strconv"
	"strings"
)

// What stands here only the operator engines read, minutes into a compile: ATC itself
// lets any value pass, so that a mistake is a note and no refusal.

// lateFileFlags name files and folders that the engines read.
var lateFileFlags = flags("modify_mixlist", "customize_dtypes", "fusion_switch_file", "op_debug_config", "compression_optimize_conf", "op_bank_path", "mdl_bank_path")

func lateFiles(c *checker) (out []Diagnosis) {
	for _, flag := range lateFileFlags {
		path := c.value(flag)
		if path == "" || c.spoilt[flag] {
			continue
		}
		if _, err := os.Stat(c.path(path)); err != nil {
			out = append(out, note(flag, "--%s=%s: %s; the engines will miss it late in the compile", flag, path, reasonOf(err)).
				about(path).with("%s", c.fileRemedy(path)))
		}
	}
	return out
}

// lateForm is the form of a flag's value, and its name in words.
type lateForm struct {
	form  *regexp.Regexp
	words string
	// also is what a form cannot say; nil is nothing.
	also func(value string) bool
}

// lateForms are the forms that the user guide states of values the engines read.
var lateForms = map[string]lateForm{
	"device_id":                   {regexp.MustCompile(`^\d+$`), "the number of a device", nil},
	"enable_small_channel":        {regexp.MustCompile(`^[01]$`), "0 or 1", nil},
	"optimization_switch":         {regexp.MustCompile(`^[^:;]+:(?:on|off)(?:;[^:;]+:(?:on|off))*;?$`), "PASS:on and PASS:off, with ; between them", nil},
	"multi_stream_parallel_mode":  {regexp.MustCompile(`^(?:cv|[Nn]one|(?:LoadBalance|MainStream):\d+)$`), "cv, LoadBalance:N or MainStream:N, with N from 1 to 64", streamsFit},
	"h2d_overlapped_with_compute": {regexp.MustCompile(`^(?:[01]|\d+(?:,\d+)*,?)$`), "0, 1, or sizes that grow, such as 44,64,68", sizesGrow},
}

func streamsFit(value string) bool {
	_, number, hasNumber := strings.Cut(value, ":")
	n, err := strconv.Atoi(number)
	return !hasNumber || err == nil && n >= 1 && n <= 64
}

func sizesGrow(value string) bool {
	last := -1
	for _, word := range strings.Split(strings.TrimSuffix(value, ","), ",") {
		n, err := strconv.Atoi(word)
		if err != nil || n <= last {
			return false
		}
		last = n
	}
	return true
}

func valuesThatFail(c *checker) (out []Diagnosis) {
	for _, f := range flagTable {
		late, isLate := lateForms[f.Name]
		value := c.value(f.Name)
		if !isLate || !c.isSet(f.Name) || value == "" || c.spoilt[f.Name] {
			continue
		}
		if !late.form.MatchString(value) || late.also != nil && !late.also(value) {
			out = append(out, note(f.Name, "--%s=%s: the guide wants %s; the engines look at it late in the compile", f.Name, value, late.words))
		}
	}
	return out
}

// bankLetters notes Chinese characters in the paths that, other than all others, may not
// have any.
func bankLetters(c *checker) (out []Diagnosis) {
	for _, flag := range flags("op_bank_path", "mdl_bank_path", "singleop") {
		if path := c.value(flag); strings.ContainsFunc(path, func(r rune) bool { return r >= 0x4E00 && r <= 0x9FA5 }) {
			out = append(out, note(flag, "--%s=%s: this path may have no Chinese characters", flag, path).with("move it to a path of Latin letters and digits"))
		}
	}
	return out
}
