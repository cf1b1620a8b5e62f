package findings

import (
	"encoding/json"
	"io"
)

// Document is what --json prints: the findings, and what the server would say.
type Document struct {
	Findings []Finding `json:"findings"`
	Verdict  string    `json:"verdict"`
}

// NewDocument makes the document; a list without findings is [] and not null. What
// the server says becomes part of the message, for readers that show nothing else.
func NewDocument(all []Finding, verdict string) Document {
	d := Document{Findings: make([]Finding, len(all)), Verdict: verdict}
	for i, f := range all {
		if f.Server != "" {
			f.Message += " (Triton: " + f.Server + ")"
		}
		d.Findings[i] = f
	}
	return d
}

// WriteJSON writes a document, or one that holds it among others.
func WriteJSON(w io.Writer, document any) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	return e.Encode(document)
}
