package tritonserver

import (
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
)

// Lines of the server's log that complain: its own of severity E, those of its protobuf
// library, and the last words of C++.
var (
	errorLine    = regexp.MustCompile(`^E\d{4} \S+ \d+ \S+\] (.*)$`)
	protobufLine = regexp.MustCompile(`Error parsing text-format .*$`)
	lastLine     = regexp.MustCompile(`^(terminate called|  what\(\)|.*Assertion|.*FATAL)`)
)

// complaints gives what a part of a log complains of, in its order. Texts are quoted
// there as in JSON.
func complaints(log string) (out []string) {
	for line := range strings.Lines(log) {
		line = strings.TrimRight(line, "\r\n")
		if m := errorLine.FindStringSubmatch(line); m != nil {
			text := m[1]
			var plain string
			if json.Unmarshal([]byte(text), &plain) == nil {
				text = plain
			}
			if !strings.Contains(text, "CudaDriverHelper") { // said on every machine without a GPU
				out = append(out, text)
			}
			continue
		}
		if text := protobufLine.FindString(line); text != "" {
			out = append(out, text)
		} else if lastLine.MatchString(line) {
			out = append(out, strings.TrimSpace(line))
		}
	}
	return out
}

var (
	pollPrefix = regexp.MustCompile(`(?s)^Poll failed for model directory '.*?': `)
	loadPrefix = regexp.MustCompile(`(?s)^failed to load '(.*?)' version -?\d+: `)
	callPrefix = regexp.MustCompile(`(?s)^(failed to load '.*?', |load failed for model '.*?': (version -?\d+ is at UNAVAILABLE state: )?)`)
)

// causeOf chooses the first cause of a failed load. The answer to the call often only
// says that it failed; the log says why.
func causeOf(model, answer string, said []string) string {
	var parse, poll, own, other []string
	for _, text := range said {
		m := loadPrefix.FindStringSubmatch(text)
		switch {
		case strings.HasPrefix(text, "Error parsing"):
			parse = append(parse, text)
		case pollPrefix.MatchString(text):
			poll = append(poll, pollPrefix.ReplaceAllString(text, ""))
		case m != nil && m[1] == model:
			own = append(own, strings.TrimPrefix(text, m[0]))
		case m != nil:
			other = append(other, "step model "+m[1]+": "+strings.TrimPrefix(text, m[0]))
		}
	}
	switch {
	case len(parse) > 0: // poll then only says that the file does not parse
		return parse[0]
	case len(poll) > 0:
		return poll[0]
	case len(own) > 0:
		return own[0]
	case len(other) > 0:
		return other[0]
	}
	return strings.TrimRight(callPrefix.ReplaceAllString(answer, ""), "; \n")
}

var (
	parsePlace    = regexp.MustCompile(`^Error parsing text-format [\w.]+: (\d+):(\d+):`)
	backendAbsent = regexp.MustCompile(`unable to find backend library for backend '([^']*)'`)
)

// placeIn gives the place in the configuration that a cause names.
func placeIn(cause string) (line, column int) {
	m := parsePlace.FindStringSubmatch(cause)
	if m == nil {
		return 0, 0
	}
	line, _ = strconv.Atoi(m[1])
	column, _ = strconv.Atoi(m[2])
	return line, column
}

// missingBackend names the backend that a cause says is not installed.
func missingBackend(cause string) string {
	if m := backendAbsent.FindStringSubmatch(cause); m != nil {
		return m[1]
	}
	return ""
}
