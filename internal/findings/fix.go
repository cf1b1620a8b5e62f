package findings

import (
	"fmt"
	"os"
	"slices"

	"github.com/npuctl/npuctl/configgen"
	"github.com/npuctl/npuctl/internal/atomicfile"
)

// Fix makes the edits of findings in their files, and says which files it changed.
// Of edits that overlap the first is made; checking again and fixing again makes the
// others.
func Fix(all []Finding) (changed []string, err error) {
	edits := map[string][]Edit{}
	for _, f := range all {
		if fits(edits[f.File], f.Edits) {
			edits[f.File] = append(edits[f.File], f.Edits...)
		}
	}
	for _, f := range all {
		if len(edits[f.File]) == 0 || slices.Contains(changed, f.File) {
			continue
		}
		if err := fixFile(f.File, edits[f.File]); err != nil {
			return changed, err
		}
		changed = append(changed, f.File)
	}
	return changed, nil
}

// fits says whether edits overlap none that are planned.
func fits(planned, more []Edit) bool {
	for _, a := range more {
		for _, b := range planned {
			if a.Start < b.End && b.Start < a.End || a.Start == b.Start {
				return false
			}
		}
	}
	return true
}

func fixFile(path string, edits []Edit) error {
	data, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	text, err := configgen.ApplyEdits(string(data), edits)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return atomicfile.Write(path, func(f *os.File) error {
		_, err := f.WriteString(text)
		return err
	})
}
