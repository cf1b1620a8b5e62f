package infer

import "github.com/npuctl/npuctl/onnx"

// Cause is one reason why a dim is no number.
type Cause struct {
	// Symbol is the unknown as [Dim.String] shows it: a name of the model, or ?3.
	Symbol string
	// Input is the input of the main graph whose declaration leaves the size
	// open; nil when Node does.
	Input *onnx.Value
	// Node is the node whose result depends on data, or of which too little is known.
	Node *onnx.Node
}

// Causes lists the unknowns that d is made of, each once.
func (i *Inference) Causes(d Dim) []Cause {
	var causes []Cause
	seen := map[string]bool{}
	i.addCauses(d, seen, &causes)
	return causes
}

func (i *Inference) addCauses(d Dim, seen map[string]bool, causes *[]Cause) {
	for _, t := range d.terms() {
		for _, s := range t.factors {
			if seen[s.key] {
				continue
			}
			seen[s.key] = true
			switch s.operation {
			case opName:
				*causes = append(*causes, i.named[s])
			case opNameless:
				*causes = append(*causes, i.causes[s.newest-1])
			default:
				i.addCauses(s.a, seen, causes)
				i.addCauses(s.b, seen, causes)
			}
		}
	}
}
