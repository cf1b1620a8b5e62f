package project

import (
	"go.yaml.in/yaml/v3"

	"github.com/npuctl/npuctl/gears"
	"github.com/npuctl/npuctl/internal/yamlfile"
)

// DecodeYAML reads the section model: a path, or its fields.
func (m *Model) DecodeYAML(d *yamlfile.Decoder, n *yaml.Node) error {
	switch n.Kind {
	case yaml.ScalarNode:
		m.Path = n.Value
		return nil
	case yaml.SequenceNode:
		return d.Refuse(n, "one model is wanted here: its path, or path, batch, dims, input_shapes and bind").
			With("name several on the command line")
	}
	return d.Fields(n, m)
}

// Gears are gears as --gears takes them.
type Gears struct{ Text string }

// DecodeYAML reads the section gears: a text, or a list of numbers, texts or lists
// of numbers.
func (g *Gears) DecodeYAML(d *yamlfile.Decoder, n *yaml.Node) (err error) {
	g.Text, err = gears.DecodeList(d, n)
	return err
}
